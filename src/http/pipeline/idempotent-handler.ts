import { createHash } from 'node:crypto'
import type { Database } from '../../db/db.ts'
import { type Detail, type ErrorWord, Fault, fail } from '../../errors.ts'
import { runIdempotent, type StoredResponse } from '../../idempotency/run-idempotent.ts'
import { refusalOf } from './reply.ts'
import type { Call, HandlerResult, Route } from './route.ts'

const keyCharacters = 255
const replayedHeader = { 'Idempotency-Replayed': 'true' }

/**
 * Handles a request with an Idempotency-Key: in one transaction with the key and with the answer that is kept for 24 hours.
 * `sent` is what the body was bound from. Refusals below 500 are answers, too; what fails with 429 or 5xx leaves
 * no key behind. Throws a Fault: 400 for a malformed key, 409 while its first request runs, 422 for another request.
 */
export async function idempotentHandler(
  row: Route,
  call: Call,
  key: string | string[],
  sent: Buffer | string,
): Promise<HandlerResult> {
  const { caller, signal } = call
  const request = {
    organization_id: caller.organization.id,
    id: digest([caller.subject, row.method, row.path, call.params, readKey(key)]),
    request_sha256: digest([call.boundFrom, ...preferencesOf(row, call)], sent),
  }
  const { response, replayed } = await runIdempotent(call.db, request, db => keep(row, { ...call, db }), signal)
  return answerFrom(replayed ? { ...response, headers: { ...response.headers, ...replayedHeader } } : response)
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Headers arrive as Latin-1. Bytes that are UTF-8 are counted as the characters that they stand for. */
function countCharacters(header: string): number {
  try {
    return [...utf8.decode(Buffer.from(header, 'latin1'))].length
  } catch {
    return header.length
  }
}

function readKey(key: string | string[]): string {
  const text = String(key)
  const characters = countCharacters(text)
  if (characters >= 1 && characters <= keyCharacters) return text
  return fail('invalid_parameter', 'The Idempotency-Key is malformed.', {
    details: [{ path: '/Idempotency-Key', message: `must have 1 to ${keyCharacters} characters` }],
  })
}

/** SHA-256. JSON has no NUL, so the parts cannot be moved into one another. */
function digest(parts: unknown[], sent: Buffer | string = ''): Buffer {
  return createHash('sha256').update(JSON.stringify(parts)).update('\0').update(sent).digest()
}

/** Those that make a difference on this row. */
function preferencesOf({ versioned, prefers }: Route, { preferences }: Call): unknown[] {
  const { if_match, representation, references } = preferences
  return [
    versioned ? if_match : null,
    prefers?.includes('return=representation') ? representation : null,
    prefers?.includes('references=strict') ? references : null,
  ]
}

async function keep(row: Route, call: Call & { db: Database }): Promise<StoredResponse> {
  try {
    const answer = await row.handle(call)
    if ('stream' in answer || 'parts' in answer) throw new Error('an answer in parts cannot be kept')
    const body = 'json' in answer ? answer.json : JSON.stringify(answer.data)
    return { status: answer.status, headers: answer.headers ?? {}, body }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    const { word, status, message, details, headers = {} } = refusalOf(error, row.statuses)
    if (status >= 500 || status === 429) throw error
    return { status, headers, body: JSON.stringify({ word, message, details }) }
  }
}

type KeptRefusal = { word: ErrorWord; message: string; details: Detail[] }

/** A refusal is written anew: `request_id` in its body is that of the request it answers. */
function answerFrom({ status, headers, body }: StoredResponse): HandlerResult {
  if (status < 400) return { status, headers, json: body }
  throw new Fault({ ...(JSON.parse(body) as KeptRefusal), status, headers })
}

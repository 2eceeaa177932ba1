import { hash } from 'node:crypto'
import type { Context } from '../../db/context.ts'
import { keyedTransaction } from '../../idempotency/keyed-transaction.ts'
import { type Call, type Keyed, type StoredResponse, sequenceHeader, type Written } from '../../route/call.ts'
import type { HandlerResult } from '../../route/result.ts'
import type { Route } from '../../route/route.ts'
import { type Detail, type ErrorCode, Fault, refuse } from '../../values/errors.ts'
import { payloadToJson, refusalOf } from './reply.ts'

const maxKeyCharacters = 255
/** The header of a replayed response. */
export const replayedHeader = 'Idempotency-Replayed'

/**
 * Handles a request with an Idempotency-Key. One transaction stores the write, the key and the response, which is kept
 * for 24 hours. `source` is the text that the request was bound from. A refusal below 500 is stored too; 429 and 5xx
 * store no key. Throws a Fault: 400 for a malformed key, 409 while the first request with the key runs, 422 if the key
 * belongs to another request.
 */
export async function idempotentHandler(
  row: Route,
  call: Call,
  { key, source }: { key: string | string[]; source: Buffer | string },
): Promise<HandlerResult> {
  const handle = (own: Call): Promise<HandlerResult> => row.handle(own as never)
  const { caller, signal, written } = call
  const id = digest([caller.identity, row.method, row.path, call.params, readKey(key)])
  const request_sha256 = digest([call.boundFrom, ...preferencesOf(row, call)], source)
  let work = (context: Context) => handle({ ...call, context })
  if (row.keepsResponses?.(call)) {
    const keyed: Keyed = {
      key: { id: id.toString('hex'), request_sha256: request_sha256.toString('hex') },
      hasBegun: false,
      toKept: handle => toKept(row, handle, written),
      replay,
    }
    // A response without a write is stored as well, if the key is free.
    try {
      const result = await handle({ ...call, keyed })
      if (keyed.hasBegun) return withSequence(result, written)
      work = async () => result
    } catch (error) {
      if (keyed.hasBegun || !(error instanceof Fault)) throw error
      work = () => Promise.reject(error)
    }
  }
  const run = async (context: Context) => {
    const handle = await settle(work(context))
    return toKept(row, handle, written) ?? (handle() as never)
  }
  const { response, replayed } = await keyedTransaction(call.context, { id, request_sha256 }, run, signal)
  return replayed ? replay(response) : restoreResult(response)
}

const replay = (response: StoredResponse) =>
  restoreResult({ ...response, headers: { ...response.headers, [replayedHeader]: 'true' } })

/**
 * Returns a function that returns the result of the work, or throws the error of the work. The stored response is sent
 * in its place.
 */
const settle = (work: Promise<HandlerResult>): Promise<() => HandlerResult> =>
  work.then(
    result => {
      if ('release' in result) result.release?.()
      return () => result
    },
    error => () => {
      throw error
    },
  )

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Counts the characters of a header, which arrives as Latin-1. Bytes that are valid UTF-8 count as UTF-8 characters.
 */
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
  if (characters >= 1 && characters <= maxKeyCharacters) return text
  return refuse('invalid_parameter', 'The Idempotency-Key is malformed.', {
    details: [{ path: '/Idempotency-Key', message: `must have 1 to ${maxKeyCharacters} characters` }],
  })
}

/** The SHA-256 of the parts and the source. JSON has no NUL, so the boundary between them is unambiguous. */
function digest(parts: unknown[], source: Buffer | string = ''): Buffer {
  const text = `${JSON.stringify(parts)}\0`
  const hashed = typeof source === 'string' ? text + source : Buffer.concat([Buffer.from(text), source])
  return hash('sha256', hashed, 'buffer')
}

/** The preferences that change the result of this endpoint. */
function preferencesOf({ versioned, prefers }: Route, { preferences }: Call): unknown[] {
  const { if_match, representation, references, erased, handling } = preferences
  return [
    versioned ? if_match : null,
    prefers?.includes('return=representation') ? representation : null,
    prefers?.includes('references=strict') ? references : null,
    // An absent preference adds no element, so other digests stay equal.
    ...(prefers?.includes('erased=recreate') && erased === 'recreate' ? [erased] : []),
    ...(prefers?.includes('handling=strict') && handling === 'strict' ? [handling] : []),
  ]
}

/**
 * The stored form of a result or a refusal, with the number of its change. Undefined for a refusal that is not stored.
 * Throws other errors.
 */
function toKept({ statuses }: Route, handle: () => HandlerResult, written: Written): StoredResponse | undefined {
  try {
    const result = withSequence(handle(), written)
    if ('stream' in result || 'parts' in result || 'body' in result)
      throw new Error('only a response of JSON in one part can be stored')
    return { status: result.status, headers: result.headers ?? {}, body: payloadToJson(result) }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    // The write is not committed yet. If its response cannot be read, it is rolled back.
    if (error.refusal.outcome === 'done') throw error.cause
    const { code, status, message, details, reason, headers = {} } = refusalOf(error, statuses)
    if (status >= 500 || status === 429) return undefined
    return { status, headers, body: JSON.stringify({ code, message, details, reason }) }
  }
}

/** Adds the number that the write has set. A replayed response already has its number. */
const withSequence = (result: HandlerResult, { sequence }: Written): HandlerResult =>
  sequence > 0 ? { ...result, headers: { ...result.headers, [sequenceHeader]: `${sequence}` } } : result

type StoredRefusal = { code: ErrorCode; message: string; details: Detail[]; reason?: 'erased' }

/** Restores a result. A refusal is rebuilt, so that its body has the `request_id` of the current request. */
function restoreResult({ status, headers, body }: StoredResponse): HandlerResult {
  if (status < 400) return { status, headers, json: body }
  const { code, message, details, reason } = JSON.parse(body) as StoredRefusal
  throw new Fault({ code, message, details, status, headers, ...(reason && { reason }) })
}

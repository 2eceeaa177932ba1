import { questionOf } from '../consents/answers.ts'
import type { Reading, Within } from '../db/context.ts'
import type { Transaction } from '../db/db.ts'
import type { CurrentState, EntityRow, StoredRow, Target } from '../entities/entity-row.ts'
import { readSerializedWithin } from '../entities/read/entity-reader.ts'
import { unlimitedRowBytes } from '../entities/read/pagination.ts'
import type { Change } from '../entities/write/decide/decide.ts'
import { type LinkRow, linksBySource } from '../entities/write/load/load.ts'
import { readLinksSql, readRowsSql } from '../entities/write/load/load-sql.ts'
import { type PlannedChange, storeChanges } from '../entities/write/store/store.ts'
import type { Address } from '../entities/write-request.ts'
import { type Author, changeOrganization, type Locked } from '../organizations/change-organization.ts'
import { type Definitions, peopleStackId } from '../organizations/definitions.ts'
import type { Signal } from '../process/signal.ts'
import type { Call } from '../route/call.ts'
import { buildOtherVersionRefusal, meetsIfMatch } from '../route/entity-tag.ts'
import { personOf } from '../route/person-addresses.ts'
import type { HandlerResult } from '../route/result.ts'
import { createValueRefusal, Fault, pointer } from '../values/errors.ts'
import { continueLeading, leadFirstLinks, type MovedLinks } from './lead-links.ts'
import type { Answering, GivenAt } from './merge-answers.ts'
import type { MergeBody } from './merge-schema.ts'
import { findPeopleSql, readAnswerVersionsSql } from './merge-sql.ts'

/** A request moves links for at most this time, so that it is answered before its deadline. */
const maxMs = 5_000

/**
 * Runs a merge or an unmerge in one transaction, which holds the lock of the head. If many links lead to the person,
 * further transactions move the rest, so that other writes go on. A dry run rolls back the first transaction. Responds
 * with the members of `work`, whose `entities` are JSON texts, and the ETag of the survivor.
 */
export async function runIdentityWrite(
  call: Call<MergeBody>,
  work: (locked: Locked, asked: Asked) => Promise<IdentityResult>,
): Promise<HandlerResult> {
  const { context, caller, body, signal, memory, written, request_id } = call
  const { dry_run = false } = body
  const author = { actor: caller.subject, request_id }
  const asked = { ...fromOf(body), survivor: addressOf(call), author, call }
  const endMs = performance.now() + maxMs
  const release = await memory.take(reservedBytes)
  try {
    const change = { ...author, signal, isDryRun: dry_run, written }
    const result = await changeOrganization(context, change, async locked => {
      const { moved, sequence, ...result } = await work(locked, asked)
      const completed = await leadFirstLinks(locked, result.merge_id, moved)
      return { sequence, result: { ...result, completed } }
    })
    const { entities, survivor_id, version, merge_id, ...members } = result
    call.shown.addAll(peopleStackId, [survivor_id, members.merged.id])
    if (!dry_run && !members.completed) {
      // The merge is stored. If a further set of links fails, the background task continues.
      members.completed = await continueLeading(context, merge_id, { endMs, signal }).catch(() => false)
    }
    const json = JSON.stringify({ dry_run, merge_id: dry_run ? null : merge_id, ...members })
    const people = Object.entries(entities).map(([name, entity]) => `,${JSON.stringify(name)}:${entity}`)
    return {
      status: dry_run || members.completed ? 200 : 202,
      json: `${json.slice(0, -1)}${people.join('')}}`,
      headers: { ETag: `"${version}"` },
      release,
    }
  } catch (error) {
    release()
    throw error
  }
}

/** Memory for two large people: up to 512 KiB of attributes each, and their changes. */
const reservedBytes = 3 * 1_048_576

/**
 * The result of a merge or unmerge. `entities` are JSON texts of people, `version` is that of the survivor, `sequence`
 * the number of the last change, and `moved` are the people whose links now lead to another one.
 */
export type IdentityResult = {
  sequence: number
  merge_id: number
  merged: Target
  changes: object
  moved: MovedLinks
  entities: Record<string, string>
  survivor_id: string
  version: number
}

/** A merge or unmerge as requested: the person of the path, and the one that the body names at `path`. */
export type Asked = { survivor: Address; from: Address; path: string; author: Author; call: Call<MergeBody> }

/** A person with all of its links. */
export type Person = CurrentState & { row: StoredRow }

/** Throws a Fault of 400 unless the body names one identifier. */
function fromOf({ from, from_id }: MergeBody): Pick<Asked, 'from' | 'path'> {
  if ((from === undefined) === (from_id === undefined))
    throw new Fault(createValueRefusal('/from', 'Give either `from` or `from_id`.'))
  return from === undefined
    ? { from: { id: from_id! }, path: '/from_id' }
    : { from: { external_id: from }, path: '/from' }
}

/** The person in the path of a request. */
export function addressOf({ params }: Pick<Call<unknown>, 'params'>): Address {
  const { by, identifier } = personOf(params)
  return { [by]: identifier } as Address
}

/** Finds the people that addresses lead to, in their order. The element of an address without a person is undefined. */
export async function findPeople(
  { db, organization_id }: Reading,
  addresses: readonly Address[],
  signal?: Signal,
): Promise<(Target | undefined)[]> {
  const asked = JSON.stringify(addresses.map((address, position) => ({ position, ...address })))
  const rows = await db.query<Target & { position: number }>(findPeopleSql, [organization_id, asked], signal)
  return addresses.map((_, index) => rows.find(({ position }) => position === index))
}

/** Reads people with all of their links, in the order given. */
export async function readPeople(
  tx: Transaction,
  { organization_id, relationships }: Definitions,
  ids: readonly string[],
): Promise<Person[]> {
  const attribute_ids = [...(relationships.get(peopleStackId)?.values() ?? [])].flat().map(({ id }) => id)
  const addresses = JSON.stringify(ids.map(id => ({ stack_id: peopleStackId, id })))
  const sources = JSON.stringify(ids.map(source_id => ({ source_id, attribute_ids })))
  const [rows, targets] = await Promise.all([
    tx.query<StoredRow>(readRowsSql, [organization_id, addresses]),
    tx.query<LinkRow>(readLinksSql, [organization_id, sources]),
  ])
  const links = linksBySource(targets)
  return ids.map(id => ({ row: rows.find(found => found.id === id)!, links: links.get(id) ?? new Map() }))
}

/**
 * Stores changes of people in rounds: within a round, a name cannot pass from one person to another. Returns the
 * number of the last change.
 */
export async function storeRounds(
  { tx, definitions, at }: Locked,
  author: Author,
  rounds: readonly (readonly PlannedChange[])[],
): Promise<number> {
  let sequence = 0
  for (const changes of rounds) sequence = await storeChanges(tx, definitions, at, author, changes)
  return sequence
}

/** Reads people as JSON, as the transaction sees them. */
export async function readJson(tx: Transaction, definitions: Definitions, ids: string[]): Promise<string[]> {
  const found = await readSerializedWithin(tx, definitions, peopleStackId, ids, unlimitedRowBytes)
  return ids.map(id => found.find(({ identifier }) => identifier === id)!.json!)
}

/** Throws a Fault of 412 if the version of the survivor is not one of those that If-Match names. */
export function checkVersion(row: EntityRow, { preferences: { if_match } }: Call): void {
  if (meetsIfMatch(if_match, row.version)) return
  throw new Fault(
    buildOtherVersionRefusal(
      if_match,
      'The version of the person does not match If-Match. Read the person and retry with its ETag.',
    ),
  )
}

/** Reads the version and number at which each answer of people was given. Sends no statement without answers. */
export async function readGivenAt({ tx, organization_id }: Within, people: readonly Answering[]): Promise<GivenAt> {
  const asked = people.flatMap(({ id, answers }) =>
    Object.entries(answers).map(([key, { person_id = id }]) => ({ person_id, key, ...questionOf(key) })),
  )
  if (asked.length === 0) return () => undefined
  type Given = { position: number; version: number; sequence: number }
  const questions = JSON.stringify(asked.map((each, position) => ({ position, ...each })))
  const rows = await tx.query<Given>(readAnswerVersionsSql, [organization_id, questions])
  const given = new Map(
    rows.map(({ position, ...row }) => [`${asked[position]!.person_id} ${asked[position]!.key}`, row]),
  )
  return (person_id, key) => given.get(`${person_id} ${key}`)
}

type Values = Record<string, unknown>

/** The fields and attribute values that a change writes, without the consents. */
export const fieldChanges = (change: Change | undefined): { path: string; before: unknown; after: unknown }[] =>
  Object.entries(change?.after ?? {}).flatMap(([name, after]) => {
    const before = change?.before?.[name] ?? null
    if (name === 'consents') return []
    if (name !== 'attribute_values') return [{ path: pointer(name), before, after }]
    return Object.entries(after as Values).map(([key, value]) => {
      return { path: pointer(name, key), before: (before as Values | null)?.[key] ?? null, after: value }
    })
  })

import { randomBytes } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import type { Reading, Within } from '../db/context.ts'
import { awaitPipelined, type Database } from '../db/db.ts'
import { type Follower, type News, type Progress, passOverIdle, type Task } from '../followers/follower.ts'
import { buildEntry, leafData } from './entry.ts'
import { readLedgerSigner } from './keys.ts'
import { type AnswerPlace, readOrigin, readStoredLedger, signCheckpoint } from './ledger.ts'
import { organizationOfOrigin } from './note.ts'
import type { LedgerEntry } from './schema.ts'
import {
  deleteErasedAnswersSql,
  findUnsealedSql,
  followerName,
  insertEntriesSql,
  insertErasedAnswersSql,
  insertTilesSql,
  readAnswersSql,
  readLogNameSql,
  readUnsealedOfSql,
  readUnsealedSql,
  storeLedgerSql,
} from './sql.ts'
import { type FullTile, GrowingTree, hashBytes, writeLeafHash } from './tree.ts'

/** The number of changes whose answers one statement reads. */
const changesPerRead = 10_000
/** The maximum number of changes of an organization that are skipped together with those of others. */
const maxPassed = 100
/** One transaction seals about this many answers. One change has at most a few hundred. */
const answersPerBatch = 2_000
/** Hashing this many answers takes the event loop 3 ms. */
const answersPerTurn = 256
/** The pause between two runs for an organization. It limits the cost of sealing, and how late an answer is sealed. */
const pauseMs = 250

const saltBytes = 32

/**
 * The follower that seals the consent answers of every organization. `originName` begins the origin of all ledgers.
 * Entries, tiles and the signed checkpoint commit together with its position, under its lease. A process that dies or
 * loses its lease leaves no trace of an unfinished batch, so no two checkpoints disagree.
 */
export function ledgerFollower({ originName }: { originName: string }): Follower {
  return {
    name: followerName,
    isForEveryOrganization: true,
    maxConcurrent: 4,
    work: task => seal(task, originName),
    passOver: passOverOthers,
  }
}

/** Skips changes without answers. An organization with many new changes is left to its task. */
async function passOverOthers(db: Database, news: readonly News[]) {
  const few = news.filter(({ after, head }) => head - after <= maxPassed)
  const changes = few.flatMap(({ organization_id, after, head }) =>
    Array.from({ length: head - after }, (_, index) => ({ organization_id, sequence: after + 1 + index })),
  )
  const found = await db.query<{ organization_id: number }>(findUnsealedSql, [
    changes.map(({ organization_id }) => organization_id),
    changes.map(({ sequence }) => sequence),
  ])
  const notBeforeMs = Date.now() + pauseMs
  return passOverIdle(few, found, ({ head }) => ({ sequence: head, notBeforeMs }))
}

async function seal(task: Task, originName: string): Promise<Progress> {
  let sealing: Sealing | undefined
  let sequence = task.after
  while (sequence < task.head) {
    if (task.signal.aborted) return { sequence }
    const until = Math.min(task.head, sequence + changesPerRead)
    const { answers, last } = await readAnswers(until, limit =>
      task.db.query<Unsealed>(readUnsealedSql, [task.organization_id, sequence, until, limit]),
    )
    if (answers.length > 0) {
      sealing ??= await beginSealing(task, originName)
      await sealBatch(task, sealing, { answers, last })
    } else if (last < task.head) await task.db.transaction(tx => task.advance(tx, last))
    sequence = last
  }
  return { sequence, notBeforeMs: Date.now() + pauseMs }
}

/** An answer of the consent history. */
export type Answer = Pick<
  LedgerEntry,
  'sequence' | 'person_id' | 'consent_type_id' | 'channel' | 'state' | 'superseded' | 'at'
> & {
  previous_state: boolean | null
  pending: boolean
  undated: boolean
  collected_at: string | null
  evidence: Pick<
    LedgerEntry,
    'method' | 'source' | 'ip' | 'user_agent' | 'text_version' | 'reference' | 'consent_string'
  > | null
  actor: string
  request_id: string
  text_sha256: string | null
}

/** The entry of an answer. */
export function entryOf(organization: string, { evidence, pending, undated, ...answer }: Answer): LedgerEntry {
  const { method, source, ip, user_agent, text_version, reference, consent_string } = evidence ?? {}
  const given = { method, source, ip, user_agent, text_version, reference, consent_string }
  return buildEntry({ organization, ...answer, pending: pending || null, undated: undated || null, ...given })
}

/** An answer to seal, or the position and the leaf of an answer that was erased before. */
type Unsealed = (Answer & { hash: null }) | (AnswerPlace & { hash: Buffer })

/**
 * Reads the answers of changes up to a number: all of them, or those up to the number `last`. Answers of one change
 * stay together.
 */
async function readAnswers<Row extends AnswerPlace>(
  until: number,
  read: (limit: number) => Promise<Row[]>,
): Promise<{ answers: Row[]; last: number }> {
  for (let limit = answersPerBatch; ; limit *= 4) {
    const answers = await read(limit)
    if (answers.length < limit) return { answers, last: until }
    const cut = answers.at(-1)!.sequence
    const whole = answers.filter(({ sequence }) => sequence < cut)
    if (whole.length > 0) return { answers: whole, last: cut - 1 }
  }
}

/**
 * Reads the answers of the changes after a number and up to another one: all of them, or those up to the number `last`.
 */
export const readAnswersBetween = ({ db, organization_id }: Reading, after: number, until: number) =>
  readAnswers(until, limit => db.query<Answer>(readAnswersSql, [organization_id, after, until, limit]))

/** Reads the answers of one change. */
export const readAnswersOf = async (reading: Reading, sequence: number): Promise<Answer[]> =>
  (await readAnswersBetween(reading, sequence - 1, sequence)).answers

/**
 * Stores the unsealed leaves of people before an erasure, so that the ledger loses no entry. Their salts are not
 * stored. The ledger's follower is locked.
 */
export async function keepUnsealedLeaves({ tx, organization_id }: Within, people: string[]): Promise<void> {
  const answers = await tx.query<Answer>(readUnsealedOfSql, [organization_id, people])
  if (answers.length === 0) return
  const [name] = await tx.query<{ organization: string }>(readLogNameSql, [organization_id])
  const leaves = answers.map(answer => leafData(randomBytes(saltBytes), entryOf(name!.organization, answer)))
  await tx.query(insertErasedAnswersSql, [organization_id, ...placeColumns(answers), Buffer.concat(leaves)])
}

const placeColumns = (answers: AnswerPlace[]) =>
  [
    answers.map(({ sequence }) => sequence),
    answers.map(({ consent_type_id }) => consent_type_id),
    answers.map(({ channel }) => channel),
  ] as const

type Sealing = { origin: string; organization: string; tree: GrowingTree }

async function beginSealing(task: Task, originName: string): Promise<Sealing> {
  const [origin, ledger] = await Promise.all([readOrigin(task, originName), readStoredLedger(task)])
  return { origin, organization: organizationOfOrigin(origin), tree: new GrowingTree(ledger?.size, ledger?.edge) }
}

async function sealBatch(
  task: Task,
  { origin, organization, tree }: Sealing,
  { answers, last }: { answers: Unsealed[]; last: number },
) {
  const { db, organization_id } = task
  const first = tree.size
  const at = new Date().toISOString()
  const { salts, leaves, tiles } = await appendAnswers(tree, organization, answers)
  const checkpoint = signCheckpoint(origin, tree, await readLedgerSigner(db))
  await db.transaction(async tx => {
    const inserting = [
      task.advance(tx, last),
      tx.query(insertEntriesSql, [organization_id, first, ...placeColumns(answers), salts, leaves]),
      tx.query(deleteErasedAnswersSql, [organization_id, last]),
      ...(tiles.length > 0 ? [tx.query(insertTilesSql, [organization_id, ...tileColumns(tiles)])] : []),
    ]
    const storing = tx.query(storeLedgerSql, [organization_id, first, tree.size, tree.edge(), checkpoint, at])
    await awaitPipelined([...inserting, storing])
    if ((await storing).length === 0) throw new Error(`the ledger has not the size ${first} any more`)
  })
}

const tileColumns = (tiles: FullTile[]) =>
  [
    tiles.map(({ level }) => level),
    tiles.map(({ index }) => index),
    Buffer.concat(tiles.map(({ data }) => data)),
  ] as const

async function appendAnswers(tree: GrowingTree, organization: string, answers: Unsealed[]) {
  const salts = randomBytes(answers.length * saltBytes)
  const leaves = Buffer.alloc(answers.length * hashBytes)
  const leafHash = Buffer.alloc(hashBytes)
  const tiles: FullTile[] = []
  for (const [position, answer] of answers.entries()) {
    if (position % answersPerTurn === answersPerTurn - 1) await setImmediate()
    const salt = salts.subarray(position * saltBytes, (position + 1) * saltBytes)
    const data = answer.hash === null ? leafData(salt, entryOf(organization, answer)) : answer.hash
    data.copy(leaves, position * hashBytes)
    writeLeafHash(leaves, position * hashBytes, leafHash, 0)
    tiles.push(...tree.append(leafHash))
  }
  return { salts, leaves, tiles }
}

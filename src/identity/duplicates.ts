import { throwNoPerson } from '../consents/history.ts'
import { peopleStackId } from '../organizations/definitions.ts'
import type { Call } from '../route/call.ts'
import type { HandlerResult } from '../route/result.ts'
import { refuseValues } from '../values/errors.ts'
import {
  type DuplicateGroup,
  type DuplicateOf,
  type DuplicatesBody,
  type DuplicatesOfQuery,
  defaultSize,
} from './duplicates-schema.ts'
import { readDuplicatesOfSql, readGroups, type SharedKey, scanKeys, sharedKeys } from './duplicates-sql.ts'
import { addressOf, findPeople } from './identity-write.ts'
import { maxPeoplePerGroup } from './set-aside-schema.ts'

/**
 * The first statement of a page reads this many index entries for each group of the page. Each further statement reads
 * three times as many as the one before, up to the maximum. So a page with many duplicates reads few entries twice, and
 * a page without any needs few statements.
 */
const firstEntriesPerGroup = 10
const maxEntries = 50_000
/** A page ends with the scan that reaches this time. */
const pageMs = 500
/** A page ends with the group that reaches this number of people. */
const maxPeoplePerPage = 1_000

/** The probability that two people who share only this are one person. */
const scores: Record<SharedKey, number> = { email: 0.95, mobile: 0.9, name: 0.7 }

/** A position in the search: after this key, in the order of the index of `by`. */
type Position = { by: SharedKey; after: string }

/**
 * Answers with a page of groups of people who share an email, a phone number, or name and date of birth. Throws a Fault
 * of 400.
 */
export async function answerDuplicates(call: Call<DuplicatesBody>): Promise<HandlerResult> {
  const { by = sharedKeys, cursor, size = defaultSize } = call.body
  const searched = sharedKeys.filter(key => by.includes(key))
  const untilMs = performance.now() + pageMs
  const items: DuplicateGroup[] = []
  let people = 0
  let entries = firstEntriesPerGroup * size
  let position: Position | undefined =
    cursor === undefined ? { by: searched[0]!, after: '' } : parseCursor(cursor, searched)
  while (position && items.length < size && people < maxPeoplePerPage && performance.now() < untilMs) {
    const earlier = searched.slice(0, searched.indexOf(position.by))
    const range = await scanRange(call, position, earlier, { entries, groups: size - items.length })
    for (const group of await readRange(call, position.by, range.keys)) {
      // The people left after set-asides may share an earlier key. The search by that key has found them already.
      if (group.why.some(({ by }) => earlier.includes(by))) continue
      items.push(group)
      call.shown.addAll(peopleStackId, group.people)
      people += group.people.length
    }
    entries = Math.min(3 * entries, maxEntries)
    position = range.isEnd ? startAfter(position.by, searched) : { ...position, after: range.after }
  }
  const next_cursor = position ? printCursor(position) : null
  return { status: 200, data: { items, has_more: next_cursor !== null, next_cursor } }
}

/**
 * Answers with the people who may be the same as the person of the path, in descending order of probability. Throws a
 * Fault of 404.
 */
export async function answerDuplicatesOf(call: Call<DuplicatesOfQuery>): Promise<HandlerResult> {
  const { context, signal, body } = call
  const { organization_id, db } = context
  const [person] = await findPeople(context, [addressOf(call)], signal)
  if (!person) return throwNoPerson()
  const values = [organization_id, person.id, maxPeoplePerGroup]
  const rows = await db.query<Omit<DuplicateOf, 'score'>>(readDuplicatesOfSql, values, signal)
  const items = rows
    .map(({ person, why }) => ({
      person,
      score: scoreOf([...new Set(why.map(({ by }) => by))]),
      why: shownReasons(why),
    }))
    .toSorted((one, other) => other.score - one.score || (one.person.id < other.person.id ? -1 : 1))
    .slice(0, body.limit ?? defaultSize)
  call.shown.addAll(peopleStackId, [person, ...items.map(item => item.person)])
  return { status: 200, data: { items } }
}

const shownReasons = (why: DuplicateGroup['why']) =>
  why
    .map(({ by, value }) => ({ by, value: value.replaceAll('\n', ' ').trim() }))
    .toSorted((one, other) => sharedKeys.indexOf(one.by) - sharedKeys.indexOf(other.by))

/** The start of the search by the next kind of key. Undefined after the last one. */
function startAfter(by: SharedKey, searched: readonly SharedKey[]): Position | undefined {
  const next = searched[searched.indexOf(by) + 1]
  return next && { by: next, after: '' }
}

type KeyRange = { keys: string[]; after: string; isEnd: boolean }
type ScanRow = Record<'last' | 'before_last', string | null> & { scanned: number; keys: string[] }

/**
 * Finds the next shared keys within a number of entries, up to a number of groups. The search by an earlier key finds
 * the people who all share that key.
 */
async function scanRange(
  { context: { db }, caller, signal }: Call<DuplicatesBody>,
  { by, after }: Position,
  earlier: readonly SharedKey[],
  limits: { entries: number; groups: number },
): Promise<KeyRange> {
  const values = [caller.organization.id, after, limits.entries, limits.groups, earlier]
  const [row] = await db.query<ScanRow>(scanKeys[by], values, signal)
  const { scanned, keys, last, before_last } = row!
  const isEnd = scanned < limits.entries
  // Entries of the last key may follow the range. A key that fills the whole range is a group by itself.
  const complete = isEnd || before_last === null ? keys : keys.filter(key => key !== last)
  const isCut = complete.length === limits.groups
  const end = isEnd || before_last === null ? last : before_last
  return { keys: complete, after: isCut ? complete.at(-1)! : (end ?? after), isEnd: isEnd && !isCut }
}

type GroupRow = Record<SharedKey, string | null> & { size: number; people: DuplicateGroup['people'] | null }

/** Reads the groups of these keys. Leaves out a group that has only one person left since the scan. */
async function readRange(
  { context: { db }, caller, signal }: Call<DuplicatesBody>,
  by: SharedKey,
  keys: string[],
): Promise<DuplicateGroup[]> {
  if (keys.length === 0) return []
  const values = [caller.organization.id, keys, maxPeoplePerGroup]
  const rows = await db.query<GroupRow>(readGroups[by], values, signal)
  return rows
    .filter(({ size }) => size > 1)
    .map(row => {
      const shared = sharedKeys.filter(key => row[key] !== null)
      const why = shownReasons(shared.map(key => ({ by: key, value: row[key]! })))
      return { people: row.people!, size: row.size, score: scoreOf(shared), why }
    })
}

/** The probability that at least one of the shared keys is not shared by chance, with four decimals. */
export const scoreOf = (shared: readonly SharedKey[]): number =>
  Number((1 - shared.reduce((doubt, key) => doubt * (1 - scores[key]), 1)).toFixed(4))

/** The cursor contains a key of people, so only bodies carry it, never a URL. */
const printCursor = ({ by, after }: Position) => Buffer.from(JSON.stringify([by, after])).toString('base64url')

function parseCursor(cursor: string, searched: readonly SharedKey[]): Position {
  try {
    const [by, after, ...rest] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as [SharedKey, unknown]
    const isKey = typeof after === 'string' && after.isWellFormed() && !after.includes('\0')
    if (isKey && rest.length === 0 && searched.includes(by)) return { by, after }
  } catch {}
  return refuseValues({ path: '/cursor', message: 'must be the next_cursor of a page with the same `by`' })
}

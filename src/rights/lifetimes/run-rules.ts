import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Database } from '../../db/db.ts'
import type { StoredRow } from '../../entities/entity-row.ts'
import { buildDeletion, type Change } from '../../entities/write/decide/decide.ts'
import { type LinkRow, linksBySource } from '../../entities/write/load/load.ts'
import { readLinksSql, readRowsSql } from '../../entities/write/load/load-sql.ts'
import { storeChanges } from '../../entities/write/store/store.ts'
import type { Follower, News, Progress, Task } from '../../followers/follower.ts'
import {
  type Author,
  changeOrganization,
  type DefinitionDiff,
  type Locked,
} from '../../organizations/change-organization.ts'
import { currentDefinitions, peopleStackId } from '../../organizations/definitions.ts'
import { readMatchesOf } from '../../queries/plan/membership.ts'
import { erasePerson, readOrganizationKey } from '../erasure/erase-person.ts'
import { readHeld } from '../holds/holds.ts'
import { conditionOf, dayOf, maxOfDay, type PauseReason, type Rule, readRule } from './rules.ts'
import {
  countPeopleSql,
  countRunSql,
  deleteNoticesOfSql,
  deleteStaleNoticesSql,
  findDueSql,
  findRuleNewsSql,
  findUntoldSql,
  insertNoticesSql,
  isComputedSql,
  listRulesSql,
  markRunsLoggedSql,
  pauseRuleSql,
  readStillDueSql,
  readUnloggedRunsSql,
  rulesFollowerName,
} from './rules-sql.ts'

const peoplePerSet = 100
const intervalMs = 3_600_000
const dayMs = 86_400_000
/** How long before it takes a person a rule tells of it. */
const noticeDays = 7
/** After each set the follower pauses for this many times as long as the set took, so that writes keep the database. */
const defaultPausePerWork = 1

export type RuleOptions = { originName: string; nowMs?: () => number; pausePerWork?: number }

/** A pass of the follower over one rule. */
type Run = { task: Task; rule: Rule; author: Author; nowMs: number; options: RuleOptions }

/**
 * Runs the retention rules: tells of the people whose time is over in a week, and erases or deletes those whose week is over, in small
 * sets, each with the numbers of the day that the daily limit counts. It works by the clock, and at once when a segment or a rule changed.
 */
export function retentionRulesFollower(options: RuleOptions): Follower {
  return {
    name: rulesFollowerName,
    isForEveryOrganization: false,
    isScheduled: true,
    maxConcurrent: 1,
    work: task => workThrough(task, options),
    passOver: passOverOthers,
  }
}

/** Passes over the organizations whose hour has not come, and whose log has no change of a segment or a rule. */
async function passOverOthers(db: Database, news: readonly News[]): Promise<ReadonlyMap<News, Progress>> {
  const values = [news.map(({ organization_id }) => organization_id), news.map(({ after }) => after)]
  const found = await db.query<{ organization_id: number }>(findRuleNewsSql, values)
  const changed = new Set(found.map(({ organization_id }) => organization_id))
  const idle = news.filter(({ organization_id, is_due }) => !is_due && !changed.has(organization_id))
  return new Map(idle.map(each => [each, { sequence: each.head }]))
}

async function workThrough(task: Task, options: RuleOptions): Promise<Progress> {
  const { db, organization_id, signal, head } = task
  const nowMs = (options.nowMs ?? Date.now)()
  await logRuns(task)
  const rules = await db.query<Rule>(listRulesSql, [organization_id, dayOf(nowMs)])
  const active = rules.filter(rule => rule.active)
  for (const rule of active) {
    if (signal.aborted) break
    await runRule({ task, rule, author: { actor: 'retention', request_id: randomUUID() }, nowMs, options })
  }
  await logRuns(task)
  return { sequence: head, wakeAtMs: active.length > 0 ? nowMs + intervalMs : undefined }
}

async function runRule(run: Run): Promise<void> {
  const { task, rule, nowMs } = run
  const { db, organization_id } = task
  const { id, segment_id, after_days, daily_limit, counts_from, told, done, action } = rule
  const condition = conditionOf(rule, await currentDefinitions(task, task.signal), nowMs)
  if (typeof condition === 'string') return pauseRule(run, condition)
  const [segment] = await db.query<{ is_computed: boolean }>(isComputedSql, [organization_id, segment_id])
  if (!segment?.is_computed) return
  const now = new Date(nowMs).toISOString()
  await db.query(deleteStaleNoticesSql, [organization_id, id, segment_id, now])
  const before = new Date(nowMs - Math.max(0, after_days - noticeDays) * dayMs).toISOString()
  const untoldOf = [organization_id, segment_id, counts_from, before, id, now, leftOf(daily_limit, told)]
  const untold = idsOf(await db.query<PersonId>(findUntoldSql, untoldOf))
  const due = idsOf(await db.query<PersonId>(findDueSql, [organization_id, id, now, leftOf(daily_limit, done)]))
  const ofDay = Math.max(told + untold.length, done + due.length)
  const [people] = await db.query<{ count: number }>(countPeopleSql, [organization_id, 10 * ofDay])
  if (untold.length + due.length > 0 && ofDay > maxOfDay(people!.count + done)) return pauseRule(run, 'too_many')
  await inSets(run, untold, peoplePerSet, ids => tell(run, ids))
  if (action === 'delete') await inSets(run, due, peoplePerSet, ids => deletePeople(run, ids))
  else {
    const organization_key = await readOrganizationKey(task, run.options.originName)
    await inSets(run, due, 1, ([id]) => erase(run, id!, organization_key))
  }
}

/** A limit may have been lowered below what was done today. */
const leftOf = (limit: number, done: number) => Math.max(0, limit - done)

type PersonId = { person_id: string }
const idsOf = (rows: readonly PersonId[]) => rows.map(({ person_id }) => person_id)

/** Runs sets, with a pause after each, until the process stops. */
async function inSets(
  { task: { signal }, options: { pausePerWork = defaultPausePerWork } }: Run,
  ids: readonly string[],
  size: number,
  runSet: (ids: string[]) => Promise<unknown>,
): Promise<void> {
  for (let first = 0; first < ids.length && !signal.aborted; first += size) {
    const startedMs = performance.now()
    await runSet(ids.slice(first, first + size))
    if (pausePerWork > 0) await pause((performance.now() - startedMs) * pausePerWork)
  }
}

/**
 * Those of the people who are in the segment now and are not held, asked under the lock of the head, at most `max`. None if the rule has been
 * changed, or its segment, since the run began.
 */
async function readTakeable(
  { tx, organization_id, definitions }: Locked,
  { rule: { id, updated_at }, nowMs }: Run,
  people: readonly string[],
  left: (rule: Rule) => number,
): Promise<string[]> {
  const rule = await readRule({ db: tx, organization_id }, id, nowMs)
  if (!rule?.active || rule.updated_at !== updated_at) return []
  const condition = conditionOf(rule, definitions, nowMs)
  if (typeof condition === 'string') return []
  const matching = await readMatchesOf(tx, definitions, [condition], people)
  const held = await readHeld({ tx, organization_id }, people, new Date(nowMs).toISOString())
  const isIn = new Set(matching.flatMap(each => (each.matches[0] ? [each.id] : [])))
  return people.filter(person => isIn.has(person) && !held.has(person)).slice(0, left(rule))
}

/** As {@link readTakeable}, of the people who are due and have stayed in the segment since they were told of. */
async function readDue(locked: Locked, run: Run, people: readonly string[]): Promise<string[]> {
  const { tx, organization_id } = locked
  const { id, segment_id, daily_limit } = run.rule
  const values = [organization_id, id, segment_id, people, new Date(run.nowMs).toISOString()]
  const due = idsOf(await tx.query<PersonId>(readStillDueSql, values))
  return due.length === 0 ? [] : readTakeable(locked, run, due, ({ done }) => leftOf(daily_limit, done))
}

const countRun = ({ tx, organization_id, at }: Locked, { rule, nowMs }: Run, told: number, done: number) =>
  tx.query(countRunSql, [organization_id, rule.id, dayOf(nowMs), told, done, at])

/** Logs that people will be erased or deleted. Their versions rise, so that the log has the change, but nothing else of them changes. */
function tell(run: Run, people: readonly string[]): Promise<void> {
  const { task, rule, author, nowMs } = run
  return changeOrganization(task, author, async locked => {
    const { tx, organization_id, definitions, at } = locked
    const taken = await readTakeable(locked, run, people, ({ told }) => leftOf(rule.daily_limit, told))
    const earliest = new Date(nowMs + noticeDays * dayMs).toISOString()
    const values = [organization_id, rule.id, rule.segment_id, taken, rule.after_days, earliest]
    type Notice = PersonId & { due_at: string }
    const notices = taken.length === 0 ? [] : await tx.query<Notice>(insertNoticesSql, values)
    if (notices.length === 0) return { changes: [], result: undefined }
    const dueAt = new Map(notices.map(({ person_id, due_at }) => [person_id, due_at]))
    const rows = await readRows(locked, [...dueAt.keys()])
    const { id: rule_id, key: rule_key, action } = rule
    const changes = rows.map(row => {
      const retention = { rule_id, rule_key, action, due_at: dueAt.get(row.id)! }
      return { stack_id: peopleStackId, row, change: noticeOf(row, { retention }) }
    })
    const sequence = await storeChanges(tx, definitions, at, author, changes)
    await countRun(locked, run, rows.length, 0)
    return { sequence, result: undefined }
  })
}

const noticeOf = ({ id, external_id, version }: StoredRow, after: Record<string, unknown>): Change => ({
  operation: 'retention_due',
  id,
  external_id,
  version: version + 1,
  columns: { version: version + 1 },
  answers: [],
  before: null,
  after,
  changed: false,
  set: {},
  removed: [],
  relinked: [],
  missing: [],
  faults: [],
  keyCount: 0,
  isTooLarge: false,
})

const readRows = ({ tx, organization_id }: Locked, ids: readonly string[]) =>
  tx.query<StoredRow>(readRowsSql, [organization_id, JSON.stringify(ids.map(id => ({ stack_id: peopleStackId, id })))])

function deletePeople(run: Run, people: readonly string[]): Promise<void> {
  const { task, rule, author } = run
  return changeOrganization(task, author, async locked => {
    const { tx, organization_id, definitions, at } = locked
    const taken = await readDue(locked, run, people)
    if (taken.length === 0) return { changes: [], result: undefined }
    const attribute_ids = [...(definitions.relationships.get(peopleStackId)?.values() ?? [])].flat().map(({ id }) => id)
    const sources = JSON.stringify(taken.map(source_id => ({ source_id, attribute_ids })))
    const rows = await readRows(locked, taken)
    const links = linksBySource(await tx.query<LinkRow>(readLinksSql, [organization_id, sources]))
    const changes = rows.map(row => ({
      ...{ stack_id: peopleStackId, row },
      change: buildDeletion({ row, links: links.get(row.id) ?? new Map() }, definitions),
    }))
    const sequence = await storeChanges(tx, definitions, at, author, changes)
    await tx.query(deleteNoticesOfSql, [organization_id, rule.id, taken])
    await countRun(locked, run, 0, rows.length)
    return { sequence, result: undefined }
  })
}

/** Erases a person as a request does, with a certificate. A hold and a break of its stay are asked for under the lock of the head. */
async function erase(run: Run, person_id: string, organization_key: string): Promise<void> {
  const { task, rule, author, options } = run
  const context = { ...task, organization_key, originName: options.originName }
  await erasePerson(context, {
    ...author,
    person_id,
    reason: `Retention rule ${rule.key}: ${rule.after_days} days in its segment`,
    records: 'keep',
    mayErase: async locked => (await readDue(locked, run, [person_id])).length > 0,
    onErased: locked => countRun(locked, run, 0, 1),
  })
}

async function pauseRule({ task, rule, author }: Run, reason: PauseReason): Promise<void> {
  await changeOrganization(task, author, async ({ tx, organization_id, at }) => {
    const current = await readRule({ db: tx, organization_id }, rule.id, Date.parse(at))
    if (!current?.active || current.updated_at !== rule.updated_at) return { changes: [], result: undefined }
    const [before, after] = [
      { active: true, paused: null },
      { active: false, paused: reason },
    ]
    return {
      statements: [tx.query(pauseRuleSql, [organization_id, rule.id, reason, at])],
      changes: [{ subject: 'retention_rule', id: rule.id, operation: 'update', before, after }],
      result: undefined,
    }
  })
}

type UnloggedRun = { rule_id: number; day: string; told: number; done: number; action: Rule['action'] }

/** Logs what the rules have done, also what a process that died has left unlogged. */
async function logRuns(task: Task): Promise<void> {
  const { db, organization_id } = task
  const [unlogged] = await db.query(readUnloggedRunsSql, [organization_id])
  if (!unlogged) return
  await changeOrganization(task, { actor: 'retention', request_id: randomUUID() }, async ({ tx }) => {
    const runs = await tx.query<UnloggedRun>(readUnloggedRunsSql, [organization_id])
    return {
      statements: [tx.query(markRunsLoggedSql, [organization_id])],
      changes: runs.map(({ rule_id: id, action, ...run }): DefinitionDiff => {
        const after = { run: { action, ...run } }
        return { subject: 'retention_rule', id, operation: 'update', before: {}, after }
      }),
      result: undefined,
    }
  })
}

import type { StoredRow } from '../../entities/entity-row.ts'
import { buildNotice } from '../../entities/write/decide/decide.ts'
import { readRowsSql } from '../../entities/write/load/load-sql.ts'
import { writeWithin } from '../../entities/write/run.ts'
import { storeChanges } from '../../entities/write/store/store.ts'
import { newWrite } from '../../entities/write-request.ts'
import { type Follower, inSets, type Progress, passOverUntilDue, type Task } from '../../followers/follower.ts'
import { type Author, changeOrganization, type Locked } from '../../organizations/change-organization.ts'
import { currentDefinitions, peopleStackId } from '../../organizations/definitions.ts'
import { defaultLimits } from '../../process/config.ts'
import { parseSegmentFilter } from '../../queries/grammar/parse.ts'
import { readMatchesOf } from '../../queries/plan/membership.ts'
import { erasePerson } from '../erasure/erase-person.ts'
import { readHeld } from '../holds/holds.ts'
import { retentionAuthor } from '../retention.ts'
import {
  changeRules,
  dayOf,
  enteredBefore,
  maxOfDay,
  peopleToCount,
  type Rule,
  readRules,
  segmentOf,
  staysOf,
} from './rules.ts'
import {
  countRunSql,
  countStaysSql,
  deleteNoticesSql,
  deleteStaleNoticesSql,
  findDueSql,
  insertNoticesSql,
  listStaysSql,
  logRunsSql,
  rulesFollowerName,
} from './rules-sql.ts'

const peoplePerSet = 100
const intervalMs = 3_600_000
/** The days between the notice of a person and its erasure or deletion. */
const noticeDays = 7
/** See {@link inSets}. */
const defaultPausePerWork = 1

type RuleOptions = { originName: string; nowMs?: () => number; pausePerWork?: number }

/** A pass of the follower over one rule. `now` is the time of the pass in RFC 3339. */
type Run = { task: Task; rule: Rule; author: Author; nowMs: number; now: string; options: RuleOptions }

/**
 * Runs the retention rules. Announces the people whose time ends in a week, and erases or deletes the people whose week
 * is over. Each small set commits together with the numbers of the day, which the daily limit counts. It works by the
 * clock, and immediately after a change of a rule.
 */
export function retentionRulesFollower(options: RuleOptions): Follower {
  return {
    name: rulesFollowerName,
    isForEveryOrganization: false,
    isScheduled: true,
    maxConcurrent: 1,
    work: task => runRules(task, options),
    passOver: passOverUntilDue,
  }
}

async function runRules(task: Task, options: RuleOptions): Promise<Progress> {
  const nowMs = (options.nowMs ?? Date.now)()
  const now = new Date(nowMs).toISOString()
  const active = (await readRules(task, nowMs)).filter(rule => rule.active)
  for (const rule of active) {
    if (task.signal.aborted) break
    await runRule({ task, rule, author: retentionAuthor(), nowMs, now, options })
  }
  await logRuns(task)
  return { sequence: task.head, wakeAtMs: active.length > 0 ? nowMs + intervalMs : undefined }
}

async function runRule(run: Run): Promise<void> {
  const { task, rule, nowMs, now } = run
  const { db, organization_id } = task
  const { id, after_days, daily_limit, told, done, action } = rule
  const stays = staysOf(rule, await currentDefinitions(task, task.signal))
  await db.query(deleteStaleNoticesSql, [organization_id, ...stays, id, now])
  const tellable = [...stays, enteredBefore(nowMs, Math.max(0, after_days - noticeDays)), now]
  const asked = [organization_id, ...tellable, id, after_days, true, leftOf(daily_limit, told)]
  const untold = idsOf(await db.query<PersonId>(listStaysSql, asked))
  const due = idsOf(
    await db.query<PersonId>(findDueSql, [organization_id, ...stays, id, now, null, leftOf(daily_limit, done)]),
  )
  const counted = [organization_id, ...tellable, peopleToCount(rule)]
  const [counts] = await db.query<{ people: number }>(countStaysSql, counted)
  const ofDay = Math.max(told + untold.length, done + due.length)
  if (untold.length + due.length > 0 && ofDay > maxOfDay(counts!.people + done)) return pauseRule(run)
  await inSetsOf(run, untold, peoplePerSet, ids => tell(run, ids))
  if (action === 'delete') await inSetsOf(run, due, peoplePerSet, ids => deletePeople(run, ids))
  else await inSetsOf(run, due, 1, ([id]) => erase(run, id!))
}

/** The rest of a daily limit. A limit may have been lowered below the number of today. */
const leftOf = (limit: number, done: number) => Math.max(0, limit - done)

type PersonId = { id: string }
const idsOf = (rows: readonly PersonId[]) => rows.map(({ id }) => id)

/** Runs sets of people, with a pause after each, until the process ends. */
async function inSetsOf(
  { task: { signal }, options: { pausePerWork = defaultPausePerWork } }: Run,
  ids: readonly string[],
  size: number,
  runSet: (ids: string[]) => Promise<unknown>,
): Promise<void> {
  const left = [...ids]
  await inSets(signal, pausePerWork, async () => {
    if (left.length > 0) await runSet(left.splice(0, size))
    return left.length === 0
  })
}

/** Reads the rule under the lock of the head. Undefined if it has changed since the run began. */
async function readUnchanged({ tx, organization_id }: Locked, { rule, nowMs }: Run): Promise<Rule | undefined> {
  const rules = await readRules({ db: tx, organization_id }, nowMs)
  return rules.find(({ id, updated_at }) => id === rule.id && updated_at === rule.updated_at)
}

/** Returns the people who are in the segment and not held, under the lock of the head, at most `left`. */
async function readTakeable(
  locked: Locked,
  run: Run,
  people: readonly string[],
  left: (rule: Rule) => number,
): Promise<string[]> {
  const { tx, definitions } = locked
  const rule = await readUnchanged(locked, run)
  const segment = rule && segmentOf(definitions, rule)
  const parsed = segment && parseSegmentFilter(segment, definitions, run.nowMs)
  // A deleted or invalid segment has no people.
  if (!parsed || people.length === 0) return []
  const matching = await readMatchesOf(tx, definitions, [parsed.condition], people)
  const held = await readHeld(locked, people, run.now)
  const isIn = new Set(matching.flatMap(each => (each.matches[0] ? [each.id] : [])))
  return people.filter(person => isIn.has(person) && !held.has(person)).slice(0, left(rule))
}

/** Like {@link readTakeable}, for people who are due and have not left the segment since their notice. */
async function readDue(locked: Locked, run: Run, people: readonly string[]): Promise<string[]> {
  const { rule, now } = run
  const asked = [locked.organization_id, ...staysOf(rule, locked.definitions), rule.id, now, people, people.length]
  const due = idsOf(await locked.tx.query<PersonId>(findDueSql, asked))
  return readTakeable(locked, run, due, ({ done }) => leftOf(rule.daily_limit, done))
}

const countRun = ({ tx, organization_id, at }: Locked, { rule, nowMs }: Run, told: number, done: number) =>
  tx.query(countRunSql, [organization_id, rule.id, dayOf(nowMs), told, done, at])

/** Logs the announcement that people will be erased or deleted. */
function tell(run: Run, people: readonly string[]): Promise<void> {
  const { task, rule, author, nowMs } = run
  return changeOrganization(task, author, async locked => {
    const { tx, organization_id, definitions, at } = locked
    const { id: rule_id, key: rule_key, action, after_days, daily_limit } = rule
    const taken = await readTakeable(locked, run, people, ({ told }) => leftOf(daily_limit, told))
    const values = [...staysOf(rule, definitions), rule_id, taken, after_days, enteredBefore(nowMs, -noticeDays)]
    type Notice = { person_id: string; due_at: string }
    const notices = await tx.query<Notice>(insertNoticesSql, [organization_id, ...values])
    if (notices.length === 0) return { changes: [], result: undefined }
    const dueAt = new Map(notices.map(({ person_id, due_at }) => [person_id, due_at]))
    const asked = JSON.stringify([...dueAt.keys()].map(id => ({ stack_id: peopleStackId, id })))
    const rows = await tx.query<StoredRow>(readRowsSql, [organization_id, asked])
    const changes = rows.map(row => {
      const after = { retention: { rule_id, rule_key, action, due_at: dueAt.get(row.id)! } }
      const change = buildNotice(row, { operation: 'retention_due', before: null, after })
      return { stack_id: peopleStackId, row, change }
    })
    const sequence = await storeChanges(tx, definitions, at, author, changes)
    await countRun(locked, run, rows.length, 0)
    return { sequence, result: undefined }
  })
}

function deletePeople(run: Run, people: readonly string[]): Promise<void> {
  const { task, rule, author } = run
  return changeOrganization(task, author, async locked => {
    const { tx, organization_id, definitions } = locked
    const taken = await readDue(locked, run, people)
    if (taken.length === 0) return { changes: [], result: undefined }
    const writes = taken.map(id =>
      newWrite({ operation: 'delete', stack_id: peopleStackId, address: { id }, body: {}, ...author }),
    )
    // A deletion has no values, so the limits do not matter.
    await writeWithin(tx, definitions, writes, defaultLimits)
    await tx.query(deleteNoticesSql, [organization_id, rule.id, taken])
    await countRun(locked, run, 0, taken.length)
    return { result: undefined }
  })
}

/** Erases a person as a request does, with a certificate. It checks holds and the stay under the lock of the head. */
async function erase(run: Run, person_id: string): Promise<void> {
  const { task, rule, author, options } = run
  const context = { ...task, originName: options.originName }
  await erasePerson(context, {
    ...author,
    person_id: async locked => (await readDue(locked, run, [person_id]))[0],
    reason: `Retention rule ${rule.key}: ${rule.after_days} days in its segment`,
    records: 'keep',
    onErased: locked => countRun(locked, run, 0, 1),
  })
}

async function pauseRule(run: Run): Promise<void> {
  await changeRules(run.task, run.author, async locked => {
    const before = await readUnchanged(locked, run)
    if (!before) return { before: run.rule, after: run.rule }
    return { before, after: { ...before, active: false, paused_at: locked.at } }
  })
}

type UnloggedRun = { rule_id: number; day: string; told: number; done: number; action: Rule['action'] }

/** Logs the numbers of the rules, including those that a killed process did not log. */
const logRuns = (task: Task): Promise<void> =>
  changeOrganization(task, retentionAuthor(), async ({ tx, organization_id }) => {
    const runs = await tx.query<UnloggedRun>(logRunsSql, [organization_id])
    const changes = runs.map(({ rule_id: id, ...run }) => {
      return { subject: 'retention_rule', id, operation: 'update', before: {}, after: { run } } as const
    })
    return { changes, result: undefined }
  })

import { createHash } from 'node:crypto'
import { computingRefusal } from '../../changes/read-changes.ts'
import type { Reading } from '../../db/context.ts'
import type { Database } from '../../db/db.ts'
import {
  type DefinitionCall,
  differences,
  throwInvalidField,
  throwKeyTaken,
} from '../../organizations/change-definitions.ts'
import { changeOrganization, type DefinitionDiff, type Locked } from '../../organizations/change-organization.ts'
import { currentDefinitions, type Definitions, peopleStackId, type Segment } from '../../organizations/definitions.ts'
import type { Condition } from '../../queries/grammar/grammar.ts'
import { parseFilter } from '../../queries/grammar/parse.ts'
import { namesSegment } from '../../queries/grammar/segment-names.ts'
import type { Call } from '../../route/call.ts'
import type { HandlerResult } from '../../route/result.ts'
import { Fault, refuse } from '../../values/errors.ts'
import {
  countPeopleSql,
  countStaysSql,
  deleteNoticesSql,
  deleteRuleSql,
  insertRuleSql,
  insertRulesPositionSql,
  isComputedSql,
  listPausedRulesSql,
  listRulesSql,
  listRunsSql,
  listStaysSql,
  readRuleKeysSql,
  readRuleSql,
  rulesFollowerName,
  updateRuleSql,
} from './rules-sql.ts'
import type { PreviewQuery, PreviewShape, pauseReasons, RuleBody, RulePatch, RuleShape, RunsQuery } from './schema.ts'

export type PauseReason = (typeof pauseReasons)[number]

/** A row of `retention_rules`, with what the rule has done today. */
export type Rule = Pick<RuleShape, 'id' | 'key' | 'after_days' | 'action' | 'daily_limit' | 'active'> & {
  segment_id: number
  paused_reason: PauseReason | null
  paused_at: string | null
  /** A hash of what the segment meant when the rule was turned on. */
  filter: string
  counts_from: string
  created_at: string
  updated_at: string
  told: number
  done: number
}

const maxRules = 100
const defaultDailyLimit = 1_000
const defaultLimit = 50
const firstId = '00000000-0000-0000-0000-000000000000'
const dayMs = 86_400_000

/** The day of a time in UTC, which a daily limit is for. */
export const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10)

/** The most people that a rule takes of so many in a day: a tenth, and always one. More stop it. */
export const maxOfDay = (people: number): number => Math.max(1, Math.floor(people / 10))

const advice: Record<PauseReason, string> = {
  segment_changed:
    'The filter of the segment, or of one that it names, was changed. Look at the preview, and turn the rule on again.',
  segment_deleted: 'The segment was deleted. Name another one, or delete the rule.',
  segment_invalid: 'The filter of the segment is not valid any more. Change it, and turn the rule on again.',
  too_many: 'It would have taken more than a tenth of all people in a day. Look at the preview, and lower daily_limit.',
}

const segmentOf = ({ segments }: Definitions, { segment_id }: Pick<Rule, 'segment_id'>) =>
  segments.find(({ id }) => id === segment_id)

function toJson(rule: Rule, definitions: Definitions): RuleShape {
  const { id, key, after_days, action, daily_limit, active, paused_reason, paused_at, told, done } = rule
  const { created_at, updated_at } = rule
  const paused = paused_reason && { reason: paused_reason, message: advice[paused_reason], at: paused_at! }
  const segment = segmentOf(definitions, rule)?.key ?? null
  const settings = { id, key, segment, after_days, action, daily_limit, active, paused }
  return { ...settings, today: { told, done }, created_at, updated_at }
}

/** What a segment means: the hash of its filter and of the filters of the segments that it names, and when one of them changed last. */
export function meaningOf({ segments }: Definitions, segment: Segment): { filter: string; changed_at: string } {
  const found = new Set([segment])
  for (const each of found) for (const other of segments) if (namesSegment(each.filter, other.key)) found.add(other)
  const used = [...found].toSorted((a, b) => a.id - b.id)
  const filter = createHash('sha256')
    .update(JSON.stringify(used.map(each => [each.id, each.filter])))
    .digest('base64url')
  const changed_at = used
    .map(({ updated_at }) => updated_at)
    .toSorted()
    .at(-1)!
  return { filter, changed_at }
}

/** The condition of the segment of a rule at a time, or why the rule must stop. */
export function conditionOf(rule: Rule, definitions: Definitions, nowMs: number): Condition | PauseReason {
  const segment = segmentOf(definitions, rule)
  if (!segment) return 'segment_deleted'
  if (meaningOf(definitions, segment).filter !== rule.filter) return 'segment_changed'
  try {
    return parseFilter(segment.filter, definitions, peopleStackId, { ofSegment: segment.key, nowMs }).condition
  } catch (error) {
    if (error instanceof Fault) return 'segment_invalid'
    throw error
  }
}

export async function readRule({ db, organization_id }: Reading, id: number, nowMs: number): Promise<Rule | undefined> {
  const [rule] = await db.query<Rule>(readRuleSql, [organization_id, id, dayOf(nowMs)])
  return rule
}

const throwNoRule = (): never => refuse('not_found', 'There is no such retention rule.')

export async function answerRules({ context, signal }: Call): Promise<HandlerResult> {
  const definitions = await currentDefinitions(context, signal)
  const values = [context.organization_id, dayOf(Date.now())]
  const rules = await context.db.query<Rule>(listRulesSql, values, signal)
  return { status: 200, data: { items: rules.map(rule => toJson(rule, definitions)) } }
}

const idOf = ({ params }: Pick<Call<unknown>, 'params'>) => Number(params.id)

async function findRule(call: Call<unknown>): Promise<{ rule: Rule; definitions: Definitions }> {
  const definitions = await currentDefinitions(call.context, call.signal)
  return { rule: (await readRule(call.context, idOf(call), Date.now())) ?? throwNoRule(), definitions }
}

export async function answerRule(call: Call): Promise<HandlerResult> {
  const { rule, definitions } = await findRule(call)
  return { status: 200, data: toJson(rule, definitions) }
}

/** The members of a rule that its log entry shows. */
const settingsOf = (rule: Omit<Rule, 'told' | 'done'>, definitions: Definitions) => {
  const { key, after_days, action, daily_limit, active } = rule
  return { key, segment: segmentOf(definitions, rule)?.key ?? null, after_days, action, daily_limit, active }
}

const storedValues = ({ id, key, segment_id, after_days, action, daily_limit, active, filter, counts_from }: Rule) =>
  [id, key, segment_id, after_days, action, daily_limit, active, filter, counts_from] as const

const diff = (id: number, operation: DefinitionDiff['operation'], before: object, after: object): DefinitionDiff => ({
  ...{ subject: 'retention_rule', id, operation, before, after },
})

function findSegment({ segments }: Definitions, key: string): Segment {
  return segments.find(segment => segment.key === key) ?? throwInvalidField('/segment', 'is not the key of a segment')
}

/** Creates a rule. Throws a Fault of 400 or 409. */
export function createRule(call: DefinitionCall, body: RuleBody): Promise<RuleShape> {
  const {
    segment: segmentKey,
    key = segmentKey,
    after_days,
    action,
    daily_limit = defaultDailyLimit,
    active = false,
  } = body
  return changeOrganization<RuleShape>(call, call, async ({ tx, organization_id, definitions, at }) => {
    const segment = findSegment(definitions, segmentKey)
    type Keys = { next_id: number; keys: string[] }
    const [{ next_id: id, keys }] = (await tx.query<Keys>(readRuleKeysSql, [organization_id])) as [Keys]
    if (keys.includes(key)) throwKeyTaken('is the key of another rule')
    if (keys.length >= maxRules) throwInvalidField('', `exceeds the limit of ${maxRules} rules per organization`)
    const { filter, changed_at: counts_from } = meaningOf(definitions, segment)
    const settings = { id, key, segment_id: segment.id, after_days, action, daily_limit, active, filter, counts_from }
    const times = { created_at: at, updated_at: at }
    const rule: Rule = { ...settings, ...times, paused_reason: null, paused_at: null, told: 0, done: 0 }
    return {
      statements: [
        tx.query(insertRulesPositionSql, [organization_id, rulesFollowerName]),
        tx.query(insertRuleSql, [organization_id, ...storedValues(rule), at]),
      ],
      changes: [diff(id, 'create', {}, settingsOf(rule, definitions))],
      result: toJson(rule, definitions),
    }
  })
}

/** Changes the rule under the lock of the head. Throws a Fault of 404. */
function changeRule<Result>(
  call: DefinitionCall,
  id: number,
  work: (locked: Locked, rule: Rule) => ReturnType<Parameters<typeof changeOrganization<Result>>[2]>,
): Promise<Result> {
  return changeOrganization<Result>(call, call, async locked => {
    const { tx: db, organization_id } = locked
    return work(locked, (await readRule({ db, organization_id }, id, Date.now())) ?? throwNoRule())
  })
}

/**
 * Changes a rule. Whatever changes who is taken, or turns the rule on, begins anew to tell of people: nobody is taken sooner than a week after
 * it. Throws a Fault of 400, 404 or 409.
 */
export function patchRule(call: DefinitionCall, id: number, patch: RulePatch): Promise<RuleShape> {
  return changeRule<RuleShape>(call, id, async ({ tx, organization_id, definitions, at }, rule) => {
    const { segment: segmentKey, ...settings } = patch
    const segment = segmentKey === undefined ? segmentOf(definitions, rule) : findSegment(definitions, segmentKey)
    const next: Rule = { ...rule, ...settings, segment_id: segment?.id ?? rule.segment_id, updated_at: at }
    if (next.active && !segment) throwInvalidField('/segment', 'must be named: the segment of the rule was deleted')
    if (next.key !== rule.key) {
      const [found] = await tx.query<{ keys: string[] }>(readRuleKeysSql, [organization_id])
      if (found!.keys.includes(next.key)) throwKeyTaken('is the key of another rule')
    }
    const meaning = segment && meaningOf(definitions, segment)
    if (meaning && (patch.active || segmentKey !== undefined) && meaning.filter !== rule.filter) {
      next.filter = meaning.filter
      next.counts_from = meaning.changed_at
    }
    const changed = differences(settingsOf(rule, definitions), settingsOf(next, definitions))
    if (!changed) return { changes: [], result: toJson(rule, definitions) }
    const isToldAnew = Object.keys(changed.after).some(name => name !== 'key' && name !== 'daily_limit')
    if (next.active) next.paused_reason = null
    return {
      statements: [
        tx.query(updateRuleSql, [organization_id, ...storedValues(next), at]),
        ...(isToldAnew ? [tx.query(deleteNoticesSql, [organization_id, id])] : []),
      ],
      changes: [diff(id, 'update', changed.before, changed.after)],
      result: toJson(next, definitions),
    }
  })
}

/** Deletes a rule. Throws a Fault of 404. */
export function deleteRule(call: DefinitionCall, id: number): Promise<true> {
  return changeRule<true>(call, id, async ({ tx, organization_id, definitions, at }, rule) => ({
    statements: [tx.query(deleteRuleSql, [organization_id, id, at]), tx.query(deleteNoticesSql, [organization_id, id])],
    changes: [diff(id, 'delete', settingsOf(rule, definitions), {})],
    result: true,
  }))
}

/** The people whom the rule would take today. Throws a Fault of 404 or 503. */
export async function answerPreview(call: Call<PreviewQuery>): Promise<HandlerResult> {
  const { context, body, signal } = call
  const { db, organization_id } = context
  const { after = firstId, limit = defaultLimit } = body
  const { rule, definitions } = await findRule(call)
  const { segment_id, after_days, daily_limit } = rule
  const segment = segmentOf(definitions, rule)
  const [segmentState] = await db.query<{ is_computed: boolean }>(isComputedSql, [organization_id, segment_id], signal)
  if (segment && !segmentState?.is_computed) throw new Fault(computingRefusal())
  const meaning = segment && meaningOf(definitions, segment)
  const counts_from = meaning && meaning.filter !== rule.filter ? meaning.changed_at : rule.counts_from
  const now = new Date().toISOString()
  const before = new Date(Date.parse(now) - after_days * dayMs).toISOString()
  const stays = [organization_id, segment_id, counts_from, before, now]
  type Item = PreviewShape['items'][number]
  const [counts, rows] = await Promise.all([
    db.query<{ count: number; held: number }>(countStaysSql, stays, signal),
    db.query<Item>(listStaysSql, [...stays, rule.id, after_days, after, limit + 1], signal),
  ])
  const { count, held } = segment ? counts[0]! : { count: 0, held: 0 }
  const ofDay = Math.min(count, daily_limit)
  const [people] = await db.query<{ count: number }>(countPeopleSql, [organization_id, 10 * ofDay], signal)
  const items = segment ? rows.slice(0, limit) : []
  const facts = { count, held, daily_limit, would_pause: ofDay > maxOfDay(people!.count) }
  return { status: 200, data: { ...facts, items, has_more: rows.length > limit && segment !== undefined } }
}

const lastDay = '9999-12-31'

/** What the rule has done, by day. Throws a Fault of 404. */
export async function answerRuns(call: Call<RunsQuery>): Promise<HandlerResult> {
  const { context, body, signal } = call
  const { before = lastDay, limit = defaultLimit } = body
  const { rule } = await findRule(call)
  const values = [context.organization_id, rule.id, before, limit + 1]
  const rows = await context.db.query<{ day: string; told: number; done: number; updated_at: string }>(
    listRunsSql,
    values,
    signal,
  )
  return { status: 200, data: { items: rows.slice(0, limit), has_more: rows.length > limit } }
}

/** A rule that has stopped itself. */
export type PausedRule = {
  organization: string
  id: number
  key: string
  paused_reason: PauseReason
  paused_at: string
}

/** The rules of all organizations that have stopped themselves, each with what to do. */
export async function listPausedRules(db: Database): Promise<(PausedRule & { advice: string })[]> {
  const rules = await db.query<PausedRule>(listPausedRulesSql, [])
  return rules.map(rule => ({ ...rule, advice: advice[rule.paused_reason] }))
}

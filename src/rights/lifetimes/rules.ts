import type { Context, Reading } from '../../db/context.ts'
import { wakeFollowerSql } from '../../followers/sql.ts'
import { definitionCallOf, differences, throwKeyTaken } from '../../organizations/change-definitions.ts'
import { type ChangeCall, changeOrganization, type Locked } from '../../organizations/change-organization.ts'
import { currentDefinitions, type Definitions, peopleStackId, type Segment } from '../../organizations/definitions.ts'
import { namesSegment } from '../../queries/grammar/grammar.ts'
import type { Call } from '../../route/call.ts'
import type { HandlerResult } from '../../route/result.ts'
import { requireScope } from '../../route/scopes.ts'
import { refuse, throwBrokenRule } from '../../values/errors.ts'
import {
  countStaysSql,
  deleteNoticesSql,
  listRunsSql,
  listStaysSql,
  nextRuleIdSql,
  readRulesSql,
  rulesFollowerName,
  storeRuleSql,
} from './rules-sql.ts'
import type { PreviewItem, RuleBody, RulePatch, RuleShape } from './schema.ts'

/** A row of `retention_rules`, with the rule's numbers of today. */
export type Rule = Omit<RuleShape, 'segment' | 'paused' | 'today'> & {
  segment_id: number
  /** The time at which the rule paused itself. Null for a running rule. */
  paused_at: string | null
  told: number
  done: number
}

const maxRules = 100
const defaultDailyLimit = 1_000
const previewItems = 1_000

/** The day of a time in UTC. Daily limits count by it. */
export const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10)

/**
 * The maximum number of people that a rule may take in a day: a tenth of all, and at least one. The rule pauses itself
 * instead of taking more.
 */
export const maxOfDay = (people: number): number => Math.max(1, Math.floor(people / 10))

/**
 * The number of people to count for {@link maxOfDay} of a rule. A larger count would allow no more than the rule needs.
 */
export const peopleToCount = ({ daily_limit, told, done }: Rule): number => 10 * Math.max(daily_limit, told, done)

const pauseAdvice =
  'It would have taken more than a tenth of all people in a day. Look at the preview, and lower daily_limit.'

export const segmentOf = ({ segments }: Definitions, { segment_id }: Pick<Rule, 'segment_id'>): Segment | undefined =>
  segments.find(({ id }) => id === segment_id)

/**
 * The segment of a rule, and the time from which stays in it count: the last change of its filter, or of a filter that
 * it names. In a deleted segment no stay counts.
 */
export function staysOf(rule: Rule, definitions: Definitions): [segment_id: number, countsFrom: string] {
  const segment = segmentOf(definitions, rule)
  const used = new Set(segment && [segment])
  for (const each of used)
    for (const other of definitions.segments) if (namesSegment(each.filter, other.key)) used.add(other)
  const changes = [...used].map(({ filter_changed_at }) => filter_changed_at).toSorted()
  return [rule.segment_id, changes.at(-1) ?? 'infinity']
}

/** The latest time of entry for a stay of this number of days. */
export const enteredBefore = (nowMs: number, days: number): string => new Date(nowMs - days * 86_400_000).toISOString()

function toJson(rule: Rule, definitions: Definitions): RuleShape {
  const { id, key, after_days, action, daily_limit, active, paused_at, told, done, created_at, updated_at } = rule
  const segment = segmentOf(definitions, rule)?.key ?? null
  const paused = paused_at === null ? null : { reason: 'too_many' as const, message: pauseAdvice, at: paused_at }
  const settings = { id, key, segment, after_days, action, daily_limit, active, paused }
  return { ...settings, today: { told, done }, created_at, updated_at }
}

/** The members of a rule that its log entry shows. */
function settingsOf(rule: Rule, definitions: Definitions) {
  const { key, segment, after_days, action, daily_limit, active, paused } = toJson(rule, definitions)
  return { key, segment, after_days, action, daily_limit, active, paused: paused?.reason ?? null }
}

export const readRules = ({ db, organization_id }: Reading, nowMs: number): Promise<Rule[]> =>
  db.query<Rule>(readRulesSql, [organization_id, dayOf(nowMs)])

const ruleIn = (rules: readonly Rule[], id: number): Rule =>
  rules.find(rule => rule.id === id) ?? refuse('not_found', 'There is no such retention rule.')

async function findRules({ context, signal }: Call) {
  return { rules: await readRules(context, Date.now()), definitions: await currentDefinitions(context, signal) }
}

export async function answerRules(call: Call): Promise<HandlerResult> {
  const { rules, definitions } = await findRules(call)
  return { status: 200, data: { items: rules.map(rule => toJson(rule, definitions)) } }
}

const idOf = ({ params }: Call<unknown>) => Number(params.id)

/** Returns a rule. Throws a Fault of 404. */
export async function answerRule(call: Call): Promise<HandlerResult> {
  const { rules, definitions } = await findRules(call)
  return { status: 200, data: toJson(ruleIn(rules, idOf(call)), definitions) }
}

/** A rule before and after a change. A new rule has no `before`, and a deleted one no `after`. */
type RuleChange = { before?: Rule; after?: Rule }

/**
 * Changes a rule under the lock of the head, and logs it. After most changes, the follower announces its people again.
 */
export function changeRules(
  context: Context,
  call: ChangeCall,
  decide: (locked: Locked, rules: Rule[]) => RuleChange | Promise<RuleChange>,
): Promise<RuleShape> {
  return changeOrganization<RuleShape>(context, call, async locked => {
    const { tx, organization_id, definitions, at } = locked
    const rules = await readRules({ db: tx, organization_id }, Date.now())
    const { before, after } = await decide(locked, rules)
    const rule = (after ?? before)!
    const { id, key, segment_id, after_days, action, daily_limit, active, paused_at, created_at } = rule
    if (after && rules.some(other => other.id !== id && other.key === key)) throwKeyTaken('is the key of another rule')
    const [was, is] = [before, after].map(each => (each ? settingsOf(each, definitions) : {})) as [object, object]
    const changed = before && after ? differences(was, is) : { before: was, after: is }
    const result = toJson(rule, definitions)
    if (!changed) return { changes: [], result: toJson(before!, definitions) }
    const settings = [id, key, segment_id, after_days, action, daily_limit, active]
    const isToldAnew = Object.keys({ ...changed.before, ...changed.after }).some(
      name => name !== 'key' && name !== 'daily_limit',
    )
    return {
      statements: [
        tx.query(storeRuleSql, [organization_id, ...settings, paused_at, created_at, at, after ? null : at]),
        tx.query(wakeFollowerSql, [organization_id, rulesFollowerName, at]),
        ...(isToldAnew ? [tx.query(deleteNoticesSql, [organization_id, id, null])] : []),
      ],
      changes: [
        { subject: 'retention_rule', id, operation: before ? (after ? 'update' : 'delete') : 'create', ...changed },
      ],
      result,
    }
  })
}

const findSegment = ({ segments }: Definitions, key: string): Segment =>
  segments.find(segment => segment.key === key) ?? throwBrokenRule('/segment', 'is not the key of a segment')

/** Creates a rule. Throws a Fault of 400 or 409. */
export function createRule(call: Call<RuleBody>): Promise<RuleShape> {
  const { segment, key = segment, after_days, action, daily_limit = defaultDailyLimit, active = false } = call.body
  const change = definitionCallOf(call)
  return changeRules(change, change, async ({ tx, organization_id, definitions, at }, rules) => {
    const { id: segment_id } = findSegment(definitions, segment)
    if (rules.length >= maxRules) throwBrokenRule('', `exceeds the limit of ${maxRules} rules per organization`)
    const [{ id }] = (await tx.query<{ id: number }>(nextRuleIdSql, [organization_id])) as [{ id: number }]
    const settings = { id, key, segment_id, after_days, action, daily_limit, active }
    return { after: { ...settings, paused_at: null, created_at: at, updated_at: at, told: 0, done: 0 } }
  })
}

/** Changes a rule. Throws a Fault of 400, 404 or 409. */
export function patchRule(call: Call<RulePatch>): Promise<RuleShape> {
  const { segment, ...patch } = call.body
  const change = definitionCallOf(call)
  return changeRules(change, change, ({ definitions, at }, rules) => {
    const before = ruleIn(rules, idOf(call))
    const segment_id = segment === undefined ? before.segment_id : findSegment(definitions, segment).id
    const after = { ...before, ...patch, segment_id, updated_at: at }
    if (after.active && !segmentOf(definitions, after))
      throwBrokenRule('/segment', 'must be another one: it was deleted')
    return { before, after: after.active ? { ...after, paused_at: null } : after }
  })
}

/** Deletes a rule. Throws a Fault of 404. */
export async function deleteRule(call: Call): Promise<true> {
  const change = definitionCallOf(call)
  await changeRules(change, change, (_, rules) => ({ before: ruleIn(rules, idOf(call)) }))
  return true
}

/** Lists the people whom the rule would take today. */
export async function answerPreview(call: Call): Promise<HandlerResult> {
  requireScope(call.caller, 'people:read', ', which reads the people of the preview')
  const { db, organization_id } = call.context
  const { rules, definitions } = await findRules(call)
  const rule = ruleIn(rules, idOf(call))
  const { id, after_days, daily_limit } = rule
  const nowMs = Date.now()
  const stays = [...staysOf(rule, definitions), enteredBefore(nowMs, after_days), new Date(nowMs).toISOString()]
  type Counts = { count: number; held: number; people: number }
  const [[counts], items] = await Promise.all([
    db.query<Counts>(countStaysSql, [organization_id, ...stays, peopleToCount(rule)], call.signal),
    db.query<PreviewItem>(listStaysSql, [organization_id, ...stays, id, after_days, false, previewItems], call.signal),
  ])
  const { count, held, people } = counts!
  call.shown.addAll(peopleStackId, items)
  const would_pause = Math.min(count, daily_limit) > maxOfDay(people)
  return { status: 200, data: { count, held, daily_limit, would_pause, items } }
}

/** Lists the runs of the rule by day. */
export async function answerRuns(call: Call): Promise<HandlerResult> {
  const { db, organization_id } = call.context
  const { id } = ruleIn(await readRules(call.context, Date.now()), idOf(call))
  return { status: 200, data: { items: await db.query(listRunsSql, [organization_id, id], call.signal) } }
}

import { findAttribute } from '../attributes/attributes.ts'
import type { PatternTime } from '../attributes/pattern.ts'
import { brokenRules, coerceRules, findRuleFaults, isPresent, namesOfRules } from '../attributes/rules.ts'
import { valueFault } from '../attributes/values.ts'
import type { Database } from '../db/db.ts'
import { claimOf, findHolders } from '../entities/write/unique.ts'
import {
  type Attribute,
  currentDefinitions,
  type Definitions,
  type IndexedAttribute,
  isRelationship,
  peopleStackId,
} from '../organizations/definitions.ts'
import { yieldIfDue } from '../process/event-loop.ts'
import type { Call } from '../route/call.ts'
import { accessOf, requireOpen, requireReadable } from '../route/field-rights.ts'
import type { HandlerResult } from '../route/result.ts'
import { requireScope } from '../route/scopes.ts'
import { noRules } from '../values/attribute-rules.ts'
import { pointer, refuse, throwBrokenRule } from '../values/errors.ts'
import { firstId, isObjectId, isUuid, recordIdOf, uuidOfRecord } from '../values/formats.ts'
import {
  defaultViolations,
  proposableRules,
  type Violation,
  type ViolationName,
  type ViolationsQuery,
} from './schema.ts'
import { scanValuesSql } from './sql.ts'

/** A page ends after the row at which it, or the matching of its patterns, has taken this long. */
const pageMs = 1_000
const maxPatternMs = 250
/**
 * The first scan reads few rows, because values may have 512 KiB each. Each further scan reads up to twice as many
 * while the values are small.
 */
const firstRows = 100
const maxRows = 2_000
const maxScanBytes = 1_048_576

type Row = { id: string; external_id: string | null; active: boolean; value: unknown; is_linked: boolean }

/**
 * Answers with a page of the entities whose stored values violate the rules of an attribute. Throws a Fault of 400, 403
 * or 404, and of 409 while the index of a unique attribute is not ready.
 */
export async function answerViolations(call: Call<ViolationsQuery>): Promise<HandlerResult> {
  const { context, caller, body, params, signal } = call
  const definitions = await currentDefinitions(context, signal)
  const attribute = withProposedRules(findAttribute(definitions, Number(params.id)), body)
  const isPeople = attribute.owner_stack_id === peopleStackId
  requireScope(caller, isPeople ? 'people:read' : 'records:read')
  requireOpen(caller, attribute.owner_stack_id, '/id')
  requireReadable(accessOf(caller, attribute.owner_stack_id), `attribute_values.${attribute.key}`, '/id')
  const rules = rulesToCheck(attribute, body.rule)
  const size = body.size ?? defaultViolations
  const untilMs = performance.now() + pageMs
  const reader: Pick<Database, 'query'> = { query: (statement, values) => context.db.query(statement, values, signal) }
  const items: Violation[] = []
  let after: string | null = startOf(body.after_id, isPeople)
  let limit = firstRows
  const time: PatternTime = { spentMs: 0 }
  const isFull = () => items.length >= size || time.spentMs >= maxPatternMs || performance.now() >= untilMs
  while (after !== null && !isFull()) {
    const rows: Row[] = await scan(reader, definitions, attribute, after, limit)
    const holders = await readHolders(reader, definitions, attribute, rules, rows)
    after = rows.length < limit ? null : rows.at(-1)!.id
    for (const row of rows) {
      await yieldIfDue()
      const violated = findViolated(attribute, rules, row, holders, time)
      if (violated.length > 0) {
        call.shown.add(attribute.owner_stack_id, row.id)
        items.push({ ...identifierOf(row.id, isPeople), external_id: row.external_id, rules: violated })
      }
      if (!isFull()) continue
      if (row !== rows.at(-1)) after = row.id
      break
    }
    limit = isSmall(rows) ? Math.min(2 * limit, maxRows) : firstRows
  }
  const next_after_id = after === null || isPeople ? after : recordIdOf(after)
  return { status: 200, data: { items, has_more: next_after_id !== null, next_after_id } }
}

/** Returns the attribute with the rules that the query proposes in place of its own, if any. Throws a Fault of 400. */
function withProposedRules(attribute: Attribute, query: ViolationsQuery): Attribute {
  const proposed = proposableRules.filter(name => query[name] !== undefined).map(name => [name, query[name]])
  if (proposed.length === 0) return attribute
  const proposal: Attribute = { ...attribute, ...noRules, ...coerceRules(attribute.type, Object.fromEntries(proposed)) }
  const details = findRuleFaults(proposal).map(({ path, message }) => ({ path: pointer(...path), message }))
  if (details.length > 0) refuse('invalid_parameter', 'The request breaks a rule.', { details })
  return proposal
}

/** The rules to check. The type is left out for a relationship, because its links always fit. */
function rulesToCheck(attribute: Attribute, rule: ViolationName | undefined): ViolationName[] {
  if (attribute.state === 'archived')
    throwBrokenRule('', 'The attribute is archived, so nothing stands against its rules.')
  const own: ViolationName[] = [...(isRelationship(attribute) ? [] : ['type' as const]), ...namesOfRules(attribute)]
  if (rule === undefined) return own
  if (rule === 'unique' && attribute.cardinality === 'one' && attribute.indexed && attribute.index)
    return attribute.index.ready ? [rule] : throwFilling()
  return own.includes(rule) ? [rule] : throwBrokenRule('/rule', 'is not a rule of the attribute')
}

const throwFilling = (): never =>
  refuse('invalid_parameter', 'The index of the attribute is not ready yet. Retry when its `index_state` is `ready`.', {
    status: 409,
  })

function startOf(after_id: string | undefined, isPeople: boolean): string {
  if (after_id === undefined) return firstId
  if (isPeople ? isUuid(after_id) : isObjectId(after_id)) return isPeople ? after_id : uuidOfRecord(after_id)
  return throwBrokenRule('/after_id', `must be the next_after_id of a page of this attribute`)
}

const identifierOf = (id: string, isPeople: boolean) => (isPeople ? { id } : { record_id: recordIdOf(id) })

function scan(
  db: Pick<Database, 'query'>,
  { organization_id, relationships }: Definitions,
  { owner_stack_id, key }: Attribute,
  after: string,
  limit: number,
): Promise<Row[]> {
  const linked = (relationships.get(owner_stack_id)?.get(key) ?? []).map(({ id }) => id)
  return db.query<Row>(scanValuesSql, [organization_id, owner_stack_id, after, limit, key, linked])
}

const isSmall = (rows: readonly Row[]) =>
  rows.reduce((bytes, { value }) => bytes + (JSON.stringify(value)?.length ?? 0), 0) < maxScanBytes

type Holders = Awaited<ReturnType<typeof findHolders>>

/** Reads the entities that have the same values as the rows. Undefined unless the values have to be unique. */
async function readHolders(
  db: Pick<Database, 'query'>,
  { organization_id }: Definitions,
  attribute: Attribute,
  rules: readonly ViolationName[],
  rows: readonly Row[],
): Promise<Holders | undefined> {
  const claims = rules.includes('unique')
    ? rows.flatMap(row => claimOf(attribute as IndexedAttribute, row.value) ?? [])
    : []
  return claims.length === 0 ? undefined : findHolders({ db, organization_id }, claims)
}

/** Returns those of `rules` that a row violates. */
function findViolated(
  attribute: Attribute,
  rules: readonly ViolationName[],
  row: Row,
  holders: Holders | undefined,
  time: PatternTime,
): ViolationName[] {
  const violated = new Set<ViolationName>(violatedAlone(attribute, row, () => time))
  const claim = holders && claimOf(attribute as IndexedAttribute, row.value)
  if (claim && holders.get(claim.key)?.some(({ id }) => id !== row.id)) violated.add('unique')
  return rules.filter(rule => violated.has(rule))
}

/**
 * Returns the rules that the value of a row violates on its own. Links take precedence over a plain value under the
 * same key.
 */
function violatedAlone(attribute: Attribute, row: Row, time: () => PatternTime): ViolationName[] {
  const { value, is_linked, active } = row
  if (is_linked) return isRelationship(attribute) ? [] : ['type']
  const missing: ViolationName[] = !isPresent(value) && active && attribute.required ? ['required'] : []
  if (value === null || isRelationship(attribute)) return missing
  // An empty list counts as a missing value, but a write of one is refused unless the attribute holds many values.
  return [...missing, ...(valueFault(attribute, value) ? ['type' as const] : brokenRules(attribute, value, time))]
}

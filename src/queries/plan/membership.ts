import { createHash } from 'node:crypto'
import { statement, type Transaction } from '../../db/db.ts'
import { type Definitions, peopleStackId } from '../../organizations/definitions.ts'
import { type Condition, visit } from '../grammar/grammar.ts'
import { compileCondition } from './compile.ts'
import { type Fragment, Parameter, render, sql } from './fragment.ts'
import { planWithValuesSql } from './reading.ts'

/** The maximum number of conditions that a statement tests, so that its text stays small. */
const conditionsPerStatement = 20

/** An entity, and whether it satisfies each of the conditions. */
export type Matches = { id: string; matches: boolean[] }

/** Tests the people, or the records of a stack, with these ids. Ids without an entity are left out. */
export function readMatchesOf(
  tx: Transaction,
  definitions: Definitions,
  conditions: readonly Condition[],
  ids: readonly string[],
  stack_id = peopleStackId,
): Promise<Matches[]> {
  return readMatches(tx, definitions, conditions, sql`e.id = any(${ids}::uuid[]) order by e.id`, stack_id)
}

/** Tests the next people after an id, in order of id. */
export function readNextMatches(
  tx: Transaction,
  definitions: Definitions,
  conditions: readonly Condition[],
  { after, limit }: { after: string; limit: number },
): Promise<Matches[]> {
  return readMatches(tx, definitions, conditions, sql`e.id > ${after}::uuid order by e.id limit ${limit}::integer`)
}

async function readMatches(
  tx: Transaction,
  definitions: Definitions,
  conditions: readonly Condition[],
  selection: Fragment,
  stack_id = peopleStackId,
): Promise<Matches[]> {
  const found = new Map<string, boolean[]>()
  await tx.query(planWithValuesSql, [])
  for (let first = 0; first < conditions.length; first += conditionsPerStatement) {
    const part = conditions.slice(first, first + conditionsPerStatement)
    const { text, values } = matchStatement(part, definitions, selection, stack_id)
    for (const { id, matched } of await tx.query<{ id: string; matched: string }>(statement('', text), values)) {
      const matches = found.get(id) ?? conditions.map(() => false)
      found.set(id, matches)
      for (const index of part.keys()) matches[first + index] = matched[index] === '1'
    }
  }
  return [...found].map(([id, matches]) => ({ id, matches }))
}

/**
 * The statement that returns the selected entities with a digit for each condition: 1 if the entity satisfies it, else
 * 0.
 */
function matchStatement(
  conditions: readonly Condition[],
  definitions: Definitions,
  selection: Fragment,
  stack_id: number,
) {
  const organization = new Parameter(definitions.organization_id)
  const digits = conditions
    .map(condition => compileCondition(condition, definitions, stack_id, organization).check)
    .map(check => sql`case when ${check} then '1' else '0' end`)
    .reduce((before, digit) => sql`${before} || ${digit}`)
  return render(
    sql`select e.id, ${digits} as matched from entities e
      where e.organization_id = ${organization} and e.stack_id = ${stack_id}::integer and ${selection}`,
    [organization],
  )
}

/**
 * A hash of the tests of a condition under the definitions. While it stays the same, the set of matching people changes
 * only by logged changes. An alias comes and goes with a change of its person, so the hash covers the statement without
 * aliases.
 */
export function hashOfCondition(condition: Condition, definitions: Definitions): string {
  const withoutAliases = { ...definitions, has_aliases: false }
  const { check } = compileCondition(condition, withoutAliases, peopleStackId, new Parameter(0))
  return createHash('sha256')
    .update(JSON.stringify(render(check)))
    .digest('base64url')
}

/**
 * The relationships between some entities and others that a condition depends on: their own, and those that lead to
 * them.
 */
export type RelationshipLevel = { outgoing: Set<number>; incoming: Set<number> }

/**
 * The relationship attributes by which a condition on people depends on other entities, by level: those between people
 * and these entities, those between these entities and the next ones, and so on.
 */
export function relationshipLevels(conditions: readonly Condition[], definitions: Definitions): RelationshipLevel[] {
  const levels: RelationshipLevel[] = []
  for (const { condition, stack_id, relationDepth } of conditions.flatMap(each => [...visit(each, peopleStackId)])) {
    const add = (direction: keyof RelationshipLevel, id: number) => {
      levels[relationDepth] ??= { outgoing: new Set(), incoming: new Set() }
      levels[relationDepth][direction].add(id)
    }
    if (condition.kind === 'related' || condition.kind === 'measured')
      add(condition.isIncoming ? 'incoming' : 'outgoing', condition.attribute.id)
    // The value of a relationship contains the names of its targets.
    if (condition.kind === 'field' && condition.field.kind === 'attribute')
      for (const { id } of definitions.relationships.get(stack_id)?.get(condition.field.key) ?? []) add('outgoing', id)
  }
  return levels
}

import { expect } from 'vitest'
import { contextOf } from '../../src/db/context.ts'
import { termOf } from '../../src/entities/indexes/index-keys.ts'
import { sortFieldOf, sortTermOf } from '../../src/entities/indexes/sort-field.ts'
import { reloadDefinitions } from '../../src/organizations/definitions.ts'
import type { Service } from './service.ts'

type StoredEntity = { id: string; stack_id: number; attributes: Record<string, unknown> } & Record<string, unknown>

/** Expects each sort index of an organization to have exactly one term of each entity of its stack, the one of its stored value. */
export async function expectSortTerms(service: Pick<Service, 'db' | 'sql'>, organization_id: number): Promise<number> {
  const definitions = await reloadDefinitions(contextOf(service.db, organization_id))
  const utc = (column: string) =>
    `'${column}', to_char(e.${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
  const entities = await service.sql<{ entity: StoredEntity }>(
    `select to_jsonb(e) || jsonb_build_object(${utc('created_at')}, ${utc('updated_at')}) as entity
     from entities e where e.organization_id = $1`,
    [organization_id],
  )
  const stored = entities.map(({ entity }) => entity)
  const indexes = [...definitions.sort_indexes.values()].flatMap(byField => [...byField.values()])
  const expected = indexes.flatMap(({ id, stack_id, field }) =>
    stored
      .filter(entity => entity.stack_id === stack_id)
      .map(entity => `${id} ${termOfEntity(entity, field)} ${entity.id}`),
  )
  const terms = await service.sql<{ term: string }>(
    `select t.index_id || ' ' || t.value || ' ' || t.entity_id as term from terms t
     where t.organization_id = $1 and t.index_id = any($2::integer[])`,
    [organization_id, indexes.map(({ id }) => id)],
  )
  expect(terms.map(({ term }) => term).sort()).toEqual(expected.sort())
  return indexes.length

  function termOfEntity({ stack_id, attributes, ...columns }: StoredEntity, name: string): string {
    const field = sortFieldOf(name, stack_id)!
    if (field.kind === 'time') return termOf('datetime', columns[field.column])!
    if (field.kind !== 'attribute') return sortTermOf('text', columns[field.column])
    return sortTermOf(definitions.declared.get(stack_id)!.get(field.key)!.type, attributes[field.key])
  }
}

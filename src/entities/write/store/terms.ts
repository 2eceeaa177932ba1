import type { Transaction } from '../../../db/db.ts'
import type { Attribute, Definitions, SortIndex } from '../../../organizations/definitions.ts'
import type { EntityRow } from '../../entity-row.ts'
import { type Term, termOf, termsOf } from '../../indexes/index-keys.ts'
import { appendKeys, deleteKeysSql, insertKeysSql } from '../../indexes/index-keys-sql.ts'
import { type SortField, type SortTime, sortFieldOf, sortTermOf } from '../../indexes/sort-field.ts'
import { deleteTimeTermsSql } from '../../indexes/sort-index-sql.ts'
import type { Change } from '../decide/decide.ts'
import type { Accepted, DecidedRound } from '../round.ts'

/**
 * Index stage: replaces the terms of indexed attributes whose value changes, and of the fields that sort, and deletes
 * those of deleted entities. The stored row has the old values, so each old term is deleted by its key.
 */
export function indexTerms(tx: Transaction, round: DecidedRound): Promise<unknown>[] {
  const { definitions, accepted } = round
  const { organization_id } = definitions
  const terms: TermChanges = { deleted: [], inserted: [], appended: [], deletedTimes: [] }
  const { deleted, inserted, appended, deletedTimes } = terms
  for (const entry of accepted) collectTerms(entry, definitions, terms)
  collectSortTerms(round, terms)
  const statements: Promise<unknown>[] = []
  if (deletedTimes.length > 0)
    statements.push(tx.query(deleteTimeTermsSql, [organization_id, JSON.stringify(deletedTimes)]))
  if (deleted.length > 0) statements.push(tx.query(deleteKeysSql, [organization_id, JSON.stringify(deleted)]))
  if (inserted.length > 0) statements.push(tx.query(insertKeysSql, [organization_id, JSON.stringify(inserted)]))
  if (appended.length > 0)
    statements.push(
      tx.append(
        appendKeys,
        appended.map(term => ({ organization_id, ...term })),
      ),
    )
  return statements
}

/** The list for the terms that a change adds. A new entity has no stored terms, so they can be appended. */
const addedTo = ({ operation }: Change, { inserted, appended }: TermChanges): Term[] =>
  operation === 'create' ? appended : inserted

function collectTerms({ stack_id, change, row }: Accepted, definitions: Definitions, terms: TermChanges) {
  const declared = definitions.declared.get(stack_id)
  if (!declared) return
  for (const key in change.set) replaceTerms(declared.get(key), key, change, row, terms)
  for (const key of change.removed) replaceTerms(declared.get(key), key, change, row, terms)
}

function replaceTerms(
  attribute: Attribute | undefined,
  key: string,
  change: Change,
  row: EntityRow | undefined,
  terms: TermChanges,
) {
  if (!attribute?.index) return
  const ids = { index_id: attribute.index.id, entity_id: change.id }
  const before = ownValue(row?.attributes, key)
  const after = change.operation === 'delete' ? undefined : ownValue(change.set, key)
  const added = addedTo(change, terms)
  if (attribute.cardinality === 'one') {
    const [oldTerm, newTerm] = [termOf(attribute.type, before), termOf(attribute.type, after)]
    if (oldTerm === newTerm) return
    if (oldTerm !== undefined) terms.deleted.push({ ...ids, value: oldTerm })
    if (newTerm !== undefined) added.push({ ...ids, value: newTerm })
    return
  }
  const [oldTerms, newTerms] = [termsOf(attribute, before), termsOf(attribute, after)]
  for (const value of oldTerms.difference(newTerms)) terms.deleted.push({ ...ids, value })
  for (const value of newTerms.difference(oldTerms)) added.push({ ...ids, value })
}

const ownValue = (values: Record<string, unknown> | undefined, key: string): unknown =>
  values && Object.hasOwn(values, key) ? values[key] : undefined

/**
 * The term of a time that a row still has. PostgreSQL computes it, because a set does not read the times of the rows
 * that it locks.
 */
export type TimeTerm = { index_id: number; column: SortTime; stack_id: number; id: string }

export type TermChanges = { deleted: Term[]; inserted: Term[]; appended: Term[]; deletedTimes: TimeTerm[] }

/** Collects the terms of sort indexes that a round changes. A sort index has one term of each entity of its stack. */
function collectSortTerms(round: DecidedRound, terms: TermChanges) {
  const { definitions, accepted } = round
  if (definitions.sort_indexes.size === 0) return
  for (const { stack_id, change, row } of accepted)
    for (const index of definitions.sort_indexes.get(stack_id)?.values() ?? [])
      replaceTerm(index, change, row, round, terms)
}

function replaceTerm(
  { id: index_id, stack_id, field: name }: SortIndex,
  change: Change,
  row: EntityRow | undefined,
  { definitions, at }: DecidedRound,
  terms: TermChanges,
) {
  const { deleted, deletedTimes } = terms
  const added = addedTo(change, terms)
  const field = sortFieldOf(name, stack_id)!
  const ids = { index_id, entity_id: change.id }
  const before = removesRow(change) || change.operation === 'update' ? row : undefined
  if (field.kind === 'time') {
    if (field.column === 'created_at' && change.operation === 'update') return
    if (before) deletedTimes.push({ index_id, column: field.column, stack_id, id: change.id })
    const time = field.column === 'created_at' ? (change.created_at ?? at) : at
    if (!removesRow(change)) added.push({ ...ids, value: timeTermOf(time) })
    return
  }
  if (change.operation === 'update' && !isWritten(field, change)) return
  const type =
    field.kind === 'attribute' ? (definitions.declared.get(stack_id)?.get(field.key)?.type ?? 'text') : 'text'
  const oldTerm = before && sortTermOf(type, storedValue(field, before, before.attributes))
  const newTerm = removesRow(change) ? undefined : sortTermOf(type, storedValue(field, change.columns, change.set))
  if (oldTerm === newTerm) return
  if (oldTerm !== undefined) deleted.push({ ...ids, value: oldTerm })
  if (newTerm !== undefined) added.push({ ...ids, value: newTerm })
}

const removesRow = ({ operation }: Change) => operation === 'delete' || operation === 'merge' || operation === 'erase'

const isWritten = (field: Exclude<SortField, { kind: 'time' }>, { columns, set, removed }: Change) =>
  field.kind === 'attribute'
    ? Object.hasOwn(set, field.key) || removed.includes(field.key)
    : Object.hasOwn(columns, field.column)

function storedValue(
  field: Exclude<SortField, { kind: 'time' }>,
  columns: Partial<EntityRow>,
  attributes: Record<string, unknown>,
): unknown {
  if (field.kind !== 'attribute') return columns[field.column]
  return Object.hasOwn(attributes, field.key) ? attributes[field.key] : undefined
}

const timeTermOf = (time: string) => termOf('datetime', time)!

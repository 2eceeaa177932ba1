import { CopyRows } from '../../db/copy-rows.ts'
import type { Statement, Transaction } from '../../db/db.ts'
import { type Definitions, peopleStackId } from '../../organizations/definitions.ts'
import { readSchemaVersionSql } from '../../organizations/definitions-sql.ts'
import { profileFlags, profileTexts } from '../../profile-fields.ts'
import type { Change } from '../decide/decide.ts'
import type { PlannedTarget } from '../decide/decide-attributes.ts'
import type { DecidedSet, Placeholder } from '../decide/decide-set.ts'
import type { Columns, LockedRow } from '../entity-row.ts'
import { changedMatchKeys, type MatchKeys, matchKeys } from '../match-keys.ts'
import { storeAliases } from './alias-stage.ts'
import { insertChangesSql, insertEntitiesSql, storeDistributedSql } from './distributed-sql.ts'
import { type Item, type Name, nameKey } from './plan-write.ts'
import {
  appendChangesSql,
  appendConsentHistorySql,
  applyChangesSql,
  checkVersionsMadeSql,
  deleteLeftLinksSql,
  deleteLinksSql,
  insertedColumnCount,
  insertLinksSql,
  makeEntitiesSql,
  rememberLeftLinksSql,
  rememberLinksSql,
  sequenceCacheSize,
  storeChangesSql,
} from './sql.ts'
import { indexTerms } from './term-index-stage.ts'
import { forgetTombstones } from './tombstone-stage.ts'

/** The definitions changed after they were read. The set is decided again. */
export class DefinitionsChanged extends Error {}

/**
 * A set that is being stored: a promise for each statement, and among them that of `sequence`, the number of a change by which the
 * log includes the set.
 */
export type Storing = { statements: Promise<unknown>[]; sequence: Promise<number> }

/**
 * Pipelines the insert, link, index, history, apply and alias stages in one flush. Apply follows the others, because it locks the
 * head, and the alias stage runs under this lock.
 */
export function storeSet(tx: Transaction, set: DecidedSet): Storing {
  // Without changes, apply does not compare the version. A refusal must not rest on outdated definitions either.
  if (set.accepted.length === 0) return checkOnly(tx, set.definitions)
  const before = [
    ...insertEntities(tx, set),
    ...replaceLinks(tx, set),
    ...indexTerms(tx, set),
    ...appendConsentHistory(tx, set),
    ...forgetTombstones(tx, set),
  ]
  const { statements, sequence } = applyChanges(tx, set)
  return { statements: [...before, ...statements, ...storeAliases(tx, set), ...checkVersionsTaken(tx, set)], sequence }
}

/** Stores nothing, and compares the definitions with those of the decisions. */
export function checkOnly(tx: Transaction, definitions: Definitions): Storing {
  const sequence = checkSchemaVersion(tx, definitions)
  return { statements: [sequence], sequence }
}

/** Throws {@link DefinitionsChanged} unless the definitions are still those of the decisions. Returns the newest number of the log. */
export async function checkSchemaVersion(tx: Transaction, { organization_id, version }: Definitions): Promise<number> {
  type Head = { schema_version: number; sequence: number }
  const [head] = await tx.query<Head>(readSchemaVersionSql, [organization_id])
  if (head?.schema_version !== version) throw new DefinitionsChanged('the definitions changed during the write')
  return head.sequence
}

const insertsRow = ({ operation }: Change) => operation === 'create' || returnsRow(operation)

/** Whether the operation brings back an entity as it was. */
const returnsRow = (operation: Change['operation']) => operation === 'restore' || operation === 'unmerge'

type NewEntity = {
  stack_id: number
  id: string
  columns: Columns
  attributes: Record<string, unknown>
  /** The time of the creation of an entity that comes back. */
  created_at?: string | undefined
}

/** Insert stage: inserts creates, entities that come back and placeholders in order of name, as every set does. */
function insertEntities(tx: Transaction, { definitions, at, accepted, placeholders }: DecidedSet): Promise<unknown>[] {
  const { organization_id } = definitions
  const newEntities: NewEntity[] = []
  for (const { item, change } of accepted)
    if (insertsRow(change))
      newEntities.push({
        stack_id: item.write.stack_id,
        id: change.id,
        columns: change.columns,
        attributes: change.set,
        created_at: change.created_at,
      })
  for (const { stack_id, external_id, id, version } of placeholders.values())
    newEntities.push({ stack_id, id, columns: { external_id, active: false, version }, attributes: {} })
  if (newEntities.length === 0) return []
  newEntities.sort((a, b) => a.stack_id - b.stack_id || (nameOf(a) < nameOf(b) ? -1 : 1))
  const inserted = insertRows(tx, organization_id, newEntities, at)
  const named = newEntities.filter(({ columns }) => columns.external_id != null)
  if (named.length === 0) return [inserted]
  const versions = named.map(({ stack_id, columns: { external_id, version } }) => ({ stack_id, external_id, version }))
  // A name can be inserted again only after the transaction that released it commits, so this statement sees every release.
  return [inserted, tx.query(checkVersionsMadeSql, [organization_id, JSON.stringify(versions)])]
}

/**
 * Under the lock of the head: checks that no name that the set gives to an existing entity was released meanwhile at a higher version. In
 * an organization with aliases, the names of inserted people are checked again: the unique index does not know aliases.
 */
function checkVersionsTaken(tx: Transaction, { definitions, accepted, placeholders }: DecidedSet): Promise<unknown>[] {
  const { organization_id, has_aliases } = definitions
  const taken: (Name & { version: number })[] = []
  const isAgain = (stack_id: number) => has_aliases && stack_id === peopleStackId
  for (const { item, change } of accepted) {
    const { stack_id } = item.write
    const { columns, aliases = [], version } = change
    const isChecked = change.operation === 'update' || isAgain(stack_id)
    const names = isChecked && columns.external_id ? [columns.external_id, ...aliases] : aliases
    for (const external_id of names) taken.push({ stack_id, external_id, version })
  }
  for (const { stack_id, external_id, version } of placeholders.values())
    if (isAgain(stack_id)) taken.push({ stack_id, external_id, version })
  return taken.length === 0 ? [] : [tx.query(checkVersionsMadeSql, [organization_id, JSON.stringify(taken)])]
}

const nameOf = ({ columns }: NewEntity) => columns.external_id ?? ''

function insertRows(tx: Transaction, organization_id: number, entities: NewEntity[], at: string): Promise<unknown> {
  if (tx.isDistributed) {
    const rows = entities.map(({ stack_id, id, columns, attributes, created_at = at }) => {
      const values = { answers: {}, ...columns, attributes, created_at, updated_at: at, has_keys: true }
      return { stack_id, id, ...values, ...(stack_id === peopleStackId ? matchKeys(columns) : noKeys) }
    })
    return tx.query(insertEntitiesSql, [organization_id, JSON.stringify(rows)])
  }
  const rows = new CopyRows(organization_id, insertedColumnCount, entities.length)
  const atMs = Date.parse(at)
  for (const entity of entities) writeEntity(rows, entity, atMs)
  return tx.copy(makeEntitiesSql, rows)
}

function writeEntity(rows: CopyRows, { stack_id, id, columns, attributes, created_at }: NewEntity, atMs: number) {
  rows.begin()
  rows.integer(stack_id)
  rows.uuid(id)
  rows.text(columns.external_id)
  rows.boolean(columns.active)
  rows.integer(columns.version!)
  for (const column of profileTexts) rows.text(columns[column])
  for (const column of profileFlags) rows.boolean(columns[column])
  rows.json(JSON.stringify(columns.answers ?? {}))
  rows.json(JSON.stringify(attributes))
  rows.time(created_at === undefined ? atMs : Date.parse(created_at))
  rows.time(atMs)
  const keys = stack_id === peopleStackId ? matchKeys(columns) : noKeys
  rows.text(keys.email_key)
  rows.text(keys.mobile_key)
  rows.text(keys.name_key)
  rows.boolean(true)
}

const noKeys: MatchKeys = { email_key: null, mobile_key: null, name_key: null }

/** A change in the format of {@link applyChangesSql}. */
type Entry = {
  number: number
  stack_id: number
  id: string
  ctid?: string | undefined
  operation: Change['operation']
  version: number
  read_version?: number | undefined
  before: object | null
  after: object
  actor: string
  request_id: string
  link_targets?: LinkTargets | undefined
  columns?: Columns & Partial<MatchKeys>
  attributes?: Change['set']
  removed_keys?: string[]
}

/** The ids of the targets of each replaced relationship attribute, in order, by attribute id. */
type LinkTargets = Record<string, string[]>

/** Up to this many changes, one statement stores and logs them. It is the default size of a set. */
const maxStoredAndLogged = 256

/** Apply stage: stores, numbers and logs the changes. A placeholder is logged before the change that names it. */
function applyChanges(tx: Transaction, set: DecidedSet): Storing {
  const { organization_id, version } = set.definitions
  const { at, accepted } = set
  const entries = entriesOf(set)
  const store = async (statement: Statement, changes: object[]) => {
    const values = [organization_id, JSON.stringify(changes), entries.length, version, at]
    return lastOf(await tx.query<{ sequence: number }>(statement, values))
  }
  const stored = () => entries.filter(({ operation }) => operation !== 'create').map(withoutLog)
  if (tx.isDistributed) {
    const sequence = store(storeDistributedSql, stored())
    const logged = [organization_id, JSON.stringify(entries.map(logOf)), entries.length, at]
    return { statements: [sequence, tx.query(insertChangesSql, logged)], sequence }
  }
  if (accepted.length <= maxStoredAndLogged || entries.length >= sequenceCacheSize) {
    const sequence = store(applyChangesSql, entries)
    return { statements: [sequence], sequence }
  }
  const sequence = store(storeChangesSql, stored())
  const log = new CopyRows(organization_id, changeFields, entries.length)
  const atMs = Date.parse(at)
  for (const entry of entries) writeEntry(log, entry, atMs)
  return { statements: [sequence, tx.copy(appendChangesSql, log)], sequence }
}

/** The highest number. PostgreSQL returns the rows of an insert in no fixed order. */
const lastOf = (rows: readonly { sequence: number }[]) =>
  rows.reduce((highest, { sequence }) => Math.max(highest, sequence), 0)

/** Number of columns of {@link appendChangesSql}, without the number. */
const changeFields = 12

function writeEntry(log: CopyRows, entry: Entry, atMs: number) {
  log.begin()
  log.time(atMs)
  log.text('entity')
  log.integer(entry.stack_id)
  log.uuid(entry.id)
  log.text(entry.operation)
  log.integer(entry.version)
  log.json(entry.before && JSON.stringify(entry.before))
  log.json(JSON.stringify(entry.after))
  log.text(entry.actor)
  log.text(entry.request_id)
  log.json(entry.link_targets ? JSON.stringify(entry.link_targets) : null)
}

const withoutLog = ({
  stack_id,
  id,
  ctid,
  operation,
  version,
  read_version,
  columns,
  attributes,
  removed_keys,
}: Entry) => ({
  stack_id,
  id,
  ctid,
  operation,
  version,
  read_version,
  columns,
  attributes,
  removed_keys,
})

const logOf = ({
  number,
  stack_id,
  id,
  operation,
  version,
  before,
  after,
  actor,
  request_id,
  link_targets,
}: Entry) => ({
  number,
  stack_id,
  id,
  operation,
  version,
  before,
  after,
  actor,
  request_id,
  link_targets,
})

function entriesOf({ accepted, placeholders, rows }: DecidedSet): Entry[] {
  const entries: Entry[] = []
  const placeholdersByItem = Map.groupBy(placeholders.values(), ({ item }) => item)
  for (const { item, change } of accepted) {
    for (const placeholder of placeholdersByItem.get(item) ?? [])
      entries.push(placeholderEntry(entries.length + 1, placeholder))
    entries.push(changeEntry(entries.length + 1, item, change, placeholders, rows.get(item)))
  }
  return entries
}

function placeholderEntry(number: number, { stack_id, external_id, id, version, item }: Placeholder): Entry {
  const { actor, request_id } = item.write
  const after = { external_id, state: 'placeholder' }
  return { number, stack_id, id, operation: 'create', version, before: null, after, actor, request_id }
}

function changeEntry(
  number: number,
  { write }: Item,
  change: Change,
  placeholders: DecidedSet['placeholders'],
  row: LockedRow | undefined,
): Entry {
  const { operation, id, version, before, after, columns, set, removed } = change
  const { stack_id, actor, request_id } = write
  const ctid = row?.ctid
  const link_targets = linkTargetsOf(change, placeholders)
  const entry: Entry = {
    number,
    stack_id,
    id,
    ctid,
    operation,
    version,
    read_version: row?.version,
    before,
    after,
    actor,
    request_id,
    link_targets,
  }
  if (operation !== 'update') return entry
  entry.columns = row && stack_id === peopleStackId ? { ...columns, ...changedMatchKeys(row, columns) } : columns
  if (removed.length === 0 && Object.keys(set).length === 0) return entry
  entry.attributes = set
  entry.removed_keys = removed
  return entry
}

/**
 * The targets of the replaced links. A deletion or merge ends all links, so its log entry lists none. A restore or unmerge always
 * lists its links: it may have a plain value under a key that was declared as a relationship later.
 */
function linkTargetsOf({ operation, relinked }: Change, placeholders: DecidedSet['placeholders']) {
  if (operation === 'delete' || operation === 'merge') return undefined
  if (relinked.length === 0 && !returnsRow(operation)) return undefined
  const targets: LinkTargets = {}
  for (const links of relinked) targets[links.attribute.id] = targetIdsOf(links, placeholders)
  return targets
}

/** The ids of the targets in order, each once. */
function targetIdsOf({ targets }: Change['relinked'][number], placeholders: DecidedSet['placeholders']): string[] {
  const idOf = (target: PlannedTarget) => ('id' in target ? target.id : placeholders.get(nameKey(target.name))!.id)
  return [...new Set(targets.map(idOf))]
}

/** Link stage: replaces the links of the written relationship attributes, and removes old links to restored entities. */
function replaceLinks(tx: Transaction, { definitions, accepted, placeholders }: DecidedSet): Promise<unknown>[] {
  const { organization_id } = definitions
  const written: (Change['relinked'][number] & { source_id: string })[] = []
  for (const { change } of accepted)
    for (const links of change.relinked) written.push({ source_id: change.id, ...links })
  // A new row has no links, and those of a row that returns are removed below.
  const replaced = accepted
    .filter(({ change }) => !insertsRow(change))
    .flatMap(({ change }) =>
      change.relinked.map(({ attribute }) => ({ source_id: change.id, attribute_id: attribute.id })),
    )
  const inserted = written.flatMap(({ source_id, ...links }) => {
    const { id: attribute_id, target_stack_id } = links.attribute
    return targetIdsOf(links, placeholders).map((target_id, position) => ({
      source_id,
      attribute_id,
      target_stack_id,
      target_id,
      position,
    }))
  })
  const statements: Promise<unknown>[] = []
  const restored = accepted.filter(({ change }) => returnsRow(change.operation)).map(({ change }) => change.id)
  const send = (sql: Statement, value: unknown) => statements.push(tx.query(sql, [organization_id, value]))
  if (restored.length > 0) {
    send(rememberLeftLinksSql, restored)
    send(deleteLeftLinksSql, restored)
  }
  if (replaced.length > 0) {
    const links = JSON.stringify(replaced)
    send(rememberLinksSql, links)
    send(deleteLinksSql, links)
  }
  if (inserted.length > 0) statements.push(tx.query(insertLinksSql, [organization_id, JSON.stringify(inserted)]))
  return statements
}

/** History stage: appends the given consent answers to the consent history. */
function appendConsentHistory(tx: Transaction, { definitions, at, accepted }: DecidedSet): Promise<unknown>[] {
  const answers: object[] = []
  for (const { item, change } of accepted)
    for (const { stored, isDated, ...answer } of change.answers)
      answers.push({
        ...answer,
        person_id: change.id,
        version: change.version,
        actor: item.write.actor,
        request_id: item.write.request_id,
      })
  if (answers.length === 0) return []
  return [tx.query(appendConsentHistorySql, [definitions.organization_id, JSON.stringify(answers), at])]
}

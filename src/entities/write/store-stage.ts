import { CopyRows } from '../../db/copy-rows.ts'
import type { Statement, Transaction } from '../../db/db.ts'
import { peopleStackId } from '../../organizations/definitions.ts'
import { profileFlags, profileTexts } from '../../profile-fields.ts'
import type { Change } from '../decide/decide.ts'
import type { PlannedTarget } from '../decide/decide-attributes.ts'
import type { DecidedSet, Placeholder } from '../decide/decide-set.ts'
import type { Columns, StoredRow } from '../entity-row.ts'
import { changedMatchKeys, type MatchKeys, matchKeys } from '../match-keys.ts'
import { storeAliases } from './alias-stage.ts'
import { insertChangesSql, insertEntitiesSql } from './distributed-sql.ts'
import { type Item, nameKey } from './plan-write.ts'
import {
  appendChangesSql,
  appendConsentHistorySql,
  applyChangesSql,
  deleteLeftLinksSql,
  deleteLinksSql,
  insertedColumnCount,
  insertLinksSql,
  makeEntitiesSql,
  rememberLeftLinksSql,
  rememberLinksSql,
  storeChangesSql,
} from './sql.ts'
import { indexTerms } from './term-index-stage.ts'
import { forgetTombstones } from './tombstone-stage.ts'

/**
 * Pipelines the insert, link, index, history, apply and alias stages in one flush. `base` is the number of the head, which is locked.
 * Returns a promise for each statement, and the number of a change by which the log includes the set.
 */
export function storeSet(
  tx: Transaction,
  set: DecidedSet,
  base: number,
): { statements: Promise<unknown>[]; sequence: number } {
  if (set.accepted.length === 0) return { statements: [], sequence: base }
  const entries = entriesOf(set, base)
  const statements = [
    ...insertEntities(tx, set),
    ...replaceLinks(tx, set),
    ...indexTerms(tx, set),
    ...appendConsentHistory(tx, set),
    ...forgetTombstones(tx, set),
    ...applyChanges(tx, set, entries),
    ...storeAliases(tx, set),
  ]
  return { statements, sequence: entries.at(-1)!.sequence }
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

/** Insert stage: inserts creates, entities that come back, and placeholders. */
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
  return [insertRows(tx, organization_id, newEntities, at)]
}

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
  sequence: number
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

/** Apply stage: stores and logs the changes, and advances the head. */
function applyChanges(tx: Transaction, { definitions, at }: DecidedSet, entries: Entry[]): Promise<unknown>[] {
  const { organization_id } = definitions
  const store = (statement: Statement, changes: object[]) =>
    tx.query(statement, [organization_id, JSON.stringify(changes), entries.at(-1)!.sequence, at])
  if (!tx.isDistributed && entries.length <= maxStoredAndLogged) return [store(applyChangesSql, entries)]
  const stored = entries.filter(({ operation }) => operation !== 'create').map(withoutLog)
  if (tx.isDistributed)
    return [
      store(storeChangesSql, stored),
      tx.query(insertChangesSql, [organization_id, JSON.stringify(entries.map(logOf)), at]),
    ]
  const log = new CopyRows(organization_id, changeFields, entries.length)
  const atMs = Date.parse(at)
  for (const entry of entries) writeEntry(log, entry, atMs)
  return [store(storeChangesSql, stored), tx.copy(appendChangesSql, log)]
}

/** Number of columns of {@link appendChangesSql}. */
const changeFields = 13

function writeEntry(log: CopyRows, entry: Entry, atMs: number) {
  log.begin()
  log.bigint(entry.sequence)
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
  sequence,
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
  sequence,
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

/** The changes in order, with their numbers. A placeholder is logged before the change that names it. */
function entriesOf({ accepted, placeholders, rows }: DecidedSet, base: number): Entry[] {
  const entries: Entry[] = []
  const placeholdersByItem = Map.groupBy(placeholders.values(), ({ item }) => item)
  for (const { item, change } of accepted) {
    for (const placeholder of placeholdersByItem.get(item) ?? [])
      entries.push(placeholderEntry(base + entries.length + 1, placeholder))
    entries.push(changeEntry(base + entries.length + 1, item, change, placeholders, rows.get(item)))
  }
  return entries
}

function placeholderEntry(sequence: number, { stack_id, external_id, id, version, item }: Placeholder): Entry {
  const { actor, request_id } = item.write
  const after = { external_id, state: 'placeholder' }
  return { sequence, stack_id, id, operation: 'create', version, before: null, after, actor, request_id }
}

function changeEntry(
  sequence: number,
  { write }: Item,
  change: Change,
  placeholders: DecidedSet['placeholders'],
  row: StoredRow | undefined,
): Entry {
  const { operation, id, version, before, after, columns, set, removed } = change
  const { stack_id, actor, request_id } = write
  const ctid = row?.ctid
  const link_targets = linkTargetsOf(change, placeholders)
  const entry: Entry = {
    sequence,
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

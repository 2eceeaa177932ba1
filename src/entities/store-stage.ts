import { CopyRows } from '../db/copy-rows.ts'
import type { Statement, Transaction } from '../db/db.ts'
import type { Definitions } from '../organizations/definitions.ts'
import { readSchemaVersionSql } from '../organizations/definitions-sql.ts'
import type { Change } from './decide.ts'
import type { PlannedTarget } from './decide-attributes.ts'
import type { DecidedSet, Placeholder } from './decide-set.ts'
import type { Columns, LockedRow } from './entity-row.ts'
import { type Item, nameKey } from './plan-write.ts'
import {
  appendChangesSql,
  appendConsentHistorySql,
  applyChangesSql,
  checkVersionsMadeSql,
  deleteLinksSql,
  insertLinksSql,
  makeEntitiesSql,
  profileFlags,
  profileTexts,
  sequenceCacheSize,
  storeChangesSql,
} from './sql.ts'
import { indexTerms } from './term-index-stage.ts'

/** The definitions changed after they were read. The set is decided again. */
export class DefinitionsChanged extends Error {}

/**
 * Pipelines the insert, link, index, history and apply stages in one flush. Apply is last, because it locks the head.
 * Returns a promise for each statement.
 */
export function storeSet(tx: Transaction, set: DecidedSet): Promise<unknown>[] {
  // Without changes, apply does not compare the version. A refusal must not rest on outdated definitions either.
  if (set.accepted.length === 0) return [checkSchemaVersion(tx, set.definitions)]
  return [
    ...insertEntities(tx, set),
    ...replaceLinks(tx, set),
    ...indexTerms(tx, set),
    ...appendConsentHistory(tx, set),
    ...applyChanges(tx, set),
  ]
}

async function checkSchemaVersion(tx: Transaction, { organization_id, version }: Definitions) {
  const [head] = await tx.query<{ schema_version: number }>(readSchemaVersionSql, [organization_id])
  if (head?.schema_version !== version) throw new DefinitionsChanged('the definitions changed during the write')
}

type NewEntity = {
  stack_id: number
  id: string
  columns: Columns
  attributes: Record<string, unknown>
}

/** Insert stage: inserts creates and placeholders in order of name, as every set does. */
function insertEntities(tx: Transaction, { definitions, at, accepted, placeholders }: DecidedSet): Promise<unknown>[] {
  const { organization_id } = definitions
  const newEntities: NewEntity[] = []
  for (const { item, change } of accepted)
    if (change.operation === 'create')
      newEntities.push({
        stack_id: item.write.stack_id,
        id: change.id,
        columns: change.columns,
        attributes: change.set,
      })
  for (const { stack_id, external_id, id, version } of placeholders.values())
    newEntities.push({ stack_id, id, columns: { external_id, active: false, version }, attributes: {} })
  if (newEntities.length === 0) return []
  newEntities.sort((a, b) => a.stack_id - b.stack_id || (nameOf(a) < nameOf(b) ? -1 : 1))
  const rows = new CopyRows(organization_id, entityFields, newEntities.length)
  const atMs = Date.parse(at)
  for (const entity of newEntities) writeEntity(rows, entity, atMs)
  const copied = tx.copy(makeEntitiesSql, rows)
  const named = newEntities.filter(({ columns }) => columns.external_id != null)
  if (named.length === 0) return [copied]
  const versions = named.map(({ stack_id, columns }) => ({ s: stack_id, e: columns.external_id, v: columns.version }))
  return [copied, tx.query(checkVersionsMadeSql, [organization_id, JSON.stringify(versions)])]
}

const nameOf = ({ columns }: NewEntity) => columns.external_id ?? ''

/** Number of columns of {@link makeEntitiesSql}. */
const entityFields = 20

function writeEntity(rows: CopyRows, { stack_id, id, columns, attributes }: NewEntity, atMs: number) {
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
  rows.time(atMs)
  rows.time(atMs)
}

/** A change in the format of {@link applyChangesSql}. */
type Entry = {
  n: number
  s: number
  i: string
  t?: string | undefined
  o: Change['operation']
  v: number
  b: object | null
  f: object
  u: string
  r: string
  p?: Columns
  a?: Change['set']
  d?: string[]
}

/** Up to this many changes, one statement stores and logs them. It is the default size of a set. */
const maxStoredAndLogged = 256

/** Apply stage: stores, numbers and logs the changes. A placeholder is logged before the change that names it. */
function applyChanges(tx: Transaction, set: DecidedSet): Promise<unknown>[] {
  const { organization_id, version } = set.definitions
  const { at, accepted } = set
  const entries = entriesOf(set)
  const store = (statement: Statement, changes: object[]) =>
    tx.query(statement, [organization_id, JSON.stringify(changes), entries.length, version, at])
  if (accepted.length <= maxStoredAndLogged || entries.length >= sequenceCacheSize)
    return [store(applyChangesSql, entries)]
  const storing = store(storeChangesSql, entries.filter(({ o }) => o !== 'create').map(withoutLog))
  const log = new CopyRows(organization_id, changeFields, entries.length)
  const atMs = Date.parse(at)
  for (const entry of entries) writeEntry(log, entry, atMs)
  return [storing, tx.copy(appendChangesSql, log)]
}

/** Number of columns of {@link appendChangesSql}, without the number. */
const changeFields = 11

function writeEntry(log: CopyRows, { s, i, o, v, b, f, u, r }: Entry, atMs: number) {
  log.begin()
  log.time(atMs)
  log.text('entity')
  log.integer(s)
  log.uuid(i)
  log.text(o)
  log.integer(v)
  log.json(b && JSON.stringify(b))
  log.json(JSON.stringify(f))
  log.text(u)
  log.text(r)
}

const withoutLog = ({ s, i, t, o, v, p, a, d }: Entry) => ({ s, i, t, o, v, p, a, d })

function entriesOf({ accepted, placeholders, rows }: DecidedSet): Entry[] {
  const entries: Entry[] = []
  const placeholdersByItem = Map.groupBy(placeholders.values(), ({ item }) => item)
  for (const { item, change } of accepted) {
    for (const placeholder of placeholdersByItem.get(item) ?? [])
      entries.push(placeholderEntry(entries.length + 1, placeholder))
    entries.push(changeEntry(entries.length + 1, item, change, rows.get(item)))
  }
  return entries
}

function placeholderEntry(n: number, { stack_id, external_id, id, version, item: { write } }: Placeholder): Entry {
  const after = { external_id, state: 'placeholder' }
  return { n, s: stack_id, i: id, o: 'create', v: version, b: null, f: after, u: write.actor, r: write.request_id }
}

function changeEntry(n: number, { write }: Item, change: Change, row: LockedRow | undefined): Entry {
  const { operation, id, version, before, after, columns, set, removed } = change
  const entry: Entry = {
    n,
    s: write.stack_id,
    i: id,
    t: row?.ctid,
    o: operation,
    v: version,
    b: before,
    f: after,
    u: write.actor,
    r: write.request_id,
  }
  if (operation !== 'update') return entry
  entry.p = columns
  if (removed.length === 0 && Object.keys(set).length === 0) return entry
  entry.a = set
  entry.d = removed
  return entry
}

/** Link stage: replaces the links of the written relationship attributes. */
function replaceLinks(tx: Transaction, { definitions, accepted, placeholders }: DecidedSet): Promise<unknown>[] {
  const { organization_id } = definitions
  const idOf = (target: PlannedTarget) => ('id' in target ? target.id : placeholders.get(nameKey(target.name))!.id)
  const written: (Change['relinked'][number] & { source: string })[] = []
  for (const { change } of accepted) for (const links of change.relinked) written.push({ source: change.id, ...links })
  const replaced = written.map(({ source, attribute }) => ({ i: source, a: attribute.id }))
  const inserted = written.flatMap(({ source, attribute, targets }) => {
    const ids = [...new Set(targets.map(idOf))]
    return ids.map((id, p) => ({ i: source, a: attribute.id, s: attribute.target_stack_id, t: id, p }))
  })
  const statements: Promise<unknown>[] = []
  if (replaced.length > 0) statements.push(tx.query(deleteLinksSql, [organization_id, JSON.stringify(replaced)]))
  if (inserted.length > 0) statements.push(tx.query(insertLinksSql, [organization_id, JSON.stringify(inserted)]))
  return statements
}

/** History stage: appends the given consent answers to the consent history. */
function appendConsentHistory(tx: Transaction, { definitions, at, accepted }: DecidedSet): Promise<unknown>[] {
  const answers: object[] = []
  for (const { item, change } of accepted)
    for (const answer of change.answers)
      answers.push({
        i: change.id,
        v: change.version,
        c: answer.consent_type_id,
        h: answer.channel,
        b: answer.previous_state,
        s: answer.state,
        o: answer.source,
        u: item.write.actor,
        r: item.write.request_id,
      })
  if (answers.length === 0) return []
  return [tx.query(appendConsentHistorySql, [definitions.organization_id, JSON.stringify(answers), at])]
}

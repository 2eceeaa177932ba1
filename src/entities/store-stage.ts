import { CopyRows } from '../db/copy-rows.ts'
import type { Statement, Transaction } from '../db/db.ts'
import type { Definitions } from '../organizations/definitions.ts'
import type { Item } from './conflicts.ts'
import type { Change } from './decide.ts'
import type { PlannedTarget } from './decide-attributes.ts'
import type { Columns, LockedRow } from './entity-row.ts'
import { nameKey } from './plan-write.ts'
import type { Accepted, Placeholder } from './read-stage.ts'
import {
  appendChangesSql,
  appendConsentHistorySql,
  applyChangesSql,
  checkVersionsMadeSql,
  deleteLinksSql,
  deleteLinksToSql,
  insertLinksSql,
  makeEntitiesSql,
  profileFlags,
  profileTexts,
  sequenceCacheSize,
  storeChangesSql,
} from './sql.ts'

type NewEntity = {
  stack_id: number
  id: string
  columns: Columns
  attributes: Record<string, unknown>
  /** The time of the creation of a restored entity. */
  created_at?: string | undefined
}

/** Make stage: inserts creates, restored entities and placeholders in order of name, as every set does. */
export function insertEntities(
  tx: Transaction,
  organization_id: number,
  accepted: Accepted[],
  placeholders: Iterable<Placeholder>,
  at: string,
): Promise<unknown>[] {
  const newEntities: NewEntity[] = []
  for (const { item, change } of accepted)
    if (change.operation === 'create' || change.operation === 'restore')
      newEntities.push({
        stack_id: item.write.stack_id,
        id: change.id,
        columns: change.columns,
        attributes: change.set,
        created_at: change.created_at,
      })
  for (const { stack_id, external_id, id, version } of placeholders)
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
  l?: LinkTargets | undefined
  p?: Columns
  a?: Change['set']
  d?: string[]
}

/** The ids of the targets of each replaced relationship attribute, in order, by attribute id. */
type LinkTargets = Record<string, string[]>

/** Up to this many changes, one statement stores and logs them. It is the default size of a set. */
const maxStoredAndLogged = 256

/** Apply stage: stores, numbers and logs the changes. A placeholder is logged before the change that names it. */
export function applyChanges(
  tx: Transaction,
  { organization_id, version }: Definitions,
  accepted: Accepted[],
  placeholders: Map<string, Placeholder>,
  rows: ReadonlyMap<Item, LockedRow>,
  at: string,
): Promise<unknown>[] {
  const entries = entriesOf(accepted, placeholders, rows)
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
const changeFields = 12

function writeEntry(log: CopyRows, { s, i, o, v, b, f, u, r, l }: Entry, atMs: number) {
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
  log.json(l ? JSON.stringify(l) : null)
}

const withoutLog = ({ s, i, t, o, v, p, a, d }: Entry) => ({ s, i, t, o, v, p, a, d })

function entriesOf(
  accepted: Accepted[],
  placeholders: Map<string, Placeholder>,
  rows: ReadonlyMap<Item, LockedRow>,
): Entry[] {
  const entries: Entry[] = []
  const placeholdersByItem = Map.groupBy(placeholders.values(), ({ item }) => item)
  for (const { item, change } of accepted) {
    for (const placeholder of placeholdersByItem.get(item) ?? [])
      entries.push(placeholderEntry(entries.length + 1, placeholder))
    entries.push(changeEntry(entries.length + 1, item, change, placeholders, rows.get(item)))
  }
  return entries
}

function placeholderEntry(n: number, { stack_id, external_id, id, version, item: { write } }: Placeholder): Entry {
  const after = { external_id, state: 'placeholder' }
  return { n, s: stack_id, i: id, o: 'create', v: version, b: null, f: after, u: write.actor, r: write.request_id }
}

function changeEntry(
  n: number,
  { write }: Item,
  change: Change,
  placeholders: Map<string, Placeholder>,
  row: LockedRow | undefined,
): Entry {
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
    l: linkTargetsOf(change, placeholders),
  }
  if (operation !== 'update') return entry
  entry.p = columns
  if (removed.length === 0 && Object.keys(set).length === 0) return entry
  entry.a = set
  entry.d = removed
  return entry
}

/** The targets of the replaced links. A deletion replaces links by none, which goes without saying. */
function linkTargetsOf({ operation, relinked }: Change, placeholders: Map<string, Placeholder>) {
  if (relinked.length === 0 || operation === 'delete') return undefined
  const targets: LinkTargets = {}
  for (const links of relinked) targets[links.attribute.id] = targetIdsOf(links, placeholders)
  return targets
}

/** The ids of the targets in order, each once. */
function targetIdsOf({ targets }: Change['relinked'][number], placeholders: Map<string, Placeholder>): string[] {
  const idOf = (target: PlannedTarget) => ('id' in target ? target.id : placeholders.get(nameKey(target.name))!.id)
  return [...new Set(targets.map(idOf))]
}

/** Link stage: replaces the links of the written relationship attributes, and removes old links to restored entities. */
export function replaceLinks(
  tx: Transaction,
  organization_id: number,
  accepted: Accepted[],
  placeholders: Map<string, Placeholder>,
): Promise<unknown>[] {
  const written: (Change['relinked'][number] & { source: string })[] = []
  for (const { change } of accepted) for (const links of change.relinked) written.push({ source: change.id, ...links })
  const replaced = written.map(({ source, attribute }) => ({ i: source, a: attribute.id }))
  const inserted = written.flatMap(({ source, ...links }) =>
    targetIdsOf(links, placeholders).map((t, p) => ({
      i: source,
      a: links.attribute.id,
      s: links.attribute.target_stack_id,
      t,
      p,
    })),
  )
  const statements: Promise<unknown>[] = []
  const restored = accepted.filter(({ change }) => change.operation === 'restore').map(({ change }) => change.id)
  if (restored.length > 0) statements.push(tx.query(deleteLinksToSql, [organization_id, restored]))
  if (replaced.length > 0) statements.push(tx.query(deleteLinksSql, [organization_id, JSON.stringify(replaced)]))
  if (inserted.length > 0) statements.push(tx.query(insertLinksSql, [organization_id, JSON.stringify(inserted)]))
  return statements
}

/** Answer stage: appends the given consent answers to the history. */
export function appendAnswers(
  tx: Transaction,
  organization_id: number,
  accepted: Accepted[],
  at: string,
): Promise<unknown>[] {
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
  return answers.length === 0 ? [] : [tx.query(appendConsentHistorySql, [organization_id, JSON.stringify(answers), at])]
}

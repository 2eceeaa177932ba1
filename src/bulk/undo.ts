import type { LoggedLinks } from '../changes/link-names.ts'
import { channels, channelTable } from '../values/channels.ts'
import { pointer } from '../values/errors.ts'

/** A change of an entity since an import began. `is_import` says that the import made it. */
export type LoggedChange = {
  version: number
  operation: string
  before: Values | null
  after: Values | null
  links: LoggedLinks | null
  /** The aliases that a match gave at the time of the change, if the entity still has them. */
  aliases: readonly string[]
  is_import: boolean
}

/** Fields of an entity, as in a body of a write. */
type Values = Record<string, unknown> & { attribute_values?: Record<string, unknown> }

/** The reasons why an import's change of an entity, or of one of its fields, is not undone. */
export const leftReasons = [
  'changed_since',
  'linked_since',
  'gone',
  'consents',
  'state',
  'definition_changed',
  'log_emptied',
  'refused',
] as const
export type LeftReason = (typeof leftReasons)[number]

/** A field that is not undone, as a JSON Pointer in a read. */
type LeftField = { path: string; reason: LeftReason }

/** The undo of an import's changes to one entity: its deletion or restoration, or a body and the aliases that end. */
export type UndoPlan = { left: LeftField[] } & (
  | { deletes: true }
  | { restores: true }
  | { reason: LeftReason }
  | { body: Values; released: readonly string[] }
)

/** The relationship of an attribute id, and the current attribute of a key. Undefined if none is active. */
export type UndoDefinitions = {
  relationship: (attribute_id: number) => { key: string; reference: (id: string) => object } | undefined
  isRelationship: (key: string) => boolean
}

/** A value that the import replaced. `isLink` marks the value of a relationship. */
type Replaced = { before: unknown; isLink: boolean; isForeign: boolean }

/** The fields that an undo never writes. They follow from consent answers, which it does not take back for a person. */
const answerFields: readonly string[] = ['consents', ...channels.map(channel => channelTable[channel].flag)]

/**
 * Decides how to undo an import's changes to an entity. `changes` are those since the import began, in order. A field
 * stays if something else has written it after the import. An entity that the import created stays if something else
 * has written it. An alias stays if something else has written the entity since, because that write may have found the
 * entity by the alias. The function is pure.
 */
export function planUndo(changes: readonly LoggedChange[], definitions: UndoDefinitions): UndoPlan {
  const first = changes.findIndex(({ is_import }) => is_import)
  const own = changes.slice(first)
  const isForeign = own.some(({ is_import }) => !is_import)
  if (own[0]!.operation === 'delete')
    return isForeign ? { reason: 'changed_since', left: [] } : { restores: true, left: [] }
  if (['delete', 'merge', 'erase'].includes(own.at(-1)!.operation)) return { reason: 'gone', left: [] }
  if (own[0]!.operation === 'create')
    return isForeign ? { reason: 'changed_since', left: [] } : { deletes: true, left: [] }
  if (own.some(isEmptied)) return { reason: 'log_emptied', left: [] }
  const replaced = new Map<string, Replaced>()
  for (const change of own) {
    for (const [path, value] of replacedBy(change, definitions)) {
      const known = replaced.get(path)
      if (!change.is_import) known && replaced.set(path, { ...known, isForeign: true })
      else if (!known || known.isForeign) replaced.set(path, value)
    }
  }
  const { body, left } = planBody(replaced, definitions)
  const given = new Set(own.flatMap(({ is_import, aliases }) => (is_import ? aliases : [])))
  // Two changes at the same time both have the aliases of that time.
  const isShared = changes.some(({ is_import, aliases }) => !is_import && aliases.some(alias => given.has(alias)))
  if (given.size === 0 || !(isForeign || isShared)) return { body, left, released: [...given] }
  return { body, left: [...left, { path: '/aliases', reason: 'changed_since' }], released: [] }
}

/**
 * Whether the log has lost the values of a change. A change that only gave an alias has no values, and its `before` is
 * empty.
 */
const isEmptied = ({ before, after, links }: LoggedChange) =>
  Object.keys(after ?? {}).length === 0 && links === null && (before === null || Object.keys(before).length > 0)

function planBody(
  replaced: ReadonlyMap<string, Replaced>,
  definitions: UndoDefinitions,
): { body: Values; left: LeftField[] } {
  const left: LeftField[] = []
  const body: Values = {}
  const values: [string, unknown][] = []
  for (const [path, { before, isLink, isForeign }] of replaced) {
    const name = path.slice(1)
    const key = path.startsWith(valuesPath) ? unescaped(path.slice(valuesPath.length)) : undefined
    if (isForeign) left.push({ path, reason: 'changed_since' })
    else if (answerFields.includes(name)) name === 'consents' && left.push({ path, reason: 'consents' })
    else if (name === 'state') left.push({ path, reason: 'state' })
    else if (key === undefined) body[name] = before
    else if (before !== null && definitions.isRelationship(key) !== isLink)
      left.push({ path, reason: 'definition_changed' })
    else values.push([key, before])
  }
  if (values.length > 0) body.attribute_values = Object.fromEntries(values)
  return { body, left }
}

const valuesPath = '/attribute_values/'
const pathOf = (key: string) => pointer('attribute_values', key)
const unescaped = (key: string) => key.replaceAll('~1', '/').replaceAll('~0', '~')

/** The values before a change, by the JSON Pointer of each field that it wrote. */
function replacedBy({ before, after, links }: LoggedChange, { relationship }: UndoDefinitions): Map<string, Replaced> {
  const replaced = new Map<string, Replaced>()
  const add = (path: string, value: unknown, isLink = false) =>
    replaced.set(path, { before: value ?? null, isLink, isForeign: false })
  for (const name of Object.keys(after ?? {})) if (name !== 'attribute_values') add(`/${name}`, before?.[name])
  for (const key of Object.keys(after?.attribute_values ?? {})) {
    const values = before?.attribute_values ?? {}
    add(pathOf(key), Object.hasOwn(values, key) ? values[key] : null)
  }
  for (const [attribute_id, { before: ids = [] }] of Object.entries(links ?? {})) {
    const found = relationship(Number(attribute_id))
    // Without the definition of an attribute, the key for restoring its links is unknown.
    if (!found) add(`${valuesPath}${attribute_id}`, {}, true)
    else if (ids.length > 0) add(pathOf(found.key), ids.map(found.reference), true)
    else if (!replaced.has(pathOf(found.key))) add(pathOf(found.key), null, true)
  }
  return replaced
}

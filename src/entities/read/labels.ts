import type { Context } from '../../db/context.ts'
import {
  type Attribute,
  cachedDefinitions,
  type Definitions,
  definitionsAt,
  isRelationship,
  peopleStackId,
  readScopeOf,
} from '../../organizations/definitions.ts'
import type { Signal } from '../../process/signal.ts'
import type { Call } from '../../route/call.ts'
import { accessOf, mayRead } from '../../route/field-rights.ts'
import {
  fillLabel,
  isLabelField,
  type LabelPart,
  labelFields,
  labelText,
  maxLabelLength,
  type NamedPerson,
  parseLabel,
  personName,
} from '../../stacks/label.ts'
import { recordIdOf } from '../../values/formats.ts'
import { attributePrefix } from '../../values/profile-fields.ts'
import type { Included } from './included.ts'
import { type Projection, pickedKeys, shows } from './projection.ts'
import { readLabelsSql } from './read-sql.ts'

/** Maximum number of links of a page whose targets get a label. */
const maxLabeledLinks = 10_000

type EntityValues = Record<string, string | (string | null)[] | null>
type LabelRow = {
  links: [source_id: string, attribute_id: number, target_id: string][]
  entities: [
    stack_id: number,
    id: string,
    external_id: string | null,
    ...fields: (string | null)[],
    values: EntityValues | null,
  ][]
  schema_version: number
}

type Labeled = { stack_id: number; id: string; external_id: string | null; fields: NamedPerson; values: EntityValues }

/** The entities of a page: their stack, the members that it shows, and the relationships that it includes. */
export type LabeledPage = {
  stack_id: number
  projection?: Projection | undefined
  include?: readonly string[] | undefined
  /** Whether the page shows targets by their internal identifiers. */
  isById?: boolean | undefined
}

/**
 * Returns a function that reads the labels of a page's entities and of the targets of its relationships, with one
 * statement. An entity that the token or its role may not read is labeled with its identifier, which the page shows
 * anyway.
 */
export function labeler({ context, caller, signal, shown: log }: Call<unknown>, page: LabeledPage) {
  const isReadable: IsReadable = (stack_id, name) =>
    caller.scopes.has(readScopeOf(stack_id)) && mayRead(accessOf(caller, stack_id), name)
  return async (ids: readonly string[]): Promise<Included> => {
    const { read, definitions, shown } = await readLabels(context, page, ids, signal)
    for (const [stack_id, id] of read.entities) log.add(stack_id, id)
    return new Labels(read, definitions, isReadable).membersOf(page, ids, shown)
  }
}

async function readLabels(context: Context, page: LabeledPage, ids: readonly string[], signal: Signal) {
  const { db, organization_id } = context
  let definitions = await cachedDefinitions(context, signal)
  for (;;) {
    const shown = shownRelationships(page, definitions)
    const own = [...shown, ...namedRelationships(page.stack_id, definitions)]
    const targets = new Set(shown.map(({ target_stack_id }) => target_stack_id!))
    const ofTargets = [...targets].flatMap(stack_id => namedRelationships(stack_id, definitions))
    const named = namedKeys(definitions)
    const [read] = await db.query<LabelRow>(
      readLabelsSql,
      [
        organization_id,
        page.stack_id,
        ids,
        own.map(({ id }) => id),
        ofTargets.map(({ id }) => id),
        named.map(({ stack_id }) => stack_id),
        named.map(({ key }) => key),
        maxLabeledLinks,
        maxLabelLength,
      ],
      signal,
    )
    if (read!.schema_version <= definitions.version) return { read: read!, definitions, shown }
    definitions = await definitionsAt(context, read!.schema_version, signal)
  }
}

/** The relationships whose targets a page shows, archived ones included, because reads show their links. */
function shownRelationships(
  { stack_id, projection, include }: LabeledPage,
  { relationships }: Definitions,
): Attribute[] {
  const all = [...(relationships.get(stack_id)?.values() ?? [])].flat()
  if (!projection) return all
  const keys = [...pickedKeys(projection), ...(include ?? [])]
  const showsAll = shows(projection, 'attribute_values') && pickedKeys(projection).length === 0
  return showsAll ? all : all.filter(({ key }) => keys.includes(key))
}

function partsOf({ stacks }: Definitions, stack_id: number): LabelPart[] {
  const label = stacks.find(({ id }) => id === stack_id)?.label
  const parsed = label ? parseLabel(label) : undefined
  return parsed && 'parts' in parsed ? parsed.parts : []
}

type Named = Exclude<LabelPart, string>

const namesOf = (definitions: Definitions, stack_id: number): Named[] =>
  partsOf(definitions, stack_id).filter(part => typeof part !== 'string')

function namedRelationships(stack_id: number, definitions: Definitions) {
  return namesOf(definitions, stack_id)
    .map(({ key }) => definitions.declared.get(stack_id)?.get(key))
    .filter(attribute => attribute !== undefined)
    .filter(isRelationship)
}

/** The attributes that the label templates of all stacks name, both those of the stack and those of targets. */
function namedKeys(definitions: Definitions): { stack_id: number; key: string }[] {
  return definitions.stacks.flatMap(({ id }) =>
    namesOf(definitions, id).flatMap(({ key, hop }) => {
      const attribute = definitions.declared.get(id)?.get(key)
      if (hop === undefined || !attribute) return { stack_id: id, key }
      return isRelationship(attribute) ? { stack_id: attribute.target_stack_id, key: hop } : []
    }),
  )
}

/** Whether the caller may read a field of a stack. */
type IsReadable = (stack_id: number, name: string) => boolean

/** The labels of entities that were read. */
class Labels {
  readonly #definitions: Definitions
  readonly #isReadable: IsReadable
  readonly #entities: ReadonlyMap<string, Labeled>
  readonly #linksOf: ReadonlyMap<string, LabelRow['links']>
  readonly #parts = new Map<number, LabelPart[]>()

  constructor({ entities, links }: LabelRow, definitions: Definitions, isReadable: IsReadable) {
    this.#definitions = definitions
    this.#isReadable = isReadable
    this.#entities = new Map(entities.map(row => [row[1], labeledOf(row, isReadable)]))
    this.#linksOf = Map.groupBy(links, ([source_id]) => source_id)
  }

  /** The members of each entity of a page, without a closing brace. */
  membersOf({ stack_id, isById = false }: LabeledPage, ids: readonly string[], shown: readonly Attribute[]): Included {
    let bytes = 0
    const members = new Map<string, readonly Buffer[]>()
    for (const id of ids) {
      const entity = this.#entities.get(id)
      // The entity may have been deleted after its page was read.
      const label = entity ? this.#labelOf(entity) : identifierOf({ stack_id, id, external_id: null })
      const json = `,"label":${JSON.stringify(label)},"relationship_labels":${JSON.stringify(this.#targetsOf(id, shown, isById))}`
      const piece = Buffer.from(json)
      bytes += piece.length
      members.set(id, [piece])
    }
    return { bytes, of: id => members.get(id) ?? [] }
  }

  #targetsOf(id: string, shown: readonly Attribute[], isById: boolean): Record<string, Record<string, string>> {
    const keys = new Map(shown.map(({ id, key }) => [id, key]))
    const byKey = new Map<string, Map<string, string>>()
    for (const [, attribute_id, target_id] of this.#linksOf.get(id) ?? []) {
      const [key, target] = [keys.get(attribute_id), this.#entities.get(target_id)]
      if (key === undefined || !target) continue
      const labels = byKey.get(key) ?? new Map<string, string>()
      byKey.set(key, labels.set(isById ? internalOf(target) : identifierOf(target), this.#labelOf(target)))
    }
    return Object.fromEntries([...byKey].map(([key, labels]) => [key, Object.fromEntries(labels)]))
  }

  /** Within the label of another entity, the label of an entity does not follow relationships. */
  #labelOf(entity: Labeled, isWithin = false): string {
    return this.#nameOf(entity, isWithin) || labelText(identifierOf(entity))
  }

  #nameOf({ stack_id, id, fields, values }: Labeled, isWithin: boolean): string {
    if (stack_id === peopleStackId) return personName(fields)
    const parts = this.#parts.get(stack_id) ?? partsOf(this.#definitions, stack_id)
    this.#parts.set(stack_id, parts)
    return fillLabel(parts, ({ key, hop }) => {
      const attribute = this.#definitions.declared.get(stack_id)?.get(key)
      if (!attribute || !this.#isReadable(stack_id, attributePrefix + key)) return ''
      if (!isRelationship(attribute)) return labelText(values[key])
      if (isWithin) return ''
      const links = (this.#linksOf.get(id) ?? []).filter(([, attribute_id]) => attribute_id === attribute.id)
      const targets = links.flatMap(([, , target_id]) => this.#entities.get(target_id) ?? [])
      return labelText(targets.map(target => (hop ? this.#valueOf(target, hop) : this.#labelOf(target, true))))
    })
  }

  #valueOf({ stack_id, fields, values }: Labeled, key: string): string {
    if (stack_id === peopleStackId && isLabelField(key)) return labelText(fields[key])
    const isShown =
      this.#definitions.declared.get(stack_id)?.has(key) && this.#isReadable(stack_id, attributePrefix + key)
    return isShown ? labelText(values[key]) : ''
  }
}

/** A person's name consists of the fields that the caller may read. */
function labeledOf(
  [stack_id, id, external_id, ...rest]: LabelRow['entities'][number],
  isReadable: IsReadable,
): Labeled {
  const values = (rest.at(-1) ?? {}) as EntityValues
  const fields = Object.fromEntries(
    labelFields.map((field, index) => [field, isReadable(stack_id, field) ? rest[index] : null]),
  ) as NamedPerson
  return { stack_id, id, external_id, fields, values }
}

/** The identifier that reads show of a target. */
const identifierOf = ({ stack_id, id, external_id }: Pick<Labeled, 'stack_id' | 'id' | 'external_id'>): string =>
  external_id ?? internalOf({ stack_id, id })

const internalOf = ({ stack_id, id }: Pick<Labeled, 'stack_id' | 'id'>) =>
  stack_id === peopleStackId ? id : recordIdOf(id)

const end = Buffer.from('}')

type ReadAdded = (ids: readonly string[]) => Promise<Included>

/** Reads the members to add to each entity of a page: its labels, and then the entities that it includes. */
export function withLabels(readLabels: ReadAdded, readIncluded?: ReadAdded): ReadAdded {
  return async ids => {
    const [labels, included] = await Promise.all([readLabels(ids), readIncluded?.(ids)])
    const bytes = labels.bytes + (included?.bytes ?? 0)
    return { bytes, of: id => [...labels.of(id), ...(included?.of(id) ?? [end])] }
  }
}

import { isDeepStrictEqual } from 'node:util'
import type { Attribute, ConsentType, Definitions, Segment } from '../../client/index.ts'
import { peopleKey } from '../../src/organizations/definitions.ts'
import { namesSegment } from '../../src/queries/grammar/grammar.ts'
import { type Detail, pointer } from '../../src/values/errors.ts'
import {
  attributeName,
  type Declared,
  type DeclaredAttribute,
  type DeclaredConsentType,
  type DeclaredSegment,
  type DeclaredStack,
} from './declared.ts'

export type Kind = 'stack' | 'attribute' | 'consent_type' | 'segment'

/** One step of a push. `name` is the key; for an attribute it is `owner.key`. */
export type Step =
  | Create
  | { action: 'change' | 'archive'; kind: Kind; name: string; id: number | string; fields: Fields }

export type Create = { action: 'create'; name: string } & (
  | { kind: 'stack'; definition: DeclaredStack }
  | { kind: 'attribute'; definition: DeclaredAttribute }
  | { kind: 'consent_type'; definition: DeclaredConsentType }
  | { kind: 'segment'; definition: DeclaredSegment }
)

/** The fields that differ: `before` is the organization's value, `after` the value of the file. */
export type Fields = Record<string, { before: unknown; after: unknown }>

/** A definition that is in the organization but not in the file. */
export type Missing = { kind: Kind; name: string }

/** `faults` are changes of immutable fields, each with a JSON Pointer into the file. A plan with faults is not applied. */
export type Plan = { steps: Step[]; missing: Missing[]; faults: Detail[] }

/**
 * Plans the steps that make the organization match the file, in a possible order, also after an interrupted push.
 * Definitions that the file does not name stay; `archiveMissing` archives attributes and consent types.
 */
export function planPush(
  declared: Declared,
  current: Definitions,
  archiveMissing = false,
  segments: readonly Segment[] = [],
): Plan {
  const plan: Plan = { steps: [], missing: [], faults: [] }
  planStacks(declared, current, plan)
  planAttributes(declared, current, plan, archiveMissing)
  planNames(declared, current, plan)
  planConsentTypes(declared, current, plan, archiveMissing)
  if (declared.segments) planSegments(declared.segments, segments, plan)
  refuseOtherNumbers(declared, current, plan)
  return plan
}

/**
 * Segments come last, because their filters name other definitions. A segment comes after the segments that its filter
 * names.
 */
function planSegments(declared: readonly DeclaredSegment[], current: readonly Segment[], { steps, missing }: Plan) {
  for (const definition of inOrderOfUse(declared)) {
    const { key: name, ...target } = definition
    const existing = current.find(segment => segment.key === name)
    if (!existing) steps.push({ action: 'create', kind: 'segment', name, definition })
    else {
      // The service reorders the members of a filter.
      const isSame = isDeepStrictEqual(existing.filter, target.filter)
      const fields = differing(existing, isSame ? { ...target, filter: existing.filter } : target)
      addChange(steps, { kind: 'segment', name, id: name }, fields)
    }
  }
  const named = new Set(declared.map(({ key }) => key))
  for (const { key: name } of current) if (!named.has(name)) missing.push({ kind: 'segment', name })
}

/**
 * A filter names a consent type by its id, which follows from its position in the file. With other ids in the
 * organization, the segment would select people by another purpose.
 */
function refuseOtherNumbers({ consent_types, segments = [] }: Declared, current: Definitions, { faults }: Plan) {
  const keys = new Map(current.consent_types.map(({ id, key }) => [id, key]))
  const known = new Set(keys.values())
  const created = consent_types.filter(({ key }) => !known.has(key))
  for (const { key } of created) keys.set(Math.max(0, ...keys.keys()) + 1, key)
  for (const [index, { filter }] of segments.entries())
    for (const number of consentTypesIn(filter)) {
      const [inFile, here] = [consent_types[number - 1]?.key, keys.get(number)]
      if (inFile === undefined || here === undefined || inFile === here) continue
      const types = `the consent type ${number}, which is ${inFile} in the file and ${here} in the organization`
      const message = `names ${types}: list the consent types of the organization in the order of their ids`
      faults.push({ path: pointer('segments', index, 'filter'), message })
    }
}

function consentTypesIn(filter: unknown): number[] {
  if (typeof filter !== 'object' || filter === null) return []
  return Object.entries(filter).flatMap(([name, value]) =>
    name === 'consent_type_id' ? (JSON.stringify(value).match(/\d+/g) ?? []).map(Number) : consentTypesIn(value),
  )
}

/**
 * Sorts the segments so that each comes after the segments that it names. The service refuses segments that name each
 * other in a circle.
 */
function inOrderOfUse(segments: readonly DeclaredSegment[]): DeclaredSegment[] {
  const ordered = new Set<DeclaredSegment>()
  const visited = new Set<DeclaredSegment>()
  const visit = (segment: DeclaredSegment) => {
    if (visited.has(segment)) return
    visited.add(segment)
    for (const other of segments) if (namesSegment(segment.filter, other.key)) visit(other)
    ordered.add(segment)
  }
  for (const segment of segments) visit(segment)
  return [...ordered]
}

function planStacks({ stacks }: Declared, current: Definitions, { steps, missing, faults }: Plan) {
  for (const [index, definition] of stacks.entries()) {
    const { key: name, kind } = definition
    const existing = current.stacks.find(stack => stack.key === name)
    if (existing && existing.kind !== kind)
      faults.push({
        path: pointer('stacks', index, 'kind'),
        message: `${name} is of kind ${existing.kind}, which never changes`,
      })
    if (!existing) steps.push({ action: 'create', kind: 'stack', name, definition })
    else {
      const { name: title, retention_days } = definition
      addChange(steps, { kind: 'stack', name, id: name }, differing(existing, { name: title, retention_days }))
    }
  }
  const named = new Set(stacks.map(stack => stack.key))
  for (const { key: name } of current.stacks) if (!named.has(name)) missing.push({ kind: 'stack', name })
}

/** Plans the fields of existing stacks that name attributes. They change last, because they may name new attributes. */
function planNames({ stacks }: Declared, current: Definitions, { steps }: Plan) {
  for (const { key: name, label, summary, erased_with } of stacks) {
    const existing = current.stacks.find(stack => stack.key === name)
    const target = { label, summary, erased_with }
    if (existing) addChange(steps, { kind: 'stack', name, id: name }, differing(existing, target))
  }
}

function planAttributes(declared: Declared, current: Definitions, plan: Plan, archiveMissing: boolean) {
  const stacks = new Set([...declared.stacks, ...current.stacks].map(stack => stack.key))
  for (const [index, attribute] of declared.attributes.entries()) {
    const { owner, target_stack } = attribute
    const fault = (field: string, message: string) =>
      plan.faults.push({ path: pointer('attributes', index, field), message })
    if (owner !== peopleKey && !stacks.has(owner)) fault('owner', 'must be `people` or the key of a stack')
    if (target_stack !== null && !stacks.has(target_stack)) fault('target_stack', 'must be the key of a stack')
    planAttribute(attribute, current, plan, fault)
  }
  const named = new Set(declared.attributes.map(attributeName))
  for (const attribute of current.attributes) {
    const name = attributeName(attribute)
    if (attribute.state === 'archived' || named.has(name)) continue
    if (!archiveMissing) plan.missing.push({ kind: 'attribute', name })
    else addChange(plan.steps, { kind: 'attribute', name, id: attribute.id }, archived)
  }
}

const archived: Fields = { state: { before: 'active', after: 'archived' } }

type Fault = (field: string, message: string) => void

function planAttribute(attribute: DeclaredAttribute, { attributes }: Definitions, { steps }: Plan, fault: Fault) {
  const name = attributeName(attribute)
  const sameName = attributes.filter(other => attributeName(other) === name)
  const active = sameName.find(other => other.state === 'active')
  const reference = { kind: 'attribute', name } as const
  if (attribute.state === 'archived') {
    // An attribute that does not exist needs no archiving.
    if (active) addChange(steps, { ...reference, id: active.id }, archived)
    return
  }
  // An archived attribute becomes active again with its links, unless its type or target differs.
  const existing = active ?? sameName.toSorted((a, b) => b.id - a.id).find(other => canBecome(other, attribute))
  if (!existing) return steps.push({ action: 'create', ...reference, definition: attribute })
  const { type, target_stack, cardinality } = existing
  if (type !== attribute.type) fault('type', `${name} is of type ${type}, which never changes`)
  else if (target_stack !== attribute.target_stack)
    fault('target_stack', `${name} has the target ${target_stack}, which never changes`)
  else if (!canBecome(existing, attribute))
    fault('cardinality', `${name} has the cardinality ${cardinality}, which never changes to one`)
  const { owner, key, type: _, target_stack: __, ...target } = attribute
  addChange(steps, { ...reference, id: existing.id }, differing(existing, target))
}

const canBecome = (current: Attribute, { type, target_stack, cardinality }: DeclaredAttribute) =>
  current.type === type &&
  current.target_stack === target_stack &&
  (current.cardinality === cardinality || cardinality === 'many')

/**
 * Types are created in the order of the file, which determines their ids. New defaults of a channel are set before the
 * old ones are removed, so that no channel lacks a default in between.
 */
function planConsentTypes(declared: Declared, current: Definitions, { steps, missing }: Plan, archiveMissing: boolean) {
  const changes: Step[] = []
  for (const type of declared.consent_types) {
    const existing = current.consent_types.find(other => other.key === type.key)
    if (existing) planConsentType(changes, existing, type)
    else steps.push({ action: 'create', kind: 'consent_type', name: type.key, definition: type })
  }
  const named = new Set(declared.consent_types.map(type => type.key))
  for (const existing of current.consent_types.filter(({ key }) => !named.has(key))) {
    if (existing.state === 'active' && !archiveMissing) missing.push({ kind: 'consent_type', name: existing.key })
    planConsentType(changes, existing, undeclaredType(existing, declared, archiveMissing))
  }
  const gainsDefault = (step: Step) => step.action === 'change' && hasNewDefault(step.fields)
  steps.push(...changes.filter(gainsDefault), ...changes.filter(step => !gainsDefault(step)))
}

function planConsentType(steps: Step[], current: ConsentType, { key, ...target }: DeclaredConsentType) {
  const before = { ...current, channels: sorted(current.channels) }
  const fields = differing(before, { ...target, channels: sorted(target.channels) })
  addChange(steps, { kind: 'consent_type', name: key, id: current.id }, fields)
}

/**
 * The target state of a type that the file does not name. It stops being the default of channels for which the file
 * names another type. With `archiveMissing` it is archived and is no default at all.
 */
function undeclaredType(
  current: ConsentType,
  { consent_types }: Declared,
  archiveMissing: boolean,
): DeclaredConsentType {
  const taken = new Set(consent_types.flatMap(type => type.channels.filter(isDefault).map(({ channel }) => channel)))
  const staysDefault = ({ channel, is_default }: Channel) => is_default && !archiveMissing && !taken.has(channel)
  const channels = current.channels.map(entry => ({ ...entry, is_default: staysDefault(entry) }))
  return { ...current, channels, state: archiveMissing ? 'archived' : current.state }
}

type Channel = ConsentType['channels'][number]

const isDefault = ({ is_default }: Channel) => is_default
const sorted = (channels: Channel[]) => channels.toSorted((a, b) => (a.channel < b.channel ? -1 : 1))

function hasNewDefault({ channels }: Fields): boolean {
  const before = (channels?.before ?? []) as Channel[]
  const defaultsBefore = new Set(before.filter(isDefault).map(({ channel }) => channel))
  return ((channels?.after ?? []) as Channel[]).some(entry => entry.is_default && !defaultsBefore.has(entry.channel))
}

function differing<T extends object>(current: T, target: { [K in keyof T]?: T[K] }): Fields {
  const keys = Object.keys(target) as (keyof T & string)[]
  const changed = keys.filter(key => JSON.stringify(current[key]) !== JSON.stringify(target[key]))
  return Object.fromEntries(changed.map(key => [key, { before: current[key], after: target[key] }]))
}

function addChange(steps: Step[], reference: { kind: Kind; name: string; id: number | string }, fields: Fields) {
  if (Object.keys(fields).length === 0) return
  steps.push({ action: fields.state?.after === 'archived' ? 'archive' : 'change', ...reference, fields })
}

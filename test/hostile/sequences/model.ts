import { isDeepStrictEqual } from 'node:util'
import { isListEdit } from '../../../src/attributes/list-edit.ts'
import { mobileKey } from '../../../src/values/phone-numbers.ts'
import { plainColumns } from '../../../src/values/profile-fields.ts'
import { trimStrings } from '../texts.ts'
import {
  answersTwice,
  applyConsents,
  type ConsentChange,
  type ConsentState,
  type ConsentType,
  effectiveConsents,
} from './model-consents.ts'

/** The specification as an in-memory model: no HTTP, no SQL, no sets; writes run one at a time. */

export type StackKey = 'people' | 'orders' | 'visits'
export type Values = Record<string, unknown>

export type Entity = ConsentState & {
  stack: StackKey
  /** The internal identifier, once a response has returned it. */
  id: string | undefined
  external_id: string | null
  active: boolean
  version: number
  profile: Values
  values: Map<string, unknown>
  links: Map<string, Entity[]>
  /** The relationships with links to deleted targets, which no read shows. A write of such a key ends them, and so is a change. */
  hidden: Set<string>
}

export type Organization = {
  entities: Entity[]
  /** All entities ever created, in order of creation. `nth` of a selector is an index into these. */
  created: Entity[]
  /** The version of an entity when it gave up its name, by name. */
  releasedVersions: Map<string, number>
  types: ConsentType[]
  /** Whether the number `score` is declared. An archived attribute counts as undeclared. */
  isScoreDeclared: boolean
  changes: number
  history: number
}

export type Address = { external_id: string } | { entity: Entity | undefined }
export type Operation = 'create' | 'put' | 'patch' | 'upsert' | 'delete'
export type Body = Values & { external_id?: string | null; attribute_values?: Values | null }
export type Write = {
  op: Operation
  stack: StackKey
  address: Address | undefined
  body: Body
  if_match?: string | undefined
  strict?: boolean | undefined
}
export type Outcome =
  | { done: 'created' | 'updated' | 'unchanged' | 'deleted'; entity: Entity }
  | { refused: number; code: string }

const relationships: Record<StackKey, Record<string, { target: StackKey; many: boolean }>> = {
  people: {
    referrer: { target: 'people', many: false },
    friends: { target: 'people', many: true },
    bought: { target: 'orders', many: true },
  },
  orders: { buyer: { target: 'people', many: false } },
  visits: { visitor: { target: 'people', many: false } },
}

export function newOrganization(): Organization {
  const type = (id: number, rest: Partial<ConsentType>) => ({
    id,
    active: true,
    mandatory: false,
    default_state: false,
    channels: new Map(),
    ...rest,
  })
  const types = [
    type(1, {
      channels: new Map([
        ['email', true],
        ['sms', true],
      ]),
    }),
    type(2, { channels: new Map([['email', false]]) }),
    type(3, {
      channels: new Map([
        ['email', false],
        ['sms', false],
      ]),
      mandatory: true,
    }),
    type(4, { channels: new Map([['sms', false]]), default_state: true }),
  ]
  return {
    entities: [],
    created: [],
    releasedVersions: new Map(),
    types,
    isScoreDeclared: true,
    changes: 0,
    history: 0,
  }
}

export function find({ entities }: Organization, stack: StackKey, external_id: string): Entity | undefined {
  return entities.find(entity => entity.stack === stack && entity.external_id === external_id)
}

function currentOf(organization: Organization, { address, stack }: Write): Entity | undefined {
  if (address === undefined) return undefined
  if ('external_id' in address) return find(organization, stack, address.external_id)
  return organization.entities.find(entity => entity === address.entity && entity.stack === stack)
}

const refused = (status: number, code = 'invalid_parameter'): Outcome => ({ refused: status, code })

/** Decides one write and stores its result in the model. */
export function applyWrite(organization: Organization, write: Write): Outcome {
  const body = trimStrings(write.body) as Body
  const { op, stack } = write
  if (typeof body.email === 'string' && !body.email.includes('@')) return refused(400)
  if (answersTwice(body)) return refused(400)
  if (stack === 'visits' && op !== 'create' && op !== 'delete') return refused(405)
  const current = currentOf(organization, write)
  if (!current && op !== 'create' && op !== 'upsert') return refused(404, 'not_found')
  const { if_match } = write
  if (if_match && !(current && (if_match === '*' || if_match === `"${current.version}"`))) return refused(412)
  if (op === 'delete') return remove(organization, current!)
  if (op === 'create' && current?.active) {
    if (stack !== 'visits') return refused(409, 'duplicate_entry')
    const repeated = draft(organization, current, { ...write, op: 'put' }, body)
    return 'refused' in repeated || repeated.changed
      ? 'refused' in repeated
        ? repeated
        : refused(409, 'duplicate_entry')
      : { done: 'unchanged', entity: current }
  }
  const drafted = draft(organization, current, write, body)
  if ('refused' in drafted) return drafted
  if (!drafted.changed && op !== 'create' && current) return { done: 'unchanged', entity: current }
  return store(organization, current, drafted, op)
}

const nameKey = (stack: StackKey, external_id: string) => `${stack} ${external_id}`

/** Releases the name of an entity. The next entity with that name continues from this version. */
function releaseName({ releasedVersions }: Organization, { stack, external_id }: Entity, version: number) {
  if (external_id === null) return
  const name = nameKey(stack, external_id)
  releasedVersions.set(name, Math.max(version, releasedVersions.get(name) ?? 0))
}

const releasedVersionOf = ({ releasedVersions }: Organization, stack: StackKey, external_id: string | null) =>
  (external_id !== null && releasedVersions.get(nameKey(stack, external_id))) || 0

function remove(organization: Organization, entity: Entity): Outcome {
  releaseName(organization, entity, entity.version + 1)
  organization.entities = organization.entities.filter(other => other !== entity)
  for (const { links, hidden } of organization.entities)
    for (const [key, targets] of links) {
      if (!targets.includes(entity)) continue
      hidden.add(key)
      setOrDeleteLinks(
        links,
        key,
        targets.filter(target => target !== entity),
      )
    }
  organization.changes += 1
  return { done: 'deleted', entity }
}

function setOrDeleteLinks(links: Map<string, Entity[]>, key: string, targets: Entity[]) {
  if (targets.length === 0) links.delete(key)
  else links.set(key, targets)
}

type Draft = { next: Entity; changed: boolean; placeholders: Entity[]; given: ConsentChange }

function blankEntity(stack: StackKey, external_id: string | null): Entity {
  const profile = Object.fromEntries(plainColumns.map(field => [field, null]))
  return {
    stack,
    id: undefined,
    external_id,
    active: false,
    version: 0,
    profile,
    flags: { email: null, sms: null },
    answers: new Map(),
    values: new Map(),
    links: new Map(),
    hidden: new Set(),
  }
}

/** Returns the entity as it would be after the write, or the refusal. Stores nothing. */
function draft(
  organization: Organization,
  current: Entity | undefined,
  { op, stack, strict, address }: Write,
  body: Body,
): Draft | (Outcome & { refused: number }) {
  const from = current ?? blankEntity(stack, null)
  const nameHolder = body.external_id ? find(organization, stack, body.external_id) : undefined
  if (nameHolder && nameHolder !== current) return { refused: 409, code: 'duplicate_entry' }
  const next: Entity = {
    ...from,
    values: new Map(from.values),
    links: new Map(from.links),
    hidden: new Set(from.hidden),
  }
  if (op === 'put') for (const field of plainColumns) next.profile = { ...next.profile, [field]: body[field] ?? null }
  else for (const field of plainColumns) if (field in body) next.profile = { ...next.profile, [field]: body[field] }
  if (body.external_id !== undefined) next.external_id = body.external_id
  else if (!current && address && 'external_id' in address) next.external_id = address.external_id
  const placeholders: Entity[] = []
  const self = current ? current : next
  const findTarget: Targets['find'] = (target, external_id) => {
    if (target === stack && (external_id === next.external_id || external_id === from.external_id)) return self
    return (
      find(organization, target, external_id) ??
      placeholders.find(placeholder => placeholder.stack === target && placeholder.external_id === external_id)
    )
  }
  const findOrCreate: Targets['findOrCreate'] = (target, external_id) => {
    const found = findTarget(target, external_id)
    if (found) return found
    const placeholder = {
      ...blankEntity(target, external_id),
      version: releasedVersionOf(organization, target, external_id) + 1,
    }
    placeholders.push(placeholder)
    return placeholder
  }
  const isMerge = op === 'patch' || op === 'upsert'
  if (op === 'put' || (op !== 'create' && body.attribute_values === null)) {
    next.values.clear()
    next.links.clear()
    next.hidden.clear()
  }
  for (const [key, value] of Object.entries(body.attribute_values ?? {}))
    if (!setValue(organization, next, key, value, { isMerge, find: findTarget, findOrCreate }))
      return { refused: 400, code: 'invalid_parameter' }
  if (strict && placeholders.length > 0) return { refused: 400, code: 'invalid_parameter' }
  const given =
    stack === 'people' ? applyConsents(from, body, organization.types) : { answers: new Map(), flags: from.flags }
  if (!given) return { refused: 400, code: 'invalid_parameter' }
  next.flags = given.flags
  const changed = placeholders.length > 0 || given.answers.size > 0 || !same(from, next)
  return { next, changed, placeholders, given }
}

/** Whether the write may change single links, and how it finds their targets. */
type Targets = {
  isMerge: boolean
  find: (target: StackKey, name: string) => Entity | undefined
  findOrCreate: (target: StackKey, name: string) => Entity
}

/** Adds and removes single links. Returns false if the value is refused. */
function editLinks(
  entity: Entity,
  key: string,
  { $add = [], $remove = [] }: { $add?: unknown; $remove?: unknown },
  { find, findOrCreate }: Targets,
): boolean {
  const { target } = relationships[entity.stack][key]!
  const [added, removed] = [$add, $remove].map(list => (list as unknown[]).map(targetNameOf))
  if ([...added!, ...removed!].some(name => typeof name !== 'string')) return false
  const removedNames = removed as string[]
  const removedTargets = removedNames.map(name => find(target, name))
  for (const name of added as string[]) {
    const found = find(target, name)
    if (found ? removedTargets.includes(found) : removedNames.includes(name)) return false
  }
  const kept = (entity.links.get(key) ?? []).filter(linked => !removedTargets.includes(linked))
  setOrDeleteLinks(entity.links, key, [
    ...new Set([...kept, ...(added as string[]).map(name => findOrCreate(target, name))]),
  ])
  return true
}

/** Sets the value of a key. Returns false if the value is refused. */
function setValue(
  organization: Organization,
  entity: Entity,
  key: string,
  value: unknown,
  targetsOf: Targets,
): boolean {
  const relationship = relationships[entity.stack][key]
  if (isListEdit(value))
    return targetsOf.isMerge && relationship?.many === true && editLinks(entity, key, value, targetsOf)
  entity.hidden.delete(key)
  if (!relationship) {
    if (
      key === 'score' &&
      entity.stack === 'people' &&
      organization.isScoreDeclared &&
      value !== null &&
      typeof value !== 'number'
    )
      return false
    if (value === null) entity.values.delete(key)
    else entity.values.set(key, value)
    return true
  }
  const isList = Array.isArray(value)
  if (isList && !relationship.many && value.length > 1) return false
  const names = (isList ? value : [value]).map(targetNameOf)
  if (names.includes(undefined) || (isList && names.includes(null))) return false
  const targets = names
    .filter(name => typeof name === 'string')
    .map(name => targetsOf.findOrCreate(relationship.target, name))
  setOrDeleteLinks(entity.links, key, [...new Set(targets)])
  return true
}

/** Returns the name that a relationship value links to, null if it unlinks, undefined if it is refused. */
function targetNameOf(value: unknown): string | null | undefined {
  const scalar = typeof value === 'object' && value !== null && 'external_id' in value ? value.external_id : value
  if (scalar === null || scalar === '') return null
  if (typeof scalar === 'number' && Number.isInteger(scalar)) return String(scalar)
  return typeof scalar === 'string' ? scalar : undefined
}

const same = (from: Entity, next: Entity) =>
  from.external_id === next.external_id &&
  isDeepStrictEqual(from.profile, next.profile) &&
  isDeepStrictEqual(from.flags, next.flags) &&
  isDeepStrictEqual(Object.fromEntries(from.values), Object.fromEntries(next.values)) &&
  from.hidden.size === next.hidden.size &&
  from.links.size === next.links.size &&
  [...next.links].every(([key, targets]) => sameTargets(from.links.get(key) ?? [], targets))

const sameTargets = (a: Entity[], b: Entity[]) =>
  a.length === b.length && a.every((target, index) => target === b[index])

function store(
  organization: Organization,
  current: Entity | undefined,
  { next, placeholders, given }: Draft,
  op: Operation,
): Outcome {
  const answers = new Map([...next.answers, ...given.answers])
  const takesName = current?.external_id !== next.external_id
  const released = takesName ? releasedVersionOf(organization, next.stack, next.external_id) : 0
  const version = Math.max(current?.version ?? 0, released) + 1
  if (current && takesName) releaseName(organization, current, version)
  const stored = Object.assign(current ?? next, next, { active: true, version, answers })
  for (const placeholder of current ? placeholders : [stored, ...placeholders]) {
    organization.entities.push(placeholder)
    organization.created.push(placeholder)
  }
  organization.changes += 1 + placeholders.length
  organization.history += given.answers.size
  // A create that completes a placeholder returns 201 like any create.
  return { done: current && op !== 'create' ? 'updated' : 'created', entity: stored }
}

/** Returns the entity as a read shows it, without the identifier and the times. */
export function expectedRead(entity: Entity, { types }: Organization): Values {
  const { stack, external_id, active, version, profile, flags } = entity
  const linked = [...entity.links].map(([key, targets]) => {
    const names = targets.map(
      ({ stack, external_id, id }) => external_id ?? (stack === 'people' ? { id } : { record_id: id }),
    )
    return [key, relationships[stack][key]!.many ? names : names[0]] as const
  })
  const common = {
    external_id,
    attribute_values: { ...Object.fromEntries(entity.values), ...Object.fromEntries(linked) },
    state: active ? 'active' : 'placeholder',
    version,
  }
  if (stack !== 'people') return { ...common, stack_key: stack }
  return {
    ...common,
    ...profile,
    mobile_e164: mobileKey(profile.mobile_prefix as string | null, profile.mobile_number as string | null, null),
    email_consent: flags.email,
    sms_consent: flags.sms,
    consents: effectiveConsents(entity, types),
  }
}

/** Returns the entities of one stack that are linked with an entity in the given direction. */
export function related(organization: Organization, entity: Entity, target: StackKey, direction: string): Set<Entity> {
  const outgoing = [...entity.links.values()].flat().filter(other => other.stack === target)
  const incoming = organization.entities.filter(
    other => other.stack === target && [...other.links.values()].flat().includes(entity),
  )
  return new Set([...(direction === 'incoming' ? [] : outgoing), ...(direction === 'outgoing' ? [] : incoming)])
}

import { isDeepStrictEqual } from 'node:util'
import { trimmed } from '../texts.ts'
import { type Answering, answer, type ConsentType, consents, type Given } from './model-consents.ts'

/** The specification in memory: no HTTP, no SQL, no sets; one write after the other. */

export type StackKey = 'people' | 'orders' | 'visits'
export type Values = Record<string, unknown>

export type Entity = Answering & {
  stack: StackKey
  /** The internal identifier, once an answer has told it. */
  id: string | undefined
  external_id: string | null
  active: boolean
  version: number
  profile: Values
  values: Map<string, unknown>
  links: Map<string, Entity[]>
}

export type Organization = {
  entities: Entity[]
  /** Everybody that ever was, in order of birth: whom `nth` addresses. */
  born: Entity[]
  /** The version at which each name was left. */
  left: Map<string, number>
  types: ConsentType[]
  /** Whether the number `score` is declared; an archived key is as undeclared. */
  scored: boolean
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
  | { refused: number; word: string }

const relationships: Record<StackKey, Record<string, { target: StackKey; many: boolean }>> = {
  people: {
    referrer: { target: 'people', many: false },
    friends: { target: 'people', many: true },
    bought: { target: 'orders', many: true },
  },
  orders: { buyer: { target: 'people', many: false } },
  visits: { visitor: { target: 'people', many: false } },
}

const profileFields = ['first_name', 'email', 'push_notification_consent']

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
  return { entities: [], born: [], left: new Map(), types, scored: true, changes: 0, history: 0 }
}

export function find({ entities }: Organization, stack: StackKey, external_id: string): Entity | undefined {
  return entities.find(entity => entity.stack === stack && entity.external_id === external_id)
}

function standingOf(organization: Organization, { address, stack }: Write): Entity | undefined {
  if (address === undefined) return undefined
  if ('external_id' in address) return find(organization, stack, address.external_id)
  return organization.entities.find(entity => entity === address.entity && entity.stack === stack)
}

const refused = (status: number, word = 'invalid_parameter'): Outcome => ({ refused: status, word })

/** One write, decided and stored. */
export function write(organization: Organization, asked: Write): Outcome {
  const body = trimmed(asked.body) as Body
  const { op, stack } = asked
  if (typeof body.email === 'string' && !body.email.includes('@')) return refused(400)
  if (stack === 'visits' && op !== 'create' && op !== 'delete') return refused(405)
  const standing = standingOf(organization, asked)
  if (!standing && op !== 'create' && op !== 'upsert') return refused(404, 'not_found')
  const { if_match } = asked
  if (if_match && !(standing && (if_match === '*' || if_match === `"${standing.version}"`))) return refused(412)
  if (op === 'delete') return remove(organization, standing!)
  if (op === 'create' && standing?.active) {
    if (stack !== 'visits') return refused(409, 'duplicate_entry')
    const again = draft(organization, standing, { ...asked, op: 'put' }, body)
    return 'refused' in again || again.changed
      ? 'refused' in again
        ? again
        : refused(409, 'duplicate_entry')
      : { done: 'unchanged', entity: standing }
  }
  const made = draft(organization, standing, asked, body)
  if ('refused' in made) return made
  if (!made.changed && op !== 'create' && standing) return { done: 'unchanged', entity: standing }
  return store(organization, standing, made, op)
}

const nameKey = (stack: StackKey, external_id: string) => `${stack} ${external_id}`

/** What takes the name next goes on from this version. */
function leave({ left }: Organization, { stack, external_id }: Entity, version: number) {
  if (external_id === null) return
  const name = nameKey(stack, external_id)
  left.set(name, Math.max(version, left.get(name) ?? 0))
}

const leftAt = ({ left }: Organization, stack: StackKey, external_id: string | null) =>
  (external_id !== null && left.get(nameKey(stack, external_id))) || 0

function remove(organization: Organization, entity: Entity): Outcome {
  leave(organization, entity, entity.version + 1)
  organization.entities = organization.entities.filter(other => other !== entity)
  for (const { links } of organization.entities)
    for (const [key, targets] of links)
      setOrDrop(
        links,
        key,
        targets.filter(target => target !== entity),
      )
  organization.changes += 1
  return { done: 'deleted', entity }
}

function setOrDrop(links: Map<string, Entity[]>, key: string, targets: Entity[]) {
  if (targets.length === 0) links.delete(key)
  else links.set(key, targets)
}

type Draft = { next: Entity; changed: boolean; births: Entity[]; given: Given }

function blank(stack: StackKey, external_id: string | null): Entity {
  const profile = Object.fromEntries(profileFields.map(field => [field, null]))
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
  }
}

/** What the entity would be after the write; nothing is stored yet. */
function draft(
  organization: Organization,
  standing: Entity | undefined,
  { op, stack, strict, address }: Write,
  body: Body,
): Draft | (Outcome & { refused: number }) {
  const from = standing ?? blank(stack, null)
  const taken = body.external_id ? find(organization, stack, body.external_id) : undefined
  if (taken && taken !== standing) return { refused: 409, word: 'duplicate_entry' }
  const next: Entity = { ...from, values: new Map(from.values), links: new Map(from.links) }
  if (op === 'put') for (const field of profileFields) next.profile = { ...next.profile, [field]: body[field] ?? null }
  else for (const field of profileFields) if (field in body) next.profile = { ...next.profile, [field]: body[field] }
  if (body.external_id !== undefined) next.external_id = body.external_id
  else if (!standing && address && 'external_id' in address) next.external_id = address.external_id
  const births: Entity[] = []
  const own = standing ? standing : next
  const targetOf = (target: StackKey, external_id: string): Entity => {
    if (target === stack && (external_id === next.external_id || external_id === from.external_id)) return own
    const found =
      find(organization, target, external_id) ??
      births.find(born => born.stack === target && born.external_id === external_id)
    if (found) return found
    const born = { ...blank(target, external_id), version: leftAt(organization, target, external_id) + 1 }
    births.push(born)
    return born
  }
  if (op === 'put' || (op !== 'create' && body.attribute_values === null)) {
    next.values.clear()
    next.links.clear()
  }
  for (const [key, value] of Object.entries(body.attribute_values ?? {}))
    if (!setValue(organization, next, key, value, targetOf)) return { refused: 400, word: 'invalid_parameter' }
  if (strict && births.length > 0) return { refused: 400, word: 'invalid_parameter' }
  const given = stack === 'people' ? answer(from, body, organization.types) : { answers: new Map(), flags: from.flags }
  if (!given) return { refused: 400, word: 'invalid_parameter' }
  next.flags = given.flags
  const changed = births.length > 0 || given.answers.size > 0 || !same(from, next)
  return { next, changed, births, given }
}

/** Whether the value may stand under the key; if so it does. */
function setValue(
  organization: Organization,
  entity: Entity,
  key: string,
  value: unknown,
  nameOf: (target: StackKey, name: string) => Entity,
): boolean {
  const relationship = relationships[entity.stack][key]
  if (!relationship) {
    if (
      key === 'score' &&
      entity.stack === 'people' &&
      organization.scored &&
      value !== null &&
      typeof value !== 'number'
    )
      return false
    if (value === null) entity.values.delete(key)
    else entity.values.set(key, value)
    return true
  }
  const list = Array.isArray(value)
  if (list && !relationship.many && value.length > 1) return false
  const names = (list ? value : [value]).map(nameFrom)
  if (names.includes(undefined) || (list && names.includes(null))) return false
  const targets = names.filter(name => typeof name === 'string').map(name => nameOf(relationship.target, name))
  setOrDrop(entity.links, key, [...new Set(targets)])
  return true
}

/** Null unlinks, undefined is refused. */
function nameFrom(value: unknown): string | null | undefined {
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
  from.links.size === next.links.size &&
  [...next.links].every(([key, targets]) => sameTargets(from.links.get(key) ?? [], targets))

const sameTargets = (a: Entity[], b: Entity[]) =>
  a.length === b.length && a.every((target, index) => target === b[index])

function store(
  organization: Organization,
  standing: Entity | undefined,
  { next, births, given }: Draft,
  op: Operation,
): Outcome {
  const answers = new Map([...next.answers, ...given.answers])
  const version = (standing?.version ?? leftAt(organization, next.stack, next.external_id)) + 1
  if (standing && standing.external_id !== next.external_id) leave(organization, standing, version)
  const stored = Object.assign(standing ?? next, next, { active: true, version, answers })
  for (const born of standing ? births : [stored, ...births]) {
    organization.entities.push(born)
    organization.born.push(born)
  }
  organization.changes += 1 + births.length
  organization.history += given.answers.size
  // A create that completes a placeholder is a create to its client.
  return { done: standing && op !== 'create' ? 'updated' : 'created', entity: stored }
}

/** A read, but for the identifier and the times. */
export function shown(entity: Entity, { types }: Organization): Values {
  const { stack, external_id, active, version, profile, flags } = entity
  const linked = [...entity.links].map(([key, targets]) => {
    const names = targets.map(target => target.external_id)
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
    email_consent: flags.email,
    sms_consent: flags.sms,
    consents: consents(entity, types),
  }
}

/** Who is linked with an entity, of one kind. */
export function related(organization: Organization, entity: Entity, target: StackKey, direction: string): Set<Entity> {
  const outgoing = [...entity.links.values()].flat().filter(other => other.stack === target)
  const incoming = organization.entities.filter(
    other => other.stack === target && [...other.links.values()].flat().includes(entity),
  )
  return new Set([...(direction === 'incoming' ? [] : outgoing), ...(direction === 'outgoing' ? [] : incoming)])
}

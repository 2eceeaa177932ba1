import { coerceValue, valueFault } from '../attributes/values.ts'
import { type Detail, pointer } from '../errors.ts'
import { type Attribute, type Definitions, isRelationship } from '../organizations/definitions.ts'
import { normalizeRelationship } from '../relationships/normalize.ts'
import type { Write } from './write-request.ts'

/** An entity named by stack and external identifier, standing or not. */
export type Name = { stack_id: number; external_id: string }

/** The names a key is to link to, and where in the request each is named. */
export type PlannedLinks = { attribute: Attribute; names: Name[]; places: string[] }

/**
 * What a write says about attributes once the definitions are applied to it: which keys take a plain value (null
 * clears), which are replaced by links, and what is wrong. Nothing of the stored state is needed for it.
 */
export type Plan = {
  plain: Map<string, unknown>
  links: ReadonlyMap<string, PlannedLinks>
  /** Whether keys that are not written are cleared: PUT, and `attribute_values: null`. */
  clearsRest: boolean
  faults: Detail[]
}

/** Names are compared as texts in maps and sets: no external identifier holds a line feed. */
export const nameKey = ({ stack_id, external_id }: Name): string => `${stack_id}\n${external_id}`

export function planWrite(write: Write, definitions: Definitions, linksLimit: number): Plan {
  const plan: Plan = { plain: new Map(), links: nothingLinked, clearsRest: clearsRest(write), faults: [] }
  let links: Map<string, PlannedLinks> | undefined
  const declared = definitions.declared.get(write.stack_id)
  const values = write.body.attribute_values
  for (const key in values) {
    const [value, attribute] = [values[key], declared?.get(key)]
    if (attribute && isRelationship(attribute)) {
      links ??= new Map()
      planLinks({ links, faults: plan.faults }, attribute, value, linksLimit)
    } else planPlain(plan, key, attribute, value, write.boundFrom)
  }
  if (links) plan.links = links
  return plan
}

// Most writes link nothing: no map is made for each.
const nothingLinked: Plan['links'] = new Map()

function clearsRest({ operation, body }: Write): boolean {
  return operation === 'put' || (operation !== 'create' && body.attribute_values === null)
}

function planLinks(
  plan: { links: Map<string, PlannedLinks>; faults: Detail[] },
  attribute: Attribute & { target_stack_id: number },
  value: unknown,
  linksLimit: number,
) {
  const normalized = normalizeRelationship(value, attribute.cardinality, linksLimit)
  if ('fault' in normalized) {
    const { path, message } = normalized.fault
    plan.faults.push({ path: pointer('attribute_values', attribute.key, ...path), message })
    return
  }
  const names = normalized.names.map(external_id => ({ stack_id: attribute.target_stack_id, external_id }))
  const places = normalized.paths.map(path => pointer('attribute_values', attribute.key, ...path))
  plan.links.set(attribute.key, { attribute, names, places })
}

function planPlain(
  plan: Plan,
  key: string,
  attribute: Attribute | undefined,
  value: unknown,
  boundFrom: Write['boundFrom'],
) {
  const typed = attribute && boundFrom === 'query' ? coerceValue(attribute, value) : value
  const fault = attribute && typed !== null ? valueFault(attribute, typed) : undefined
  if (fault) plan.faults.push({ path: pointer('attribute_values', key, ...fault.path), message: fault.message })
  else plan.plain.set(key, typed)
}

/** The relationship attributes whose stored links the decision needs: of the keys written, or of all where the rest is cleared. */
export function linksNeeded(write: Write, plan: Plan, definitions: Definitions): number[] {
  const ofOwner = definitions.relationships.get(write.stack_id)
  if (!ofOwner) return []
  const all = plan.clearsRest || write.operation === 'delete' || isRetry(write, definitions)
  const keys = all ? ofOwner.keys() : [...plan.links.keys(), ...plan.plain.keys()]
  return [...keys].flatMap(key => (ofOwner.get(key) ?? []).map(attribute => attribute.id))
}

/** What makes an event may be the retry of what went through: it is compared with all that stands. */
export function isRetry({ operation, stack_id }: Write, { stacks }: Definitions): boolean {
  if (operation !== 'create' && operation !== 'import') return false
  return stacks.some(stack => stack.id === stack_id && stack.kind === 'event')
}

/** The names a write's decision must know the bearers of: its targets, and the name it takes. */
export function namesNeeded(write: Write, plan: Plan): Name[] {
  const taken = nameTaken(write)
  if (plan.links.size === 0) return taken ? [taken] : noNames
  const names = [...plan.links.values()].flatMap(planned => planned.names)
  if (taken) names.push(taken)
  return names
}

const noNames: Name[] = []

/** The name that a rename gives its entity. A create's own name is its address, so the row itself answers for it. */
export function nameTaken({ operation, stack_id, address, body }: Write): Name | undefined {
  if (operation === 'create' || !body.external_id) return undefined
  if (address && 'external_id' in address && address.external_id === body.external_id) return undefined
  return { stack_id, external_id: body.external_id }
}

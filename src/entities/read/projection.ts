import { peopleStackId } from '../../organizations/definitions.ts'
import { accessOf, allFields, type FieldRights, mayRead, type Rights } from '../../route/field-rights.ts'
import { didYouMean, maxHints } from '../../values/did-you-mean.ts'
import { type Detail, pointer, refuse } from '../../values/errors.ts'
import { attributePrefix, profileFlags, readTexts } from '../../values/profile-fields.ts'
import { linksByIdBit, memberBits } from './read-sql.ts'

/**
 * The members of a read that a page shows: a bit of `mask` for each, and the keys of `attribute_values` if not all are
 * shown. The others are neither read nor printed. A further bit shows relationships by internal identifier.
 */
export type Projection = Readonly<{ mask: number; keys: readonly string[] }>

const shared = ['attribute_values', 'state', 'version', 'created_at', 'updated_at']

/** The members of a read, in their order. */
export const membersOf = (stack_id: number): readonly string[] =>
  stack_id === peopleStackId ? personMembers : recordMembers

const personMembers = ['id', 'external_id', ...readTexts, ...profileFlags, 'consents', ...shared]
const recordMembers = ['record_id', 'external_id', 'stack_key', ...shared]

/**
 * The projection on the named members of a read, or on `attribute_values.<key>` with any key. Throws 400 with the path
 * of each name that is unknown or occurs twice.
 */
export function projectionOf(fields: readonly string[], stack_id: number): Projection {
  const members = membersOf(stack_id)
  const keys: string[] = []
  const details: Detail[] = []
  let mask = 0
  const hintFor = (name: string) => (details.length < maxHints ? didYouMean(name, members) : '')
  for (const [index, name] of fields.entries()) {
    const fault = (message: string) => details.push({ path: pointer('fields', index), message })
    if (fields.indexOf(name) < index) fault('occurs twice')
    else if (name.startsWith(attributePrefix)) keys.push(name.slice(attributePrefix.length))
    else if (members.includes(name)) mask += memberBits.get(name)!
    else fault(`is no field of this kind: ${members.join(', ')}, attribute_values.<key>${hintFor(name)}`)
  }
  if (details.length > 0) refuse('invalid_parameter', 'The request names unknown fields. See details.', { details })
  return { mask, keys }
}

const projectionsOfRights = new WeakMap<FieldRights, Map<number, Projection | undefined>>()

/** The members that the role of a caller may read, one object for each version of the role. Undefined: all. */
export function readableProjection({ rights }: Rights, stack_id: number): Projection | undefined {
  if (!rights) return undefined
  const known = projectionsOfRights.get(rights) ?? new Map<number, Projection | undefined>()
  projectionsOfRights.set(rights, known)
  if (!known.has(stack_id)) known.set(stack_id, projectionOfRights(rights, stack_id))
  return known.get(stack_id)
}

function projectionOfRights(rights: FieldRights, stack_id: number): Projection | undefined {
  const access = accessOf({ rights }, stack_id)
  if (!access || access.read.has(allFields)) return undefined
  const members = membersOf(stack_id).filter(name => mayRead(access, name))
  const keys = [...access.read]
    .filter(name => name.startsWith(attributePrefix))
    .map(name => name.slice(attributePrefix.length))
  return { mask: maskOf(members), keys: members.includes('attribute_values') ? [] : keys }
}

const maskOf = (members: readonly string[]) => members.reduce((mask, name) => mask | memberBits.get(name)!, 0)

/** Whether a projection shows all of `attribute_values`. */
export const showsAllValues = ({ mask }: Projection): boolean => (mask & memberBits.get('attribute_values')!) !== 0

/** Whether a projection shows a member of a read. Some keys of `attribute_values` are enough to show that member. */
export const shows = ({ mask, keys }: Projection, name: string): boolean =>
  (mask & memberBits.get(name)!) !== 0 || (name === 'attribute_values' && keys.length > 0)

/**
 * The keys of `attribute_values` that a read picks out, in the order of jsonb: none if the projection shows all of
 * them.
 */
export const pickedKeys = (projection: Projection): readonly string[] =>
  showsAllValues(projection) ? [] : projection.keys.toSorted(compareKeys)

/** Shorter keys come first, then their bytes decide. */
const compareKeys = (one: string, other: string) =>
  Buffer.byteLength(one) - Buffer.byteLength(other) || Buffer.compare(Buffer.from(one), Buffer.from(other))

/** The members of a projection, with relationships by internal identifier. */
export const withLinksById = ({ mask, keys }: Projection): Projection => ({ mask: mask | linksByIdBit, keys })

/** All members of a read. */
export const wholeOf = (stack_id: number): Projection => ({ mask: maskOf(membersOf(stack_id)), keys: [] })

/** All members of a read, with relationships by internal identifier. */
export const wholeById = (stack_id: number): Projection => withLinksById(wholeOf(stack_id))

/** Whether a projection shows relationships by internal identifier. */
export const showsLinksById = ({ mask }: Projection): boolean => (mask & linksByIdBit) !== 0

import { type Detail, pointer, refuse } from '../values/errors.ts'
import { attributePrefix, phoneColumns, phoneMember } from '../values/profile-fields.ts'

/** The names of the fields of an owner that a caller may read and write, as a role has them. */
export type FieldAccess = { readonly read: ReadonlySet<string>; readonly write: ReadonlySet<string> }

/** The fields of each owner that a caller may read and write: of people (0) and of stacks, by id and by key. Other owners are closed. */
export type FieldRights = {
  readonly byStack: ReadonlyMap<number, FieldAccess>
  readonly byOwner: ReadonlyMap<string, FieldAccess>
  /** The fields as the role has them. */
  readonly fields: Readonly<Record<string, { read: string[]; write: string[] }>>
  /** Equal for equal rights. */
  readonly key: string
  /** Whether every owner is named with all its fields. */
  readonly isWhole: boolean
}

/** A caller whose role names fields has rights, every other one may read and write all fields. */
export type Rights = { readonly rights?: FieldRights | undefined }

type Use = keyof FieldAccess

/** The name of all fields in a role. */
export const allFields = '*'
const nothing: FieldAccess = { read: new Set(), write: new Set() }

/** The fields of a stack that the caller may use. Undefined: all. */
export const accessOf = ({ rights }: Rights, stack_id: number): FieldAccess | undefined =>
  rights && open(rights.byStack.get(stack_id) ?? nothing)

/** The same for an owner by its key. The default is people. */
export const accessOfOwner = ({ rights }: Rights, owner = 'people'): FieldAccess | undefined =>
  rights && open(rights.byOwner.get(owner) ?? nothing)

const open = (access: FieldAccess): FieldAccess | undefined =>
  access.read.has(allFields) && access.write.has(allFields) ? undefined : access

/** Whether the caller may use a stack at all. */
export const isOpen = ({ rights }: Rights, stack_id: number): boolean => !rights || rights.byStack.has(stack_id)

/** Throws a Fault of 403 for a stack that the role of the caller closes, at its place in the request. */
export function requireOpen(caller: Rights, stack_id: number, path: string): void {
  if (!isOpen(caller, stack_id))
    throwForbidden([{ path, message: 'leads to entities that the role of the caller closes' }])
}

/** Fields that every reader of an owner sees. */
const shownAlways = ['id', 'record_id', 'external_id', 'stack_key', 'state', 'version', 'created_at', 'updated_at']
const isShownAlways: ReadonlySet<string> = new Set(shownAlways)

/** Whether a field may be used. `attribute_values` opens all keys, and both columns of a phone its number in E.164. */
export function mayUse(access: FieldAccess | undefined, use: Use, name: string): boolean {
  const names = access?.[use]
  if (!names || names.has(allFields) || names.has(name) || isShownAlways.has(name)) return true
  if (name === phoneMember) return phoneColumns.every(column => names.has(column))
  return name.startsWith(attributePrefix) && names.has('attribute_values')
}

export const mayRead = (access: FieldAccess | undefined, name: string): boolean => mayUse(access, 'read', name)

/** Throws a Fault of 403 for a field that the caller's role cannot read, at its place in the request. */
export function requireReadable(access: FieldAccess | undefined, name: string, path: string): void {
  if (!mayRead(access, name)) throwForbidden([{ path, message: unreadable }])
}

const unreadable = 'names a field that the role of the caller cannot read'
const unwritable = 'is a field that the role of the caller cannot write'

/** The values that a write would set: fields by name, and attribute values by key. */
type Written = Record<string, unknown> & { attribute_values?: Record<string, unknown> | null | undefined }

/**
 * Throws a Fault of 403 for each field that the caller's role cannot write, at its place in the body. `clearsRest`: the write sets all
 * fields. `match`: the fields by which it recognizes its person. The caller must be able to read them, because the
 * outcome shows whether a person has the value.
 */
export function requireWritable(
  access: FieldAccess | undefined,
  body: Written,
  { clearsRest = false, match = [] }: { clearsRest?: boolean; match?: readonly string[] | undefined } = {},
): void {
  if (!access) return
  const details: Detail[] = []
  if (clearsRest && !access.write.has(allFields))
    details.push({ path: '', message: 'replaces all fields, and the role of the caller cannot write all of them' })
  const { attribute_values, ...fields } = body
  for (const name of Object.keys(fields))
    if (name !== phoneMember && !mayUse(access, 'write', name))
      details.push({ path: pointer(name), message: unwritable })
  for (const key of Object.keys(attribute_values ?? {}))
    if (!mayUse(access, 'write', `${attributePrefix}${key}`))
      details.push({ path: pointer('attribute_values', key), message: unwritable })
  for (const kind of match)
    if (!matchedFields(kind).every(name => mayRead(access, name)))
      details.push({
        path: pointer('match'),
        message: `recognizes people by ${kind}, which the role of the caller cannot read`,
      })
  if (details.length > 0) throwForbidden(details)
}

const matchedFields = (kind: string) => (kind === 'mobile' ? phoneColumns : [kind])

/** Throws a Fault of 403 with the places in the request that the role of the caller closes. */
export function throwForbidden(details: Detail[]): never {
  return refuse('forbidden', 'The role of the caller does not allow this. See details.', { details })
}

import { type Detail, pointer, refuse } from '../values/errors.ts'
import { attributePrefix, phoneColumns, phoneMember } from '../values/profile-fields.ts'

/** The names of the fields of an owner that a caller may read and write, as in a role. */
export type FieldAccess = { readonly read: ReadonlySet<string>; readonly write: ReadonlySet<string> }

/**
 * The fields that a caller may read and write, by owner: of people (0) and of stacks, by id and by key. Owners without
 * an entry are closed.
 */
export type FieldRights = {
  readonly byStack: ReadonlyMap<number, FieldAccess>
  readonly byOwner: ReadonlyMap<string, FieldAccess>
  /** The fields as in the role. */
  readonly fields: Readonly<Record<string, { read: string[]; write: string[] }>>
  /** Equal rights have equal keys. */
  readonly key: string
  /** Whether all owners are open with all their fields. */
  readonly isWhole: boolean
}

/**
 * The rights of a caller. They are absent if its role names no fields, and then the caller may read and write all
 * fields.
 */
export type Rights = { readonly rights?: FieldRights | undefined }

type Use = keyof FieldAccess

/** The name that means all fields in a role. */
export const allFields = '*'
const nothing: FieldAccess = { read: new Set(), write: new Set() }

/** The fields of a stack that the caller may use. Undefined means all. */
export const accessOf = ({ rights }: Rights, stack_id: number): FieldAccess | undefined =>
  rights && open(rights.byStack.get(stack_id) ?? nothing)

/** The fields of an owner by its key. The default is people. */
export const accessOfOwner = ({ rights }: Rights, owner = 'people'): FieldAccess | undefined =>
  rights && open(rights.byOwner.get(owner) ?? nothing)

const open = (access: FieldAccess): FieldAccess | undefined =>
  access.read.has(allFields) && access.write.has(allFields) ? undefined : access

/** Whether the caller may use a stack at all. */
export const isOpen = ({ rights }: Rights, stack_id: number): boolean => !rights || rights.byStack.has(stack_id)

/** Throws a Fault of 403, with the path in the request, for a stack that the caller's role closes. */
export function requireOpen(caller: Rights, stack_id: number, path: string): void {
  if (!isOpen(caller, stack_id))
    throwForbidden([{ path, message: 'leads to entities that the role of the caller closes' }])
}

/** The fields that every reader of an owner sees. */
const shownAlways = ['id', 'record_id', 'external_id', 'stack_key', 'state', 'version', 'created_at', 'updated_at']
const isShownAlways: ReadonlySet<string> = new Set(shownAlways)

/**
 * Whether a field may be used. `attribute_values` opens all keys. Both columns of a phone together open its number in
 * E.164.
 */
export function mayUse(access: FieldAccess | undefined, use: Use, name: string): boolean {
  const names = access?.[use]
  if (!names || names.has(allFields) || names.has(name) || isShownAlways.has(name)) return true
  if (name === phoneMember) return phoneColumns.every(column => names.has(column))
  return name.startsWith(attributePrefix) && names.has('attribute_values')
}

export const mayRead = (access: FieldAccess | undefined, name: string): boolean => mayUse(access, 'read', name)

/** Throws a Fault of 403, with the path in the request, for a field that the caller's role cannot read. */
export function requireReadable(access: FieldAccess | undefined, name: string, path: string): void {
  if (!mayRead(access, name)) throwForbidden([{ path, message: unreadable }])
}

const unreadable = 'names a field that the role of the caller cannot read'
const unwritable = 'is a field that the role of the caller cannot write'

/** The values that a write would set: fields by name, and attribute values by key. */
type Written = Record<string, unknown> & { attribute_values?: Record<string, unknown> | null | undefined }

/**
 * Throws a Fault of 403, with the path in the body, for each field that the caller's role cannot write. With
 * `clearsRest`, the write sets all fields. `match` has the fields that identify the person. The caller must be able to
 * read them, because the outcome shows whether a person has the value.
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

/** Throws a Fault of 403 with the paths in the request that the caller's role closes. */
export function throwForbidden(details: Detail[]): never {
  return refuse('forbidden', 'The role of the caller does not allow this. See details.', { details })
}

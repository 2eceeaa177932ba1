import type { Endpoints } from './endpoints.ts'
import type { Attribute, Person, PersonBody, RecordBody, StackRecord } from './wire.ts'

/**
 * A declared attribute in the format of `kith codegen`. `values` are the values that its `enum` allows. A `required`
 * attribute needs a value.
 */
export type AttributeShape = {
  type: Attribute['type']
  cardinality: Attribute['cardinality']
  target?: string
  values?: string | number | boolean
  required?: true
}

/** The schema of an organization in the format of `kith codegen`. It is the type parameter of `createClient`. */
export type OrganizationSchema = {
  people: { [key: string]: AttributeShape }
  stacks: { [key: string]: { kind: 'item' | 'event'; attributes: { [key: string]: AttributeShape } } }
}

/** The schema of a client without types: any stack, and any attribute with any value. */
export type AnySchema = {
  people: Record<never, AttributeShape>
  stacks: { [key: string]: { kind: 'item' | 'event'; attributes: Record<never, AttributeShape> } }
}

/** The keys of an organization's stacks. */
export type StackKey<S extends OrganizationSchema> = Extract<keyof S['stacks'], string>

/** The owner of attributes and entities: `people` or the key of a stack. */
export type Owner<S extends OrganizationSchema> = 'people' | StackKey<S>

/** The value of a relationship in a write: the external identifier of its target. An integer means its decimal text. */
export type Name = string | number | { external_id: string | number }

/**
 * The target of a relationship by its internal identifier. A read shows a target without an external identifier in this
 * form.
 */
export type InternalReference<A extends AttributeShape> = A['type'] extends 'person'
  ? { id: string }
  : { record_id: string }

type Plain = { text: string; number: number; boolean: boolean; date: string; datetime: string; json: unknown }
type Many<A extends AttributeShape, One> = A['cardinality'] extends 'many' ? One[] : One

/** The form of relationships in a read: `'id'` shows all targets by their internal identifiers. */
export type LinksForm = NonNullable<NonNullable<Endpoints['GET /v1/changes']['query']>['links']>

type ReadValue<A extends AttributeShape, L extends LinksForm> = A['type'] extends keyof Plain
  ? Many<A, Plain[A['type']]>
  : Many<A, InternalReference<A> | ([L] extends [never] ? string : never)>
// A read may have a value that was stored before its attribute had an enum.
type WriteValue<A extends AttributeShape> = A['type'] extends keyof Plain
  ? Many<A, A extends { values: infer V } ? V : Plain[A['type']]>
  : LinkedTo<A> | Many<A, LinkedTo<A>>

type LinkedTo<A extends AttributeShape> = Name | InternalReference<A>

/** Single elements of a list, or links, that a patch or an upsert adds and removes. The other elements stay. */
export type LinkEdit<Element> =
  | { $add: readonly Element[]; $remove?: readonly Element[] }
  | { $add?: readonly Element[]; $remove: readonly Element[] }

type PatchValue<A extends AttributeShape> =
  | WriteValue<A>
  | (A['cardinality'] extends 'many' ? LinkEdit<Element<A>> : never)

type Element<A extends AttributeShape> = A['type'] extends keyof Plain
  ? A extends { values: infer V }
    ? V
    : Plain[A['type']]
  : LinkedTo<A>

type Undeclared = { [key: string]: unknown }

/** The attribute values of a read. Declared attributes have their types, all others are unknown. */
export type ReadValues<A extends { [key: string]: AttributeShape }, L extends LinksForm = never> = {
  [K in keyof A]?: ReadValue<A[K], L>
} & Undeclared

/** The attribute values of a write. Null clears a value and removes links, except of a required attribute. */
export type WriteValues<A extends { [key: string]: AttributeShape }> = {
  [K in keyof A]?: WriteValue<A[K]> | (A[K] extends { required: true } ? never : null)
} & Undeclared

/** The attribute values of a patch or an upsert, which may also change single links. */
export type PatchValues<A extends { [key: string]: AttributeShape }> = {
  [K in keyof A]?: PatchValue<A[K]> | (A[K] extends { required: true } ? never : null)
} & Undeclared

type RequiredKey<A extends { [key: string]: AttributeShape }> = {
  [K in keyof A]: A[K] extends { required: true } ? K : never
}[keyof A]

/** The declared attributes of an owner. */
export type AttributesOf<S extends OrganizationSchema, O extends Owner<S>> = O extends 'people'
  ? S['people']
  : S['stacks'][O]['attributes']

/** The type of an owner's entities in a read. */
export type EntityOf<S extends OrganizationSchema, O extends Owner<S>, L extends LinksForm = never> = O extends 'people'
  ? Omit<Person, 'attribute_values'> & { attribute_values: ReadValues<AttributesOf<S, O>, L> }
  : Omit<StackRecord, 'attribute_values' | 'stack_key'> & {
      stack_key: O
      attribute_values: ReadValues<AttributesOf<S, O>, L>
    }

/** The body of replace of an owner's entities. */
export type BodyOf<S extends OrganizationSchema, O extends Owner<S>> = Omit<
  O extends 'people' ? PersonBody : RecordBody,
  'attribute_values'
> & { attribute_values?: WriteValues<AttributesOf<S, O>> | null }

/** The body of patch and upsert of an owner's entities. */
export type PatchOf<S extends OrganizationSchema, O extends Owner<S>> = Omit<BodyOf<S, O>, 'attribute_values'> & {
  attribute_values?: PatchValues<AttributesOf<S, O>> | null
}

/** The body of a create: the body of other writes, with the required attributes of the owner. */
export type NewBodyOf<S extends OrganizationSchema, O extends Owner<S>> = BodyOf<S, O> &
  ([RequiredKey<AttributesOf<S, O>>] extends [never]
    ? unknown
    : {
        attribute_values: { [K in RequiredKey<AttributesOf<S, O>>]: WriteValue<AttributesOf<S, O>[K]> }
      })

/**
 * The display names of an entity, with `labels: true`: its own name, and the names of the targets of its relationships,
 * by key of the relationship and by identifier of the target: its `external_id`, or the internal identifier if it has
 * none.
 */
export type Labels = { label: string; relationship_labels: Record<string, Record<string, string>> }

/** The owner that a relationship leads to. */
export type TargetOf<S extends OrganizationSchema, A extends AttributeShape> = A['type'] extends 'person'
  ? 'people'
  : Extract<A['target'], StackKey<S>>

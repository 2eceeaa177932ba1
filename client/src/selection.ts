import type { FilterOf } from './filter.ts'
import type {
  AttributeShape,
  AttributesOf,
  EntityOf,
  Labels,
  LinksForm,
  OrganizationSchema,
  Owner,
  StackKey,
  TargetOf,
} from './organization.ts'
import type { Person } from './wire.ts'

/** An entity read with or without `labels: true`. */
export type LabeledOf<Item, Labeled extends boolean> = [Labeled] extends [true] ? Item & Labels : Item

type Key<S extends OrganizationSchema, O extends Owner<S>> = keyof AttributesOf<S, O> & string

/** The name of a member of a read, or `attribute_values.<key>`. */
export type FieldName<S extends OrganizationSchema, O extends Owner<S>> =
  | Exclude<keyof EntityOf<S, O> & string, 'as_of' | keyof Labels>
  | `attribute_values.${string}`

/** The key of a relationship. A client without a schema accepts any key. */
export type RelationshipKey<S extends OrganizationSchema, O extends Owner<S>> = string extends keyof S['stacks']
  ? string
  : { [K in Key<S, O>]: AttributesOf<S, O>[K]['type'] extends 'person' | 'stack' ? K : never }[Key<S, O>]

type Flags = { [F in keyof Person]-?: Person[F] extends boolean | null ? F : never }[keyof Person]
type Texts = 'first_name' | 'last_name' | 'email' | 'mobile_prefix' | 'mobile_number' | 'date_of_birth' | 'language'
type Times = 'created_at' | 'updated_at'

/** A sort field of a list: a field of the profile, a time, or a declared attribute that is `indexed`. */
export type SortField<S extends OrganizationSchema, O extends Owner<S>> =
  | 'external_id'
  | Times
  | (O extends 'people' ? Texts | Flags : never)
  | `attribute_values.${string extends keyof S['stacks'] ? string : Key<S, O>}`

/** The measure of the entities that link here. Only `count` takes no field. */
export type SortMeasure = { op: 'count' } | { op: 'sum' | 'avg' | 'min' | 'max'; field: string }

/** The order of a list by a measure of the entities that link here by a relationship. `where` selects among them. */
type MeasuredSort<S extends OrganizationSchema, O extends Owner<S>> = {
  [F in `incoming.${string}` & keyof FilterOf<S, O>]: {
    field: F
    measure: SortMeasure
    where?: FilterOf<S, F extends `incoming.${infer From extends Owner<S>}.${string}` ? From : Owner<S>>
    direction?: 'asc' | 'desc'
  }
}[`incoming.${string}` & keyof FilterOf<S, O>]

/**
 * The order of a list: ascending by default, entities without a value last, and equal values in the order of the
 * identifiers.
 */
export type Sort<S extends OrganizationSchema, O extends Owner<S>> = FieldSort<S, O> | MeasuredSort<S, O>

/** The order of a list by a field. */
export type FieldSort<S extends OrganizationSchema, O extends Owner<S>> = {
  field: SortField<S, O>
  direction?: 'asc' | 'desc'
}

/**
 * Selects the members and the order of a list. `fields` names the members, and `include` the relationships whose
 * targets are in `included`. `labels` adds the names of items and targets. `links: 'id'` shows targets by their
 * internal identifiers. `count` adds the number of all matches to the first page.
 */
export type Selection<
  S extends OrganizationSchema,
  O extends Owner<S>,
  Field extends string = FieldName<S, O>,
  Include extends string = RelationshipKey<S, O>,
  Labeled extends boolean = boolean,
  L extends LinksForm = LinksForm,
> = {
  fields?: readonly Field[]
  include?: readonly Include[]
  labels?: Labeled
  links?: L
  sort?: Sort<S, O>
  count?: boolean
}

type Flat<T> = { [K in keyof T]: T[K] }
type AttributeKey<Field extends string> = Field extends `attribute_values.${infer K}` ? K : never
type Values<S extends OrganizationSchema, O extends Owner<S>, L extends LinksForm> = EntityOf<
  S,
  O,
  L
>['attribute_values']

type SelectedValues<S extends OrganizationSchema, O extends Owner<S>, Field extends string, L extends LinksForm> = [
  AttributeKey<Field>,
] extends [never]
  ? unknown
  : { attribute_values: { [K in AttributeKey<Field>]?: Exclude<Values<S, O, L>[K], undefined> } }

// If the compiler does not know the names in `fields` literally, the items may have any members.
type Selected<S extends OrganizationSchema, O extends Owner<S>, Field extends string, L extends LinksForm> = [
  Field,
] extends [never]
  ? EntityOf<S, O, L>
  : `attribute_values.${string}` extends Field
    ? Partial<EntityOf<S, O, L>>
    : Flat<
        Pick<EntityOf<S, O, L>, Extract<Field, keyof EntityOf<S, O, L>>> &
          ('attribute_values' extends Field ? unknown : SelectedValues<S, O, Field, L>)
      >

type Any<S extends OrganizationSchema, L extends LinksForm> = EntityOf<S, 'people', L> | EntityOf<S, StackKey<S>, L>

type IncludedTarget<
  S extends OrganizationSchema,
  A extends AttributeShape,
  L extends LinksForm,
> = A['cardinality'] extends 'many' ? EntityOf<S, TargetOf<S, A>, L>[] : EntityOf<S, TargetOf<S, A>, L> | null

type Included<S extends OrganizationSchema, O extends Owner<S>, Include extends string, L extends LinksForm> = {
  [K in Include]: K extends keyof AttributesOf<S, O>
    ? IncludedTarget<S, AttributesOf<S, O>[K], L>
    : Any<S, L> | Any<S, L>[] | null
}

/**
 * An item of a list: exactly the members that `fields` names, or all members; the targets that `include` names in
 * `included`; and its labels if they were requested.
 */
export type ItemOf<
  S extends OrganizationSchema,
  O extends Owner<S>,
  Field extends string = never,
  Include extends string = never,
  Labeled extends boolean = false,
  L extends LinksForm = never,
> = LabeledOf<
  [Include] extends [never]
    ? Selected<S, O, Field, L>
    : Flat<Selected<S, O, Field, L> & { included: Included<S, O, Include, L> }>,
  Labeled
>

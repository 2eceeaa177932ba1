import type { AttributeShape, AttributesOf, Labels, OrganizationSchema, Owner, TargetOf } from './organization.ts'
import type { ProfileField, profileFields } from './vocabulary.ts'
import type { Person, StackRecord } from './wire.ts'

/** The equality operators. `null` matches a missing value. */
type Equality<V> = {
  $eq?: V | null
  $neq?: V | null
  $in?: readonly (V | null)[]
  $nin?: readonly (V | null)[]
  $exists?: boolean
}
type Range<V> = { $lt?: V; $lte?: V; $gt?: V; $gte?: V }
/** The text search operators. They ignore case. */
type Search = { $contains?: string; $starts_with?: string; $ends_with?: string }
/** The relationship operators: the filter matches at least one target, none, or every target. */
type Targets<F> = { $some?: F; $none?: F; $every?: F }

/** Conditions on the entities that link here: on each entity, on their number, and on measures of their fields. */
type Incoming<F> = Targets<F> & { $where?: F; $count?: number | (Equality<number> & Range<number>) } & {
  [O in '$sum' | '$avg' | '$min' | '$max']?: { [field: string]: Bare | Operators }
}

/** A time relative to the request, in the time zone of the organization. Durations are those of ISO 8601. */
export type RelativeTime = { $ago: string } | { $from_now: string } | { $today: 'start' }
/** A date, or a date and time. */
type Time = string | RelativeTime
/** The day of the year is today, or up to this number of days after it. */
type Anniversary = { $anniversary?: { within_days: number } }

// An object as a value must be an operand of `$eq`. A bare object is parsed as operators.
type Bare = string | number | boolean | null | readonly unknown[] | RelativeTime
type Operators = Equality<unknown> & Range<number | Time> & Search & Anniversary

// A bare value means `$eq`.
type TextCondition = string | null | (Equality<string> & Range<string> & Search)
type BooleanCondition = boolean | null | Equality<boolean>
type TimeCondition = Time | null | (Equality<Time> & Range<Time>)
type DateCondition = Time | null | (Equality<Time> & Range<Time> & Search & Anniversary)
type StateCondition = Person['state'] | null | Equality<Person['state']>

/** A condition on an undeclared attribute, or on any attribute of a client without a schema. */
export type Condition = Bare | (Operators & Targets<Filter>)

type Times = 'created_at' | 'updated_at'
type Flags = { [F in keyof Person]-?: Person[F] extends boolean | null ? F : never }[keyof Person]
type Dates = { [F in ProfileField]: (typeof profileFields)[F]['type'] extends 'date' ? F : never }[ProfileField]
type Shared = { state?: StateCondition } & { [F in Times]?: TimeCondition }
type Texts<Entity> = Exclude<
  keyof Entity,
  Times | Flags | Dates | 'state' | 'consents' | 'attribute_values' | 'version' | 'stack_key' | 'as_of' | keyof Labels
>

type ConsentMethod = NonNullable<Person['consents'][number]['method']>

/**
 * A condition on a consent type, a channel, the effective state (an answer or the default), and the answer: whether it
 * is a grant that waits for its confirmation, its text, its method and its time.
 */
export type ConsentCondition = Partial<Pick<Person['consents'][number], 'consent_type_id' | 'channel' | 'state'>> & {
  pending?: boolean
  text_version?: number | null | (Equality<number> & Range<number>)
  method?: ConsentMethod | null | Equality<ConsentMethod>
  answered_at?: TimeCondition
}

/** Matches the people who may be contacted for a purpose on a channel, as a contact decision answers. */
export type Contactable = Pick<Person['consents'][number], 'consent_type_id' | 'channel'>

/** Matches the people of a segment. */
type InSegment = { $segment?: string }

type PersonFields = InSegment &
  Shared & { [F in Texts<Person>]?: TextCondition } & { [F in Flags]?: BooleanCondition } & {
    [F in Dates]?: DateCondition
  } & {
    consents?: { $some: ConsentCondition }
    contactable?: Contactable
  }
type RecordFields = Shared & { [F in Texts<StackRecord>]?: TextCondition }

/** A filter. All fields and operators of an object must match. */
export type Filter = { $and?: readonly Filter[]; $or?: readonly Filter[]; $not?: Filter } & PersonFields &
  RecordFields & { [F in `attribute_values.${string}`]?: Condition } & {
    [F in `incoming.${string}.${string}`]?: Incoming<Filter>
  }

type Operands = { text: string; number: number; boolean: boolean; date: Time; datetime: Time }
type RangeOf<A extends AttributeShape, V> = A['type'] extends 'boolean' ? unknown : Range<V>
type SearchOf<A extends AttributeShape> = A['type'] extends 'text' ? Search : DateTestsOf<A>
type DateTestsOf<A extends AttributeShape> = A['type'] extends 'date' ? Search & Anniversary : unknown

/** A value. If the attribute has cardinality `many`, also a whole array. */
type OneOrMany<A extends AttributeShape, V, Element = V> = A['cardinality'] extends 'many' ? V | readonly Element[] : V

type PlainCondition<A extends AttributeShape, V> =
  | OneOrMany<A, V>
  | null
  | (Equality<OneOrMany<A, V>> & RangeOf<A, V> & SearchOf<A>)

type RelationshipCondition<S extends OrganizationSchema, A extends AttributeShape> =
  | OneOrMany<A, string, string | null>
  | null
  | (Equality<OneOrMany<A, string, string | null>> & Range<string> & Search & Targets<FilterOf<S, TargetOf<S, A>>>)

type AttributeCondition<S extends OrganizationSchema, A extends AttributeShape> = A['type'] extends 'person' | 'stack'
  ? RelationshipCondition<S, A>
  : A['type'] extends 'json'
    ? Bare | Operators
    : PlainCondition<A, Operands[A['type'] & keyof Operands]>

type AttributeConditions<S extends OrganizationSchema, A extends { [key: string]: AttributeShape }> = {
  [K in keyof A & string as `attribute_values.${K}`]?: AttributeCondition<S, A[K]>
}

/** The incoming fields for the relationships that lead from one owner to another. */
type IncomingKey<S extends OrganizationSchema, O extends Owner<S>, From extends Owner<S>> = {
  [K in keyof AttributesOf<S, From> & string]: O extends TargetOf<S, AttributesOf<S, From>[K]>
    ? `incoming.${From}.${K}`
    : never
}[keyof AttributesOf<S, From> & string]

type IncomingConditions<S extends OrganizationSchema, O extends Owner<S>> = {
  [F in {
    [From in Owner<S>]: IncomingKey<S, O, From>
  }[Owner<S>]]?: F extends `incoming.${infer From extends Owner<S>}.${string}` ? Incoming<FilterOf<S, From>> : never
}

/**
 * A filter on the entities of an owner. With a schema from `kith codegen`, it accepts only declared keys, with operands
 * of their types. Without a schema, it accepts any key.
 */
export type FilterOf<S extends OrganizationSchema, O extends Owner<S>> = string extends keyof S['stacks']
  ? Filter
  : { $and?: readonly FilterOf<S, O>[]; $or?: readonly FilterOf<S, O>[]; $not?: FilterOf<S, O> } & (O extends 'people'
      ? PersonFields
      : RecordFields) &
      AttributeConditions<S, AttributesOf<S, O>> &
      IncomingConditions<S, O>

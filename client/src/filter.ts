import type { AttributeShape, AttributesOf, OrganizationSchema, Owner, StackKey } from './organization.ts'
import type { Person, StackRecord } from './wire.ts'

/** Equality; `null` is a missing value. */
type Equality<V> = {
  $eq?: V | null
  $neq?: V | null
  $in?: readonly (V | null)[]
  $nin?: readonly (V | null)[]
  $exists?: boolean
}
type Range<V> = { $lt?: V; $lte?: V; $gt?: V; $gte?: V }
/** Text search; upper and lower case are the same. */
type Search = { $contains?: string; $starts_with?: string; $ends_with?: string }
/** A filter that holds for at least one target of a relationship, for none, for every one. */
type Targets<F> = { $some?: F; $none?: F; $every?: F }

// An object stands under `$eq`: alone it is operators.
type Bare = string | number | boolean | null | readonly unknown[]
type Operators = Equality<unknown> & Range<string | number> & Search

// A value alone means `$eq`.
type TextCondition = string | null | (Equality<string> & Range<string> & Search)
type BooleanCondition = boolean | null | Equality<boolean>
type TimeCondition = string | null | (Equality<string> & Range<string>)
type StateCondition = Person['state'] | null | Equality<Person['state']>

/** What an undeclared attribute, or one of an organization without a schema, is compared with. */
export type Condition = Bare | (Operators & Targets<Filter>)

type Times = 'created_at' | 'updated_at'
type Flags = 'email_consent' | 'sms_consent' | 'push_notification_consent'
type Shared = { state?: StateCondition } & { [F in Times]?: TimeCondition }
type Texts<Entity> = Exclude<
  keyof Entity,
  Times | Flags | 'state' | 'consents' | 'attribute_values' | 'version' | 'stack_key'
>

/** A purpose and channel, and what counts there now: an answer or the default. */
export type ConsentCondition = Partial<Pick<Person['consents'][number], 'consent_type_id' | 'channel' | 'state'>>

type PersonFields = Shared & { [F in Texts<Person>]?: TextCondition } & { [F in Flags]?: BooleanCondition } & {
  consents?: { $some: ConsentCondition }
}
type RecordFields = Shared & { [F in Texts<StackRecord>]?: TextCondition }

/** What a filter asks; several fields and operators in one object must all hold. */
export type Filter = { $and?: readonly Filter[]; $or?: readonly Filter[]; $not?: Filter } & PersonFields &
  RecordFields & { [F in `attribute_values.${string}`]?: Condition }

type Operands = { text: string; number: number; boolean: boolean; date: string; datetime: string }
type RangeOf<A extends AttributeShape, V> = A['type'] extends 'boolean' ? unknown : Range<V>
type SearchOf<A extends AttributeShape> = A['type'] extends 'text' | 'date' ? Search : unknown

/** A whole array, too, where the attribute holds many. */
type OneOrMany<A extends AttributeShape, V, Element = V> = A['cardinality'] extends 'many' ? V | readonly Element[] : V

type PlainCondition<A extends AttributeShape, V> =
  | OneOrMany<A, V>
  | null
  | (Equality<OneOrMany<A, V>> & RangeOf<A, V> & SearchOf<A>)

type TargetOf<S extends OrganizationSchema, A extends AttributeShape> = A['type'] extends 'person'
  ? 'people'
  : Extract<A['target'], StackKey<S>>

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

/**
 * A filter on the entities of an owner, by what `kith codegen` has written: declared keys alone, and operands of their types.
 * Without a schema any key may be asked for.
 */
export type FilterOf<S extends OrganizationSchema, O extends Owner<S>> = string extends keyof S['stacks']
  ? Filter
  : { $and?: readonly FilterOf<S, O>[]; $or?: readonly FilterOf<S, O>[]; $not?: FilterOf<S, O> } & (O extends 'people'
      ? PersonFields
      : RecordFields) &
      AttributeConditions<S, AttributesOf<S, O>>

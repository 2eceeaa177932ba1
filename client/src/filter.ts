import type { Person, StackRecord } from './wire.ts'

type Ordered = string | number

/** What a field is compared with; a value alone means `$eq`. */
export type Condition =
  | string
  | number
  | boolean
  | null
  | {
      $eq?: unknown
      $neq?: unknown
      $lt?: Ordered
      $lte?: Ordered
      $gt?: Ordered
      $gte?: Ordered
      $in?: readonly unknown[]
      $nin?: readonly unknown[]
      /** Text search; upper and lower case are the same. */
      $contains?: string
      $starts_with?: string
      $ends_with?: string
      $exists?: boolean
      /** Of a relationship: a filter that holds for at least one, for none, for every target. */
      $some?: Filter
      $none?: Filter
      $every?: Filter
    }

/** A purpose and channel, and what counts there now: an answer or the default. */
export type ConsentCondition = Partial<Pick<Person['consents'][number], 'consent_type_id' | 'channel' | 'state'>>

type Field =
  | Exclude<keyof Person | keyof StackRecord, 'consents' | 'attribute_values' | 'version' | 'stack_key'>
  | `attribute_values.${string}`

/** What a filter asks; several fields and operators in one object must all hold. */
export type Filter = {
  $and?: readonly Filter[]
  $or?: readonly Filter[]
  $not?: Filter
  consents?: { $some: ConsentCondition }
} & { [F in Field]?: Condition }

import type { AggregateBody } from '@kith/client'
import { addressReader, filterOfAddress, numberIn, oneOf, text } from '../app/search-params.ts'
import type { TimeUnit } from './plot-data.ts'

type Measure = NonNullable<AggregateBody['measures']>[number]
export type MeasureOperation = Measure['op']

export const measureOperations = [
  'count',
  'count_distinct',
  'sum',
  'avg',
  'median',
  'percentile',
  'min',
  'max',
] as const satisfies MeasureOperation[]
export const timeUnits = ['day', 'week', 'month', 'quarter', 'year'] as const satisfies TimeUnit[]
export const orders = ['group', '-group', 'measure', '-measure'] as const
export type Order = (typeof orders)[number]

/** A report, from its address. */
export const validateReportSearch = addressReader({
  /** The owner of the counted entities: `people`, or the key of a stack. */
  owner: text,
  /** The grouping fields, each time with its span. */
  group: text,
  by: oneOf(timeUnits),
  group2: text,
  by2: oneOf(timeUnits),
  measure: oneOf(measureOperations),
  /** The measured field. */
  of: text,
  /** The percentile, in percent. */
  p: numberIn(0, 100),
  filter: filterOfAddress,
  sort: oneOf(orders),
  limit: numberIn(1, 10_000),
})
export type ReportSearch = ReturnType<typeof validateReportSearch>

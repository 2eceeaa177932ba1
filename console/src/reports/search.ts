import type { AggregateBody, Filter } from '@kith/client'
import { filterOfAddress } from '../app/search-params.ts'
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

/** A report, as its address carries it. */
export type ReportSearch = {
  /** Whose entities are counted: `people`, or the key of a stack. */
  owner?: string
  /** The fields that group, with the span of time of each that is a time. */
  group?: string
  by?: TimeUnit
  group2?: string
  by2?: TimeUnit
  measure?: MeasureOperation
  /** The measured field. */
  of?: string
  /** The percentile, in percent. */
  p?: number
  filter?: Filter
  sort?: Order
  limit?: number
}

/** Reads the address. What it does not understand is left out. */
export function validateReportSearch(search: Record<string, unknown>): ReportSearch {
  const text = (name: string) => {
    const value = search[name]
    return typeof value === 'string' && value !== '' ? { [name]: value } : {}
  }
  const choice = (name: string, choices: readonly string[]) =>
    choices.includes(search[name] as string) ? { [name]: search[name] } : {}
  const number = (name: string, min: number, max: number) => {
    const value = Number(search[name])
    return search[name] !== undefined && value >= min && value <= max ? { [name]: value } : {}
  }
  const filter = filterOfAddress(search.filter)
  return {
    ...text('owner'),
    ...text('group'),
    ...choice('by', timeUnits),
    ...text('group2'),
    ...choice('by2', timeUnits),
    ...choice('measure', measureOperations),
    ...text('of'),
    ...number('p', 0, 100),
    ...(filter && { filter }),
    ...choice('sort', orders),
    ...number('limit', 1, 10_000),
  }
}

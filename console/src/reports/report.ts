import type { Aggregate, AggregateBody, Definitions, Filter } from '@kith/client'
import { keepPreviousData, queryOptions } from '@tanstack/react-query'
import { entitiesOf } from '../entity/entities.ts'
import { attributePrefix } from '../filters/field-types.ts'
import { type FilterField, fieldsOf } from '../filters/fields.ts'
import type { FieldType } from '../filters/filter-tree.ts'
import type { messages as filterMessages } from '../filters/messages.ts'
import type { TimeUnit } from './plot-data.ts'
import type { MeasureOperation, Order, ReportSearch } from './search.ts'

export type Group = { field: FilterField; by: TimeUnit | undefined }

/** The settings of a report, with defaults for those that the address omits. */
export type Report = {
  owner: string
  groups: Group[]
  measure: MeasureOperation
  /** The measured field. Undefined for the number of entities, and before a choice. */
  of: FilterField | undefined
  /** In percent. */
  percentile: number
  filter: ReportSearch['filter']
  order: Order
  limit: number
}

/** The names of the targets of a relationship, by their external identifiers. */
export type TargetLabels = Readonly<Record<string, string>>

/** `labels` has the names of the targets for each group that is a relationship. */
export type Result = { report: Report; aggregate: Aggregate; labels: readonly (TargetLabels | undefined)[] }

export const isTime = ({ type }: FilterField): boolean => type === 'date' || type === 'datetime'

/** A field that a report uses. With `isOfMany`, it belongs to the targets of a relationship with many targets. */
export type ReportField = FilterField & { isOfMany?: boolean }

type FilterTexts = (typeof filterMessages)['en']

/**
 * The fields that a report can use: the entities' own, then those of the targets of each relationship that the session
 * may read.
 */
export function reportFields(
  owner: string,
  definitions: Definitions,
  texts: FilterTexts,
  mayRead: (owner: string) => boolean,
) {
  const own: ReportField[] = fieldsOf(owner, definitions, texts)
  const ofTargets = own.flatMap(({ name, label, target, isMany = false }) =>
    target === undefined || !mayRead(target)
      ? []
      : fieldsOf(target, definitions, texts).map(field => ({
          ...field,
          name: `${name}.${field.name}`,
          label: `${label}: ${field.label}`,
          isOfMany: isMany,
        })),
  )
  return [...own, ...ofTargets]
}

/** Whether a field can group: it has one value for each entity, or for each target. */
export const isGroupable = ({ type, isMany }: ReportField): boolean => type !== 'json' && !isMany

const numbers: readonly FieldType[] = ['number']
const ordered: readonly FieldType[] = ['number', 'text', 'date', 'datetime']
const measuredTypes: Partial<Record<MeasureOperation, readonly FieldType[]>> = {
  ...{ sum: numbers, avg: numbers, median: numbers, percentile: numbers },
  ...{ min: ordered, max: ordered },
}

/** Whether an operation can measure a field. */
export function isMeasured(operation: MeasureOperation, field: ReportField): boolean {
  return isGroupable(field) && !field.isOfMany && (measuredTypes[operation]?.includes(field.type) ?? true)
}

/** A field that no longer exists. The service reports it. */
const unknownField = (name: string): FilterField => ({ name, label: name.replace(attributePrefix, ''), type: 'json' })

/** The report of an address. */
export function reportOf(search: ReportSearch, fields: readonly FilterField[]): Report {
  const { owner = 'people', measure = 'count', of, p = 95, filter } = search
  const fieldOf = (name: string) => fields.find(each => each.name === name) ?? unknownField(name)
  const groupOf = (name: string | undefined, by: TimeUnit = 'month'): Group[] => {
    if (name === undefined) return []
    const field = fieldOf(name)
    return [{ field, by: isTime(field) ? by : undefined }]
  }
  const groups = [...groupOf(search.group, search.by), ...groupOf(search.group2, search.by2)]
  const isOverTime = groups[0]?.by !== undefined
  const { sort = isOverTime ? 'group' : '-measure', limit = isOverTime ? 1_000 : 100 } = search
  const measured = measure === 'count' || of === undefined ? undefined : fieldOf(of)
  return { owner, groups, measure, of: measured, percentile: p, filter, order: sort, limit }
}

/** Whether a report has all its settings. */
export const isComplete = ({ measure, of }: Report): boolean => measure === 'count' || of !== undefined

/** The request of a report. Days begin at midnight in the time zone. */
function bodyOf({ groups, measure, of, percentile, filter, order, limit }: Report, timeZone: string) {
  const isDescending = order.startsWith('-')
  const ofMeasure = order.endsWith('measure')
  return {
    ...(filter && { filter }),
    group_by: groups.map(({ field: { name, type }, by }) =>
      by === undefined ? name : { field: name, by, ...(type === 'datetime' && { time_zone: timeZone }) },
    ),
    measures: [
      { op: measure, ...(of && { field: of.name }), ...(measure === 'percentile' && { p: percentile / 100 }) },
    ],
    ...(groups.length > 0 && {
      sort: [{ ...(ofMeasure ? { measure: 0 } : { group: 0 }), direction: isDescending ? 'desc' : 'asc' } as const],
      limit,
    }),
  } satisfies AggregateBody
}

/** Whether the results are numbers, as a plot requires. */
export const isNumeric = ({ measure, of }: Report): boolean =>
  (measure !== 'min' && measure !== 'max') || of?.type === 'number'

/** The result of a report, together with the report, because an older result is shown until the next one arrives. */
export const reportQuery = (report: Report, timeZone: string) => {
  const body = bodyOf(report, timeZone)
  return queryOptions({
    queryKey: ['entities', report.owner, 'aggregate', body],
    queryFn: async ({ signal }): Promise<Result> => {
      const aggregate = await entitiesOf(report.owner).aggregate(body as never, { signal })
      const labels = await Promise.all(
        report.groups.map(({ field: { target } }, at) => {
          const values = aggregate.groups.map(({ by }) => by[at]).filter(value => typeof value === 'string')
          // If the names cannot be read, the identifiers are shown.
          return target === undefined ? undefined : readLabels(target, values, signal).catch(() => undefined)
        }),
      )
      return { report, aggregate, labels }
    },
    placeholderData: keepPreviousData,
    staleTime: 30_000,
  })
}

/** The maximum number of targets whose names a report reads. A plot shows fewer. */
const maxLabels = 500

async function readLabels(owner: string, externalIds: readonly string[], signal: AbortSignal): Promise<TargetLabels> {
  const $in = [...new Set(externalIds)].slice(0, maxLabels)
  if ($in.length === 0) return {}
  const options = { fields: ['external_id'] as const, labels: true as const, size: maxLabels, signal }
  const { items } = await entitiesOf(owner)
    .filter({ external_id: { $in } } as Filter, options)
    .page()
  return Object.fromEntries(items.map(({ external_id, label }) => [external_id, label]))
}

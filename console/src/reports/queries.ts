import type { Filter } from '@kith/client'
import { keepPreviousData, queryOptions } from '@tanstack/react-query'
import { entitiesOf } from '../entity/entities.ts'
import { bodyOf, type Report, type Result, type TargetLabels } from './report.ts'

/** The result of a report, with the report that it is of, because an older one is shown until the next arrives. */
export const reportQuery = (report: Report, timeZone: string) => {
  const body = bodyOf(report, timeZone)
  return queryOptions({
    queryKey: ['entities', report.owner, 'aggregate', body],
    queryFn: async ({ signal }): Promise<Result> => {
      const aggregate = await entitiesOf(report.owner).aggregate(body as never, { signal })
      const labels = await Promise.all(
        report.groups.map(({ field: { target } }, at) => {
          const values = aggregate.groups.map(({ by }) => by[at]).filter(value => typeof value === 'string')
          // Without their names, the targets have their identifiers.
          return target === undefined ? undefined : readLabels(target, values, signal).catch(() => undefined)
        }),
      )
      return { report, aggregate, labels }
    },
    placeholderData: keepPreviousData,
    staleTime: 30_000,
  })
}

/** So many targets are named. The plot shows fewer, and nobody reads more. */
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

import { keepPreviousData, queryOptions } from '@tanstack/react-query'
import { entitiesOf } from '../entity/entities.ts'
import { bodyOf, type Report, type Result } from './report.ts'

/** The result of a report, with the report that it is of, because an older one is shown until the next arrives. */
export const reportQuery = (report: Report, timeZone: string) => {
  const body = bodyOf(report, timeZone)
  return queryOptions({
    queryKey: ['entities', report.owner, 'aggregate', body],
    queryFn: async ({ signal }): Promise<Result> => ({
      report,
      aggregate: await entitiesOf(report.owner).aggregate(body as never, { signal }),
    }),
    placeholderData: keepPreviousData,
    staleTime: 30_000,
  })
}

import type { Services } from '../http/pipeline/services.ts'
import { type Route, route } from '../route/route.ts'
import { createDoctor } from './doctor-report.ts'
import { createMetricsReader } from './metrics-report.ts'
import { doctorReport, operationsMetrics } from './schema.ts'

const tag = 'Operations'

/** The services are absent if the table only describes the endpoints, as for the OpenAPI document. */
export type OperationServices = Pick<Services, 'config'> & Partial<Pick<Services, 'db' | 'instruments'>>

/** The route table of the service's operation. */
export function operationRoutes({ config, db, instruments }: OperationServices): Route[] {
  let examine: ReturnType<typeof createDoctor> | undefined
  let readMetrics: ReturnType<typeof createMetricsReader> | undefined
  return [
    route({
      method: 'GET',
      tag,
      path: '/v1/operations/doctor',
      scope: 'operations:read',
      operationId: 'getDoctorReport',
      summary: 'Run the checks of kith doctor',
      description:
        'The findings about the service, and about the caller’s organization. Requests within five seconds share a run. Findings about other ' +
        'organizations are counted, not shown.',
      answer: doctorReport,
      handle: async ({ caller, signal }) => {
        examine ??= createDoctor(db!, config)
        return { status: 200, data: await examine(caller.organization.key, signal) }
      },
    }),
    route({
      method: 'GET',
      tag,
      path: '/v1/operations/metrics',
      scope: 'operations:read',
      operationId: 'getOperationsMetrics',
      summary: 'Read the metrics as JSON',
      description:
        'A selection of /metrics, of the whole service. They name no organization. A reading counts as a scrape: the lag of the event loop ' +
        'is since the last one of any reader.',
      answer: operationsMetrics,
      handle: async () => {
        readMetrics ??= createMetricsReader(instruments!)
        return { status: 200, data: await readMetrics() }
      },
    }),
  ]
}

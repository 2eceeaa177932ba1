import { EndpointGroup } from './endpoint-group.ts'
import type { Call, CallOptions } from './options.ts'
import type { DoctorReport, OperationsMetrics } from './wire.ts'

/** The state of the service, for its operator. The scope is `operations:read`. */
export class OperationsEndpoints extends EndpointGroup {
  /**
   * Runs the checks of `kith doctor`, or returns findings from the last five seconds.
   *
   * ```ts
   * const { healthy, findings } = await client.operations.doctor()
   * const database = findings.find(({ check }) => check === 'database')
   * console.log(healthy, database?.verdict, database?.advice) // true ok null
   * ```
   */
  doctor(options?: CallOptions): Call<DoctorReport> {
    return this.send('GET /v1/operations/doctor', {}, options)
  }

  /**
   * Reads the metrics of the service. Counts grow from its start, so the difference of two readings is a rate.
   *
   * ```ts
   * const { requests, queues } = await client.operations.metrics()
   * console.log(requests.durations.count > 0, queues.read) // true 0
   * ```
   */
  metrics(options?: CallOptions): Call<OperationsMetrics> {
    return this.send('GET /v1/operations/metrics', {}, options)
  }
}

import { EndpointGroup } from './endpoint-group.ts'
import { undoAll } from './imports.ts'
import { Listing, type PageOptions, pageOf } from './listing.ts'
import type { CallOptions } from './options.ts'
import type { Job, JobRefusal, Undone } from './wire.ts'

/** The page of a list of jobs or of refusals: 50 by default, at most 500. */
export type JobListOptions = PageOptions & CallOptions

/** The polling interval of {@link JobEndpoints.follow} in milliseconds. The default is 1,000. */
export type FollowJobOptions = CallOptions & { intervalMs?: number }

/**
 * The jobs of the organization. `client.people` and `client.stack` begin them. The scope is `people:write`, and for jobs of records
 * `records:write` too.
 */
export class JobEndpoints extends EndpointGroup {
  /** Lists the jobs with their counts and authors, newest first. */
  list({ size, after, ...options }: JobListOptions = {}): Listing<Job> {
    const read = (before?: string) => this.send('GET /v1/jobs', { query: { before, limit: size } }, options)
    return new Listing(after => pageOf(read(after), ({ id }) => id), after)
  }

  /** Reads a job with its progress. */
  get(job_id: string, options?: CallOptions): Promise<Job> {
    return this.send('GET /v1/jobs/{job_id}', { params: { job_id } }, options)
  }

  /**
   * Yields a job each time that it has progressed, until it has ended.
   *
   * ```ts
   * const { id } = await client.people.bulk({
   *   filter: { external_id: 'ada' },
   *   change: { op: 'patch', body: { attribute_values: { city: 'London' } } },
   * })
   * for await (const { state, done } of client.jobs.follow(id)) if (state === 'done') console.log(done) // 1
   * ```
   */
  async *follow(job_id: string, { intervalMs = 1_000, ...options }: FollowJobOptions = {}): AsyncGenerator<Job> {
    let last: Job | undefined
    for (;;) {
      const job: Job = await this.get(job_id, options)
      if (last?.remaining !== job.remaining || job.state !== 'running') yield job
      if (job.state !== 'running') return
      last = job
      await this.transport.sleep(intervalMs, options.signal)
    }
  }

  /** Lists the changes of a job that were refused, with the reasons. */
  refused(job_id: string, { size, after, ...options }: JobListOptions = {}): Listing<JobRefusal> {
    const read = (after?: string) =>
      this.send('GET /v1/jobs/{job_id}/refused', { params: { job_id }, query: { after, limit: size } }, options)
    return new Listing(after => pageOf(read(after), ({ id }) => id), after)
  }

  /** Ends a job after its current set of changes. */
  cancel(job_id: string, options?: CallOptions): Promise<Job> {
    return this.send('POST /v1/jobs/{job_id}/cancel', { params: { job_id } }, options)
  }

  /** Undoes the changes of a job, except values that were written since, like `client.imports.undo` of an import. */
  undo(job_id: string, { dryRun = false, ...options }: CallOptions & { dryRun?: boolean } = {}): Promise<Undone> {
    return undoAll(dryRun, body => this.send('POST /v1/jobs/{job_id}/undo', { params: { job_id }, body }, options))
  }
}

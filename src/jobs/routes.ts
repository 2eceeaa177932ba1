import { type UndoRequest, undoBody, undone } from '../bulk/imports-schema.ts'
import { type FoundImport, undo } from '../bulk/undo-import.ts'
import type { Call } from '../route/call.ts'
import type { HandlerResult } from '../route/result.ts'
import { dataOf, type Route, route } from '../route/route.ts'
import { refuse } from '../values/errors.ts'
import { cancelJob, listJobs, listRefusals, readJob, requireJob } from './jobs.ts'
import { type JobsQuery, job, jobPage, jobsQuery, type RefusalsQuery, refusalPage, refusalsQuery } from './schema.ts'
import { advanceJobUndoSql, findJobToUndoSql } from './sql.ts'

const row = { tag: 'Jobs', scope: 'people:write' } as const
/** A job and its refusals name entities and rules, but show no values. */
const open = { ...row, fields: 'none' } as const
const byId = { path: '/v1/jobs/{job_id}', params: { job_id: 'external_id' } } as const
const forRecords = 'For a job of records, the token needs `records:write` too.'

export const jobRoutes = (): Route[] => [
  route<JobsQuery>({
    ...open,
    method: 'GET',
    path: '/v1/jobs',
    operationId: 'listJobs',
    summary: 'List jobs, newest first',
    description:
      'Jobs stay in the list as long as the log has the values of their changes. Without `records:write`, it has those of people alone.',
    query: jobsQuery,
    answer: jobPage,
    handle: dataOf(listJobs),
  }),
  route({
    ...open,
    ...byId,
    method: 'GET',
    operationId: 'getJob',
    summary: 'Read how far a job is',
    description: forRecords,
    answer: job,
    handle: dataOf(call => readJob(call)),
  }),
  route<RefusalsQuery>({
    ...open,
    ...byId,
    method: 'GET',
    path: `${byId.path}/refused`,
    operationId: 'listRefusedOfJob',
    summary: 'List what a job was refused to change, and why',
    description: forRecords,
    query: refusalsQuery,
    answer: refusalPage,
    handle: dataOf(listRefusals),
  }),
  route({
    ...open,
    ...byId,
    method: 'POST',
    path: `${byId.path}/cancel`,
    operationId: 'cancelJob',
    summary: 'Cancel a job',
    description: `What was changed stays changed, until an undo. A job that has ended stays as it is. ${forRecords}`,
    answer: job,
    repeats: 'safe',
    handle: dataOf(cancelJob),
  }),
  route<UndoRequest>({
    ...row,
    ...byId,
    method: 'POST',
    path: `${byId.path}/undo`,
    operationId: 'undoJob',
    summary: 'Undo a job',
    description:
      'Takes back what the job changed and nothing has written since, as ordinary changes: it restores earlier values and what was ' +
      `deleted. Answers to consents and erasures stay. Repeat the request while \`has_more\` is true. ${forRecords}`,
    body: undoBody,
    hasDefaults: true,
    answer: undone,
    refusals: { 409: 'invalid_parameter' },
    repeats: 'safe',
    handle: undoJob,
  }),
]

async function undoJob(call: Call<UndoRequest>): Promise<HandlerResult> {
  const { db, organization_id } = call.context
  const { id, state } = await requireJob(call)
  if (state === 'running') refuse('invalid_parameter', runningMessage, { status: 409 })
  const [found] = await db.query<FoundImport>(findJobToUndoSql, [organization_id, id], call.signal)
  return undo(call, id, found!, advanceJobUndoSql)
}

const runningMessage = 'The job is running. Cancel it, or wait until it has ended.'

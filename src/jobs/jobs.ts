import { announceCommit } from '../db/commit-events.ts'
import type { EntityKind } from '../entities/entity-kind.ts'
import { dryRun } from '../entities/write/run.ts'
import { type EntityBody, newWrite, type Outcome, requestOf, type Write } from '../entities/write-request.ts'
import { wakeFollowerSql } from '../followers/sql.ts'
import { cachedDefinitions, type Definitions, ownerOf, peopleStackId } from '../organizations/definitions.ts'
import { filterOptionsOf, warningOf } from '../queries/pages/handlers.ts'
import { findToErase } from '../rights/erasure/erase-person.ts'
import { readHeld, wasErased } from '../rights/holds/holds.ts'
import type { BatchCall, Call } from '../route/call.ts'
import { accessOf, requireOpen, requireWritable } from '../route/field-rights.ts'
import { type HandlerResult, listPage } from '../route/result.ts'
import { requireScope } from '../route/scopes.ts'
import { createRefusal, Fault, pointer, type Refusal, refuse, throwBrokenRule } from '../values/errors.ts'
import { isObjectId, isUuid, recordIdOf, uuidOfRecord } from '../values/formats.ts'
import type { BulkBody, Job, JobOp, JobPreview, JobRefusal, JobState, JobsQuery, RefusalsQuery } from './schema.ts'
import { countSelected, readSelected } from './selection.ts'
import { endJobSql, insertJobSql, jobsFollowerName, listJobsSql, listRefusalsSql, readJobSql } from './sql.ts'

/** The change that a job makes to each entity, as stored: the checked request, with the rights of its caller. */
export type JobChange = Pick<Write, 'references' | 'erased' | 'handling' | 'mayRead' | 'bytes' | 'boundFrom'> & {
  body: EntityBody
  /** Only an erasure has this member and the next two. */
  reason?: string | undefined
  records?: 'keep' | 'linked' | undefined
  override_hold?: boolean | undefined
}

/** The entities that a job changes: those of `ids`, in order, or those that the filter selects. */
type Target = { stack_id: number; filter: object | null; ids: string[] | null; started_at: string }

type NewJob = Target & { op: JobOp; change: JobChange; total: number }

/** Starts a job, or previews it in a dry run. Throws a Fault of 400, 403 or 409. */
export async function changeMany(kind: EntityKind, call: BatchCall<BulkBody>): Promise<HandlerResult> {
  const stack_id = await kind.stackOf(call)
  const { op } = call.body.change
  const change = changeOf(kind, call, stack_id)
  const { filter = null, ids: named } = call.body
  if ((filter === null) === (named === undefined)) throwBrokenRule('/filter', 'give either `filter` or `ids`')
  const ids = named ? [...new Set(named.map(kind.identifier.toUuid))].toSorted() : null
  if (filter) requireScope(call.caller, kind.reads)
  const target: Target = { stack_id, filter, ids, started_at: new Date().toISOString() }
  const { total, unusedKeys } = ids
    ? { total: ids.length, unusedKeys: [] }
    : await countSelected(call.context, { stack_id, filter: filter! }, optionsOf(call, target))
  const job = { ...target, op, change, total }
  if (call.body.dry_run) {
    const warnings = unusedKeys.length > 0 && { warnings: unusedKeys.map(warningOf) }
    return { status: 200, data: { ...(await preview(call, job)), ...warnings } }
  }
  await begin(call, job)
  if (ids) call.shown.addAll(stack_id, ids)
  else call.shown.addUnlisted(stack_id)
  const begun = await readJob(call, call.request_id)
  return { status: 202, data: begun, headers: { Location: `/v1/jobs/${encodeURIComponent(begun.id)}` } }
}

/** Relative times in the filter count from the start of the job. */
const optionsOf = (call: Call<unknown>, { stack_id, started_at }: Target) => ({
  ...filterOptionsOf(call, stack_id),
  nowMs: Date.parse(started_at),
})

/** Checks the members of a change, and whether the caller may make it. */
function changeOf(kind: EntityKind, call: BatchCall<BulkBody>, stack_id: number): JobChange {
  const { op, body: given, reason, records, override_hold } = call.body.change
  const { caller, bytes, boundFrom } = call
  if ((op === 'patch') !== (given !== undefined))
    throwBrokenRule('/change/body', op === 'patch' ? 'is required' : 'belongs to a patch')
  if ((op === 'erase') !== (reason !== undefined))
    throwBrokenRule('/change/reason', op === 'erase' ? 'is required' : 'belongs to an erasure')
  if (op !== 'erase' && (records !== undefined || override_hold !== undefined))
    throwBrokenRule(records === undefined ? '/change/override_hold' : '/change/records', 'belongs to an erasure')
  if (op === 'erase' && kind.noun === 'record') throwBrokenRule('/change/op', 'erases people only: delete records')
  if (op === 'erase') requireScope(caller, 'people:erase')
  const body = checkedBody(call, stack_id)
  const { references, erased, handling } = requestOf(call)
  const mayRead = caller.scopes.has(kind.reads)
  return { body, references, erased, handling, mayRead, bytes, boundFrom, reason, records, override_hold }
}

function checkedBody({ body: { change }, caller, checkItem }: BatchCall<BulkBody>, stack_id: number): EntityBody {
  try {
    const body = checkItem(change.body ?? {}) as EntityBody
    if (body.external_id !== undefined) throwBrokenRule('/external_id', 'cannot be the same for several')
    requireWritable(accessOf(caller, stack_id), body, { clearsRest: change.op !== 'patch' })
    return body
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    const details = error.refusal.details.map(({ path, message }) => ({ path: `/change/body${path}`, message }))
    throw new Fault({ ...error.refusal, details })
  }
}

async function begin({ context, caller, request_id, signal }: Call<unknown>, job: NewJob): Promise<void> {
  const { stack_id, op, change, filter, ids, started_at, total } = job
  const { organization_id } = context
  const json = (value: object | null) => (value === null ? null : JSON.stringify(value))
  const values = [request_id, stack_id, caller.subject, op, json(change), json(filter), ids, started_at, total]
  await context.db.transaction(
    async tx => {
      const begun = await tx.query(insertJobSql, [organization_id, ...values])
      if (begun.length === 0) refuse('invalid_parameter', takenMessage, { status: 409 })
      await tx.query(wakeFollowerSql, [organization_id, jobsFollowerName, started_at])
    },
    { signal },
  )
  announceCommit(context)
}

const takenMessage = 'Another job or import has this request id. Send another X-Request-Id.'

/** The write of an entity by a job that is not an erasure. */
export const writeOf = (
  { stack_id, op, change }: Pick<NewJob, 'stack_id' | 'op' | 'change'>,
  id: string,
  author: Pick<Write, 'actor' | 'request_id'>,
): Write =>
  newWrite({ ...change, ...author, operation: op === 'patch' ? 'patch' : 'delete', stack_id, address: { id } })

/** A dry run tries sets for this time, and returns at most this many refusals. */
const maxPreviewMs = 3_000
const maxPreviewed = 100
const idsPerPreview = 256

/** Previews a job on the first entities. Each set runs on the stored data, so no set sees the changes of another. */
async function preview(call: BatchCall<BulkBody>, job: NewJob): Promise<JobPreview> {
  const { context, caller, request_id, signal, limits } = call
  const { stack_id, ids, total } = job
  const result: JobPreview = { dry_run: true, total, tested: 0, done: 0, unchanged: 0, refused: 0, refusals: [] }
  const startedMs = performance.now()
  const author = { actor: caller.subject, request_id }
  const erased = new Set<string>()
  let after: string | null = null
  do {
    const page = { after, size: idsPerPreview }
    const next: string[] = ids
      ? ids.slice(result.tested, result.tested + idsPerPreview)
      : await readSelected(context, { ...job, filter: job.filter! }, page, optionsOf(call, job))
    if (next.length === 0) break
    after = next.at(-1)!
    const writes = job.op === 'erase' ? [] : next.map(id => writeOf(job, id, author))
    const outcomes =
      job.op === 'erase'
        ? await previewErasures(call, job, next, erased)
        : (await dryRun(context, writes, { limits, signal })).outcomes
    for (const [index, id] of next.entries()) {
      const outcome = outcomes[index]!
      if ('error' in outcome) throw outcome.error
      result.tested += 1
      if ('done' in outcome) result[outcome.done.result === 'unchanged' ? 'unchanged' : 'done'] += 1
      else {
        result.refused += 1
        call.shown.add(stack_id, id)
        const { code: error, message, details } = outcome.refusal
        if (result.refusals.length < maxPreviewed)
          result.refusals.push({ id: wireId(stack_id, id), external_id: null, error, message, details })
      }
    }
  } while (performance.now() - startedMs < maxPreviewMs)
  return result
}

const heldRefusal: Refusal = createRefusal('invalid_parameter', 'The person is under a legal hold.', { status: 409 })

/** Previews an erasure of people. `erased` contains the people of earlier sets, and receives those of this set. */
async function previewErasures(
  { context, signal }: Call<unknown>,
  { change }: NewJob,
  ids: string[],
  erased: Set<string>,
): Promise<Outcome[]> {
  const { db, organization_id } = context
  return db.transaction(
    async tx => {
      const within = { tx, organization_id }
      const found = await Promise.all(
        ids.map(identifier => findToErase({ db: tx, organization_id }, { by: 'id', identifier })),
      )
      const people = found.filter(id => id !== undefined)
      const held = change.override_hold ? new Set() : await readHeld(within, people, new Date().toISOString())
      const isErased = await Promise.all(found.map(id => id !== undefined && wasErased(within, id)))
      return found.map((id, index): Outcome => {
        if (id === undefined) return { refusal: noPersonRefusal }
        if (held.has(id)) return { refusal: heldRefusal }
        const isRepeated = isErased[index] || erased.has(id)
        erased.add(id)
        return doneAs(isRepeated ? 'unchanged' : 'deleted', id, 0)
      })
    },
    { signal },
  )
}

export const noPersonRefusal: Refusal = createRefusal('not_found', 'There is no such person.')

/** The outcome for a person that a job erases. */
export const doneAs = (result: 'deleted' | 'unchanged', id: string, sequence: number): Outcome => ({
  done: { result, id, external_id: null, version: 0, sequence },
})

const wireId = (stack_id: number, id: string) => (stack_id === peopleStackId ? id : recordIdOf(id))

type JobRow = Omit<Job, 'owner' | 'remaining'> & { stack_id: number }

function toJson({ stack_id, ...row }: JobRow, definitions: Definitions): Job {
  const { total, done, unchanged, refused } = row
  const remaining = row.state === 'done' ? 0 : Math.max(0, total - done - unchanged - refused)
  return { ...row, owner: ownerOf(definitions, stack_id), remaining }
}

/** The job with this id, by default the id of the path. The caller must have the rights to make the job's writes. */
export async function requireJob(
  { context, params, caller, signal }: Call<unknown>,
  id = params.job_id,
): Promise<JobRow> {
  const { db, organization_id } = context
  const [row] = await db.query<JobRow>(readJobSql, [organization_id, id], signal)
  if (!row) return refuse('not_found', 'There is no such job.')
  if (row.stack_id !== peopleStackId) requireScope(caller, 'records:write')
  requireOpen(caller, row.stack_id, pointer('job_id'))
  return row
}

export const readJob = async (call: Call<unknown>, id?: string): Promise<Job> =>
  toJson(await requireJob(call, id), await cachedDefinitions(call.context, call.signal))

const defaultLimit = 50

export async function listJobs({ context, body, caller, signal }: Call<JobsQuery>) {
  const { before = null, limit = defaultLimit } = body
  const { db, organization_id } = context
  const open = caller.rights ? [...caller.rights.byStack.keys()] : null
  const values = [organization_id, before, limit + 1, caller.scopes.has('records:write'), open]
  const rows = await db.query<JobRow>(listJobsSql, values, signal)
  const definitions = await cachedDefinitions(context, signal)
  return listPage(rows, limit, row => toJson(row, definitions))
}

type RefusalRow = Omit<JobRefusal, 'id'> & { entity_id: string }

export async function listRefusals(call: Call<RefusalsQuery>) {
  const { context, body, signal, shown } = call
  const { after, limit = defaultLimit } = body
  const { id, stack_id } = await requireJob(call)
  const isId = stack_id === peopleStackId ? isUuid : isObjectId
  if (after !== undefined && !isId(after)) throwBrokenRule('/after', 'is no identifier of what the job changes')
  const from = after === undefined ? null : stack_id === peopleStackId ? after : uuidOfRecord(after)
  const values = [context.organization_id, id, stack_id, from, limit + 1]
  const rows = await context.db.query<RefusalRow>(listRefusalsSql, values, signal)
  return listPage(rows, limit, ({ entity_id, ...refusal }) => {
    shown.add(stack_id, entity_id)
    return { id: wireId(stack_id, entity_id), ...refusal }
  })
}

/** Ends a job after the set in progress. A job that has ended does not change. */
export async function cancelJob(call: Call<unknown>): Promise<Job> {
  const { id } = await requireJob(call)
  const { db, organization_id } = call.context
  const state: JobState = 'cancelled'
  await db.query(endJobSql, [organization_id, id, new Date().toISOString(), state, null], call.signal)
  return readJob(call)
}

import type { Transaction } from '../db/db.ts'
import { isUnavailable } from '../db/pg-errors.ts'
import { writeWithin } from '../entities/write/run.ts'
import type { Outcome } from '../entities/write-request.ts'
import { type Follower, inSets, type Progress, passOverUntilDue, type Task } from '../followers/follower.ts'
import { LeaseLost } from '../followers/tasks.ts'
import { type Author, changeOrganization, type Locked } from '../organizations/change-organization.ts'
import type { Definitions } from '../organizations/definitions.ts'
import type { Config } from '../process/config.ts'
import { parseFilter } from '../queries/grammar/parse.ts'
import { readMatchesOf } from '../queries/plan/membership.ts'
import { erasePerson, findToErase } from '../rights/erasure/erase-person.ts'
import { createRefusal, Fault, type Refusal } from '../values/errors.ts'
import { doneAs, type JobChange, noPersonRefusal, writeOf } from './jobs.ts'
import type { JobOp, JobState } from './schema.ts'
import { readSelected } from './selection.ts'
import {
  advanceJobSql,
  endJobSql,
  insertRefusalsSql,
  jobsFollowerName,
  lockJobSql,
  readNextIdsSql,
  readRunningJobsSql,
} from './sql.ts'

/** A set locks the head for about 20 ms. */
const entitiesPerSet = 100
/** Each erasure is a separate transaction. The size of a set only limits the wait of the organization's other jobs. */
const erasuresPerSet = 20
const defaultPausePerWork = 1

export type JobOptions = { originName: string; limits: Config['limits']; pausePerWork?: number }

type RunningJob = {
  id: string
  stack_id: number
  actor: string
  op: JobOp
  change: JobChange
  filter: object | null
  started_at: string
  position: string | null
}

type StoredJob = Omit<RunningJob, 'change'> & { change: JobChange | null }

/** A running job. Its position advances with each committed transaction. */
type Run = { task: Task; job: RunningJob; author: Author; options: JobOptions }

/** The job was cancelled, or another process has continued it. */
class Stopped extends Error {}

/**
 * Runs the jobs of an organization, a small set of each in turn. The transaction that changes entities also stores the
 * job's next position. It commits only if the stored position is still the one from which it began. So a crash neither
 * skips nor repeats an entity.
 */
export function jobsFollower(options: JobOptions): Follower {
  return {
    name: jobsFollowerName,
    isForEveryOrganization: false,
    isScheduled: true,
    maxConcurrent: 2,
    work: task => runJobs(task, options),
    passOver: passOverUntilDue,
  }
}

async function runJobs(task: Task, options: JobOptions): Promise<Progress> {
  const { db, organization_id, signal, head: sequence } = task
  let jobs: StoredJob[] = []
  await inSets(signal, options.pausePerWork ?? defaultPausePerWork, async () => {
    if (jobs.length === 0) jobs = await db.query<StoredJob>(readRunningJobsSql, [organization_id])
    const stored = jobs.shift()
    if (!stored) return true
    // A running job has its change.
    const job: RunningJob = { ...stored, change: stored.change! }
    await runSet({ task, job, author: { actor: job.actor, request_id: job.id }, options })
    return false
  })
  return { sequence, wakeAtMs: signal.aborted ? Date.now() : undefined }
}

/** Changes the next entities of a job, or ends it. */
async function runSet(run: Run): Promise<void> {
  try {
    const ids = await readNext(run)
    if (ids.length === 0) await end(run, 'done', null)
    else if (run.job.op !== 'erase') await writeSet(run, ids)
    // The job erases people one by one, as requests do, with a certificate each.
    else for (const id of ids) if (!run.task.signal.aborted) await erase(run, id)
  } catch (error) {
    if (error instanceof Stopped) return
    // The request of the job has become invalid: for example, an attribute of its filter was archived.
    if (!(error instanceof Fault)) throw error
    const { message, details } = error.refusal
    await end(run, 'failed', [message, ...details.map(detail => `${detail.path} ${detail.message}`)].join(' '))
  }
}

const end = ({ task: { db, organization_id }, job }: Run, state: JobState, failure: string | null) =>
  db.query(endJobSql, [organization_id, job.id, new Date().toISOString(), state, failure])

async function readNext({ task, job }: Run): Promise<string[]> {
  const { id, filter, position, op } = job
  const size = op === 'erase' ? erasuresPerSet : entitiesPerSet
  if (filter) {
    const options = { signal: task.signal, nowMs: Date.parse(job.started_at), boundFrom: job.change.boundFrom }
    return readSelected(task, { ...job, filter }, { after: position, size }, options)
  }
  const rows = await task.db.query<{ id: string }>(readNextIdsSql, [task.organization_id, id, position, size])
  return rows.map(row => row.id)
}

/** Returns the entities that still match the job's filter, or all without one. Runs under the lock of the head. */
async function readTaken({ job }: Run, tx: Transaction, definitions: Definitions, ids: string[]): Promise<string[]> {
  const { filter, stack_id, started_at, change } = job
  if (!filter) return ids
  const options = { nowMs: Date.parse(started_at), boundFrom: change.boundFrom }
  const { condition } = parseFilter(filter, definitions, stack_id, options)
  const found = await readMatchesOf(tx, definitions, [condition], ids, stack_id)
  return found.flatMap(({ id, matches }) => (matches[0] ? [id] : []))
}

/**
 * Changes a set in one transaction. After an unexpected error, each entity gets a separate transaction, so that one bad
 * entity does not hold up the job.
 */
async function writeSet(run: Run, ids: string[]): Promise<void> {
  try {
    await writeTogether(run, ids)
  } catch (error) {
    if (error instanceof Fault || !isOfWork(run, error)) throw error
    if (ids.length > 1) for (const id of ids) await writeSet(run, [id])
    else await advance(run, ids[0]!, [{ refusal: failedRefusal }])
  }
}

/** Whether the writes themselves caused an error, and not the connection, the lease or the end of the process. */
const isOfWork = ({ task }: Run, error: unknown) =>
  !(error instanceof Stopped || error instanceof LeaseLost || task.signal.aborted || isUnavailable(error))

const failedRefusal: Refusal = createRefusal('operation_failed', 'The operation failed.')

async function writeTogether(run: Run, ids: string[]): Promise<void> {
  const { task, job, author, options } = run
  const until = ids.at(-1)!
  await changeOrganization(task, author, async locked => {
    const { tx, definitions } = locked
    await lockJob(run, locked)
    const taken = await readTaken(run, tx, definitions, ids)
    const writes = taken.map(id => writeOf(job, id, author))
    const outcomes = await writeWithin(tx, definitions, writes, options.limits)
    const reached = taken.map((id, index) => ({ id, outcome: outcomes[index]! }))
    await store(run, tx, until, reached)
    return { result: undefined }
  })
  job.position = until
}

/** Throws {@link Stopped} if the job was cancelled, or its position has changed. */
async function lockJob({ job }: Run, { tx, organization_id }: Pick<Locked, 'tx' | 'organization_id'>): Promise<void> {
  const found = await tx.query(lockJobSql, [organization_id, job.id, job.position])
  if (found.length === 0) throw new Stopped()
}

/** The outcome of an entity. `id` names the entity in the list of refusals. */
type Reached = { id: string; outcome: Outcome }

/** Stores the position of the job, and the outcomes of the entities up to it. */
async function store({ task, job }: Run, tx: Transaction, until: string, reached: readonly Reached[]): Promise<void> {
  const { organization_id } = task
  const refusals = reached.flatMap(({ id: entity_id, outcome }) => {
    if ('error' in outcome) throw outcome.error
    if (!('refusal' in outcome)) return []
    const { code: error, message, details } = outcome.refusal
    return [{ entity_id, error, message, details }]
  })
  const done = reached.flatMap(({ outcome }) => ('done' in outcome ? [outcome.done] : []))
  const changed = done.filter(({ result }) => result !== 'unchanged')
  const counts = [changed.length, done.length - changed.length, refusals.length]
  const sequence = changed.length > 0 ? Math.max(...changed.map(each => each.sequence)) : null
  const values = [organization_id, job.id, job.position, until, ...counts, sequence]
  if ((await tx.query(advanceJobSql, values)).length === 0) throw new Stopped()
  if (refusals.length > 0) await tx.query(insertRefusalsSql, [organization_id, job.id, JSON.stringify(refusals)])
}

/** Skips an entity that the job has not changed. */
async function advance(run: Run, id: string, outcomes: readonly Outcome[]): Promise<void> {
  const reached = outcomes.map(outcome => ({ id, outcome }))
  await run.task.db.transaction(tx => store(run, tx, id, reached))
  run.job.position = id
}

async function erase(run: Run, person_id: string): Promise<void> {
  const { task, job, author, options } = run
  const { reason, records = 'keep', override_hold = false } = job.change
  let [isTaken, isErased] = [true, false]
  const request = {
    ...{ ...author, reason: reason!, records, override_hold },
    person_id: async (locked: Locked) => {
      await lockJob(run, locked)
      const { tx, organization_id, definitions } = locked
      isTaken = (await readTaken(run, tx, definitions, [person_id])).length > 0
      return isTaken ? findToErase({ db: tx, organization_id }, { by: 'id', identifier: person_id }) : undefined
    },
    onErased: async ({ tx, head }: Locked) => {
      const outcome = doneAs('deleted', person_id, head.sequence + 1)
      await store(run, tx, person_id, [{ id: person_id, outcome }])
      isErased = true
    },
  }
  try {
    const erased = await erasePerson({ ...task, originName: options.originName }, request)
    if (isErased) job.position = person_id
    else if (!isTaken) await advance(run, person_id, [])
    else if (erased) await advance(run, person_id, [doneAs('unchanged', person_id, 0)])
    else await advance(run, person_id, [{ refusal: noPersonRefusal }])
  } catch (error) {
    if (error instanceof Fault) await advance(run, person_id, [{ refusal: error.refusal }])
    else if (isOfWork(run, error)) await advance(run, person_id, [{ refusal: failedRefusal }])
    else throw error
  }
}

import { statement } from '../db/db.ts'

export const jobsFollowerName = 'jobs'

/**
 * $2: id, $3: stack, $4: actor, $5: op, $6: change, $7: filter, $8: ids, $9: the time, $10: total. Returns no row if a
 * job or an import already has the id.
 */
export const insertJobSql = statement(
  'insert_job',
  `insert into jobs (organization_id, id, stack_id, actor, op, change, filter, ids, started_at, total, after_sequence)
   select h.organization_id, $2, $3, $4, $5, $6::jsonb, $7::jsonb, $8::uuid[], $9::timestamptz, $10, h.sequence
   from change_heads h
   where h.organization_id = $1 and not exists (select from imports i where i.organization_id = $1 and i.id = $2)
   on conflict do nothing
   returning id`,
)

const columns = `j.id, j.stack_id, j.actor, j.op, j.state, j.failure, j.started_at, j.ended_at, j.total, j.done, j.unchanged, j.refused,
  j.undone_at`

/** $2: id. */
export const readJobSql = statement(
  'read_job',
  `select ${columns} from jobs j where j.organization_id = $1 and j.id = $2`,
)

/**
 * $2: the id of a job, or null, $3: limit, $4: whether to list jobs of records too, $5: the stacks whose jobs to list,
 * or null for all.
 */
export const listJobsSql = statement(
  'list_jobs',
  `select ${columns} from jobs j
   where j.organization_id = $1 and ($4::boolean or j.stack_id = 0) and ($5::integer[] is null or j.stack_id = any ($5))
   and ($2::text is null or (j.started_at, j.id) < (
     select b.started_at, b.id from jobs b where b.organization_id = $1 and b.id = $2
   ))
   order by j.started_at desc, j.id desc limit $3`,
)

export const readRunningJobsSql = statement(
  'read_running_jobs',
  `select j.id, j.stack_id, j.actor, j.op, j.change, j.filter, j.started_at, j.position
   from jobs j where j.organization_id = $1 and j.ended_at is null order by j.started_at, j.id`,
)

/** $2: job, $3: position, or null at the beginning, $4: limit. The next entities that the job names. */
export const readNextIdsSql = statement(
  'read_next_ids_of_job',
  `select i.id from jobs j cross join unnest(j.ids) as i(id)
   where j.organization_id = $1 and j.id = $2 and ($3::uuid is null or i.id > $3::uuid) order by i.id limit $4`,
)

/** Whether the job $2 runs and is at the position $3, which is null at the beginning. */
const isAt = 'j.organization_id = $1 and j.id = $2 and j.ended_at is null and j.position is not distinct from $3::uuid'

/** $2: id, $3: position. Locks a running job at this position until the end of the transaction. */
export const lockJobSql = statement('lock_job', `select j.id from jobs j where ${isAt} for update`)

/**
 * $2: id, $3: position, $4: new position, $5 to $7: the numbers of done, unchanged and refused entities, $8: the newest
 * change, or null.
 */
export const advanceJobSql = statement(
  'advance_job',
  `update jobs j set position = $4::uuid, done = j.done + $5::integer, unchanged = j.unchanged + $6::integer,
     refused = j.refused + $7::integer, last_sequence = greatest(j.last_sequence, $8::bigint)
   where ${isAt} returning j.id`,
)

/** $2: job, $3: refusals as JSON: [{entity_id, error, message, details}]. */
export const insertRefusalsSql = statement(
  'insert_job_refusals',
  `insert into job_refusals (organization_id, job_id, entity_id, error, message, details)
   select h.organization_id, $2, r.entity_id, r.error, r.message, r.details
   from change_heads h cross join jsonb_to_recordset($3::jsonb) as r(entity_id uuid, error text, message text, details jsonb)
   where h.organization_id = $1`,
)

/** $2: id, $3: the time, $4: state, $5: failure. Ends a running job, and removes its values that may name a person. */
export const endJobSql = statement(
  'end_job',
  `update jobs j set ended_at = $3, state = $4, failure = $5, change = null, filter = null, ids = null
   where j.organization_id = $1 and j.id = $2 and j.ended_at is null returning j.id`,
)

/** $2: job, $3: stack, $4: after this entity, or null, $5: limit. */
export const listRefusalsSql = statement(
  'list_job_refusals',
  `select r.entity_id, r.error, r.message, r.details, (
     select e.external_id from entities e where e.organization_id = $1 and e.stack_id = $3 and e.id = r.entity_id
   ) as external_id
   from job_refusals r
   where r.organization_id = $1 and r.job_id = $2 and ($4::uuid is null or r.entity_id > $4::uuid)
   order by r.entity_id limit $5`,
)

/** $2: id. `last_sequence` is the newest change of the log if the job has changed nothing. */
export const findJobToUndoSql = statement(
  'find_job_to_undo',
  `select j.stack_id, j.actor, j.after_sequence, coalesce(j.last_sequence, h.sequence) as last_sequence, j.undo_sequence
   from jobs j join change_heads h on h.organization_id = $1
   where j.organization_id = $1 and j.id = $2`,
)

/** $2: id, $3: position, $4: the time if the undo is complete, or null. */
export const advanceJobUndoSql = statement(
  'advance_job_undo',
  'update jobs j set undo_sequence = $3, undone_at = $4 where j.organization_id = $1 and j.id = $2',
)

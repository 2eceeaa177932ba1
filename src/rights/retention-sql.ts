import { statement } from '../db/db.ts'

/**
 * $2: stack, $3: the first id that is too new for the retention, $4: created before this time, $5: limit. In order of
 * id.
 */
export const findExpiredSql = statement(
  'find_expired_records',
  `select e.id from entities e
   where e.organization_id = $1 and e.stack_id = $2 and e.id < $3 and e.created_at < $4
   order by e.id limit $5`,
)

/**
 * $1: organizations, $2: the position of each, $3: the time before which changes lose their values, or null. Returns
 * the organizations that have a retention of records, or whose next change is older than $3.
 */
export const findRetentionSql = statement(
  'find_retention',
  `select s.organization_id from stacks s where s.organization_id = any($1::integer[]) and s.retention_days is not null
   union
   select c.organization_id from unnest($1::integer[], $2::bigint[]) as v(organization_id, after)
     join changes c on c.organization_id = v.organization_id + 0 and c.sequence = v.after + 1
   where c.at < $3`,
)

const forgottenJobs = (job: string) =>
  `${job}.organization_id = $1 and ${job}.ended_at is not null and greatest(${job}.last_sequence, ${job}.after_sequence) <= $2`

/**
 * $2: the last change whose values the log has removed. Deletes the refusals of jobs whose changes lost their values.
 */
export const forgetRefusalsSql = statement(
  'forget_job_refusals',
  `delete from job_refusals r
   where r.organization_id = $1 and r.job_id in (select j.id from jobs j where ${forgottenJobs('j')})`,
)

/** Like {@link forgetRefusalsSql}, for the jobs themselves. */
export const forgetJobsSql = statement('forget_jobs', `delete from jobs j where ${forgottenJobs('j')}`)

/**
 * $2: the last change whose values the log has removed. Deletes the imports whose changes lost their values, because
 * they can no longer be undone.
 */
export const forgetImportsSql = statement(
  'forget_imports',
  'delete from imports i where i.organization_id = $1 and greatest(i.last_sequence, i.after_sequence) <= $2',
)

/**
 * $2: after this number, $3: before this time, $4: limit. Removes the values of the next changes of people and records,
 * up to the first newer one. A change keeps the name that it released, because the versions of the next entity with
 * that name continue from it. Returns the last number that was read, the number of changes read, and the number of
 * those that had values.
 */
export const emptyChangesSql = statement(
  'empty_changes',
  `with read as materialized (
     select c.sequence, c.at < $3 as is_old from changes c
     where c.organization_id = $1 and c.sequence > $2 order by c.sequence limit $4
   ), range as materialized (
     select count(*)::integer as count, coalesce(max(r.sequence), $2) as last from read r
     where r.sequence < coalesce((select min(y.sequence) from read y where not y.is_old), 9223372036854775807)
   ), emptied as (
     update changes c set after = '{}', links = null, before = case
       when c.before->>'external_id' is not null then jsonb_set('{"external_id": null}', '{external_id}', c.before->'external_id') end
     from range r
     where c.organization_id = $1 and c.sequence > $2 and c.sequence <= r.last and c.subject = 'entity'
       and (coalesce(c.after, '{}') <> '{}' or coalesce(c.before - 'external_id', '{}') <> '{}' or c.links is not null)
     returning 1
   )
   select r.count, r.last, (select count(*)::integer from emptied) as emptied from range r`,
)

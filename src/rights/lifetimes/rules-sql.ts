import { statement } from '../../db/db.ts'
import { heldPeople } from '../holds/holds-sql.ts'

/** The name of the follower that runs the rules. */
export const rulesFollowerName = 'retention_rules'

/** $2: the day. Returns the rules of the organization, with the numbers of each for the day. */
export const readRulesSql = statement(
  'read_retention_rules',
  `select r.id, r.key, r.segment_id, r.after_days, r.action, r.daily_limit, r.active, r.paused_at, r.created_at, r.updated_at,
     coalesce(d.told, 0) as told, coalesce(d.done, 0) as done
   from retention_rules r left join retention_runs d on d.organization_id = $1 and d.rule_id = r.id and d.day = $2::date
   where r.organization_id = $1 and r.deleted_at is null order by r.id`,
)

/** Returns the next id. The head must be locked. */
export const nextRuleIdSql = statement(
  'next_retention_rule_id',
  'select coalesce(max(r.id), 0) + 1 as id from retention_rules r where r.organization_id = $1',
)

/**
 * $2: id, $3: key, $4: segment, $5: days, $6: action, $7: daily limit, $8: active, $9: when the rule paused itself,
 * $10: created, $11: updated, $12: deleted.
 */
export const storeRuleSql = statement(
  'store_retention_rule',
  `insert into retention_rules (organization_id, id, key, segment_id, after_days, action, daily_limit, active, paused_at, created_at,
     updated_at, deleted_at)
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
   on conflict (organization_id, id) do update set key = excluded.key, segment_id = excluded.segment_id,
     after_days = excluded.after_days, action = excluded.action, daily_limit = excluded.daily_limit, active = excluded.active,
     paused_at = excluded.paused_at, updated_at = excluded.updated_at, deleted_at = excluded.deleted_at`,
)

/** $2: rule, $3: people, or null for all. The rule announces these people again. */
export const deleteNoticesSql = statement(
  'delete_retention_notices',
  `delete from retention_notices n
   where n.organization_id = $1 and n.rule_id = $2 and ($3::uuid[] is null or n.person_id = any($3))`,
)

// $2 is a segment. Stays in it count from $3, the time of the last change of its filter.

/** The start of the stay of a member m in the segment, as far as it counts. */
const since = 'greatest(m.entered_at, $3::timestamptz)'

/** $4: rule, $5: the time. Deletes the notices of people who are held or have left the segment, even for a moment. */
export const deleteStaleNoticesSql = statement(
  'delete_stale_notices',
  `delete from retention_notices n where n.organization_id = $1 and n.rule_id = $4 and (
     n.person_id = any(array(${heldPeople('$5')})) or not exists (
       select from segment_members m
       where m.organization_id = $1 and m.person_id = n.person_id and m.segment_id = $2 and ${since} = n.entered_at
     )
   )`,
)

/** A member m who has stayed since $4 or longer. */
const stays = `m.organization_id = $1 and m.segment_id = $2 and ${since} <= $4::timestamptz`

/**
 * $4: entered before, $5: the time, $6: the maximum number of people to count. Returns the number of people who have
 * stayed that long, of those who are held, and of all people.
 */
export const countStaysSql = statement(
  'count_stays',
  `select count(*) filter (where not m.is_held)::integer as count, count(*) filter (where m.is_held)::integer as held,
     (select count(*)::integer from (
       select from entities e where e.organization_id = $1 and e.stack_id = 0 limit $6
     ) e) as people
   from (
     select m.person_id = any(array(${heldPeople('$5')})) as is_held from segment_members m where ${stays}
   ) m`,
)

/**
 * $4: entered before, $5: the time, $6: rule, $7: days, $8: only people without a notice of the rule, $9: limit.
 * Returns the people who are not held, with the longest stays first.
 */
export const listStaysSql = statement(
  'list_stays',
  `select s.id, e.external_id, s.entered_at, s.entered_at + $7::integer * interval '1 day' as due_at, s.announced_for
   from (
     select m.person_id as id, ${since} as entered_at, n.due_at as announced_for from segment_members m
       left join retention_notices n on n.organization_id = $1 and n.rule_id = $6 and n.person_id = m.person_id
     where ${stays} and m.person_id <> all(array(${heldPeople('$5')})) and not ($8::boolean and n.person_id is not null)
     order by ${since}, m.person_id limit $9
   ) s left join entities e on e.organization_id = $1 and e.stack_id = 0 and e.id = s.id
   order by s.entered_at, s.id`,
)

/**
 * $4: rule, $5: the time, $6: people, or null for all, $7: limit. Returns the people who are due and have not left the
 * segment since their notice.
 */
export const findDueSql = statement(
  'find_due',
  `select n.person_id as id from retention_notices n join segment_members m
     on m.organization_id = $1 and m.person_id = n.person_id and m.segment_id = $2 and ${since} = n.entered_at
   where n.organization_id = $1 and n.rule_id = $4 and n.due_at <= $5 and ($6::uuid[] is null or n.person_id = any($6))
   order by n.due_at, n.person_id limit $7`,
)

/**
 * $4: rule, $5: people, $6: days, $7: the earliest due time. Returns the people who are members, and the due time of
 * each.
 */
export const insertNoticesSql = statement(
  'insert_retention_notices',
  `insert into retention_notices (organization_id, rule_id, person_id, entered_at, due_at)
   select m.organization_id, $4, m.person_id, ${since}, greatest(${since} + $6::integer * interval '1 day', $7::timestamptz)
   from segment_members m
   where m.organization_id = $1 and m.segment_id = $2 and m.person_id = any($5::uuid[])
   on conflict do nothing returning person_id, due_at`,
)

/** $2: rule, $3: the day, $4: announced, $5: erased or deleted, $6: the time. Adds to the numbers of the day. */
export const countRunSql = statement(
  'count_retention_run',
  `insert into retention_runs (organization_id, rule_id, day, told, done, updated_at) values ($1, $2, $3::date, $4, $5, $6)
   on conflict (organization_id, rule_id, day) do update set told = retention_runs.told + excluded.told,
     done = retention_runs.done + excluded.done, updated_at = excluded.updated_at, logged = false`,
)

/** Returns the numbers that have not been logged yet, and marks them as logged. */
export const logRunsSql = statement(
  'log_retention_runs',
  `update retention_runs d set logged = true from retention_rules r
   where d.organization_id = $1 and not d.logged and r.organization_id = $1 and r.id = d.rule_id
   returning d.rule_id, d.day::text as day, d.told, d.done, r.action`,
)

/** $2: rule. Returns the runs of the last year, newest first. */
export const listRunsSql = statement(
  'list_retention_runs',
  `select d.day::text as day, d.told, d.done, d.updated_at from retention_runs d
   where d.organization_id = $1 and d.rule_id = $2 order by d.day desc limit 366`,
)

import { statement } from '../../db/db.ts'
import { heldPeople } from '../holds/holds-sql.ts'

/** The name of the follower that runs the rules. */
export const rulesFollowerName = 'retention_rules'

const columns = `r.id, r.key, r.segment_id, r.after_days, r.action, r.daily_limit, r.active, r.paused_reason, r.paused_at,
     r.filter, r.counts_from, r.created_at, r.updated_at`

/** $2: the day. The rules of the organization, with what each has done on the day. */
export const listRulesSql = statement(
  'list_retention_rules',
  `select ${columns}, coalesce(d.told, 0) as told, coalesce(d.done, 0) as done
   from retention_rules r left join retention_runs d on d.organization_id = $1 and d.rule_id = r.id and d.day = $2::date
   where r.organization_id = $1 and r.deleted_at is null order by r.id`,
)

/** $2: id, $3: the day. As {@link listRulesSql}, one of them. */
export const readRuleSql = statement(
  'read_retention_rule',
  `select ${columns}, coalesce(d.told, 0) as told, coalesce(d.done, 0) as done
   from retention_rules r left join retention_runs d on d.organization_id = $1 and d.rule_id = r.id and d.day = $3::date
   where r.organization_id = $1 and r.id = $2 and r.deleted_at is null`,
)

/** The next id, and the keys in use. The head is locked. */
export const readRuleKeysSql = statement(
  'read_retention_rule_keys',
  `select coalesce(max(r.id), 0) + 1 as next_id, coalesce(array_agg(r.key) filter (where r.deleted_at is null), '{}') as keys
   from retention_rules r where r.organization_id = $1`,
)

/** $2: the name of the follower. It begins at the head: before the first rule, no change concerns it. */
export const insertRulesPositionSql = statement(
  'insert_retention_rules_position',
  `insert into followers (organization_id, name, sequence)
   select h.organization_id, $2, h.sequence from change_heads h where h.organization_id = $1
   on conflict do nothing`,
)

/**
 * $2: id, $3: key, $4: segment, $5: days, $6: action, $7: daily limit, $8: active, $9: filter, $10: the time before which nothing counts,
 * $11: the time.
 */
export const insertRuleSql = statement(
  'insert_retention_rule',
  `insert into retention_rules
     (organization_id, id, key, segment_id, after_days, action, daily_limit, active, filter, counts_from, created_at, updated_at)
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11)`,
)

/** As {@link insertRuleSql}. A rule that is turned on is no longer one that has stopped itself. */
export const updateRuleSql = statement(
  'update_retention_rule',
  `update retention_rules set key = $3, segment_id = $4, after_days = $5, action = $6, daily_limit = $7, active = $8, filter = $9,
     counts_from = $10, updated_at = $11, paused_reason = case when $8 then null else paused_reason end,
     paused_at = case when $8 then null else paused_at end
   where organization_id = $1 and id = $2`,
)

/** $2: id, $3: why, $4: the time. */
export const pauseRuleSql = statement(
  'pause_retention_rule',
  `update retention_rules set active = false, paused_reason = $3, paused_at = $4, updated_at = $4
   where organization_id = $1 and id = $2`,
)

/** $2: id, $3: the time. */
export const deleteRuleSql = statement(
  'delete_retention_rule',
  'update retention_rules set deleted_at = $3, active = false where organization_id = $1 and id = $2',
)

/** $2: rule. Nobody is told of any more. */
export const deleteNoticesSql = statement(
  'delete_retention_notices',
  'delete from retention_notices where organization_id = $1 and rule_id = $2',
)

/**
 * $2: rule, $3: segment, $4: the time. Forgets the notices of those who have left the segment since, even for a moment, or who are held: they
 * are told of again.
 */
export const deleteStaleNoticesSql = statement(
  'delete_stale_notices',
  `delete from retention_notices n where n.organization_id = $1 and n.rule_id = $2 and (
     n.person_id = any(array(${heldPeople('$4')})) or not exists (
       select from segment_members m
       where m.organization_id = $1 and m.person_id = n.person_id and m.segment_id = $3 and m.entered_at = n.entered_at
     )
   )`,
)

/** A member m of the segment $2 who has been in it since before $4, of the time that counts from $3. */
const stays = 'm.organization_id = $1 and m.segment_id = $2 and m.entered_at <= $4 and $3::timestamptz <= $4'

/**
 * $2: segment, $3: the time before which nothing counts, $4: entered before, $5: rule, $6: the time, $7: limit. The people to tell of, who have
 * been in the segment for the longest time first.
 */
export const findUntoldSql = statement(
  'find_untold',
  `select m.person_id from segment_members m
   where ${stays} and m.person_id <> all(array(${heldPeople('$6')})) and not exists (
     select from retention_notices n where n.organization_id = $1 and n.rule_id = $5 and n.person_id = m.person_id
   )
   order by m.entered_at, m.person_id limit $7`,
)

/** $2: rule, $3: the time, $4: limit. The people who are due, the first ones first. */
export const findDueSql = statement(
  'find_due',
  `select n.person_id from retention_notices n
   where n.organization_id = $1 and n.rule_id = $2 and n.due_at <= $3 order by n.due_at, n.person_id limit $4`,
)

/** $2: limit. The number of people, up to the limit. */
export const countPeopleSql = statement(
  'count_people_up_to',
  `select count(*)::integer as count from (
     select from entities e where e.organization_id = $1 and e.stack_id = 0 limit $2
   ) e`,
)

/** $2: rule, $3: segment, $4: people, $5: days, $6: no due time before it. Returns the people who are members, and when each is due. */
export const insertNoticesSql = statement(
  'insert_retention_notices',
  `insert into retention_notices (organization_id, rule_id, person_id, entered_at, due_at)
   select m.organization_id, $2, m.person_id, m.entered_at,
     greatest(m.entered_at + $5::integer * interval '1 day', $6::timestamptz)
   from segment_members m
   where m.organization_id = $1 and m.segment_id = $3 and m.person_id = any($4::uuid[])
   on conflict do nothing returning person_id, due_at`,
)

/** $2: rule, $3: segment, $4: people, $5: the time. Those who are due and have stayed in the segment since they were told of. */
export const readStillDueSql = statement(
  'read_still_due',
  `select n.person_id from retention_notices n join segment_members m
     on m.organization_id = $1 and m.person_id = n.person_id and m.segment_id = $3 and m.entered_at = n.entered_at
   where n.organization_id = $1 and n.rule_id = $2 and n.person_id = any($4::uuid[]) and n.due_at <= $5`,
)

/** $2: rule, $3: people. */
export const deleteNoticesOfSql = statement(
  'delete_retention_notices_of',
  'delete from retention_notices where organization_id = $1 and rule_id = $2 and person_id = any($3::uuid[])',
)

/** $2: rule, $3: the day, $4: told, $5: erased or deleted, $6: the time. Adds to the numbers of the day. */
export const countRunSql = statement(
  'count_retention_run',
  `insert into retention_runs (organization_id, rule_id, day, told, done, updated_at) values ($1, $2, $3::date, $4, $5, $6)
   on conflict (organization_id, rule_id, day) do update set told = retention_runs.told + excluded.told,
     done = retention_runs.done + excluded.done, updated_at = excluded.updated_at, logged = false`,
)

/** The numbers that the log does not tell yet. */
export const readUnloggedRunsSql = statement(
  'read_unlogged_runs',
  `select d.rule_id, d.day::text as day, d.told, d.done, r.action from retention_runs d
     join retention_rules r on r.organization_id = $1 and r.id = d.rule_id
   where d.organization_id = $1 and not d.logged order by d.rule_id, d.day`,
)

export const markRunsLoggedSql = statement(
  'mark_runs_logged',
  'update retention_runs set logged = true where organization_id = $1 and not logged',
)

/** $2: rule, $3: before this day, $4: limit. Newest first. */
export const listRunsSql = statement(
  'list_retention_runs',
  `select d.day::text as day, d.told, d.done, d.updated_at from retention_runs d
   where d.organization_id = $1 and d.rule_id = $2 and d.day < $3::date order by d.day desc limit $4`,
)

/** $2: segment. Whether its members are computed. */
export const isComputedSql = statement(
  'is_segment_computed',
  'select coalesce(bool_or(g.since is not null), false) as is_computed from segments g where g.organization_id = $1 and g.id = $2',
)

/** $2: segment, $3 and $4: as of {@link findUntoldSql}, $5: the time. The people who have been in the segment for so long, and those who are held. */
export const countStaysSql = statement(
  'count_stays',
  `select count(*) filter (where not m.is_held)::integer as count, count(*) filter (where m.is_held)::integer as held
   from (
     select m.person_id = any(array(${heldPeople('$5')})) as is_held from segment_members m where ${stays}
   ) m`,
)

/** As {@link countStaysSql}, a page of them. $6: rule, $7: days, $8: after this person, $9: limit. */
export const listStaysSql = statement(
  'list_stays',
  `select m.person_id as id, e.external_id, greatest(m.entered_at, $3::timestamptz) as entered_at,
     greatest(m.entered_at, $3::timestamptz) + $7::integer * interval '1 day' as due_at, n.due_at as announced_for
   from segment_members m
     left join entities e on e.organization_id = $1 and e.stack_id = 0 and e.id = m.person_id
     left join retention_notices n on n.organization_id = $1 and n.rule_id = $6 and n.person_id = m.person_id
       and n.entered_at = m.entered_at
   where ${stays} and m.person_id <> all(array(${heldPeople('$5')})) and m.person_id > $8
   order by m.person_id limit $9`,
)

/**
 * $1: organizations, $2: the position of each. Those where the log has a change of a segment or of a rule since.
 */
export const findRuleNewsSql = statement(
  'find_retention_rule_news',
  `select v.organization_id + 0 as organization_id from unnest($1::integer[], $2::bigint[]) as v(organization_id, after)
   where exists (
     select from changes c
     where c.organization_id = v.organization_id + 0 and c.entity_id is null and c.sequence > v.after
       and c.subject in ('segment', 'retention_rule')
   )`,
)

/** The rules of all organizations that have stopped themselves. */
export const listPausedRulesSql = statement(
  'list_paused_retention_rules',
  `select o.key as organization, r.id, r.key, r.paused_reason, coalesce(r.paused_at, r.updated_at) as paused_at from retention_rules r
     join organizations o on o.id = r.organization_id
   where r.paused_reason is not null and r.deleted_at is null order by o.key, r.id limit 100`,
)

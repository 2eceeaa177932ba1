import { survivorOf } from '../changes/people-sql.ts'
import { statement } from '../db/db.ts'

export const followerName = 'webhooks'

const columns = `w.id, w.url, w.events, w.stacks, w.keys, w.description, w.payload, w.active, w.links,
     array(select h.name from jsonb_object_keys(w.headers) as h(name) order by h.name collate "C") as headers, w.disabled_reason, w.disabled_at,
     w.failing_since, w.last_success_at, w.created_at, w.updated_at`
const position = `join followers f on f.organization_id = $1 and f.name = '${followerName}' and f.id = w.id
     join change_heads h on h.organization_id = $1`

/** $2: id, or null for all. Returns the webhooks of an organization with their positions in the change log. */
export const readWebhooksSql = statement(
  'read_webhooks',
  `select ${columns}, f.sequence as position, h.sequence as head from webhooks w ${position}
   where w.organization_id = $1 and w.deleted_at is null and ($2::integer is null or w.id = $2) order by w.id`,
)

/**
 * $2: id. Returns the data for sending, including the secrets, the values of headers, the requested replay, and the
 * name of the numbering.
 */
export const readSendingSql = statement(
  'read_webhook_sending',
  `select ${columns}, w.secrets, w.headers as request_headers, w.replay_after, w.replay_until, h.log_id, h.sequence as head,
     (select max(x.id) from erasures x where x.organization_id = $1) as erasure
   from webhooks w join change_heads h on h.organization_id = $1
   where w.organization_id = $1 and w.deleted_at is null and w.id = $2`,
)

/**
 * $2: id. Locks the position, which is always locked before the webhook. The follower stores nothing while the lock is
 * held.
 */
export const lockPositionSql = statement(
  'lock_webhook_position',
  `select f.sequence from followers f where f.organization_id = $1 and f.name = '${followerName}' and f.id = $2 for update`,
)

/**
 * Returns the highest id of the organization, including deleted webhooks, and the number of webhooks. The head must be
 * locked.
 */
export const countWebhooksSql = statement(
  'count_webhooks',
  `select coalesce(max(w.id), 0) as last_id, count(*) filter (where w.deleted_at is null)::integer as count
   from webhooks w where w.organization_id = $1`,
)

/**
 * $2: id, $3: url, $4: events, $5: stacks, $6: keys, $7: description, $8: payload, $9: active, $10: links, $11:
 * secrets, $12: the time, $13: headers.
 */
export const insertWebhookSql = statement(
  'insert_webhook',
  `insert into webhooks (organization_id, id, url, events, stacks, keys, description, payload, active, links, secrets, headers, created_at,
     updated_at)
   values ($1, $2, $3, $4::jsonb, $5::jsonb, $6::jsonb, $7, $8, $9, $10, $11::jsonb, $13::jsonb, $12, $12)`,
)

/** $2: id, $3: whether it is paused. The position is the head, so the next change is the first to send. */
export const insertPositionSql = statement(
  'insert_webhook_position',
  `insert into followers (organization_id, name, id, sequence, paused)
   select h.organization_id, '${followerName}', $2, h.sequence, $3 from change_heads h where h.organization_id = $1`,
)

/**
 * $2: id, $3: url, $4: events, $5: stacks, $6: keys, $7: description, $8: payload, $9: active, $10: links, $11: the
 * time. Activating a webhook clears its disablement and the start of its failures.
 */
export const updateWebhookSql = statement(
  'update_webhook',
  `update webhooks set url = $3, events = $4::jsonb, stacks = $5::jsonb, keys = $6::jsonb, description = $7, payload = $8,
     active = $9, links = $10, updated_at = $11,
     disabled_reason = case when $9 then null else disabled_reason end,
     disabled_at = case when $9 then null else disabled_at end,
     failing_since = case when active then failing_since end
   where organization_id = $1 and id = $2`,
)

/** $2: id, $3: whether it is paused, $4: the time. The follower of an active webhook looks for due deliveries. */
export const setPausedSql = statement(
  'set_webhook_paused',
  `update followers set paused = $3, not_before = null, wake_at = case when $3 then wake_at else $4::timestamptz end
   where organization_id = $1 and name = '${followerName}' and id = $2`,
)

/** $2: id, $3: reason, $4: the time. Returns no row for an inactive webhook. */
export const disableWebhookSql = statement(
  'disable_webhook',
  `update webhooks set active = false, disabled_reason = $3, disabled_at = $4::timestamptz, updated_at = $4::timestamptz
   where organization_id = $1 and id = $2 and active returning id`,
)

/** $2: id, $3: secrets, $4: the time. */
export const storeSecretsSql = statement(
  'store_webhook_secrets',
  'update webhooks set secrets = $3::jsonb, updated_at = $4 where organization_id = $1 and id = $2',
)

/** $2: id, $3: headers. A header with null is removed. */
export const storeHeadersSql = statement(
  'store_webhook_headers',
  'update webhooks set headers = jsonb_strip_nulls(headers || $3::jsonb) where organization_id = $1 and id = $2',
)

/** $2: id. */
export const readSecretsSql = statement(
  'read_webhook_secrets',
  'select w.secrets from webhooks w where w.organization_id = $1 and w.id = $2',
)

/** $2: id, $3: the time. */
export const deleteWebhookSql = statement(
  'delete_webhook',
  `update webhooks set deleted_at = $3, active = false, url = '', secrets = '[]', headers = '{}', tests = '[]'
   where organization_id = $1 and id = $2`,
)

/** $2: id. */
export const deletePositionSql = statement(
  'delete_webhook_position',
  `delete from followers where organization_id = $1 and name = '${followerName}' and id = $2`,
)

/** $2: id, $3: after this number, $4: up to this number. A replay that still runs is extended to cover both ranges. */
export const requestReplaySql = statement(
  'request_webhook_replay',
  `update webhooks set replay_after = least(replay_after, $3), replay_until = greatest(replay_until, $4)
   where organization_id = $1 and id = $2`,
)

/** $2: id, $3: the number that the replay has reached. */
export const advanceReplaySql = statement(
  'advance_webhook_replay',
  `update webhooks set replay_after = case when replay_until > $3 then $3::bigint end,
     replay_until = case when replay_until > $3 then replay_until end
   where organization_id = $1 and id = $2`,
)

const subject = `case when c.subject <> 'entity' then c.subject when c.stack_id = 0 then 'person' else 'record' end`

/**
 * $2: after this number, $3: up to this number, $4: subjects with their operations, as `person.update`, $5: operations
 * of consent events, $6: keys of stacks or null, $7: fields or null, $8: keys of attributes. An erasure matches every
 * field. Returns the matching changes in order.
 */
export const matchChangesSql = statement(
  'match_changes',
  `select c.sequence, coalesce(c.entity_id::text, c.subject || ' ' || c.definition_id) as entity, ${subject} as subject, c.operation
   from changes c
   where c.organization_id = $1 and c.sequence > $2 and c.sequence <= $3
     and (${subject} || '.' || c.operation = any($4::text[])
       or (c.stack_id = 0 and c.operation = any($5::text[]) and (c.before ? 'consents' or c.after ? 'consents')))
     and ($6::text[] is null or c.stack_id is null or c.stack_id = 0
       or c.stack_id in (select s.id from stacks s where s.organization_id = $1 and s.key = any($6)))
     and ($7::text[] is null or c.operation = 'erase' or c.before ?| $7 or c.after ?| $7
       or c.before->'attribute_values' ?| $8::text[] or c.after->'attribute_values' ?| $8 or exists (
         select from jsonb_object_keys(c.links) as l(id) join attributes a on a.organization_id = $1 and a.id = l.id::integer
         where a.key = any($8)
       ))
   order by c.sequence`,
)

/**
 * $2: webhook, $3: [{sequence, entity, type}], $4: the time. A delivery that has ended starts again.
 * {@link promoteDeliveriesSql} sets the time of the first one of each entity.
 */
export const insertDeliveriesSql = statement(
  'insert_webhook_deliveries',
  `insert into webhook_deliveries (organization_id, webhook_id, sequence, entity, type, status, created_at)
   select w.organization_id, w.id, v.sequence, v.entity, v.type, 'waiting', $4
   from webhooks w cross join jsonb_to_recordset($3::text::jsonb) as v(sequence bigint, entity text, type text)
   where w.organization_id = $1 and w.id = $2
   on conflict (organization_id, webhook_id, sequence) do update set status = 'waiting', attempts = 0, created_at = excluded.created_at
     where webhook_deliveries.status <> 'waiting'`,
)

// Without statistics of the table, PostgreSQL would join its updates with every delivery of the webhook. With an array
// of numbers, it looks up each one. With 20,000 deliveries, a batch took 15 to 50 ms, and takes 1 ms now.

/**
 * The first waiting deliveries of the entities $3. The condition has the expression of the index, see
 * migrations/0008_webhooks.sql.
 */
const firstOfEntities = `array(
       select first.sequence from unnest($3::text[]) as v(entity) cross join lateral (
         select d.sequence from webhook_deliveries d
         where d.organization_id = $1 and d.webhook_id::text || ' ' || d.entity = $2::integer::text || ' ' || v.entity
           and d.status = 'waiting'
         order by d.sequence limit 1
       ) first
     )`

/** $2: webhook, $3: entities, $4: the time. Makes the first waiting delivery of each entity due. */
export const promoteDeliveriesSql = statement(
  'promote_webhook_deliveries',
  `update webhook_deliveries d set next_attempt_at = $4
   where d.organization_id = $1 and d.webhook_id = $2 and d.sequence = any(${firstOfEntities}) and d.next_attempt_at is null`,
)

/** $2: webhook, $3: entities. Runs before earlier deliveries of the entities are inserted. */
export const demoteDeliveriesSql = statement(
  'demote_webhook_deliveries',
  `update webhook_deliveries d set next_attempt_at = null
   where d.organization_id = $1 and d.webhook_id = $2 and d.sequence = any(${firstOfEntities})`,
)

/**
 * $2: webhook, $3: the time, $4: entities with deliveries under way, $5: the maximum number of entities, $6: the
 * maximum number of deliveries of each. Returns the due deliveries, each followed by those that wait for it.
 */
export const readDueSql = statement(
  'read_due_deliveries',
  `select line.* from (
     select d.sequence, d.entity, d.next_attempt_at from webhook_deliveries d
     where d.organization_id = $1 and d.webhook_id = $2 and d.next_attempt_at <= $3 and d.entity <> all($4::text[])
     order by d.next_attempt_at, d.sequence limit $5
   ) due cross join lateral (
     select d.sequence, d.entity, d.type, d.attempts from webhook_deliveries d
     where d.organization_id = $1 and d.webhook_id::text || ' ' || d.entity = $2::integer::text || ' ' || due.entity
       and d.status = 'waiting'
     order by d.sequence limit $6
   ) line
   order by due.next_attempt_at, due.sequence, line.sequence`,
)

/**
 * $2: people, $3: consent type and $4: channel of a grant of each. Returns the position of each grant that still waits
 * for its confirmation. A merged person leads to the survivor. People without an address are left out.
 */
export const readPendingGrantsSql = statement(
  'read_pending_grants',
  `select g.position::integer, e.id as person_id, a.address, case g.channel when 'email' then e.email_key else e.mobile_key end as key
   from unnest($2::uuid[], $3::integer[], $4::text[]) with ordinality as g(person_id, consent_type_id, channel, position)
     cross join lateral (
       select e.* from entities e
       where e.organization_id = $1 and e.stack_id = 0 and e.id = coalesce((${survivorOf('g.person_id')}), g.person_id) offset 0
     ) e
     cross join lateral (select case g.channel when 'email' then e.email else e.mobile_key end as address) a
   where e.answers->concat(g.consent_type_id, ':', g.channel)->>'pending' = 'true' and a.address is not null`,
)

/** $2: webhook. Returns the time of the next attempt. */
export const readNextAttemptSql = statement(
  'read_next_attempt',
  `select min(d.next_attempt_at) as at from webhook_deliveries d
   where d.organization_id = $1 and d.webhook_id = $2 and d.next_attempt_at is not null`,
)

/**
 * $2: webhook, $3: {sequence:
 * {status, attempts, next_attempt_at, response_status, duration_ms, response, error, erasure}}, $4: the time, $5: the
 * numbers of $3. A response is not kept if a person was erased since the request was made, because it may repeat the
 * request. The subquery parses $3 once. A generic plan would otherwise parse it for each row: 360 ms instead of 6 for
 * 256 results.
 */
export const recordAttemptsSql = statement(
  'record_webhook_attempts',
  `update webhook_deliveries d set last_attempt_at = $4,
     (status, attempts, next_attempt_at, response_status, duration_ms, response, error) = (
       select v.status, v.attempts, v.next_attempt_at, v.response_status, v.duration_ms,
         case when v.is_kept then v.response end, case when v.is_kept then v.error end
       from (
         select r.*, r.erasure is not distinct from (select max(x.id) from erasures x where x.organization_id = $1) as is_kept
         from jsonb_to_record((select $3::text::jsonb)->(d.sequence::text)) as r(status text, attempts integer, next_attempt_at timestamptz,
           response_status integer, duration_ms integer, response text, error text, erasure integer)
       ) v
     )
   where d.organization_id = $1 and d.webhook_id = $2 and d.sequence = any($5::bigint[])`,
)

/** $2: webhook, $3: failing since, $4: last success, or null to keep it. */
export const recordHealthSql = statement(
  'record_webhook_health',
  `update webhooks set failing_since = $3::timestamptz, last_success_at = coalesce($4::timestamptz, last_success_at)
   where organization_id = $1 and id = $2`,
)

/** The state of a delivery d. Only the first waiting delivery of an entity has a time for its next attempt. */
const deliveryState = `case when d.status <> 'waiting' then d.status when d.next_attempt_at is null then 'blocked'
       when d.attempts > 0 then 'failing' else 'due' end`

/**
 * The columns of a delivery d of a webhook w at the time `at`. The stored time of a due delivery is the time when it
 * became due, so its next attempt is now. An inactive webhook has no next attempts.
 */
const deliveryColumns = (
  at: string,
) => `d.sequence, d.type, d.status, ${deliveryState} as state, d.attempts, d.created_at,
     case when w.active and d.next_attempt_at is not null then greatest(d.next_attempt_at, ${at}) end as next_attempt_at, d.last_attempt_at, d.response_status,
     d.duration_ms, d.response, d.error, h.log_id || ':' || d.sequence as message_id`

/** $2: webhook, $3: before this number, $4: limit, $5: status or null, $6: the time, $7: state or null. Newest first. */
export const listDeliveriesSql = statement(
  'list_webhook_deliveries',
  `select ${deliveryColumns('$6')}
   from webhooks w join webhook_deliveries d on d.organization_id = $1 and d.webhook_id = w.id
     join change_heads h on h.organization_id = $1
   where w.organization_id = $1 and w.id = $2 and d.sequence < $3 and ($5::text is null or d.status = $5)
     and ($7::text is null or ${deliveryState} = $7)
   order by d.sequence desc limit $4`,
)

/**
 * The waiting deliveries d of the webhook w. The condition has the expression of the index, see
 * migrations/0008_webhooks.sql. With the order of the index, PostgreSQL uses it even without statistics.
 */
const waitingOfWebhook = `d.organization_id::text || ' ' || d.webhook_id::text = $1::integer::text || ' ' || w.id::text
         and d.organization_id = $1 and d.status = 'waiting'`

/** The maximum number of waiting deliveries of a webhook that are counted. */
export const maxCounted = 100_000

/**
 * $2: webhooks, $3: the time. Returns the backlog of each webhook: the number of waiting deliveries, the time of the
 * oldest, and the delivery that blocks the others, or nulls. It is the oldest delivery whose last attempt failed or, if
 * none failed, the oldest one.
 */
export const readBacklogsSql = statement(
  'read_webhook_backlogs',
  `select w.id as webhook_id, waiting.deliveries, oldest.created_at as oldest_at, blocking.*
   from webhooks w cross join lateral (
     select count(*)::integer as deliveries from (
       select from webhook_deliveries d where ${waitingOfWebhook} order by d.sequence limit ${maxCounted}
     ) counted
   ) waiting left join lateral (
     select d.sequence, d.created_at from webhook_deliveries d where ${waitingOfWebhook} order by d.sequence limit 1
   ) oldest on true left join lateral (
     select d.sequence from webhook_deliveries d
     where d.organization_id = $1 and d.webhook_id = w.id and d.status = 'waiting' and d.attempts > 0
     order by d.sequence limit 1
   ) failing on true left join lateral (
     select ${deliveryColumns('$3')} from webhook_deliveries d join change_heads h on h.organization_id = $1
     where d.organization_id = $1 and d.webhook_id = w.id and d.sequence = coalesce(failing.sequence, oldest.sequence)
     limit 1
   ) blocking on true
   where w.organization_id = $1 and w.id = any($2::integer[])`,
)

/** $2: webhook, $3: a test event, $4: the number of test events to keep. */
export const recordTestSql = statement(
  'record_webhook_test',
  `update webhooks set tests = (
     select jsonb_agg(t.test order by t.position)
     from jsonb_array_elements(jsonb_build_array($3::text::jsonb) || tests) with ordinality as t(test, position)
     where t.position <= $4
   ) where organization_id = $1 and id = $2 and deleted_at is null`,
)

/** $2: webhook. Returns its last test events, newest first. */
export const readTestsSql = statement(
  'read_webhook_tests',
  'select w.tests from webhooks w where w.organization_id = $1 and w.id = $2',
)

export const listOrganizationsWithWebhooksSql = statement(
  'list_organizations_with_webhooks',
  'select distinct organization_id from webhooks',
)

/** $2: ended before this time, $3: limit. Deletes old deliveries, and those of deleted webhooks. */
export const forgetDeliveriesSql = statement(
  'forget_webhook_deliveries',
  `with old as materialized (
     select d.webhook_id, d.sequence from webhooks w cross join lateral (
       (select d.webhook_id, d.sequence from webhook_deliveries d
        where w.deleted_at is null and d.organization_id = $1 and d.webhook_id = w.id and d.status <> 'waiting'
          and d.last_attempt_at < $2 limit $3)
       union all
       (select d.webhook_id, d.sequence from webhook_deliveries d
        where w.deleted_at is not null and d.organization_id = $1 and d.webhook_id = w.id limit $3)
     ) d
     where w.organization_id = $1 limit $3
   ), gone as (
     delete from webhook_deliveries d using old
     where d.organization_id = $1 and d.webhook_id = old.webhook_id and d.sequence = old.sequence
     returning 1
   ) select count(*)::integer as count from gone`,
)

/**
 * $1: the time. Returns the number of webhooks of all organizations in each state. For the active ones, it returns the
 * number of waiting deliveries, the number of those that wait for a retry, and the age of the oldest in seconds.
 */
export const readStatesSql = statement(
  'read_webhook_states',
  `select w.*, d.*, r.* from (
     select count(*) filter (where active and failing_since is null)::integer as active,
       count(*) filter (where active and failing_since is not null)::integer as failing,
       count(*) filter (where disabled_reason is not null)::integer as disabled
     from webhooks where deleted_at is null
   ) w cross join (
     select count(*)::integer as waiting,
       greatest(0, coalesce(extract(epoch from $1::timestamptz - min(d.created_at)), 0))::float8 as seconds
     from webhooks a join webhook_deliveries d on d.organization_id = a.organization_id and d.webhook_id = a.id
     where a.active and d.status = 'waiting'
   ) d cross join (
     select count(*)::integer as retries
     from webhooks a join webhook_deliveries d on d.organization_id = a.organization_id and d.webhook_id = a.id
     where a.active and d.status = 'waiting' and d.attempts > 0
   ) r`,
)

export const listFailingSql = statement(
  'list_failing_webhooks',
  `select o.key as organization, w.id, w.url, w.disabled_reason, w.disabled_at, w.failing_since
   from webhooks w join organizations o on o.id = w.organization_id
   where w.deleted_at is null and (w.failing_since is not null and w.active or w.disabled_reason is not null)
   order by o.key, w.id limit 100`,
)

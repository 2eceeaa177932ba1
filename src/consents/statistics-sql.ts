import { statement } from '../db/db.ts'
import { type Channel, channels, channelTable } from '../values/channels.ts'
import { answersOf } from './recorded-answers-sql.ts'

/** An answer a to one of the requested questions that came into force when it was recorded. */
const isCounted = `not a.superseded and ($3::integer is null or a.consent_type_id = $3) and ($4::text is null or a.channel = $4)`

const question = 'a.consent_type_id, a.channel'

/** The kind of an answer a while it is in force. */
const kind = `case when a.pending then 'pending' when a.state then 'granted' else 'refused' end`

const positions = channels.map((channel, position) => `when '${channel}' then ${position}`).join(' ')
const addressOf = (channel: Channel) => `e.${channelTable[channel].key}`

/** The people whose address on a channel is currently suppressed, with their answers. */
const suppressedOn = (channel: Channel) =>
  `select '${channel}' as channel, e.answers from deliverability d join entities e
       on e.organization_id = $1 and e.stack_id = 0 and ${addressOf(channel)} = d.address
     where d.organization_id = $1 and d.channel = '${channel}' and d.suppressed_until > now()`

/** People whose address has a refusal, and whether they have granted the purpose otherwise. */
const refusedOn = (channel: Channel) =>
  `select w.consent_type_id, w.channel,
       coalesce((e.answers->(w.consent_type_id || ':${channel}')->>'state')::boolean, t.default_state) as is_granted
     from address_answers w join consent_types t on t.organization_id = $1 and t.id = w.consent_type_id
       join entities e on e.organization_id = $1 and e.stack_id = 0 and ${addressOf(channel)} = w.address
     where w.organization_id = $1 and w.channel = '${channel}' and not w.state
       and ($3 is null or w.consent_type_id = $3) and ($4 is null or w.channel = $4)
       and not exists (
         select from deliverability d where d.organization_id = $1 and d.channel = w.channel and d.address = w.address
           and d.suppressed_until > now()
       )`

/**
 * The number of an interval and of a question. PostgreSQL groups a million rows by one integer in half the time that
 * texts take.
 */
const groupOf = (at: string) =>
  `(a.consent_type_id * ${channels.length} + case a.channel ${positions} end) * 1024 + width_bucket(${at}, $2::timestamptz[])`

/** The changes of the counts when one answer replaces another. */
const deltas = (kind: string, previous: string) =>
  ['granted', 'refused', 'pending']
    .map(
      name =>
        `coalesce((${kind} = '${name}')::integer, 0) - coalesce((${previous} = '${name}')::integer, 0) as ${name}`,
    )
    .join(', ')

/**
 * The changes of the counts by the answers that a condition selects. Each answer has the state before it. That state
 * does not show whether a refusal was a pending grant, so the second part finds the answer after each pending one.
 */
const ownSteps = (condition: string) =>
  `select ${groupOf('a.at')} as position, (a.state and not a.pending)::integer - coalesce(a.previous_state, false)::integer as granted,
     (not a.state and not a.pending)::integer - coalesce(not a.previous_state, false)::integer as refused, a.pending::integer as pending
   from consent_history a where a.organization_id = $1 and ${condition} and ${isCounted}
   union all
   select ${groupOf('n.at')}, 0, 1, -1
   from consent_history a cross join lateral (
     select n.at from consent_history n
     where n.organization_id = $1 and n.person_id = a.person_id and n.version > a.version and n.consent_type_id = a.consent_type_id
       and n.channel = a.channel and not n.superseded
     order by n.version limit 1
   ) n
   where a.organization_id = $1 and ${condition} and a.pending and ${isCounted}`

/** The answers of a person in force before the version of a change d. */
const answersBefore = `select distinct on (${question}) ${question}, ${kind} as kind from consent_history a
     where a.organization_id = $1 and a.person_id = d.entity_id and a.version < d.version and ${isCounted}
     order by ${question}, a.version desc`

/**
 * For a person m.id who took part in a merge: the answer in force to each question after each change. Its kind is null
 * if there is none, or while the person does not exist.
 */
const standingAnswers = `select distinct on (q.consent_type_id, q.channel, v.version) q.consent_type_id, q.channel, v.version, v.at,
       case when v.last_operation not in ('delete', 'merge', 'erase') then d.kind end as kind
     from (
         select c.version, c.at, first_value(c.operation) over (partition by c.presence order by c.version) as last_operation
         from (
           select c.version, c.at, c.operation, count(*) filter (where c.operation <> 'update') over (order by c.version) as presence
           from changes c where c.organization_id = $1 and c.entity_id = m.id
         ) c
       ) v
       cross join (select distinct ${question} from (${answersOf('m.id')}) a where ${isCounted}) q
       left join lateral (
         select ${question}, a.since, a.until, ${kind} as kind from (${answersOf('m.id')}) a where ${isCounted}
       ) d on d.consent_type_id = q.consent_type_id and d.channel = q.channel
         and d.since <= v.version and (d.until is null or d.until > v.version)
     order by q.consent_type_id, q.channel, v.version, d.since desc nulls last`

/**
 * $2: the ends of the intervals, ascending, $3: consent type or null for all, $4: channel or null for all. Returns one
 * row, of one snapshot. `steps` has for each question and interval how many answers of each kind came into force, less
 * those that ended. An answer ends with the next one to its question, and with its person. First, all answers count as
 * if no person had ever left. Then deletions subtract the answers in force, and restorations add them again. People who
 * took part in a merge are subtracted again, and counted from their changes. So a million rows are read once and not
 * joined, no matter how many rows PostgreSQL expects.
 */
export const readConsentStatisticsSql = statement(
  'read_consent_statistics',
  `with merged_people as materialized (
     select m.merged_id as id from merges m where m.organization_id = $1
     union
     select m.into_id from merges m where m.organization_id = $1
   ), changed as (
     ${ownSteps('true')}
     union all
     select ${groupOf('t.at')}, ${deltas('case when t.is_return then a.kind end', 'case when not t.is_return then a.kind end')}
     from changes d
       cross join lateral (
         select d.at, false as is_return
         union all
         (
           select c.at, true from changes c
           where c.organization_id = $1 and c.entity_id = d.entity_id and c.version > d.version order by c.version limit 1
         )
       ) t
       cross join lateral (${answersBefore}) a
     where d.organization_id = $1 and d.operation = 'delete' and d.stack_id = 0
       and (select m.id from merges m where m.organization_id = $1 and m.merged_id = d.entity_id limit 1) is null
       and (select m.id from merges m where m.organization_id = $1 and m.into_id = d.entity_id limit 1) is null
     union all
     select o.position, -o.granted, -o.refused, -o.pending
     from merged_people m cross join lateral (${ownSteps('a.person_id = m.id')} offset 0) o
     union all
     select ${groupOf('a.at')}, ${deltas('a.kind', 'a.previous')}
     from merged_people m cross join lateral (
       select s.*, lag(s.kind) over (partition by s.consent_type_id, s.channel order by s.version) as previous
       from (${standingAnswers}) s offset 0
     ) a
     where a.kind is distinct from a.previous
   ), steps as (
     select c.position / ${1024 * channels.length} as consent_type_id,
       (array[${channels.map(channel => `'${channel}'`).join(', ')}])[c.position / 1024 % ${channels.length} + 1] as channel,
       c.position % 1024 as position, sum(c.granted) as granted, sum(c.refused) as refused, sum(c.pending) as pending
     from changed c group by c.position
   ), suppressed as materialized (
     ${channels.map(suppressedOn).join(' union all ')}
   ), answered as (
     select a.key, sum(a.weight) as answered, coalesce(sum(a.weight) filter (where a.value->'state' = 'true'), 0) as granted
     from (
       select a.key collate "C" as key, a.value, 1 as weight from entities e cross join lateral jsonb_each(e.answers) a
       where e.organization_id = $1 and e.stack_id = 0 and e.answers <> '{}'
         and case ${channels.map(channel => `when a.key like '%:${channel}' then ${addressOf(channel)}`).join(' ')} end <> ''
       union all
       select a.key, a.value, -1 from suppressed s cross join lateral jsonb_each(s.answers) a where a.key like '%:' || s.channel
     ) a group by a.key
   ), refused as (
     ${channels.map(refusedOn).join(' union all ')}
   )
   select h.sequence, (
       select coalesce(json_agg(json_build_object('id', t.id, 'state', t.state, 'mandatory', t.mandatory, 'default_state', t.default_state,
         'channels', t.channels) order by t.id), '[]')
       from consent_types t where t.organization_id = $1 and ($3 is null or t.id = $3)
     ) as types, (
       select coalesce(json_agg(s), '[]') from steps s
     ) as steps, (
       select json_build_object(${channels.map(channel => `'${channel}', count(*) filter (where ${addressOf(channel)} <> '') - (select count(*) from suppressed s where s.channel = '${channel}')`).join(', ')})
       from entities e where e.organization_id = $1 and e.stack_id = 0
     ) as people, (
       select coalesce(json_agg(a), '[]') from answered a
     ) as answered, (
       select coalesce(json_agg(r), '[]') from (
         select r.consent_type_id, r.channel, count(*) as people from refused r where r.is_granted group by r.consent_type_id, r.channel
       ) r
     ) as refused
   from change_heads h where h.organization_id = $1`,
)

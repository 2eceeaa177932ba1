import { statement } from '../db/db.ts'
import { hashOf } from '../db/keyed-hash.ts'
import { exactTimeText } from '../db/time-text.ts'
import { channels, channelTable } from '../values/channels.ts'

/** The name of the follower that adds the answers that were given before the table was there. */
export const addressAnswersFollowerName = 'address_answers'

/** The text of an address that its keyed hash is of, as tombstones have it. */
const addressText = (channel: string, address: string) =>
  `case ${channels.map(each => `when ${channel} = '${each}' then '${channelTable[each].key.replace('_key', ':')}'`).join(' ')} end || normalize(${address})`

/** The addresses of a person e, as a(channel, address). */
const addressesOf = `(values ${channels.map(channel => `('${channel}', e.${channelTable[channel].key})`).join(', ')}) as a(channel, address)`

/** The parts that decide between two answers, in the order of `compareAnswers` (answers.ts). */
const order = (answer: string) =>
  `(${answer}.answered_at, not ${answer}.state, ${answer}.text_version, ${answer}.method_rank, ${answer}.sequence)`

/**
 * $2: [{channel, address, consent_type_id, state, answered_at, text_version, method_rank, sequence, person_id}], one for each address and
 * consent type. Stores those that stand over the answer of the address so far.
 */
export const storeAddressAnswersSql = statement(
  'store_address_answers',
  `insert into address_answers (organization_id, channel, hash, consent_type_id, address, state, answered_at, text_version,
     method_rank, sequence, person_id)
   select k.organization_id, v.channel, h.hash, v.consent_type_id, v.address, v.state, v.answered_at, v.text_version, v.method_rank,
     v.sequence, v.person_id
   from tombstone_keys k
     cross join jsonb_to_recordset($2::text::jsonb) as v(channel text, address text, consent_type_id integer, state boolean,
       answered_at timestamptz, text_version integer, method_rank smallint, sequence bigint, person_id uuid)
     cross join lateral (select ${hashOf(addressText('v.channel', 'v.address'))} as hash offset 0) h
   where k.organization_id = $1
   on conflict (organization_id, channel, hash, consent_type_id) do update set
     address = excluded.address, state = excluded.state, answered_at = excluded.answered_at, text_version = excluded.text_version,
     method_rank = excluded.method_rank, sequence = excluded.sequence, person_id = excluded.person_id
   where ${order('excluded')} > ${order('address_answers')}`,
)

/** $2: people. The answers of their addresses show the addresses again, which an erasure has removed. */
export const showAddressesSql = statement(
  'show_addresses',
  `with given as materialized (
     select a.channel, a.address, h.hash
     from unnest($2::uuid[]) as v(id) cross join lateral (
         select e.email_key, e.mobile_key from entities e where e.organization_id = $1 and e.stack_id = 0 and e.id = v.id offset 0
       ) e cross join lateral ${addressesOf}
       join tombstone_keys k on k.organization_id = $1
       cross join lateral (select ${hashOf(addressText('a.channel', 'a.address'))} as hash offset 0) h
     where a.address is not null
   )
   update address_answers w set address = g.address from given g
   where w.organization_id = $1 and w.channel = g.channel and w.hash = g.hash and w.address is null`,
)

/** Whether an answer w of an address is that of a person who exists. */
const isHeld = channels
  .map(
    channel => `exists (
       select from entities e
       where e.organization_id = $1 and e.stack_id = 0 and w.channel = '${channel}' and e.${channelTable[channel].key} = w.address
     )`,
  )
  .join(' or ')

/**
 * $2: {people, values}: erased people, and the emails and phones that they had, such as `email:ada@example.com`. Runs after their rows are
 * deleted. Removes who gave the answers, and each address that no other person has. Returns the number of rows.
 */
export const eraseAddressesSql = statement(
  'erase_addresses',
  `with v as materialized (
     select array(select p.id::uuid from jsonb_array_elements_text($2::text::jsonb->'people') as p(id)) as people
   ), found as materialized (
     select w.channel, w.hash, w.consent_type_id, w.address, w.person_id from address_answers w
     where w.organization_id = $1 and w.person_id = any(array(select unnest(v.people) from v))
     union
     select w.channel, w.hash, w.consent_type_id, w.address, w.person_id
     from jsonb_array_elements_text($2::text::jsonb->'values') as t(value) join tombstone_keys k on k.organization_id = $1
       cross join lateral (select ${hashOf('t.value')} as hash offset 0) h
       cross join unnest(array[${channels.map(channel => `'${channel}'`).join(', ')}]) as c(channel)
       cross join lateral (
         select w.* from address_answers w where w.organization_id = $1 and w.channel = c.channel and w.hash = h.hash offset 0
       ) w
   ), erased as materialized (
     select w.channel, w.hash, w.consent_type_id, case when w.is_held then w.address end as address,
       case when w.is_own then null else w.person_id end as person_id
     from (
       select w.*, coalesce(w.person_id = any(v.people), false) as is_own, (${isHeld}) as is_held from found w cross join v
     ) w
     where w.is_own or (w.address is not null and not w.is_held)
   ), gone as (
     update address_answers w set address = x.address, person_id = x.person_id from erased x
     where w.organization_id = $1 and w.channel = x.channel and w.hash = x.hash and w.consent_type_id = x.consent_type_id
     returning 1
   ) select count(*)::integer as count from gone`,
)

/** The value of a field of the person a.person_id when it gave the answer a: what the next change replaced, or the row has. */
const valueThen = (field: string) =>
  `select coalesce(n.is_changed, false) as is_changed, n.value from (values (1)) as one left join lateral (
       select true as is_changed, c.before->>'${field}' as value from changes c
       where c.organization_id = $1 and c.entity_id = a.person_id and c.version > a.version
         and (c.operation in ('delete', 'merge') or c.before ? '${field}' or c.after ? '${field}')
       order by c.version limit 1
     ) n on true`

/** $2: after this number of a change, $3: up to this one. The answers of these changes, with the address that the person had then. */
export const readEarlierAnswersSql = statement(
  'read_earlier_answers',
  `select c.sequence, a.person_id, a.consent_type_id, a.channel, a.state, a.undated,
     ${exactTimeText('coalesce(a.collected_at, a.at)')} as answered_at, a.evidence->>'method' as method,
     (a.evidence->>'text_version')::integer as text_version,
     case when m.is_changed then m.value else e.email end as email,
     case when p.is_changed then p.value else e.mobile_prefix end as mobile_prefix,
     case when n.is_changed then n.value else e.mobile_number end as mobile_number
   from changes c cross join lateral (
       select a.* from consent_history a
       where a.organization_id = $1 and a.person_id = c.entity_id and a.version = c.version and not a.pending offset 0
     ) a
     cross join lateral (${valueThen('email')}) m
     cross join lateral (${valueThen('mobile_prefix')}) p
     cross join lateral (${valueThen('mobile_number')}) n
     left join lateral (
       select e.email, e.mobile_prefix, e.mobile_number from entities e
       where e.organization_id = $1 and e.stack_id = 0 and e.id = a.person_id offset 0
     ) e on true
   where c.organization_id = $1 and c.sequence > $2 and c.sequence <= $3 and c.stack_id = 0`,
)

/** Ends the follower that adds earlier answers. */
export const endAddressAnswersSql = statement(
  'end_address_answers',
  `delete from followers where organization_id = $1 and name = '${addressAnswersFollowerName}' and id = 0`,
)

import { statement } from '../db/db.ts'
import { channelOfValue, hashOf } from '../db/keyed-hash.ts'
import { exactTimeText } from '../db/time-text.ts'
import { channels, channelTable } from '../values/channels.ts'

/** The name of the follower that adds the answers from before the table existed. */
export const addressAnswersFollowerName = 'address_answers'

/** The text of an address that is hashed, in the format of tombstones. */
const addressText = (channel: string, address: string) =>
  `case ${channels.map(each => `when ${channel} = '${each}' then '${channelTable[each].key.replace('_key', ':')}'`).join(' ')} end || normalize(${address})`

/** The stored form of an address that only erased people had. No address begins like this. */
const erasedAddress = (hash: string) => `'erased:' || encode(${hash}, 'hex')`

/** The parts that decide between two answers, in the order of `compareAnswers` (answers.ts). */
const order = (answer: string) =>
  `(${answer}.answered_at, not ${answer}.state, ${answer}.text_version, ${answer}.method_rank, ${answer}.sequence)`

const parts = ['state', 'answered_at', 'text_version', 'method_rank', 'sequence', 'person_id']
const partsOf = (answer: string) => parts.map(part => `${answer}.${part}`).join(', ')

/** Stores each answer v that supersedes the stored answer of its address. */
const storeLatest = (answers: string) =>
  `insert into address_answers (organization_id, channel, address, consent_type_id, ${parts.join(', ')})
   select h.organization_id, v.channel, v.address, v.consent_type_id, ${partsOf('v')}
   from change_heads h cross join ${answers} where h.organization_id = $1
   on conflict (organization_id, channel, address, consent_type_id) do update set
     ${parts.map(part => `${part} = excluded.${part}`).join(', ')}
   where ${order('excluded')} > ${order('address_answers')}`

/**
 * $2: [{channel, address, consent_type_id, state, answered_at, text_version, method_rank, sequence, person_id}], one
 * for each address and consent type. Returns a row for each stored answer. PostgreSQL takes 30 µs for an answer as
 * json, and 38 µs as jsonb.
 */
export const storeAddressAnswersSql = statement(
  'store_address_answers',
  `${storeLatest(`json_to_recordset($2::text::json) as v(channel text, address text, consent_type_id integer, state boolean,
       answered_at timestamptz, text_version integer, method_rank smallint, sequence bigint, person_id uuid)`)} returning state`,
)

/** $2: channels, $3: addresses, one for each. The addresses n, each with the hash h that an erasure leaves of it. */
const named = `(
     select distinct u.channel, u.address from unnest($2::text[], $3::text[]) as u(channel, address)
   ) n join tombstone_keys k on k.organization_id = $1
   cross join lateral (select ${hashOf(addressText('n.channel', 'n.address'))} as hash offset 0) h`

/** Copies the answers under the hashes of these addresses back to the addresses. */
export const showAddressAnswersSql = statement(
  'show_address_answers',
  storeLatest(`(
     select n.channel, n.address, w.consent_type_id, ${partsOf('w')} from ${named}
       join address_answers w on w.organization_id = $1 and w.channel = n.channel and w.address = ${erasedAddress('h.hash')} offset 0
   ) v`),
)

/** Deletes the answers under hashes that {@link showAddressAnswersSql} has copied. */
export const deleteShownAnswersSql = statement(
  'delete_shown_answers',
  `delete from address_answers w using (select n.channel, ${erasedAddress('h.hash')} as address from ${named} offset 0) n
   where w.organization_id = $1 and w.channel = n.channel and w.address = n.address`,
)

/** Puts these addresses back into the rows of `deliverability` that an erasure left with the hash alone. */
export const showDeliverabilitySql = statement(
  'show_deliverability',
  `update deliverability d set address = n.address from (select n.channel, n.address, h.hash from ${named} offset 0) n
   where d.organization_id = $1 and d.channel = n.channel and d.hash = n.hash and d.address is null`,
)

/** Whether an existing person has the address of an answer w. */
const isHeld = channels
  .map(
    channel => `exists (
       select from entities e
       where e.organization_id = $1 and e.stack_id = 0 and w.channel = '${channel}' and e.${channelTable[channel].key} = w.address
     )`,
  )
  .join(' or ')

const erasedPeople = `array(select p.id::uuid from jsonb_array_elements_text($2::text::jsonb->'people') as p(id))`

/**
 * $2: {people, values}. The answers w of the addresses in `values`, and of those that these people gave an answer for.
 * `isGivenUp` selects the ones that no person has.
 */
const givenUp = `(
     select w.channel, w.address from address_answers w
     where w.organization_id = $1 and w.person_id = any(${erasedPeople})
     union
     select ${channelOfValue}, substr(v.value, strpos(v.value, ':') + 1)
     from jsonb_array_elements_text($2::text::jsonb->'values') as v(value)
   ) n cross join lateral (
     select w.ctid, w.* from address_answers w where w.organization_id = $1 and w.channel = n.channel and w.address = n.address offset 0
   ) w`
const isGivenUp = `w.address not like 'erased:%' and not (${isHeld})`

/**
 * $2: {people, values}: erased people, and the emails and phones that they had, such as `email:ada@example.com`. Runs
 * after their rows are deleted. Copies the answers of each address that no other person has to the hash of the address.
 */
export const keepErasedAnswersSql = statement(
  'keep_erased_answers',
  storeLatest(`(
     select w.channel, ${erasedAddress(hashOf(addressText('w.channel', 'w.address')))} as address, w.consent_type_id, ${partsOf('w')}
     from ${givenUp} join tombstone_keys k on k.organization_id = $1 where ${isGivenUp} offset 0
   ) v`),
)

/**
 * $2: {people, values}. Deletes the answers that {@link keepErasedAnswersSql} has copied, and removes the person from
 * the other answers. Returns the number of rows.
 */
export const eraseAddressesSql = statement(
  'erase_addresses',
  `with gone as (
     delete from address_answers x where x.organization_id = $1
       and x.ctid = any(array(select w.ctid from ${givenUp} where ${isGivenUp})) returning 1
   ), unnamed as (
     update address_answers w set person_id = null
     where w.organization_id = $1 and w.person_id = any(${erasedPeople}) and not (${isGivenUp}) returning 1
   ) select (select count(*) from gone)::integer + (select count(*) from unnamed)::integer as count`,
)

/**
 * The value of a person's field at the time of the answer a: the one that the next change replaced, or that of the row.
 */
const valueThen = (field: string) =>
  `select coalesce(n.is_changed, false) as is_changed, n.value from (values (1)) as one left join lateral (
       select true as is_changed, c.before->>'${field}' as value from changes c
       where c.organization_id = $1 and c.entity_id = a.person_id and c.version > a.version
         and (c.operation in ('delete', 'merge') or c.before ? '${field}' or c.after ? '${field}')
       order by c.version limit 1
     ) n on true`

/**
 * $2: after this change, $3: up to this one. The answers of these changes, with the address of the person at that time.
 */
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

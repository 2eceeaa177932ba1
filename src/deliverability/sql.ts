import { personNamed, survivorOf } from '../changes/people-sql.ts'
import { copyInto } from '../db/copy.ts'
import { statement } from '../db/db.ts'
import { channelOfValue, hashed } from '../db/keyed-hash.ts'
import { exactTimeText } from '../db/time-text.ts'
import { channels, channelTable } from '../values/channels.ts'

/** The number of days for which a bounce suppresses an address. */
const days = `coalesce((
     select s.suppression_days from organization_settings s where s.organization_id = $1
   ), 180)`

/**
 * $2: values such as `email:ada@example.com`. Returns each with its hash in hexadecimal, the stored events of the
 * address and the location of their row (`ctid`), and whether it belonged to an erased person. One index scan looks up
 * all values, in two thirds of the time that one for each value takes.
 */
export const readAddressesSql = statement(
  'read_addresses',
  `with named as materialized (select v.value, ${channelOfValue} as channel, h.hash from ${hashed}),
     known as materialized (
       select d.channel, d.hash, d.events, d.ctid from deliverability d
       where d.organization_id = $1 and d.channel = any(array(select distinct n.channel from named n))
         and d.hash = any(array(select n.hash from named n))
     )
   select n.value, encode(n.hash, 'hex') as hash, d.events, d.ctid, exists (
       select from tombstones t where t.organization_id = $1 and t.hash = n.hash
     ) as "isErased", ${days} as days
   from named n left join known d on d.channel = n.channel and d.hash = n.hash`,
)

/**
 * The people who have one of the requested keys on a channel. From $2: the keys on each channel, in the order of
 * `channels`.
 */
export const readHoldersSql = statement(
  'read_holders',
  `${channels
    .map(
      (channel, index) => `select '${channel}' as channel, e.${channelTable[channel].key} as key, e.id from entities e
   where e.organization_id = $1 and e.stack_id = 0 and e.${channelTable[channel].key} = any($${index + 2}::text[])`,
    )
    .join(' union all ')} order by id`,
)

/** $2: external identifiers. The keys of the addresses of the people that they lead to. */
export const readAddressesOfSql = statement(
  'read_addresses_of',
  `select n.name, e.email_key, e.mobile_key from unnest($2::text[]) as n(name) cross join lateral (
     select e.email_key, e.mobile_key from entities e
     where e.organization_id = $1 and e.stack_id = 0 and e.id = (${personNamed('n.name')}) offset 0
   ) e`,
)

/**
 * $2: locations of rows, $3: their hashes, in hexadecimal. Deletes the rows before a COPY stores them again. Together
 * this takes PostgreSQL 20 µs a row, and an upsert took 33 µs. A row that moved since it was read stays, and the COPY
 * fails.
 */
export const deleteAddressesSql = statement(
  'delete_addresses',
  `delete from deliverability d using unnest($2::tid[], $3::text[]) as v(ctid, hash)
   where d.organization_id = $1 and d.ctid = v.ctid and d.hash = decode(v.hash, 'hex')`,
)

/** Inserts addresses that have no row. */
export const insertAddresses = copyInto('insert_addresses', 'deliverability', [
  ...['organization_id', 'channel', 'hash', 'address', 'events', 'reason', 'suppressed_from', 'suppressed_until'],
])

/** The addresses of a person, with their stored events. Returns no row if the person does not exist. */
const addressesOf = (person: string) =>
  `select e.id, a.channel, a.address, coalesce(d.events, '{}') as events, ${days} as days
   from entities e
     cross join lateral (values ${channels.map(channel => `('${channel}', e.${channelTable[channel].key})`).join(', ')}) as a(channel, address)
     left join lateral (
       select d.events from deliverability d
       where d.organization_id = $1 and d.channel = a.channel and d.address = a.address offset 0
     ) d on true
   where e.organization_id = $1 and e.stack_id = 0 and e.id = (${person})`

/** $2: an internal or external identifier. */
export const readPersonAddressesSql = {
  external_id: statement('read_person_addresses', addressesOf(personNamed('$2'))),
  id: statement('read_person_addresses_by_id', addressesOf(`coalesce((${survivorOf('$2::uuid')}), $2::uuid)`)),
}

/**
 * $2: the time, $3: channel or null, $4: reason or null, $5: part of an address or null, $6 and $7: the start of the
 * suppression and the hash to go on after, or nulls, $8: limit. The suppressed addresses, the latest first.
 */
export const listSuppressedSql = statement(
  'list_suppressed',
  `select d.channel, d.address, d.events, ${days} as days, ${exactTimeText('d.suppressed_from')} as suppressed_from, encode(d.hash, 'hex') as hash from deliverability d
   where d.organization_id = $1 and d.suppressed_until > $2::timestamptz
     and ($3::text is null or d.channel = $3) and ($4::text is null or d.reason = $4)
     and ($5::text is null or strpos(d.address, $5) > 0)
     and ($6::timestamptz is null or (d.suppressed_from, d.hash) < ($6, decode($7, 'hex')))
   order by d.suppressed_from desc, d.hash desc limit $8`,
)

const sourceColumns = 'key, provider, secret_path, created_at, last_event_at, ignored_events, confirmed_at'

export const listSourcesSql = statement(
  'list_sources',
  `select ${sourceColumns} from deliverability_sources s where s.organization_id = $1 order by s.key`,
)

/**
 * $2: key, $3: provider, $4: the random part of its address, $5: secret or null, $6: the time. Returns no row if the
 * key is taken.
 */
export const insertSourceSql = statement(
  'insert_source',
  `insert into deliverability_sources (organization_id, key, provider, secret_path, secret, created_at)
   values ($1, $2, $3, $4, $5, $6) on conflict do nothing
   returning ${sourceColumns}`,
)

/** $2: key. */
export const deleteSourceSql = statement(
  'delete_source',
  'delete from deliverability_sources s where s.organization_id = $1 and s.key = $2 returning s.key',
)

/** The sources with their wrapped secrets and addresses. PostgreSQL cannot search for a wrapped address. */
export const readSourcesSql = statement(
  'read_sources',
  'select s.key, s.provider, s.secret_path, s.secret from deliverability_sources s where s.organization_id = $1',
)

/** $2: key, $3: the time of events, or null, $4: that of a confirmation, or null, $5: the number of ignored events. */
export const noteRequestSql = statement(
  'note_source_request',
  `update deliverability_sources s set last_event_at = coalesce($3, s.last_event_at), confirmed_at = coalesce($4, s.confirmed_at),
     ignored_events = s.ignored_events + $5
   where s.organization_id = $1 and s.key = $2`,
)

/** $2: the hash of a token, in hexadecimal, $3: the time. Returns no row if the token was already used. */
export const useTokenSql = statement(
  'use_source_token',
  `insert into deliverability_tokens (organization_id, hash, used_at) values ($1, decode($2, 'hex'), $3)
   on conflict do nothing returning used_at`,
)

/** $2: a time. Deletes the tokens that were used before it. Their requests are now too old to be accepted again. */
export const forgetTokensSql = statement(
  'forget_source_tokens',
  'delete from deliverability_tokens t where t.organization_id = $1 and t.used_at < $2',
)

/** Whether the person who gave an answer w has its address, so that an export of people includes the answer. */
const isAnsweredByHolder = channels
  .map(channel => `(w.channel = '${channel}' and e.${channelTable[channel].key} = w.address)`)
  .join(' or ')

/**
 * $2, $3, $4: the channel, address and consent type to go on after, $5: limit. The events of each address in plain
 * text, with the consent type 0, and the refusals of addresses that are not held by the person who gave them. An
 * undated refusal has the earliest time that an event can have.
 */
export const listEventsSql = statement(
  'list_events',
  `select t.channel, t.address, t.consent_type_id, t.events, ${exactTimeText('t.answered_at')} as answered_at
   from (
     (select d.channel, d.address, 0 as consent_type_id, d.events, null::timestamptz as answered_at from deliverability d
      where d.organization_id = $1 and d.address is not null and (d.channel, d.address) > ($2, $3)
      order by d.channel, d.address limit $5)
     union all
     (select w.channel, w.address, w.consent_type_id, null, greatest(w.answered_at, '1990-01-01T00:00:00Z') from address_answers w
      where w.organization_id = $1 and w.address not like 'erased:%' and not w.state
        and (w.channel, w.address, w.consent_type_id) > ($2, $3, $4)
        and not exists (
          select from entities e where e.organization_id = $1 and e.stack_id = 0 and e.id = w.person_id and (${isAnsweredByHolder})
        )
      order by w.channel, w.address, w.consent_type_id limit $5)
   ) t order by t.channel, t.address, t.consent_type_id limit $5`,
)

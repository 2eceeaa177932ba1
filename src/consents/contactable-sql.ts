import { bearerOrDeleted, deletedOrErasedWith, personWithId, survivorOf } from '../changes/people-sql.ts'
import { statement } from '../db/db.ts'
import { exactTimeText } from '../db/time-text.ts'
import { channels, channelTable } from '../values/channels.ts'
import { answerColumns, answerReferences, answerSequence, answersOf } from './recorded-answers-sql.ts'

/** The last answer that was not superseded, of the person that `answered_by` of a row e names. */
const lastAnswer = `select ${answerColumns} from consent_history a
   where a.organization_id = $1 and a.person_id = e.answered_by and a.consent_type_id = $3 and a.channel = $4
     and not a.superseded and e.has_answer
   order by a.version desc limit 1`

const hasChannel = `t.channels @> jsonb_build_array(jsonb_build_object('channel', $4::text))`

/**
 * The key of the address on the channel, and the person who gave the answer in force: the person itself, or one who was
 * merged into it.
 */
const contact = `e.id, case $4::text ${channels.map(channel => `when '${channel}' then e.${channelTable[channel].key}`).join(' ')} end as address,
       coalesce((e.answers->$5->>'person_id')::uuid, e.id) as answered_by, e.answers ? $5 as has_answer`

/** The deletion or erasure of a person who does not exist any more. */
const endOf = (person: string, condition: string) =>
  `select c.sequence, c.at, c.operation from changes c
   where ${condition} and c.organization_id = $1 and c.stack_id = 0 and c.entity_id = (${person}) order by c.version desc limit 1`

/** The events that suppress addresses of the found people, by address. */
const suppressedEvents = `select json_object_agg(b.address, json_build_object('event', b.reason, 'at', ${exactTimeText('b.suppressed_from')},
         'until', case when b.suppressed_until < 'infinity' then ${exactTimeText('b.suppressed_until')} end,
         'provider', m.mark->>'provider', 'reference', m.mark->>'reference'))
       from deliverability b cross join lateral (
         select case b.reason when 'soft_bounce' then (
           select s.mark from jsonb_array_elements(b.events->'soft_bounces') as s(mark)
           where (s.mark->>'at')::timestamptz = b.suppressed_from limit 1
         ) else b.events->b.reason end as mark
       ) m
       where b.organization_id = $1 and b.channel = $4 and b.address = any(array(select f.address from found f))
         and b.suppressed_until > now()`

/** The refusals in force of the addresses of the found people, by address. */
const refusals = `select json_object_agg(w.address, json_build_object('state', w.state, 'answered_at', ${exactTimeText("nullif(w.answered_at, '-infinity')")},
         'sequence', w.sequence, 'person_id', w.person_id))
       from address_answers w
       where w.organization_id = $1 and w.channel = $4 and w.address = any(array(select f.address from found f))
         and w.consent_type_id = $3 and not w.state`

/**
 * The facts of decisions about people by an identifier, all of one snapshot. If no person has a name n, `further` finds
 * the person to whom it leads, and `gone` a person who does not exist any more. One index scan looks up all people, and
 * one scan of each table the rows of their addresses. A scan for each person takes twice as long. The last answer is
 * looked up for each person, because some people have hundreds of answers.
 */
const facts = (identifier: { column: string; type: string; further: string; gone: string }) =>
  `with people as materialized (
     select e.${identifier.column} as name, ${contact}, null::bigint as gone_sequence, null::timestamptz as gone_at, null::boolean as is_erased
     from entities e where e.organization_id = $1 and e.stack_id = 0 and e.${identifier.column} = any($2::${identifier.type}[])
   ), found as materialized (
     select p.* from people p
     union all
     select n.name, f.*, d.sequence, d.at, d.operation = 'erase'
     from (select unnest($2::${identifier.type}[]) as name except select p.name from people p) n
       left join lateral (
         select ${contact} from (${identifier.further} offset 0) p cross join lateral (
           select e.* from entities e where e.organization_id = $1 and e.stack_id = 0 and e.id = p.person_id offset 0
         ) e
       ) f on true
       left join lateral (${endOf(identifier.gone, 'f.id is null')}) d on true
   )
   select e.name, case when e.name = ($2::${identifier.type}[])[1] then (
       select json_build_object('head', h.sequence, 'state', t.state, 'mandatory', t.mandatory, 'default_state', t.default_state,
         'has_channel', ${hasChannel}, 'text_sha256', (
           select json_object_agg(x.version, encode(x.sha256, 'hex')) from consent_texts x
           where x.organization_id = $1 and x.consent_type_id = $3
         ), 'suppressed', (${suppressedEvents}), 'refused', (${refusals}))
       from change_heads h left join consent_types t on t.organization_id = $1 and t.id = $3 where h.organization_id = $1
     ) end as purpose,
     e.id as person_id, e.address, e.gone_sequence, e.gone_at, e.is_erased, nullif(a.person_id, e.id) as merged_person_id,
     a.version, a.state, a.previous_state, a.pending, a.undated, a.at, a.collected_at, a.evidence, a.actor, a.request_id, ${answerSequence}
   from found e left join lateral (${lastAnswer}) a on true`

/**
 * $2: external or internal identifiers, $3: consent type, $4: channel, $5: the key of the answers to both. Returns a
 * row for each identifier, in any order. The row of the first one has the purpose, with the hashes of its texts by
 * version, and the suppressions and refusals by address. Its members are null if the consent type does not exist.
 */
export const readContactFacts = {
  external_id: statement(
    'read_contact_facts',
    facts({
      column: 'external_id',
      type: 'text',
      further: 'select s.person_id from aliases s where s.organization_id = $1 and s.external_id = n.name',
      gone: deletedOrErasedWith('n.name'),
    }),
  ),
  id: statement(
    'read_contact_facts_by_id',
    facts({
      column: 'id',
      type: 'uuid',
      further: survivorOf('n.name'),
      gone: `coalesce((${survivorOf('n.name')}), n.name)`,
    }),
  ),
}

/** The value of a field of a person p at the change m: the last one that a change since b wrote. */
const lastValue = (field: string) =>
  `select c.after->>${field} as value from changes c
       where c.organization_id = $1 and c.entity_id = p.id and c.version between b.version and m.version and c.after ? ${field}
       order by c.version desc limit 1`

/**
 * The facts of a decision at the change $5 about a person p. m is the person's last change until then, and b the last
 * one that has all fields.
 */
const pastFacts = (person: string) =>
  `select m.operation, m.sequence as gone_sequence, m.at as gone_at, m.merged_into,
     not coalesce(b.after ? 'state', false) or last.operation = 'erase' as is_blanked, f.value as address, g.value as prefix, a.*,
     nullif(a.person_id, p.id) as merged_person_id, ${answerReferences}
   from (select ${person} as id) p
     left join lateral (
       select c.version, c.operation, c.sequence, c.at,
         case when c.operation = 'merge' then c.after->>'merged_into' end as merged_into
       from changes c
       where c.organization_id = $1 and c.entity_id = p.id and c.sequence <= $5 order by c.version desc limit 1
     ) m on true
     left join lateral (
       select c.operation from changes c
       where c.organization_id = $1 and c.entity_id = p.id order by c.version desc limit 1
     ) last on true
     left join lateral (
       select c.version, c.after from changes c
       where c.organization_id = $1 and c.entity_id = p.id and c.version <= m.version and c.operation in ('create', 'restore', 'unmerge')
       order by c.version desc limit 1
     ) b on true
     left join lateral (${lastValue('$6::text')}) f on true
     left join lateral (${lastValue(`'mobile_prefix'`)}) g on true
     left join lateral (
       select ${answerColumns} from (${answersOf('p.id')}) a
       where a.consent_type_id = $3 and a.channel = $4 and not a.superseded and a.since <= m.version
         and (a.until is null or a.until > m.version)
       order by a.since desc limit 1
     ) a on true`

/**
 * $2: external or internal identifier, $3: consent type, $4: channel, $5: number of a change, $6: the field of the
 * address. Returns one row: the person and the answer after this change. `operation` is null if the person did not
 * exist yet. `merged_into` is the person into which a merge had turned this one. This statement resolves no alias.
 */
export const readPastContactFacts = {
  external_id: statement('read_past_contact_facts', pastFacts(bearerOrDeleted('$2'))),
  id: statement('read_past_contact_facts_by_id', pastFacts(personWithId('$2'))),
}

import { deletedWith, personNamed, personWithId } from '../changes/people-sql.ts'
import { statement } from '../db/db.ts'
import { answerColumns, answerReferences, answerSequence } from './recorded-answers-sql.ts'

/** The answer of a person that stands: the last one that was not superseded. */
const standingAnswer = (person: string, condition = '') =>
  `select ${answerColumns} from consent_history a
   where a.organization_id = $1 and a.person_id = ${person} and a.consent_type_id = $3 and a.channel = $4
     and not a.superseded${condition}
   order by a.version desc limit 1`

const hasChannel = `t.channels @> jsonb_build_array(jsonb_build_object('channel', $4::text))`
const address = `case $4::text when 'email' then e.email else e.mobile_number end as address`

/** The deletion of a person who does not exist. */
const deletionOf = (person: string, condition: string) =>
  `select c.sequence, c.at from changes c
   where ${condition} and c.organization_id = $1 and c.stack_id = 0 and c.entity_id = (${person}) order by c.version desc limit 1`

/** The facts of a decision about a person e, all of one snapshot. The person is found by a condition, a deleted one by an expression. */
const facts = (condition: string, deleted: string) =>
  `select h.sequence as head, t.state as purpose_state, t.mandatory, t.default_state, ${hasChannel} as has_channel,
     e.id is not null as is_present, e.address, d.sequence as deleted_sequence, d.at as deleted_at, a.*, ${answerReferences}
   from change_heads h
     left join consent_types t on t.organization_id = $1 and t.id = $3
     left join lateral (
       select e.id, ${address} from entities e
       where e.organization_id = $1 and e.stack_id = 0 and ${condition} offset 0
     ) e on true
     left join lateral (${deletionOf(deleted, 'e.id is null')}) d on true
     left join lateral (${standingAnswer('e.id')}) a on true
   where h.organization_id = $1`

/**
 * $2: external or internal identifier, $3: consent type, $4: channel. Returns one row. The columns of the consent type are null
 * if it does not exist.
 */
export const readContactFacts = {
  external_id: statement('read_contact_facts', facts('e.external_id = $2', deletedWith('$2'))),
  id: statement('read_contact_facts_by_id', facts('e.id = $2', '$2')),
}

/**
 * $2: external identifiers, $3: consent type, $4: channel. Returns a row for each identifier, in any order. The row of the position
 * 1 has the purpose, with the hashes of its texts by version.
 *
 * One index scan looks up all people. PostgreSQL expects ten, and would compare each name with each person; a full join makes it
 * use hashes. With the hashes of the texts read once and few columns, the call takes two thirds of the time of {@link facts} for each person.
 */
export const readManyContactFactsSql = statement(
  'read_many_contact_facts',
  `with people as materialized (
     select e.external_id, e.id, ${address}, e.answers ? ($3::integer || ':' || $4) as has_answer
     from entities e where e.organization_id = $1 and e.stack_id = 0 and e.external_id = any($2::text[])
   )
   select n.position::integer, case when n.position = 1 then (
       select json_build_object('head', h.sequence, 'state', t.state, 'mandatory', t.mandatory, 'default_state', t.default_state,
         'has_channel', ${hasChannel}, 'text_sha256', (
           select json_object_agg(x.version, encode(x.sha256, 'hex')) from consent_texts x
           where x.organization_id = $1 and x.consent_type_id = $3
         ))
       from change_heads h left join consent_types t on t.organization_id = $1 and t.id = $3 where h.organization_id = $1
     ) end as purpose,
     p.id is not null as is_present, p.address, d.sequence as deleted_sequence, d.at as deleted_at,
     a.version, a.state, a.previous_state, a.pending, a.at, a.collected_at, a.evidence, a.actor, a.request_id, ${answerSequence}
   from unnest($2::text[]) with ordinality as n(name, position)
     full join people p on p.external_id = n.name
     left join lateral (${deletionOf(deletedWith('n.name'), 'p.id is null')}) d on true
     left join lateral (${standingAnswer('p.id', ' and p.has_answer')}) a on true`,
)

/** The facts of a decision at the number $5 about a person p. m is the person's last change until then, b the one that has all fields. */
const pastFacts = (person: string) =>
  `select m.operation, m.sequence as deleted_sequence, m.at as deleted_at,
     b.after is null as is_blanked, f.address, a.*, ${answerReferences}
   from (select ${person} as id) p
     left join lateral (
       select c.version, c.operation, c.sequence, c.at from changes c
       where c.organization_id = $1 and c.entity_id = p.id and c.sequence <= $5 order by c.version desc limit 1
     ) m on true
     left join lateral (
       select c.version, c.after from changes c
       where c.organization_id = $1 and c.entity_id = p.id and c.version <= m.version and c.operation in ('create', 'restore')
       order by c.version desc limit 1
     ) b on true
     left join lateral (
       select c.after->>$6::text as address from changes c
       where c.organization_id = $1 and c.entity_id = p.id and c.version between b.version and m.version and c.after ? $6::text
       order by c.version desc limit 1
     ) f on true
     left join lateral (${standingAnswer('p.id', ' and a.version <= m.version')}) a on true`

/**
 * $2: external or internal identifier, $3: consent type, $4: channel, $5: number of a change, $6: the field of the address.
 * Returns one row: the person and the answer after this change. `operation` is null if the person did not exist yet.
 */
export const readPastContactFacts = {
  external_id: statement('read_past_contact_facts', pastFacts(personNamed('$2'))),
  id: statement('read_past_contact_facts_by_id', pastFacts(personWithId('$2'))),
}

import { statement } from '../db/db.ts'
import {
  answerColumns,
  answerReferences,
  deletedWith,
  erasedWith,
  personNamed,
  personWithId,
} from './recorded-answers-sql.ts'

/** The answer of a person that stands: the last one that was not superseded. */
const standingAnswer = (person: string, condition = '') =>
  `select ${answerColumns} from consent_history a
   where a.organization_id = $1 and a.person_id = ${person} and a.consent_type_id = $3 and a.channel = $4
     and not a.superseded${condition}
   order by a.version desc limit 1`

/** The facts of decisions, all of one snapshot. The people e are found by a condition, the deleted ones by an expression. */
const facts = (asked: string, condition: string, deleted: string) =>
  `select h.sequence as head, t.state as purpose_state, t.mandatory, t.default_state,
     t.channels @> jsonb_build_array(jsonb_build_object('channel', $4::text)) as has_channel,
     e.id is not null as is_present, e.address, d.sequence as gone_sequence, d.at as gone_at,
     d.operation = 'erase' as is_erased, a.*, ${answerReferences}
   from change_heads h
     left join consent_types t on t.organization_id = $1 and t.id = $3
     cross join ${asked}
     left join lateral (
       select e.id, case $4::text when 'email' then e.email else e.mobile_number end as address from entities e
       where e.organization_id = $1 and e.stack_id = 0 and ${condition} offset 0
     ) e on true
     left join lateral (
       select c.sequence, c.at, c.operation from changes c
       where e.id is null and c.organization_id = $1 and c.stack_id = 0 and c.entity_id = (${deleted}) order by c.version desc limit 1
     ) d on true
     left join lateral (${standingAnswer('e.id')}) a on true
   where h.organization_id = $1 order by n.position`

/**
 * $2: external identifiers, or one internal identifier, $3: consent type, $4: channel. Returns a row for each identifier, in
 * their order. The columns of the consent type are null if it does not exist.
 */
export const readContactFacts = {
  external_id: statement(
    'read_contact_facts',
    facts(
      'unnest($2::text[]) with ordinality as n(name, position)',
      'e.external_id = n.name',
      `coalesce((${deletedWith('n.name')}), (${erasedWith('n.name')}))`,
    ),
  ),
  id: statement('read_contact_facts_by_id', facts('(select 1 as position) n', 'e.id = $2', '$2')),
}

/** The facts of a decision at the number $5 about a person p. m is the person's last change until then, b the one that has all fields. */
const pastFacts = (person: string) =>
  `select m.operation, m.sequence as gone_sequence, m.at as gone_at,
     not coalesce(b.after ? 'state', false) or last.operation = 'erase' as is_blanked, f.address, a.*, ${answerReferences}
   from (select ${person} as id) p
     left join lateral (
       select c.version, c.operation, c.sequence, c.at from changes c
       where c.organization_id = $1 and c.entity_id = p.id and c.sequence <= $5 order by c.version desc limit 1
     ) m on true
     left join lateral (
       select c.operation from changes c
       where c.organization_id = $1 and c.entity_id = p.id order by c.version desc limit 1
     ) last on true
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

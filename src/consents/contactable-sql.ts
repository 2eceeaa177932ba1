import { statement } from '../db/db.ts'
import {
  answerColumns,
  answerReferences,
  answersOf,
  bearerOrDeleted,
  deletedWith,
  erasedWith,
  personWithId,
} from './recorded-answers-sql.ts'

/** The last answer of a person that was not superseded. */
const lastAnswer = (person: string) =>
  `select ${answerColumns} from consent_history a
   where a.organization_id = $1 and a.person_id = ${person} and a.consent_type_id = $3 and a.channel = $4
     and not a.superseded
   order by a.version desc limit 1`

/** The address on the channel, and who gave the answer that stands: the person, or one who was merged into it. */
const person = `case $4::text when 'email' then e.email else e.mobile_number end as address,
       coalesce((e.answers->concat($3::integer, ':', $4::text)->>'person_id')::uuid, e.id) as answered_by`

/** The person e that a condition finds, or else the one that an identifier leads to. */
const findPerson = (condition: string, further?: string) => {
  const own = `select e.id, ${person} from entities e where e.organization_id = $1 and e.stack_id = 0 and ${condition} offset 0`
  if (!further) return `left join lateral (${own}) e on true`
  return `left join lateral (${own}) o on true
     left join lateral (
       select e.id, ${person} from (${further} offset 0) p cross join lateral (
         select e.* from entities e where e.organization_id = $1 and e.stack_id = 0 and e.id = p.person_id offset 0
       ) e where o.id is null
     ) f on true
     cross join lateral (
       select coalesce(o.id, f.id) as id, coalesce(o.address, f.address) as address, coalesce(o.answered_by, f.answered_by) as answered_by
     ) e`
}

/** The facts of decisions, all of one snapshot. The people e are found by joins, and the deleted ones by an expression. */
const facts = (asked: string, people: string, deleted: string) =>
  `select h.sequence as head, h.schema_version, t.state as purpose_state, t.mandatory, t.default_state,
     t.channels @> jsonb_build_array(jsonb_build_object('channel', $4::text)) as has_channel,
     e.id is not null as is_present, e.address, d.sequence as gone_sequence, d.at as gone_at,
     d.operation = 'erase' as is_erased, a.*, nullif(a.person_id, e.id) as merged_person_id, ${answerReferences}
   from change_heads h
     left join consent_types t on t.organization_id = $1 and t.id = $3
     cross join ${asked}
     ${people}
     left join lateral (
       select c.sequence, c.at, c.operation from changes c
       where e.id is null and c.organization_id = $1 and c.stack_id = 0 and c.entity_id = (${deleted}) order by c.version desc limit 1
     ) d on true
     left join lateral (${lastAnswer('e.answered_by')}) a on true
   where h.organization_id = $1 order by n.position`

const askedNames = 'unnest($2::text[]) with ordinality as n(name, position)'
const askedId = '(select 1 as position) n'
const deletedOrErased = `coalesce((${deletedWith('n.name')}), (${erasedWith('n.name')}))`

/**
 * $2: external identifiers, or one internal identifier, $3: consent type, $4: channel. Returns a row for each identifier, in
 * their order. The columns of the consent type are null if it does not exist.
 */
export const readContactFacts = {
  external_id: statement(
    'read_contact_facts',
    facts(askedNames, findPerson('e.external_id = n.name'), deletedOrErased),
  ),
  id: statement('read_contact_facts_by_id', facts(askedId, findPerson('e.id = $2'), '$2')),
}

/** As {@link readContactFacts}, and finds people by further identifiers too. */
export const readContactFactsByAnyIdentifier = {
  external_id: statement(
    'read_contact_facts_by_any_external_id',
    facts(
      askedNames,
      findPerson(
        'e.external_id = n.name',
        'select s.person_id from aliases s where s.organization_id = $1 and s.external_id = n.name',
      ),
      deletedOrErased,
    ),
  ),
  id: statement(
    'read_contact_facts_by_any_id',
    facts(
      askedId,
      findPerson(
        'e.id = $2',
        `select m.person_id from merges m
         where m.organization_id = $1 and m.merged_id = $2 and m.unmerged_sequence is null`,
      ),
      '$2',
    ),
  ),
}

/** The facts of a decision at the number $5 about a person p. m is the person's last change until then, b the one that has all fields. */
const pastFacts = (person: string) =>
  `select m.operation, m.sequence as gone_sequence, m.at as gone_at, m.merged_into,
     not coalesce(b.after ? 'state', false) or last.operation = 'erase' as is_blanked, f.address, a.*,
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
     left join lateral (
       select c.after->>$6::text as address from changes c
       where c.organization_id = $1 and c.entity_id = p.id and c.version between b.version and m.version and c.after ? $6::text
       order by c.version desc limit 1
     ) f on true
     left join lateral (
       select ${answerColumns} from (${answersOf('p.id')}) a
       where a.consent_type_id = $3 and a.channel = $4 and not a.superseded and a.since <= m.version
         and (a.until is null or a.until > m.version)
       order by a.since desc limit 1
     ) a on true`

/**
 * $2: external or internal identifier, $3: consent type, $4: channel, $5: number of a change, $6: the field of the address.
 * Returns one row: the person and the answer after this change. `operation` is null if the person did not exist yet.
 * `merged_into` is the person that a merge had made of this one. An alias finds nobody here.
 */
export const readPastContactFacts = {
  external_id: statement('read_past_contact_facts', pastFacts(bearerOrDeleted('$2'))),
  id: statement('read_past_contact_facts_by_id', pastFacts(personWithId('$2'))),
}

import { statement } from '../db/db.ts'

/** The newest person who was deleted with a name and does not exist. The outer condition cannot choose the index of the inner scan. */
export const deletedWith = (name: string): string =>
  `select d.entity_id from (
     select c.entity_id, c.sequence, c.operation from changes c
     where c.organization_id = $1 and c.stack_id = 0 and (c.before->>'external_id') collate "C" = ${name}
       and c.before->>'external_id' is not null offset 0
   ) d
   where d.operation = 'delete' and not exists (
     select from entities e where e.organization_id = $1 and e.stack_id = 0 and e.id = d.entity_id
   )
   order by d.sequence desc limit 1`

/** The person who was erased and last had a name, of which only a keyed hash is left. */
export const erasedWith = (name: string): string =>
  `select x.entity_id as id from tombstone_keys k
     join tombstones t on t.organization_id = $1
       and t.hash = sha256(k.secret || sha256(k.secret || convert_to('external_id:' || ${name}, 'UTF8')))
     join erasures x on x.organization_id = $1 and x.id = t.erasure_id
   where k.organization_id = $1`

/** $2: external identifier. */
export const findErasedNamedSql = statement('find_erased_named', `${erasedWith('$2')}`)

const bearerOf = (name: string) =>
  `select e.id from entities e where e.organization_id = $1 and e.stack_id = 0 and e.external_id = ${name}`

/** The person who has a name, now or last, or else the one that it leads to as an alias. */
export const personNamed = (name: string): string =>
  `coalesce((${bearerOf(name)}), (
     select s.person_id from aliases s where s.organization_id = $1 and s.external_id = ${name}
   ), (${deletedWith(name)}))`

/** The person who has a name or, if nobody has it and it is no alias, the last one who was deleted with it. */
export const bearerOrDeleted = (name: string): string =>
  `coalesce((${bearerOf(name)}), (
     select d.entity_id from (${deletedWith(name)}) d
     where not exists (select from aliases s where s.organization_id = $1 and s.external_id = ${name})
   ))`

/** The person with an internal identifier, deleted or not. */
export const personWithId = (id: string): string =>
  `(select c.entity_id from changes c where c.organization_id = $1 and c.entity_id = ${id} and c.stack_id = 0 limit 1)`

/** The columns of an answer a of the consent history. */
export const answerColumns = `a.person_id, a.version, a.consent_type_id, a.channel, a.state, a.previous_state, a.superseded, a.pending, a.at,
       a.collected_at, a.evidence, a.actor, a.request_id`

/** The number of the change that an answer a is part of, and the hash of the text that it names. */
export const answerReferences = `(
     select c.sequence from changes c where c.organization_id = $1 and c.entity_id = a.person_id and c.version = a.version
   ) as sequence, (
     select encode(t.sha256, 'hex') from consent_texts t
     where t.organization_id = $1 and t.consent_type_id = a.consent_type_id and t.version = (a.evidence->>'text_version')::integer
   ) as text_sha256`

/**
 * The answers of a person: its own, and those of people who were merged into it that a merge took over. They count from the
 * version `since` of the person on, and until the version `until`, if the merge was undone.
 */
export const answersOf = (person: string): string =>
  `select a.*, a.version as since, null::integer as until from consent_history a
       where a.organization_id = $1 and a.person_id = ${person}
       union all
       select a.*, t.since, t.until from merges g
         cross join lateral jsonb_to_recordset(g.undo->'answers') as t(consent_type_id integer, channel text, person_id uuid,
           version integer, since integer, until integer)
         join consent_history a on a.organization_id = $1 and a.person_id = t.person_id and a.version = t.version
           and a.consent_type_id = t.consent_type_id and a.channel = t.channel
       where g.organization_id = $1 and g.into_id = ${person}`

/** The answers of a person, newest first. A page has whole changes, up to the one that reaches the limit. */
const page = (person: string) =>
  `select p.id is not null as found, ${answerColumns.replace('a.version', 'a.since as version')}, a.has_next,
     nullif(a.person_id, p.id) as merged_person_id, ${answerReferences}
   from (select ${person} as id) p left join lateral (
     select a.* from (
       select a.*, lead(a.since) over changes is not null as has_next, count(*) over newer as answers_before,
         sum(200 + coalesce(octet_length(a.evidence::text), 0)) over newer as bytes_before
       from (${answersOf('p.id')}) a
       where a.since < $3 and ($4::integer is null or a.consent_type_id = $4) and ($5::text is null or a.channel = $5)
       window changes as (order by a.since desc), newer as (changes groups between unbounded preceding and 1 preceding)
     ) a where a.answers_before < $6 and coalesce(a.bytes_before, 0) < $7
   ) a on true
   order by a.since desc, a.consent_type_id, a.channel`

/**
 * $2: person, $3: before this version, $4: consent type or null for all, $5: channel or null for all, $6: answers, $7: bytes.
 * Returns at least one row if the person exists or existed, with null in its columns if there is no answer.
 */
export const readConsentHistory = {
  id: statement('read_consent_history_by_id', page(personWithId('$2'))),
  external_id: statement('read_consent_history', page(personNamed('$2'))),
}

/**
 * $2: person, $3: version, $4: consent type and $5: channel to begin after, $6: limit. The answers of a person by internal identifier,
 * oldest first.
 */
export const readAnswersAfterSql = statement(
  'read_answers_after',
  `select ${answerColumns}, ${answerReferences} from consent_history a
   where a.organization_id = $1 and a.person_id = $2 and (a.version, a.consent_type_id, a.channel) > ($3, $4, $5)
   order by a.version, a.consent_type_id, a.channel limit $6`,
)

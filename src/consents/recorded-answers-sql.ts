import { personNamed, personWithId, survivorOf } from '../changes/people-sql.ts'
import { statement } from '../db/db.ts'
import { exactTimeText } from '../db/time-text.ts'
import { channels, channelTable } from '../values/channels.ts'

/** The columns of an answer a of the consent history. */
export const answerColumns = `a.person_id, a.version, a.consent_type_id, a.channel, a.state, a.previous_state, a.superseded, a.pending, a.undated, a.at,
       ${exactTimeText('a.collected_at')} as collected_at, a.evidence, a.actor, a.request_id`

/** The number of the change that an answer a is part of. */
export const answerSequence = `(
     select c.sequence from changes c where c.organization_id = $1 and c.entity_id = a.person_id and c.version = a.version
   ) as sequence`

/** The number of the change that an answer a is part of, and the hash of the text that it names. */
export const answerReferences = `${answerSequence}, (
     select encode(t.sha256, 'hex') from consent_texts t
     where t.organization_id = $1 and t.consent_type_id = a.consent_type_id and t.version = (a.evidence->>'text_version')::integer
   ) as text_sha256`

/**
 * The answers of a person: its own, and those that a merge took over from people who were merged into it. They count
 * from the version `since` of the person, and until the version `until` if the merge was undone.
 */
export const answersOf = (person: string): string =>
  `select a.*, a.version as since, null::integer as until from consent_history a
       where a.organization_id = $1 and a.person_id = ${person}
       union all
       select a.*, t.since, t.until from merges g
         cross join lateral jsonb_to_recordset(g.undo->'answers') as t(consent_type_id integer, channel text, person_id uuid,
           version integer, since integer, until integer)
         cross join lateral (
           select a.* from consent_history a
           where a.organization_id = $1 and a.person_id = t.person_id and a.version = t.version
             and a.consent_type_id = t.consent_type_id and a.channel = t.channel offset 0
         ) a
       where g.organization_id = $1 and g.into_id = ${person}`

/** The answers of a person, newest first. A page has whole changes, up to the one that reaches the limit. */
const page = (person: string) =>
  `select p.id as found_id, ${answerColumns.replace('a.version', 'a.since as version')}, a.has_next,
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
 * $2: person, $3: before this version, $4: consent type or null for all, $5: channel or null for all, $6: answers, $7:
 * bytes. Returns at least one row if the person exists or existed, with null in its columns if there is no answer.
 */
export const readConsentHistory = {
  id: statement('read_consent_history_by_id', page(personWithId('$2'))),
  external_id: statement('read_consent_history', page(personNamed('$2'))),
}

/**
 * $2: person, $3: version, $4: consent type and $5: channel to begin after, $6: limit. The answers of a person by
 * internal identifier, oldest first.
 */
export const readAnswersAfterSql = statement(
  'read_answers_after',
  `select ${answerColumns}, ${answerReferences} from consent_history a
   where a.organization_id = $1 and a.person_id = $2 and (a.version, a.consent_type_id, a.channel) > ($3, $4, $5)
   order by a.version, a.consent_type_id, a.channel limit $6`,
)

const inForce = (person: string) =>
  `select h.schema_version, h.sequence, e.id, e.answers, array(
     ${channels
       .map(
         channel => `select w.consent_type_id || ':' || w.channel from address_answers w
     where w.organization_id = $1 and w.channel = '${channel}' and w.address = e.${channelTable[channel].key} and not w.state`,
       )
       .join(' union all ')}
   ) as refused
   from change_heads h left join entities e on e.organization_id = $1 and e.stack_id = 0 and e.id = (${person})
   where h.organization_id = $1`

/**
 * $2: external or internal identifier. Returns one row: the answers of the person, and the questions that the person's
 * addresses refuse, as the keys of answers. The answers are null if there is no such person.
 */
export const readConsentsInForce = {
  external_id: statement('read_consents_in_force', inForce(personNamed('$2'))),
  id: statement('read_consents_in_force_by_id', inForce(`coalesce((${survivorOf('$2::uuid')}), $2::uuid)`)),
}

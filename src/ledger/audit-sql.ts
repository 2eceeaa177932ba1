import { statement } from '../db/db.ts'
import { exactTimeText, timeText } from '../db/time-text.ts'
import { followerName } from './sql.ts'

// PostgreSQL prints and hashes the answers, which is much less work than to send them. It only has to find what may have been changed:
// audit.ts checks each suspect again by itself, with the code that seals.

/**
 * The state to audit, and what lies beyond it, of one moment: position is the last change whose answers are sealed. $1: organization.
 */
export const beginAuditSql = statement(
  'begin_audit',
  `select o.key as organization, coalesce(l.size, 0) as size, l.edge, l.checkpoint, coalesce(f.sequence, 0) as position,
     (select count(*) from ledger_entries e where e.organization_id = $1 and (e.index < 0 or e.index >= coalesce(l.size, 0)))
       as entries_beyond,
     (select count(*) from ledger_tiles t where t.organization_id = $1) as tiles
   from organizations o left join ledgers l on l.organization_id = $1
     left join followers f on f.organization_id = $1 and f.name = '${followerName}' and f.id = 0
   where o.id = $1`,
)

/** $2: indexes. The changes of entries. */
export const readBoundariesSql = statement(
  'read_audit_boundaries',
  `select e.index, e.sequence from ledger_entries e where e.organization_id = $1 and e.index = any($2::bigint[])
   order by e.index`,
)

/** A member whose value is a text or a number; nothing without a value. `concat` leaves out null. */
const member = (name: string, json: string) => `'"${name}":' || ${json} || ','`
const given = (name: string) => member(name, `(a.evidence->'${name}')::text`)

/** The answer a as RFC 8785 prints an entry: its members in order of their names, of which the last one has always a comma before. */
const canonical = `convert_to(concat('{',
     ${member('actor', 'to_json(a.actor)::text')}, ${member('at', `'"' || ${timeText('a.at')} || '"'`)},
     ${member('channel', `'"' || a.channel || '"'`)}, ${member('collected_at', `'"' || ${exactTimeText('a.collected_at')} || '"'`)},
     ${member('consent_type_id', 'a.consent_type_id')}, ${given('ip')}, ${given('method')},
     ${member('organization', 'to_json($6::text)::text')}, case when a.pending then '"pending":true,' end,
     ${member('person_id', `'"' || a.person_id || '"'`)}, ${member('previous_state', 'a.previous_state::text')},
     ${given('reference')}, ${member('request_id', 'to_json(a.request_id)::text')}, ${member('sequence', 'a.sequence')},
     ${given('source')}, ${member('state', 'a.state::text')}, '"superseded":', a.superseded::text,
     case when a.evidence ? 'text_version' then ',"text_sha256":"' || encode((
       select t.sha256 from consent_texts t where t.organization_id = $1 and t.consent_type_id = a.consent_type_id
         and t.version = (a.evidence->>'text_version')::integer), 'hex') || '"' end, ',"text_version":' || (a.evidence->'text_version')::text,
     case when a.undated then ',"undated":true' end, ',"user_agent":' || (a.evidence->'user_agent')::text, '}'), 'UTF8')`

/**
 * $2: the first index, $3: the index after the last, $4: the first change, $5: the one after the last, $6: organization. Joins the entries with the
 * answers. Suspects are entries that do not agree with an answer, unsealed are changes with an answer that no entry has.
 */
export const auditPartSql = statement(
  'audit_part',
  `select count(e.index)::integer as entries, count(a.sequence)::integer as answers,
     coalesce(string_agg(e.hash, ''::bytea order by e.index), ''::bytea) as leaves,
     array_agg(e.index::float8 order by e.index) filter (where e.index is not null and case
       when a.sequence is null then e.salt is not null
       else e.salt is null or e.hash <> sha256(e.salt || ${canonical}) end) as suspects,
     (array_agg(distinct a.sequence::float8) filter (where e.index is null and not exists (
       select from ledger_entries x where x.organization_id = $1 and x.sequence = a.sequence
         and x.consent_type_id = a.consent_type_id and x.channel = a.channel)))[1:101] as unsealed
   from (
     select e.index, e.sequence, e.consent_type_id, e.channel, e.salt, e.hash
     from ledger_entries e where e.organization_id = $1 and e.index >= $2 and e.index < $3
   ) e full join (
     select c.sequence, h.person_id, h.consent_type_id, h.channel, h.previous_state, h.state, h.superseded, h.pending, h.undated, h.at,
       h.collected_at, h.evidence, h.actor, h.request_id
     from changes c cross join lateral (
       select h.person_id, h.consent_type_id, h.channel, h.previous_state, h.state, h.superseded, h.pending, h.undated, h.at,
         h.collected_at, h.evidence, h.actor, h.request_id
       from consent_history h
       where h.organization_id = $1 and h.person_id = c.entity_id and h.version = c.version
       order by h.consent_type_id, h.channel
     ) h
     where c.organization_id = $1 and c.sequence >= $4 and c.sequence < $5 and c.stack_id = 0
   ) a on a.sequence = e.sequence and a.consent_type_id = e.consent_type_id and a.channel = e.channel`,
)

/** Counts the answers of the organization, with its newest change. */
export const countAnswersSql = statement(
  'count_audit_answers',
  `select count(*) as answers, (select c.sequence from change_heads c where c.organization_id = $1) as head
   from consent_history h where h.organization_id = $1`,
)

/** $2: after this change, $3: up to this one. */
export const countAnswersOfChangesSql = statement(
  'count_answers_of_changes',
  `select count(h.version) as answers
   from changes c cross join lateral (
     select h.version from consent_history h
     where h.organization_id = $1 and h.person_id = c.entity_id and h.version = c.version
     order by h.consent_type_id, h.channel
   ) h
   where c.organization_id = $1 and c.sequence > $2 and c.sequence <= $3 and c.stack_id = 0`,
)

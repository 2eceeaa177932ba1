import { type Statement, statement } from '../../db/db.ts'
import { hashed } from '../../db/keyed-hash.ts'
import { channels, channelTable } from '../../values/channels.ts'

// The statements of erased-tables.ts, which remove or empty rows and return their number, and the statements that run
// beside them.

/** A statement that changes rows and returns their number. */
const counted = (name: string, change: string): Statement =>
  statement(name, `with gone as (${change} returning 1) select count(*)::integer as count from gone`)

/** $2: ids. Deletes the rows that have one of the ids in a column. */
const deleteBy = (name: string, table: string, column: string): Statement =>
  counted(name, `delete from ${table} x where x.organization_id = $1 and x.${column} = any($2::uuid[])`)

export const deleteOwnLinksSql = deleteBy('delete_own_links', 'links', 'source_id')
export const deleteAliasesSql = deleteBy('delete_aliases_of', 'aliases', 'person_id')
export const deleteAnswersSql = deleteBy('delete_answers', 'consent_history', 'person_id')
export const deleteRefusalsSql = deleteBy('delete_job_refusals', 'job_refusals', 'entity_id')
export const deleteMembershipsSql = deleteBy('delete_memberships', 'segment_members', 'person_id')

export const deleteRetentionNoticesSql = deleteBy('delete_notices_about', 'retention_notices', 'person_id')

/** $2: people. Removes them from their holds. */
export const leaveHoldsSql = counted(
  'leave_holds',
  `update person_holds h set people = array(select p.id from unnest(h.people) as p(id) where p.id <> all($2::uuid[]))
   where h.organization_id = $1 and h.people && $2::uuid[]`,
)

/** $2: people. Removes them from their set-asides. A set-aside with one person left ends. */
export const leaveSetAsidesSql = counted(
  'leave_set_asides',
  `delete from set_aside_people s where s.organization_id = $1 and (s.person_id = any($2::uuid[]) or s.set_aside_id in (
     select k.set_aside_id from set_aside_people k
     where k.organization_id = $1 and k.set_aside_id in (
       select f.set_aside_id from set_aside_people f where f.organization_id = $1 and f.person_id = any($2::uuid[])
     )
     group by k.set_aside_id having count(*) filter (where k.person_id <> all($2::uuid[])) < 2
   ))`,
)

/** A link k that leads to one of $2, or led to it when it was written. */
const leadsToThem = '(k.target_id = any($2::uuid[]) or k.written_id = any($2::uuid[]))'

/** $2: ids. */
export const deleteLinksToSql = counted(
  'delete_links_to',
  `delete from links k where k.organization_id = $1 and ${leadsToThem}`,
)

/** $2: ids, $3: limit. Deletes links to erased entities, which no request reads or writes. */
export const deleteLinkSetSql = counted(
  'delete_link_set',
  `delete from links l where l.organization_id = $1 and l.ctid = any(array(
     select k.ctid from links k where k.organization_id = $1 and ${leadsToThem} limit $3 for update skip locked
   ))`,
)

/** $2: people. */
export const blankMergesSql = counted(
  'blank_merges',
  `update merges m set undo = null, email_key = null, mobile_key = null
   where m.organization_id = $1 and m.undo is not null
     and (m.merged_id = any($2::uuid[]) or m.into_id = any($2::uuid[]) or m.person_id = any($2::uuid[]))`,
)

/** $2: people. Runs before their answers are deleted, because the answers select the rows. */
export const eraseSaltsSql = counted(
  'erase_salts',
  `update ledger_entries e set salt = null from (
     select c.sequence, h.consent_type_id, h.channel
     from unnest($2::uuid[]) as v(id) cross join lateral (
       select h.version, h.consent_type_id, h.channel from consent_history h
       where h.organization_id = $1 and h.person_id = v.id offset 0
     ) h cross join lateral (
       select c.sequence from changes c
       where c.organization_id = $1 and c.entity_id = v.id and c.version = h.version offset 0
     ) c offset 0
   ) a
   where e.organization_id = $1 and e.sequence = a.sequence and e.consent_type_id = a.consent_type_id
     and e.channel = a.channel and e.salt is not null`,
)

/** The changes of the versions in $2: [{id, after, until}]. `columns` are columns of a change c. */
const rangesOf = (columns: string) =>
  `select c.* from jsonb_to_recordset($2::text::jsonb) as v(id uuid, after integer, until integer) cross join lateral (
       select ${columns} from changes c
       where c.organization_id = $1 and c.entity_id = v.id and c.version > v.after and c.version <= v.until offset 0
     ) c`

/** $2: [{id, after, until}]. */
export const blankChangesSql = counted(
  'blank_changes',
  `update changes c set before = null, after = '{}', links = null
   where c.organization_id = $1 and c.ctid = any(array(${rangesOf('c.ctid')}))
     and (c.before is not null or c.after is distinct from '{}'::jsonb or c.links is not null)`,
)

const blankDeliveries = `update webhook_deliveries d set response = null, error = null from webhooks w
     where w.organization_id = $1 and d.organization_id = $1 and d.webhook_id = w.id and (d.response is not null or d.error is not null)`

/** $2: [{id, after, until}]. Deletes the waiting deliveries of these changes, and empties the others. */
export const eraseDeliveriesSql = statement(
  'erase_deliveries',
  `with own as materialized (
     ${rangesOf('c.sequence')}
   ), dropped as (
     delete from webhook_deliveries d using webhooks w
     where w.organization_id = $1 and d.organization_id = $1 and d.webhook_id = w.id
       and d.sequence = any(array(select o.sequence from own o)) and d.status = 'waiting'
     returning 1
   ), blanked as (
     ${blankDeliveries} and d.sequence = any(array(select o.sequence from own o)) and d.status <> 'waiting'
     returning 1
   ) select ((select count(*) from dropped) + (select count(*) from blanked))::integer as count`,
)

/** $2: texts. Empties the deliveries whose receivers answered with one of the texts. */
export const blankQuotingDeliveriesSql = counted(
  'blank_quoting_deliveries',
  `${blankDeliveries} and exists (
     select from unnest($2::text[]) as n(text) where strpos(d.response, n.text) > 0 or strpos(d.error, n.text) > 0
   )`,
)

/**
 * $2: texts. Deletes the stored responses that have one of the texts in their JSON or headers, because any response may
 * show a person.
 */
export const deleteResponsesSql = counted(
  'delete_responses_with',
  `delete from idempotency_keys k
   where k.organization_id = $1 and exists (
     select from unnest($2::text[]) as n(text) where strpos(k.body, n.text) > 0 or strpos(k.headers::text, n.text) > 0
   )`,
)

/** $2: people whose erasure {@link insertLeavingSql} has reported. Deletes the earlier reports of the feed. */
export const deleteToldSql = counted(
  'delete_told_memberships',
  `delete from segment_changes s
   where s.organization_id = $1 and s.person_id = any($2::uuid[]) and s.sequence < (
     select c.sequence from changes c where c.organization_id = $1 and c.entity_id = s.person_id order by c.version desc limit 1
   )`,
)

/** $2: ids. Stores the entities that are linked with them, because the log does not show that these links are gone. */
export const insertSegmentChecksSql = statement(
  'insert_segment_checks',
  `insert into segment_checks (organization_id, entity_id)
   select distinct l.organization_id, l.id from (
     select l.organization_id, l.source_id as id from links l where l.organization_id = $1 and l.target_id = any($2::uuid[])
     union all
     select l.organization_id, l.target_id from links l
     where l.organization_id = $1 and l.source_id = any($2::uuid[]) and l.target_id is not null
   ) l order by l.id on conflict do nothing`,
)

/**
 * $2: people. Makes the feed report that they left their segments, with the change of their erasure, which has been
 * logged. This includes segments that a person left earlier, because {@link deleteToldSql} deletes the earlier report,
 * which a reader may not have read yet.
 */
export const insertLeavingSql = statement(
  'insert_leaving',
  `insert into segment_changes (organization_id, segment_id, sequence, person_id, entered)
   select k.organization_id, k.segment_id, c.sequence, k.person_id, false from (
     select m.organization_id, m.segment_id, m.person_id from segment_members m
     where m.organization_id = $1 and m.person_id = any($2::uuid[])
     union
     select s.organization_id, s.segment_id, s.person_id from segment_changes s
     where s.organization_id = $1 and s.person_id = any($2::uuid[])
   ) k cross join lateral (
     select c.sequence from changes c
     where c.organization_id = $1 and c.entity_id = k.person_id order by c.version desc limit 1
   ) c`,
)

/** The addresses d of the values $2 that no other person has. The rows of the erased people are already deleted. */
const givenUp = `d.organization_id = $1 and d.address is not null and d.hash in (select h.hash from ${hashed})
     ${channels
       .map(
         channel => `and not (d.channel = '${channel}' and exists (
       select from entities e where e.organization_id = $1 and e.stack_id = 0 and e.${channelTable[channel].key} = d.address
     ))`,
       )
       .join(' ')}`

/** $2: values such as `email:ada@example.com`. A suppressed address keeps its hash and the times of its events. */
export const giveUpAddressesSql = statement(
  'give_up_addresses',
  `with deleted as (
     delete from deliverability d where ${givenUp} and d.suppressed_until is null returning 1
   ), blanked as (
     update deliverability d set address = null, events = jsonb_set(
       d.events #- '{hard_bounce,reference}' #- '{complaint,reference}', '{soft_bounces}', coalesce((
         select jsonb_agg(b.mark - 'reference' order by b.place)
         from jsonb_array_elements(d.events->'soft_bounces') with ordinality as b(mark, place)
       ), '[]'), false)
     where ${givenUp} and d.suppressed_until is not null returning 1
   ) select ((select count(*) from deleted) + (select count(*) from blanked))::integer as count`,
)

/** $2: names. Locks the followers that keep data in memory. They store nothing while the locks are held. */
export const lockFollowersSql = statement(
  'lock_followers_of_erasure',
  `select f.name, f.id from followers f where f.organization_id = $1 and f.name = any($2::text[])
   order by f.name, f.id for update`,
)

/** $2: ids, $3: limit of changes, $4: limit of links. Counts their changes and the links to them, up to the limits. */
export const measureSql = statement(
  'measure_erasure',
  `select c.changes, l.links from (
     select count(*)::integer as changes from (
       select from changes c where c.organization_id = $1 and c.entity_id = any($2::uuid[]) limit $3
     ) c
   ) c cross join (
     select count(*)::integer as links from (
       select from links l where l.organization_id = $1 and l.target_id = any($2::uuid[]) limit $4
     ) l
   ) l`,
)

/**
 * $2: an entity, $3: after this version, $4: limit. Returns the version at the end of a set of this many changes, or
 * null after the last one.
 */
export const readEndOfSetSql = statement(
  'read_end_of_set',
  `select max(c.version) as version from (
     select c.version from changes c
     where c.organization_id = $1 and c.entity_id = $2 and c.version > $3::integer order by c.version limit $4
   ) c`,
)

/** $2: ids. Returns the last logged change of each entity. */
export const readLastChangesSql = statement(
  'read_last_changes',
  `select c.entity_id as id, c.stack_id, c.version, c.operation from unnest($2::uuid[]) as v(id) cross join lateral (
     select c.entity_id, c.stack_id, c.version, c.operation from changes c
     where c.organization_id = $1 and c.entity_id = v.id order by c.version desc limit 1
   ) c`,
)

const identifying = `array['external_id', 'email', 'mobile_prefix', 'mobile_number']`
/** The identifiers among the values of a change. Members that it did not write are absent. */
const identifiersOf = (values: string) =>
  `coalesce((select jsonb_object_agg(v.key, v.value) from jsonb_each(${values}) v where v.key = any(${identifying})), '{}')`

/**
 * $2: ids. Returns the identifiers that changes wrote, in the order of the versions. `is_given`: a merge of another
 * person gave them, or its unmerge removed them. `is_own`: a write of the entity itself has the identifiers in `after`.
 */
export const readLoggedIdentifiersSql = statement(
  'read_logged_identifiers',
  `select c.stack_id, c.entity_id as id, ${identifiersOf('c.before')} as before, ${identifiersOf('c.after')} as after,
     c.operation in ('create', 'update') as is_own, c.operation = 'update' and exists (
       select from merges m
       where m.organization_id = $1 and m.id = c.merge_id and m.unmerged_sequence is not null and m.merged_id <> all($2::uuid[])
     ) as is_given
   from changes c
   where c.organization_id = $1 and c.entity_id = any($2::uuid[]) and (c.before ?| ${identifying} or c.after ?| ${identifying})
   order by c.entity_id, c.version`,
)

/** $2: people. Returns the emails and phones of the merged ones among them, which the log may have lost. */
export const readMergedContactsSql = statement(
  'read_merged_contacts',
  `select c.email, c.mobile_prefix, c.mobile_number from merges m
     cross join lateral jsonb_to_record(m.undo->'other'->'columns') as c(email text, mobile_prefix text, mobile_number text)
   where m.organization_id = $1 and m.merged_id = any($2::uuid[]) and m.unmerged_sequence is null and m.undo ? 'other'`,
)

/** $2: people. */
export const readAliasesOfSql = statement(
  'read_aliases_of',
  'select a.external_id from aliases a where a.organization_id = $1 and a.person_id = any($2::uuid[])',
)

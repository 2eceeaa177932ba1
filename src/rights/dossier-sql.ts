import { personNamed, personWithId, survivorOf } from '../changes/people-sql.ts'
import { statement } from '../db/db.ts'
import { channels, channelTable } from '../values/channels.ts'

/** The person whose id is this expression, and the ids of the people who were merged into it. */
const personBy = (id: string) =>
  `select p.id, array(
     select m.merged_id from merges m
     where m.organization_id = $1 and m.person_id = p.id and m.unmerged_sequence is null order by m.id
   ) as merged_ids
   from (select ${id} as id) p where p.id is not null`

/**
 * $2: internal or external identifier. Returns the person of the dossier, even if it was deleted. The identifier of a
 * merged person finds the survivor.
 */
export const findSubject = {
  id: statement(
    'find_dossier_subject_by_id',
    personBy(`coalesce((${survivorOf('$2::uuid')}), ${personWithId('$2::uuid')})`),
  ),
  external_id: statement('find_dossier_subject', personBy(personNamed('$2'))),
}

/**
 * $2: person. Returns the organization that holds the data, the number of the newest change, and the last operation on
 * the person.
 */
export const readAboutSql = statement(
  'read_dossier_about',
  `select o.key as organization, s.display_name, s.contact_email, s.privacy_url, now() as at, h.sequence as head, h.log_id,
     last.operation, last.external_id
   from organizations o join change_heads h on h.organization_id = $1
     left join organization_settings s on s.organization_id = $1
     left join lateral (
       select c.operation, c.before->>'external_id' as external_id from changes c
       where c.organization_id = $1 and c.entity_id = $2 order by c.version desc limit 1
     ) last on true
   where o.id = $1`,
)

/** $2: person. Returns the values of the row that reads do not show. */
export const readOwnSql = statement(
  'read_dossier_own',
  `select e.attributes, e.email_key, e.mobile_key, e.name_key from entities e
   where e.organization_id = $1 and e.stack_id = 0 and e.id = $2`,
)

/**
 * $2: people, $3: consent type and $4: version to begin after, $5: limit. Returns the texts that answers of the people
 * name.
 */
export const readTextsSql = statement(
  'read_dossier_texts',
  `select t.consent_type_id, t.version, t.language, t.text, t.url, encode(t.sha256, 'hex') as sha256, t.created_at
   from consent_texts t
   where t.organization_id = $1 and (t.consent_type_id, t.version) > ($3, $4) and exists (
     select from consent_history a
     where a.organization_id = $1 and a.person_id = any($2::uuid[]) and a.consent_type_id = t.consent_type_id
       and (a.evidence->>'text_version')::integer = t.version
   )
   order by t.consent_type_id, t.version limit $5`,
)

/** $2: people. Returns the events and suppressions of their addresses, including addresses from merges. */
export const readAddressesSql = statement(
  'read_dossier_addresses',
  `select d.channel, d.address, d.reason, d.suppressed_from, nullif(d.suppressed_until, 'infinity') as suppressed_until, d.events
   from (
     select e.email_key, e.mobile_key from entities e where e.organization_id = $1 and e.stack_id = 0 and e.id = any($2::uuid[])
     union
     select m.email_key, m.mobile_key from merges m
     where m.organization_id = $1 and m.person_id = any($2::uuid[]) and m.unmerged_sequence is null
   ) e cross join lateral (values ${channels.map(channel => `('${channel}', e.${channelTable[channel].key})`).join(', ')}) as a(channel, address)
     join deliverability d on d.organization_id = $1 and d.channel = a.channel and d.address = a.address
   order by d.channel, d.address`,
)

/** Whether no earlier link leads to the same entity, because the dossier shows each linked record once. */
const isFirstOut = `not exists (
     select from links f
     where f.organization_id = $1 and f.target_id = l.target_id and f.source_id = $2 and f.attribute_id < l.attribute_id
   )`
const isFirstIn = `not exists (
     select from links f
     where f.organization_id = $1 and f.source_id = l.source_id and f.target_id = $2 and f.attribute_id < l.attribute_id
   ) and not exists (
     select from links f where f.organization_id = $1 and f.target_id = l.source_id and f.source_id = $2
   )`

/**
 * $2: person, $3: attribute and $4: entity to begin after, $5: limit. Returns the links from the person, or the links
 * to it. `is_first` is false if an earlier link of the dossier leads to the same entity.
 */
export const readLinksSql = {
  out: statement(
    'read_dossier_links_out',
    `select l.attribute_id, l.target_stack_id as stack_id, l.target_id as id, t.external_id, ${isFirstOut} as is_first
     from links l join entities t on t.organization_id = $1 and t.stack_id = l.target_stack_id and t.id = l.target_id
     where l.organization_id = $1 and l.source_id = $2 and (l.attribute_id, l.target_id) > ($3, $4)
     order by l.attribute_id, l.target_id limit $5`,
  ),
  in: statement(
    'read_dossier_links_in',
    `select l.attribute_id, a.owner_stack_id as stack_id, l.source_id as id, s.external_id, ${isFirstIn} as is_first
     from links l join attributes a on a.organization_id = $1 and a.id = l.attribute_id
       join entities s on s.organization_id = $1 and s.stack_id = a.owner_stack_id and s.id = l.source_id
     where l.organization_id = $1 and l.target_id = $2 and (l.attribute_id, l.source_id) > ($3, $4)
     order by l.attribute_id, l.source_id limit $5`,
  ),
}

/**
 * $2: a person, $3: after this segment, $4: and after this change, $5: limit. Returns the current segments of the
 * person with the change 0, and the changes by which it entered or left one.
 */
export const readSegmentsSql = statement(
  'read_dossier_segments',
  `select x.segment_id, x.sequence, x.event, g.key as segment_key, nullif(g.name, '') as segment_name
   from (
     select m.segment_id, 0 as sequence, 'member' as event from segment_members m
     where m.organization_id = $1 and m.person_id = $2
     union all
     select s.segment_id, s.sequence, case when s.entered then 'entered' else 'left' end from segment_changes s
     where s.organization_id = $1 and s.person_id = $2
   ) x join segments g on g.organization_id = $1 and g.id = x.segment_id
   where (x.segment_id, x.sequence) > ($3, $4::bigint)
   order by x.segment_id, x.sequence limit $5`,
)

/**
 * $2: person, $3: version to begin after, $4: limit of versions. Returns the deliveries of the person's changes to
 * webhooks, oldest first. A version without a delivery has a row of nulls.
 */
export const readDeliveriesSql = statement(
  'read_dossier_deliveries',
  `select c.version as person_version, d.*
   from (
     select c.version, c.sequence from changes c
     where c.organization_id = $1 and c.entity_id = $2 and c.version > $3 order by c.version limit $4
   ) c left join lateral (
     select d.webhook_id, w.url, w.description, w.payload, d.sequence, d.type as event, d.status, d.attempts, d.created_at,
       d.last_attempt_at, d.response_status, d.response, d.error
     from webhooks w join webhook_deliveries d on d.organization_id = $1 and d.webhook_id = w.id and d.sequence = c.sequence
     where w.organization_id = $1
   ) d on true
   order by c.version, d.webhook_id`,
)

/** $2: people, $3: name to begin after, $4: limit. */
export const readAliasesSql = statement(
  'read_dossier_aliases',
  `select 'external_id' as kind, a.external_id as value, a.created_at, a.merge_id from aliases a
   where a.organization_id = $1 and a.person_id = any($2::uuid[]) and a.external_id > $3
   order by a.external_id limit $4`,
)

/**
 * $2: people, $3: merge to begin after, $4: limit. Returns the emails and phones by which merges lead to the people.
 */
export const readMergedAddressesSql = statement(
  'read_dossier_merged_addresses',
  `select m.email_key, m.mobile_key, m.at as created_at, m.id as merge_id from merges m
   where m.organization_id = $1 and m.id > $3 and m.person_id = any($2::uuid[]) and m.unmerged_sequence is null
     and (m.email_key is not null or m.mobile_key is not null)
   order by m.id limit $4`,
)

/** $2: people, $3: merge to begin after, $4: limit. */
export const readMergesSql = statement(
  'read_dossier_merges',
  `select m.id as merge_id, m.merged_id, m.into_id, m.at, m.sequence, m.unmerged_sequence, m.undo from merges m
   where m.organization_id = $1 and m.id > $3
     and (m.merged_id = any($2::uuid[]) or m.into_id = any($2) or m.person_id = any($2))
   order by m.id limit $4`,
)

/** $2: people. */
export const readErasuresSql = statement(
  'read_dossier_erasures',
  `select e.id as erasure_id, e.entity_id as id, e.at, e.actor, e.reason, e.records, e.completed_at from erasures e
   where e.organization_id = $1 and e.entity_id = any($2::uuid[]) order by e.id`,
)

/** $2: people. Returns their holds, including ended ones. */
export const readHoldsSql = statement(
  'read_dossier_holds',
  `select h.id as hold_id, h.reason, h.until, h.actor, h.created_at, h.released_at from person_holds h
   where h.organization_id = $1 and h.people && $2::uuid[] order by h.id`,
)

/** $2: people. Returns their set-asides. */
export const readSetAsidesSql = statement(
  'read_dossier_set_asides',
  `select s.set_aside_id, s.person_id, s.actor, s.at from set_aside_people s
   where s.organization_id = $1 and s.person_id = any($2::uuid[]) order by s.set_aside_id, s.person_id`,
)

/** $2: people. Returns the rules that will erase or delete them. */
export const readNoticesSql = statement(
  'read_dossier_notices',
  `select n.rule_id, r.key as rule_key, r.action, r.after_days, n.entered_at, n.due_at
   from retention_notices n join retention_rules r on r.organization_id = $1 and r.id = n.rule_id
   where n.organization_id = $1 and n.person_id = any($2::uuid[]) order by n.rule_id`,
)

export const readJobRefusalsSql = statement(
  'read_dossier_job_refusals',
  `select r.job_id, r.error, r.message from job_refusals r
   where r.organization_id = $1 and r.entity_id = any($2::uuid[]) order by r.job_id, r.entity_id`,
)

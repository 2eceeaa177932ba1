import { statement } from '../db/db.ts'

const person = 'select e.id, e.version, e.language, e.answers, e.email_key, e.mobile_key from entities e'

/** $2: external or internal identifier, which may be an alias, or that of a person who was merged. */
export const readLinkedPersonSql = {
  external_id: statement(
    'read_linked_person_by_name',
    `${person} where e.organization_id = $1 and e.stack_id = 0 and e.id = coalesce((
       select n.id from entities n where n.organization_id = $1 and n.stack_id = 0 and n.external_id = $2
     ), (
       select s.person_id from aliases s where s.organization_id = $1 and s.external_id = $2
     ))`,
  ),
  id: statement(
    'read_linked_person',
    `${person} where e.organization_id = $1 and e.stack_id = 0 and e.id = coalesce((
       select m.person_id from merges m where m.organization_id = $1 and m.merged_id = $2 and m.unmerged_sequence is null
     ), $2)`,
  ),
}

/** The newest version of the texts of each consent type in each language, with the size of its text, newest first. */
export const readNewestTextVersionsSql = statement(
  'read_newest_text_versions',
  `select t.consent_type_id, t.version, t.language, octet_length(t.text) as bytes
   from (
     select n.consent_type_id, max(n.version) as version from consent_texts n where n.organization_id = $1
     group by n.consent_type_id, n.language
   ) newest
   join consent_texts t on t.organization_id = $1 and t.consent_type_id = newest.consent_type_id
     and t.version = newest.version
   order by t.consent_type_id, t.version desc`,
)

/** $2: consent types, $3: a version of the texts of each. Reads these texts. */
export const readTextsSql = statement(
  'read_texts',
  `select t.consent_type_id, t.version, t.language, t.text, t.url
   from unnest($2::integer[], $3::integer[]) as wanted (consent_type_id, version)
   join consent_texts t on t.organization_id = $1 and t.consent_type_id = wanted.consent_type_id
     and t.version = wanted.version`,
)

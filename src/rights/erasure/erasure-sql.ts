import { deletedOrErasedWith, personWithId, survivorOf } from '../../changes/people-sql.ts'
import { statement } from '../../db/db.ts'
import { hashOf } from '../../db/keyed-hash.ts'

/**
 * $2: internal or external identifier. An internal one finds the person itself or the person that it was merged into,
 * or null if there never was one. An external one finds the person who has it, also as an alias, or else the last
 * person who was deleted or erased with it. A repeated erasure must not find the person who had the name before.
 */
export const findToEraseSql = {
  id: statement('find_to_erase', `select coalesce((${survivorOf('$2')}), ${personWithId('$2')}) as id`),
  external_id: statement(
    'find_named_to_erase',
    `select coalesce((
     select e.id from entities e where e.organization_id = $1 and e.stack_id = 0 and e.external_id = $2
   ), (
     select a.person_id from aliases a where a.organization_id = $1 and a.external_id = $2
   ), (${deletedOrErasedWith('$2')})) as id`,
  ),
}

/** $2: person. Returns the people who were merged into it. */
export const readMergedSql = statement(
  'read_merged',
  `select m.merged_id as id from merges m
   where m.organization_id = $1 and m.person_id = $2 and m.unmerged_sequence is null order by m.merged_id`,
)

/** $2: people. Returns the records that are linked with one of them, in either direction, but with no other person. */
export const readLinkedRecordsSql = statement(
  'read_linked_records',
  `with linked as materialized (
     select a.owner_stack_id as stack_id, l.source_id as id
     from links l join attributes a on a.organization_id = $1 and a.id = l.attribute_id
     where l.organization_id = $1 and l.target_id = any($2::uuid[]) and a.owner_stack_id <> 0
     union
     select l.target_stack_id, l.target_id from links l
     where l.organization_id = $1 and l.source_id = any($2::uuid[]) and l.target_stack_id <> 0
   )
   select e.stack_id, e.id from linked x
     join entities e on e.organization_id = $1 and e.stack_id = x.stack_id and e.id = x.id
   where not exists (
     select from links o join entities e on e.organization_id = $1 and e.stack_id = 0 and e.id = o.target_id
     where o.organization_id = $1 and o.source_id = x.id and o.target_stack_id = 0 and o.target_id <> all($2::uuid[])
   ) and not exists (
     select from links o join entities e on e.organization_id = $1 and e.stack_id = 0 and e.id = o.source_id
     where o.organization_id = $1 and o.target_id = x.id and o.source_id <> all($2::uuid[])
   )
   order by e.id`,
)

/**
 * $2: people. Returns the records that their stack erases with them, and the deleted ones, whose values are in the log.
 */
export const readErasedWithSql = statement(
  'read_erased_with',
  `with about as materialized (
     select a.owner_stack_id as stack_id, a.id from stacks s
       join attributes a on a.organization_id = $1 and a.owner_stack_id = s.id and a.key = s.erased_with
     where s.organization_id = $1 and s.erased_with is not null
   )
   select a.stack_id, l.source_id as id from about a join links l on l.organization_id = $1 and l.attribute_id = a.id
   where l.target_id = any($2::uuid[])
   union
   select a.stack_id, c.entity_id from about a join changes c on c.organization_id = $1 and c.stack_id = a.stack_id
   where c.operation = 'delete' and c.entity_id is not null and c.links -> a.id::text -> 'before' ?| $2::uuid[]::text[]
   order by id`,
)

const columns = `x.id, x.stack_id, x.entity_id, x.at, x.actor, x.reason, x.records, x.completed_at, x.removed, x.certificate`

/** The number of the newest change. The log up to it includes the erasure. */
const sequence = '(select h.sequence from change_heads h where h.organization_id = $1) as sequence'

/** $2: entity. Returns its newest erasure. */
export const readErasureOfSql = statement(
  'read_erasure_of',
  `select ${columns}, ${sequence} from erasures x where x.organization_id = $1 and x.entity_id = $2 order by x.id desc limit 1`,
)

/** $2: id. */
export const readErasureSql = statement(
  'read_erasure',
  `select ${columns}, ${sequence} from erasures x where x.organization_id = $1 and x.id = $2`,
)

/**
 * $2: before this id, $3: limit. Newest first. The rows of merged people and of records belong to the row with the
 * certificate.
 */
export const listErasuresSql = statement(
  'list_erasures',
  `select ${columns} from erasures x
   where x.organization_id = $1 and x.id < $2 and (x.certificate is not null or x.removed ? 'pending')
   order by x.id desc limit $3`,
)

/** Returns the next id. The head must be locked. */
export const nextErasureIdSql = statement(
  'next_erasure_id',
  'select coalesce(max(x.id), 0) + 1 as id from erasures x where x.organization_id = $1',
)

/**
 * $2: [{id, stack_id, entity_id, removed, certificate}], $3: the time, $4: actor, $5: request id, $6: reason, $7:
 * records, $8: whether the erasure is complete.
 */
export const insertErasuresSql = statement(
  'insert_erasures',
  `insert into erasures (organization_id, id, stack_id, entity_id, at, actor, request_id, reason, records, completed_at, removed, certificate)
   select h.organization_id, v.id, v.stack_id, v.entity_id, $3::timestamptz, $4, $5, $6, $7, case when $8::boolean then $3::timestamptz end, v.removed, v.certificate
   from change_heads h
     cross join jsonb_to_recordset($2::text::jsonb) as v(id integer, stack_id integer, entity_id uuid, removed jsonb, certificate text)
   where h.organization_id = $1`,
)

/** Increases the version of the definitions, so that every process reads that tombstones exist. */
export const renewDefinitionsSql = statement(
  'renew_definitions',
  'update change_heads set schema_version = schema_version + 1 where organization_id = $1',
)

/** The organizations with an incomplete erasure. */
export const listUnfinishedOrganizationsSql = statement(
  'list_organizations_with_unfinished_erasures',
  'select distinct organization_id from erasures where completed_at is null',
)

/** $2: the id of an erasure, or null for any. Locks an incomplete erasure that no other process has locked. */
export const claimErasureSql = statement(
  'claim_erasure',
  `select ${columns} from erasures x
   where x.organization_id = $1 and x.completed_at is null and x.removed ? 'pending' and ($2::integer is null or x.id = $2)
   order by x.id limit 1 for update skip locked`,
)

/** $2: id, $3: removed. */
export const storeProgressSql = statement(
  'store_erasure_progress',
  'update erasures set removed = $3::text::jsonb where organization_id = $1 and id = $2',
)

/** $2: id, $3: the time, $4: removed, $5: certificate, $6: the entities. */
export const completeErasureSql = statement(
  'complete_erasure',
  `update erasures set completed_at = $3, removed = case when id = $2 then $4::text::jsonb else removed end,
     certificate = case when id = $2 then $5 else certificate end
   where organization_id = $1 and entity_id = any($6::uuid[]) and completed_at is null`,
)

/** The entities that exist although they were erased, because a backup or an import brought them back. */
export const readReturnedSql = statement(
  'read_returned',
  `select distinct e.stack_id, e.id from erasures x
     join entities e on e.organization_id = $1 and e.stack_id = x.stack_id and e.id = x.entity_id
   where x.organization_id = $1 order by e.id`,
)

const hashOfValue = (kind: string, value: string) => hashOf(`'${kind}:' || normalize(${value})`)

/**
 * $2: after this id, $3: limit. Returns the people with an identifier that has a tombstone, and the last person of the
 * range. A person is left out if its log has the value from before the erasure, or had it until the retention emptied
 * the log. Such a person, for example of the same household, shared the email or phone at the time of the erasure.
 */
export const readEntombedSql = statement(
  'read_entombed',
  `with looked as materialized (
     select e.id, e.external_id, e.email, e.email_key, e.mobile_number, e.mobile_key from entities e
     where e.organization_id = $1 and e.stack_id = 0 and e.id > $2 order by e.id limit $3
   )
   select (select l.id from looked l order by l.id desc limit 1) as last, array(
     select l.id from looked l cross join tombstone_keys k
     where k.organization_id = $1 and exists (
       select from (values
           ('external_id', l.external_id, ${hashOfValue('external_id', 'l.external_id')}),
           ('email', l.email, ${hashOfValue('email', 'l.email_key')}),
           ('mobile_number', l.mobile_number, ${hashOfValue('mobile', 'l.mobile_key')})
         ) as v(field, value, hash)
         join tombstones t on t.organization_id = $1 and t.hash = v.hash
         join erasures x on x.organization_id = $1 and x.id = t.erasure_id
       where not exists (
         select from changes c
         where c.organization_id = $1 and c.entity_id = l.id and c.at < x.at
           and (c.after->>v.field = v.value or c.after = '{}')
       )
     )
   ) as ids`,
)

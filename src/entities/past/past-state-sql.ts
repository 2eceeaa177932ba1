import { statement } from '../../db/db.ts'
import { exactTimeText } from '../../db/time-text.ts'

/**
 * A change has a basis if its version is a multiple of this. A past state reads about this many changes, and one per
 * key.
 */
export const basisInterval = 128

/** A change c of the entity $3, and the time of its creation. */
const pastChange = `select c.version, c.sequence, c.at, c.operation,
     case when c.operation = 'merge' then c.after->>'merged_into' end as merged_into, (
     select f.at from changes f where f.organization_id = $1 and f.entity_id = $3 order by f.version limit 1
   ) as created_at, (
     select l.operation = 'erase' from changes l where l.organization_id = $1 and l.entity_id = $3 order by l.version desc limit 1
   ) as is_erased
   from changes c`

/**
 * $2: stack, $3: entity, $4: highest version. Returns the entity's last change up to this version, and the time of its
 * creation.
 */
export const readPastChangeSql = statement(
  'read_past_change',
  `${pastChange}
   where c.organization_id = $1 and c.entity_id = $3 and c.stack_id = $2 and c.version <= $4
   order by c.version desc limit 1`,
)

/**
 * $2: stack, $3: entity, $4: highest number. As {@link readPastChangeSql}, but by number: a binary search over the
 * versions, which rise with the numbers but not always by one.
 */
export const readPastChangeAtSql = statement(
  'read_past_change_at',
  `with recursive search(low, high) as (
     select (
       select c.version from changes c where c.organization_id = $1 and c.entity_id = $3 order by c.version limit 1
     ), (
       select c.version from changes c where c.organization_id = $1 and c.entity_id = $3 order by c.version desc limit 1
     )
     union all
     select case when c.sequence <= $4 then c.version else s.low end,
       case when c.sequence <= $4 then s.high else m.middle - 1 end
     from search s cross join lateral (select s.low + (s.high - s.low + 1) / 2 as middle offset 0) m
       left join lateral (
         select c.version, c.sequence from changes c
         where c.organization_id = $1 and c.entity_id = $3 and c.version >= m.middle and c.version <= s.high
         order by c.version limit 1
       ) c on true
     where s.low < s.high
   )
   ${pastChange}
   where c.organization_id = $1 and c.entity_id = $3 and c.stack_id = $2 and c.sequence <= $4
     and c.version = (select s.low from search s where s.low = s.high)`,
)

const beginsState = (change: string) => `${change}.operation in ('create', 'restore', 'unmerge')`

/**
 * $2: entity, $3: version. Returns the values that the changes up to this version wrote, in order. The first change is
 * the creation, last restore or unmerge, which has the whole entity, or a later change with a basis. `based` is the
 * version of a change with a basis, which {@link readBasisSql} reads.
 */
export const readLoggedStateSql = statement(
  'read_logged_state',
  `select c.after, c.links, case when c.basis is not null then c.version end as based from changes c
   where c.organization_id = $1 and c.entity_id = $2 and c.version <= $3 and c.version >= (
     select b.version from changes b
     where b.organization_id = $1 and b.entity_id = $2 and b.version <= $3 and (b.basis is not null or ${beginsState('b')})
     order by b.version desc limit 1
   )
   order by c.version`,
)

/**
 * $2: entity, $3: version of a change with a basis. Returns the values of the earlier changes that its state follows
 * from, in order.
 */
export const readBasisSql = statement(
  'read_basis',
  `select s.after, s.links from changes c cross join unnest(c.basis) as v(version) cross join lateral (
     select s.after, s.links from changes s
     where s.organization_id = $1 and s.entity_id = $2 and s.version = v.version offset 0
   ) s
   where c.organization_id = $1 and c.entity_id = $2 and c.version = $3 and v.version < c.version
   order by v.version`,
)

/**
 * The names of the fields, attributes and links that a change r writes. Links of an attribute hide an earlier value
 * under its key only if they have targets, so links without targets have a name of their own.
 */
const writtenBy = `select 'f' || f.key as name from jsonb_object_keys(r.after) as f(key)
     where f.key not in ('attribute_values', 'consents', 'deliverability')
     union all
     select 'a' || a.key from jsonb_object_keys(
       case when jsonb_typeof(r.after->'attribute_values') = 'object' then r.after->'attribute_values' end
     ) as a(key)
     union all
     select case when l.sides ? 'after' then 'l' else 'n' end || l.attribute_id from jsonb_each(r.links) as l(attribute_id, sides)`

/**
 * $2: [{id, version}]. Stores for each of these changes which changes its state follows from: the first one, and the
 * last one that writes each name. The log stores no value twice, so a value that is removed from it is in no past
 * state.
 */
export const storeBasesSql = statement(
  'store_bases',
  `update changes c set basis = n.basis
   from jsonb_to_recordset($2::text::jsonb) as v(id uuid, version integer) cross join lateral (
     select b.version, coalesce(b.basis, array[b.version]) as basis from changes b
     where b.organization_id = $1 and b.entity_id = v.id and b.version <= v.version and (b.basis is not null or ${beginsState('b')})
     order by b.version desc limit 1
   ) b cross join lateral (
     select array_agg(distinct w.version order by w.version) as basis from (
       select b.basis[1] as version
       union all
       select max(r.version) from (
         select r.version, r.after, r.links from unnest(b.basis) as o(version) cross join lateral (
           select r.version, r.after, r.links from changes r
           where r.organization_id = $1 and r.entity_id = v.id and r.version = o.version offset 0
         ) r
         union all
         select r.version, r.after, r.links from changes r
         where r.organization_id = $1 and r.entity_id = v.id and r.version > b.version and r.version <= v.version
       ) r cross join lateral (${writtenBy}) k
       group by k.name
     ) w
   ) n
   where c.organization_id = $1 and c.entity_id = v.id and c.version = v.version`,
)

/**
 * $2: person, $3: version. Returns the answer to each consent type and channel that was in force at this version. An
 * answer replaces the previous one unless it arrives superseded. So does each answer that a merge took over.
 */
export const readPastAnswersSql = statement(
  'read_past_answers',
  `select distinct on (a.consent_type_id, a.channel) a.consent_type_id, a.channel,
     a.state and not a.pending as state, ${exactTimeText('coalesce(a.collected_at, a.at)')} as answered_at, a.undated, a.pending,
     nullif(a.person_id, $2) as person_id, a.evidence->>'method' as method, (a.evidence->'text_version')::integer as text_version
   from (
     select a.*, a.version as since from consent_history a
     where a.organization_id = $1 and a.person_id = $2 and a.version <= $3 and not a.superseded
     union all
     select a.*, t.since from merges m cross join lateral jsonb_to_recordset(m.undo->'answers') as t(consent_type_id integer,
         channel text, person_id uuid, version integer, since integer, until integer)
       cross join lateral (
         select a.* from consent_history a
         where a.organization_id = $1 and a.person_id = t.person_id and a.version = t.version
           and a.consent_type_id = t.consent_type_id and a.channel = t.channel offset 0
       ) a
     where m.organization_id = $1 and m.into_id = $2 and t.since <= $3 and (t.until is null or t.until > $3)
   ) a
   order by a.consent_type_id, a.channel, a.since desc`,
)

/**
 * $2: [{position, stack_id, id}], $3: number of a change. Returns the targets that a read showed after this change,
 * with their names at that time. The link to a merged person shows the person it was merged into. An import may log a
 * target after the entity that links to it; such a target counts as existing from its creation on. An erased target is
 * left out.
 */
export const readPastTargetsSql = statement(
  'read_past_targets',
  `with recursive led as (
     select a.position, a.stack_id, a.id, 0 as steps
     from jsonb_to_recordset($2::text::jsonb) as a(position integer, stack_id integer, id uuid)
     union all
     select a.position, a.stack_id, m.into_id, a.steps + 1
     from led a join merges m on m.organization_id = $1 and m.merged_id = a.id and m.sequence <= $3
       and (m.unmerged_sequence is null or m.unmerged_sequence > $3)
     where a.stack_id = 0
   ), asked as (
     select distinct on (a.position) a.* from led a order by a.position, a.steps desc
   )
   select a.position, a.id,
     case when later.version is null then e.external_id else later.external_id end as external_id
   from asked a
     cross join lateral (
       select coalesce((
         select c.version from changes c
         where c.organization_id = $1 and c.entity_id = a.id and c.sequence <= $3 order by c.version desc limit 1
       ), (
         select c.version from changes c where c.organization_id = $1 and c.entity_id = a.id order by c.version limit 1
       )) as version offset 0
     ) held
     cross join lateral (
       select c.operation from changes c
       where c.organization_id = $1 and c.entity_id = a.id and c.version = held.version offset 0
     ) state
     left join lateral (
       select c.version, c.before->>'external_id' as external_id from changes c
       where c.organization_id = $1 and c.entity_id = a.id and c.version > held.version
         and (c.operation in ('delete', 'merge') or c.before ? 'external_id')
       order by c.version limit 1
     ) later on true
     left join lateral (
       select e.external_id from entities e
       where e.organization_id = $1 and e.stack_id = a.stack_id and e.id = a.id offset 0
     ) e on true
   where state.operation not in ('delete', 'merge') and 'erase' is distinct from (
       select c.operation from changes c
       where c.organization_id = $1 and c.entity_id = a.id order by c.version desc limit 1
     )
   order by a.position`,
)

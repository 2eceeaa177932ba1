import { statement } from '../db/db.ts'

const columns = `i.id, i.stack_id, i.actor, i.started_at, i.ended_at, i.received, i.created, i.updated, i.unchanged, i.failed, i.undone_at`

/**
 * $2: id, $3: stack, $4: actor, $5: the time. Starts an import, or continues it: a client that sends the rest of a file
 * names the same request. Returns no row if another import has the id.
 */
export const beginImportSql = statement(
  'begin_import',
  `insert into imports (organization_id, id, stack_id, actor, started_at, after_sequence)
   select h.organization_id, $2, $3, $4, $5, h.sequence from change_heads h where h.organization_id = $1
   on conflict (organization_id, id) do update set ended_at = null, undo_sequence = null, undone_at = null
     where imports.stack_id = excluded.stack_id and imports.actor = excluded.actor
   returning id`,
)

/** $2: id, $3: the time, $4: the number of a change up to which the log includes all lines, or 0, $5 to $9: counts. */
export const endImportSql = statement(
  'end_import',
  `update imports i set ended_at = $3, last_sequence = greatest(i.last_sequence, i.after_sequence, $4::bigint),
     received = i.received + $5, created = i.created + $6, updated = i.updated + $7, unchanged = i.unchanged + $8, failed = i.failed + $9
   where i.organization_id = $1 and i.id = $2`,
)

/** $2: the id of an import, or null, $3: limit. Newest first, beginning after the import $2. */
export const listImportsSql = statement(
  'list_imports',
  `select ${columns} from imports i
   where i.organization_id = $1 and ($2::text is null or (i.started_at, i.id) < (
     select b.started_at, b.id from imports b where b.organization_id = $1 and b.id = $2
   ))
   order by i.started_at desc, i.id desc limit $3`,
)

/** $2: id. `last_sequence` is the newest change of the log until the import has ended. */
export const findImportSql = statement(
  'find_import',
  `select i.stack_id, i.actor, i.after_sequence, coalesce(i.last_sequence, h.sequence) as last_sequence, i.undo_sequence
   from imports i join change_heads h on h.organization_id = $1
   where i.organization_id = $1 and i.id = $2`,
)

/** Whether the change c belongs to the import $2 by $3, which began after the change $4. */
const isOfImport = (change: string) =>
  `${change}.request_id = $2 and ${change}.actor = $3 and ${change}.sequence > $4::bigint`

/** The maximum number of changes of the log that one statement tests. */
const maxScanned = 5_000

/**
 * $2: import, $3: actor, $4: the last number of the log before it, $5: position, $6: limit. The entities whose newest
 * change by the import is at or before the position, newest first. `low` is the number down to which the log was read.
 */
export const readImportedSql = statement(
  'read_imported',
  `select r.low, c.sequence, c.stack_id, c.entity_id from (
     select greatest($4::bigint, $5::bigint - ${maxScanned}) as low
   ) r left join lateral (
     select c.sequence, c.stack_id, c.entity_id from changes c
     where c.organization_id = $1 and c.sequence > r.low and c.sequence <= $5 and c.subject = 'entity' and ${isOfImport('c')}
       and not exists (
         select from changes n
         where n.organization_id = $1 and n.entity_id = c.entity_id and n.version > c.version and ${isOfImport('n')}
       )
     order by c.sequence desc limit $6
   ) c on true
   order by c.sequence desc`,
)

/**
 * $2: import, $3: actor, $4: the last number of the log before it, $5: entities, $6: limit for each, $7: their stacks.
 * Returns the entities' changes since then, in order, with their current external identifiers, and the aliases of the
 * same time, which a match may have given with the change.
 */
export const readChangesSinceSql = statement(
  'read_changes_since_import',
  `select v.id as entity_id, coalesce(c.version, 0) as version, c.operation, c.before, c.after, c.links, ${isOfImport('c')} as is_import, array(
     select s.external_id from aliases s
     where s.organization_id = $1 and s.person_id = v.id and s.merge_id is null and s.created_at = c.at order by s.external_id
   ) as aliases, (
     select e.external_id from entities e where e.organization_id = $1 and e.stack_id = v.stack_id and e.id = v.id
   ) as external_id
   from unnest($5::uuid[], $7::integer[]) as v(id, stack_id) cross join lateral (
     select c.sequence, c.at, c.version, c.operation, c.before, c.after, c.links, c.request_id, c.actor from changes c
     where c.organization_id = $1 and c.entity_id = v.id and c.sequence > $4 order by c.version limit $6
   ) c
   order by v.id, c.version`,
)

/**
 * As {@link readChangesSinceSql}. Returns the entities with a link from another entity, if the import has not changed
 * that entity's links.
 */
export const findLinkedByOthersSql = statement(
  'find_linked_by_others',
  `select v.id from unnest($5::uuid[]) as v(id) cross join lateral (
     select l.source_id from links l
     where l.organization_id = $1 and l.target_id = v.id and l.source_id <> v.id and not exists (
       select from changes c
       where c.organization_id = $1 and c.entity_id = l.source_id and c.links is not null and ${isOfImport('c')}
     ) limit 1
   ) l`,
)

/** $2: id, $3: position, $4: the time if the undo is complete, or null. */
export const advanceUndoSql = statement(
  'advance_undo',
  'update imports i set undo_sequence = $3, undone_at = $4 where i.organization_id = $1 and i.id = $2',
)

const maxMappings = 200

export const listMappingsSql = statement(
  'list_import_mappings',
  `select m.id, m.stack_id, m.header, m.fields, m.actor, m.saved_at from import_mappings m
   where m.organization_id = $1 order by m.saved_at desc, m.id`,
)

/** $2: id, $3: stack, $4: header, $5: fields, $6: actor, $7: time. */
export const saveMappingSql = statement(
  'save_import_mapping',
  `insert into import_mappings (organization_id, id, stack_id, header, fields, actor, saved_at)
   values ($1, $2, $3, $4, $5, $6, $7)
   on conflict (organization_id, id) do update set fields = excluded.fields, actor = excluded.actor, saved_at = excluded.saved_at`,
)

export const forgetOldMappingsSql = statement(
  'forget_old_import_mappings',
  `delete from import_mappings m where m.organization_id = $1 and m.saved_at < (
     select o.saved_at from import_mappings o where o.organization_id = $1 order by o.saved_at desc offset ${maxMappings - 1} limit 1
   )`,
)

/** $2: id. */
export const forgetMappingSql = statement(
  'forget_import_mapping',
  'delete from import_mappings m where m.organization_id = $1 and m.id = $2 returning m.id',
)

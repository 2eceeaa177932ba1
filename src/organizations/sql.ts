import { statement } from '../db/db.ts'

export const findOrganizationSql = statement(
  'find_organization',
  'select id, key, created_at, cell, moving_to, moves from organizations where key = $1',
)

export const listOrganizationsSql = statement(
  'list_organizations',
  'select id, key, created_at, cell, moving_to, moves from organizations order by id',
)

/** The organizations whose rows are in this database. */
export const listResidentsSql = statement(
  'list_residents',
  `select h.organization_id as id from change_heads h where h.moved_to is null
     and not exists (select from organization_moves m where m.organization_id = h.organization_id and m.has_moved)
   order by h.organization_id`,
)

/** $1: the organization, with how many definitions and changes it has. */
export const readOrganizationSql = statement(
  'read_organization',
  `select o.key, o.created_at, h.schema_version, h.sequence as changes,
     (select count(*)::integer from stacks s where s.organization_id = $1) as stacks,
     (select count(*)::integer from attributes a where a.organization_id = $1) as attributes,
     (select count(*)::integer from consent_types c where c.organization_id = $1) as consent_types
   from organizations o join change_heads h on h.organization_id = $1
   where o.id = $1`,
)

/**
 * $1: key, $2: cell. Returns no row if the key is taken. If another transaction is inserting the key, the statement waits for it.
 */
export const insertOrganizationSql = statement(
  'insert_organization',
  `insert into organizations (key, cell) values ($1, $2) on conflict (key) do nothing
   returning id, key, created_at, cell, moving_to, moves`,
)

/** $1: id, $2: key, $3: time of creation, $4: cell. The row of an organization in its own cell, if that is not the first one. */
export const insertResidentSql = statement(
  'insert_resident',
  'insert into organizations (id, key, created_at, cell) overriding system value values ($1, $2, $3, $4)',
)

/** $1: key. Deletes what an interrupted creation has left in a cell. An organization that was ever written to stays. */
export const deleteLeftoverSql = statement(
  'delete_leftover',
  `with leftover as (
       delete from organizations o where o.key = $1
         and not exists (select from change_heads h where h.organization_id = o.id and h.sequence > 0)
       returning o.id
     ),
     heads as (delete from change_heads where organization_id in (select id from leftover)),
     secrets as (delete from tombstone_keys where organization_id in (select id from leftover))
   delete from consent_types where organization_id in (select id from leftover)`,
)

export const insertChangeHeadSql = statement(
  'insert_change_head',
  'insert into change_heads (organization_id) values ($1)',
)

/** $1: organization. The key of the hashes of erased identifiers: 244 random bits, which never leave the database. */
export const insertTombstoneKeySql = statement(
  'insert_tombstone_key',
  `insert into tombstone_keys (organization_id, secret)
   values ($1, sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())))`,
)

/** $1: organization, $2: id, $3: key, $4: name, $5: channels. The type is neither mandatory nor granted by default. */
export const insertFirstConsentTypeSql = statement(
  'insert_first_consent_type',
  `insert into consent_types
     (organization_id, id, key, name, state, mandatory, default_state, channels, created_at, updated_at)
   values ($1, $2, $3, $4, 'active', false, false, $5::jsonb, now(), now())`,
)

import { statement } from '../db/db.ts'

export const findOrganizationSql = statement(
  'find_organization',
  'select id, key, created_at from organizations where key = $1 and deleted_at is null',
)

/** $1: keys. */
export const findOrganizationsSql = statement(
  'find_organizations',
  'select id, key from organizations where key = any($1::text[]) and deleted_at is null',
)

export const listOrganizationsSql = statement(
  'list_organizations',
  'select id, key, created_at from organizations where deleted_at is null order by id',
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

/** $1: key. Returns no row if the key is taken. If another transaction is inserting the key, the statement waits for it. */
export const insertOrganizationSql = statement(
  'insert_organization',
  'insert into organizations (key) values ($1) on conflict (key) do nothing returning id, key, created_at',
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
     (organization_id, id, key, name, state, mandatory, default_state, channels, created_at, updated_at, version)
   values ($1, $2, $3, $4, 'active', false, false, $5::jsonb, now(), now(), 1)`,
)

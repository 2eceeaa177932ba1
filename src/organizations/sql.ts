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

/** $1: the organization. Reads it with the numbers of its definitions and changes. */
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
 * $1: key. Returns no row if the key is taken. If another transaction is inserting the key, the statement waits for it.
 */
export const insertOrganizationSql = statement(
  'insert_organization',
  'insert into organizations (key) values ($1) on conflict (key) do nothing returning id, key, created_at',
)

export const insertChangeHeadSql = statement(
  'insert_change_head',
  'insert into change_heads (organization_id) values ($1)',
)

/** $1: organization. The key for hashing erased identifiers: 244 random bits, which never leave the database. */
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

const firstId = '00000000-0000-0000-0000-000000000000'

export const readSettingsSql = statement(
  'read_settings',
  `select s.display_name, s.accent_color, s.language, s.privacy_url, s.contact_email, s.time_zone, s.default_country, s.suppression_days, s.page_texts, s.updated_at
   from organization_settings s where s.organization_id = $1`,
)

/**
 * $2: display name, $3: accent color, $4: language, $5: privacy URL, $6: contact, $7: time zone, $8: country, $9: days
 * of a suppression, $10: texts, $11: the time. A change of the country starts a new computation of phone keys.
 */
export const storeSettingsSql = statement(
  'store_settings',
  `insert into organization_settings
     (organization_id, display_name, accent_color, language, privacy_url, contact_email, time_zone, default_country,
      suppression_days, page_texts, updated_at, phone_keys_after)
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::jsonb, $11, case when $8::text is not null then '${firstId}'::uuid end)
   on conflict (organization_id) do update set display_name = excluded.display_name,
     accent_color = excluded.accent_color, language = excluded.language, privacy_url = excluded.privacy_url,
     contact_email = excluded.contact_email, page_texts = excluded.page_texts,
     time_zone = excluded.time_zone, default_country = excluded.default_country,
     suppression_days = excluded.suppression_days, updated_at = excluded.updated_at,
     phone_keys_after = case when organization_settings.default_country is distinct from excluded.default_country
       then '${firstId}'::uuid else organization_settings.phone_keys_after end`,
)

/** The days for which a bounce suppresses its address, by default. */
export const defaultSuppressionDays = 180

/** $2: days or null. Sets the duration of suppressions of addresses by bounces. */
export const setSuppressionDaysSql = statement(
  'set_suppression_days',
  `update deliverability d
   set suppressed_until = d.suppressed_from + make_interval(days => coalesce($2::integer, ${defaultSuppressionDays}))
   where d.organization_id = $1 and d.suppressed_until < 'infinity'`,
)

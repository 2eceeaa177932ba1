import { statement } from '../db/db.ts'

/**
 * $2: id, $3: key, $4: name, $5: description, $6: state, $7: mandatory, $8: default state, $9: channels, $10: the time,
 * $11: the version.
 */
export const insertConsentTypeSql = statement(
  'insert_consent_type',
  `insert into consent_types (organization_id, id, key, name, description, state, mandatory, default_state, channels,
     created_at, updated_at, version)
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9::jsonb, $10, $10, $11)`,
)

/** The parameters are those of the insert. The key ($3) only selects the row, because it never changes. */
export const updateConsentTypeSql = statement(
  'update_consent_type',
  `update consent_types set name = $4, description = $5, state = $6, mandatory = $7, default_state = $8,
     channels = $9::jsonb, updated_at = $10, version = $11
   where organization_id = $1 and id = $2 and key = $3`,
)

/**
 * $2: consent type, $3: version, $4: language, $5: text, $6: url, $7: SHA-256 in hex, $8: the time. Runs with
 * {@link touchConsentTypeSql}.
 */
export const insertConsentTextSql = statement(
  'insert_consent_text',
  `insert into consent_texts (organization_id, consent_type_id, version, language, text, url, sha256, created_at)
   values ($1, $2, $3, $4, $5, $6, decode($7, 'hex'), $8)`,
)

/** $2: consent type, $3: the time of its last change, $4: the version. */
export const touchConsentTypeSql = statement(
  'touch_consent_type',
  'update consent_types set updated_at = $3, version = $4 where organization_id = $1 and id = $2',
)

/** $2: consent type, $3: after this version, $4: limit. */
export const readConsentTextsSql = statement(
  'read_consent_texts',
  `select t.version, t.language, t.text, t.url, encode(t.sha256, 'hex') as sha256, t.created_at from consent_texts t
   where t.organization_id = $1 and t.consent_type_id = $2 and t.version > $3 order by t.version limit $4`,
)

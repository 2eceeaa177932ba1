import { statement } from '../db/db.ts'

export const readSettingsSql = statement(
  'read_settings',
  `select s.display_name, s.accent_color, s.language, s.privacy_url, s.contact_email, s.page_texts, s.updated_at
   from organization_settings s where s.organization_id = $1`,
)

/** $2: display name, $3: accent color, $4: language, $5: privacy URL, $6: contact, $7: texts, $8: the time. */
export const storeSettingsSql = statement(
  'store_settings',
  `insert into organization_settings
     (organization_id, display_name, accent_color, language, privacy_url, contact_email, page_texts, updated_at)
   values ($1, $2, $3, $4, $5, $6, $7::jsonb, $8)
   on conflict (organization_id) do update set display_name = excluded.display_name,
     accent_color = excluded.accent_color, language = excluded.language, privacy_url = excluded.privacy_url,
     contact_email = excluded.contact_email, page_texts = excluded.page_texts, updated_at = excluded.updated_at`,
)

/** $2: time, $3: operation, $4: before, $5: after, $6: actor, $7: request id. An organization has settings number 1. */
export const appendSettingsChangeSql = statement(
  'append_settings_change',
  `with head as (
     update change_heads set sequence = sequence + 1 where organization_id = $1 returning sequence
   )
   insert into changes (organization_id, sequence, at, subject, definition_id, operation, before, after, actor, request_id)
   select $1, head.sequence, $2, 'settings', 1, $3, $4::jsonb, $5::jsonb, $6, $7 from head`,
)

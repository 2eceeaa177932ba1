import { statement } from '../db/db.ts'

const firstId = '00000000-0000-0000-0000-000000000000'

export const readSettingsSql = statement(
  'read_settings',
  `select s.display_name, s.accent_color, s.language, s.privacy_url, s.contact_email, s.time_zone, s.default_country, s.suppression_days, s.page_texts, s.updated_at
   from organization_settings s where s.organization_id = $1`,
)

/** $2: display name, $3: accent color, $4: language, $5: privacy URL, $6: contact, $7: texts, $8: time zone, $9: country, $10: days of a suppression, $11: the time. Another country begins to compute the keys of phones anew. */
export const storeSettingsSql = statement(
  'store_settings',
  `insert into organization_settings
     (organization_id, display_name, accent_color, language, privacy_url, contact_email, page_texts, time_zone,
      default_country, suppression_days, updated_at, phone_keys_after)
   values ($1, $2, $3, $4, $5, $6, $7::jsonb, $8, $9, $10, $11, case when $9::text is not null then '${firstId}'::uuid end)
   on conflict (organization_id) do update set display_name = excluded.display_name,
     accent_color = excluded.accent_color, language = excluded.language, privacy_url = excluded.privacy_url,
     contact_email = excluded.contact_email, page_texts = excluded.page_texts,
     time_zone = excluded.time_zone, default_country = excluded.default_country,
     suppression_days = excluded.suppression_days, updated_at = excluded.updated_at,
     phone_keys_after = case when organization_settings.default_country is distinct from excluded.default_country
       then '${firstId}'::uuid else organization_settings.phone_keys_after end`,
)

/** How many days a bounce suppresses its address, unless the settings say it. */
export const defaultSuppressionDays = 180

/** $2: days or null. The addresses that bounces have suppressed are suppressed for so long. */
export const setSuppressionDaysSql = statement(
  'set_suppression_days',
  `update deliverability d
   set suppressed_until = d.suppressed_from + make_interval(days => coalesce($2::integer, ${defaultSuppressionDays}))
   where d.organization_id = $1 and d.suppressed_until < 'infinity'`,
)

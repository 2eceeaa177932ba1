import { effectiveConsents } from '../consents/answers.ts'
import { shownAttributes } from '../entities/represent.ts'
import type { Standing } from '../entities/row.ts'
import type { Definitions } from '../organizations/definitions.ts'
import type { Person } from './schema.ts'

/** A person as a read shows it. */
export function toPerson({ row, links }: Standing, definitions: Definitions): Person {
  return {
    id: row.id,
    external_id: row.external_id,
    first_name: row.first_name,
    last_name: row.last_name,
    email: row.email,
    mobile_prefix: row.mobile_prefix,
    mobile_number: row.mobile_number,
    date_of_birth: row.date_of_birth,
    language: row.language,
    email_consent: row.email_consent,
    sms_consent: row.sms_consent,
    push_notification_consent: row.push_notification_consent,
    consents: effectiveConsents(row.answers, definitions.consent_types),
    attribute_values: shownAttributes({ row, links }, definitions),
    state: row.active ? 'active' : 'placeholder',
    version: row.version,
    created_at: row.created_at,
    updated_at: row.updated_at,
  }
}

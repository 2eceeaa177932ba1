import { Type } from 'typebox'
import type { Limits } from '../config.ts'
import { attributeValues, externalId } from '../entities/schema.ts'
import { nullable } from '../organizations/definition-schema.ts'

const flag = (description: string) => Type.Optional(nullable(Type.Boolean({ description })))

/** An element of `consents`: one answer to one purpose on one channel. */
export const consent_assignment = Type.Object(
  {
    consent_type_id: Type.Integer({
      minimum: 1,
      description: 'An active, non-mandatory consent type of the organization.',
    }),
    channel: Type.Enum(['email', 'sms'], { description: 'A channel that the consent type is configured for.' }),
    state: Type.Boolean({ description: 'true grants the purpose on the channel, false refuses it.' }),
  },
  { additionalProperties: false },
)

/** The body of create, PUT and PATCH. Every field is optional; null clears. */
export function personBody(limits: Limits) {
  const text = (description: string) =>
    Type.Optional(nullable(Type.String({ maxLength: limits.profile_characters, description })))
  const format = (name: string, description: string, maxLength = limits.profile_characters) =>
    Type.Optional(nullable(Type.String({ format: name, maxLength, description })))
  return Type.Object(
    {
      external_id: externalId(limits),
      first_name: text('First name.'),
      last_name: text('Last name.'),
      email: format('email', 'Email address.', limits.email_characters),
      mobile_prefix: text('Mobile phone country prefix.'),
      mobile_number: text('Mobile phone number.'),
      date_of_birth: format('date-of-birth', 'YYYY-MM-DD, from 1850-01-01 to today.'),
      language: format('language', 'Preferred language, a BCP 47 tag.'),
      email_consent: flag('Summary of the email answers: false refuses every purpose, true grants the default one.'),
      sms_consent: flag('Summary of the SMS answers: false refuses every purpose, true grants the default one.'),
      push_notification_consent: flag('A plain flag.'),
      consents: Type.Optional(nullable(Type.Array(consent_assignment, { maxItems: limits.consents }))),
      attribute_values: attributeValues(limits),
    },
    { additionalProperties: false },
  )
}

import { type Static, Type } from 'typebox'
import type { Limits } from '../config.ts'
import { effectiveConsent } from '../consents/schema.ts'
import { attributeValues, entityFields, externalId, harmlessBody } from '../entities/schema.ts'
import { nullable } from '../organizations/definition-schema.ts'

const flag = (description: string) => Type.Optional(nullable(Type.Boolean({ description })))

/** An element of `consents`: one answer to one purpose on one channel. */
export const consentAssignment = Type.Object(
  {
    consent_type_id: Type.Integer({
      minimum: 1,
      description: 'An active, non-mandatory consent type of the organization.',
    }),
    channel: Type.Enum(['email', 'sms'], { description: 'A channel that the consent type is configured for.' }),
    state: Type.Boolean({ description: 'true grants the purpose on the channel, false refuses it.' }),
  },
  {
    additionalProperties: false,
    title: 'ConsentAssignment',
    examples: [{ consent_type_id: 1, channel: 'email', state: true }],
  },
)

const example = {
  external_id: 'ada',
  first_name: 'Ada',
  last_name: 'Lovelace',
  email: 'ada@example.com',
  language: 'en-GB',
}

/** Body of create, PUT and PATCH of a person. Every field is optional, and null clears it. */
export function personBody(limits: Limits) {
  const text = (description: string) =>
    Type.Optional(nullable(Type.String({ maxLength: limits.profileCharacters, description })))
  const format = (name: string, description: string, maxLength = limits.profileCharacters) =>
    Type.Optional(nullable(Type.String({ format: name, maxLength, description })))
  return Type.Object(
    {
      external_id: externalId(limits),
      first_name: text('First name.'),
      last_name: text('Last name.'),
      email: format('email', 'Email address.', limits.emailCharacters),
      mobile_prefix: text('Mobile phone country prefix.'),
      mobile_number: text('Mobile phone number.'),
      date_of_birth: format('date-of-birth', 'YYYY-MM-DD, from 1850-01-01 to today.'),
      language: format('language', 'Preferred language, a BCP 47 tag.'),
      email_consent: flag(
        'Summary of the email answers. Writing false refuses every purpose, writing true grants the default one.',
      ),
      sms_consent: flag(
        'Summary of the SMS answers. Writing false refuses every purpose, writing true grants the default one.',
      ),
      push_notification_consent: flag('A plain flag without purposes.'),
      consents: Type.Optional(nullable(Type.Array(consentAssignment, { maxItems: limits.consents }))),
      attribute_values: attributeValues(limits),
    },
    {
      additionalProperties: false,
      title: 'PersonBody',
      examples: [harmlessBody],
    },
  )
}

const text = nullable(Type.String())
const bool = nullable(Type.Boolean())

/** A person as a read shows it. Unset profile fields are null, never absent. */
export const person = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'The internal identifier.' }),
    external_id: text,
    first_name: text,
    last_name: text,
    email: text,
    mobile_prefix: text,
    mobile_number: text,
    date_of_birth: nullable(Type.String({ format: 'date' })),
    language: text,
    email_consent: bool,
    sms_consent: bool,
    push_notification_consent: bool,
    consents: Type.Array(effectiveConsent, {
      description: 'One entry for each active purpose and each of its channels.',
    }),
    ...entityFields,
  },
  {
    title: 'Person',
    examples: [
      {
        id: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f',
        ...example,
        mobile_prefix: null,
        mobile_number: null,
        date_of_birth: null,
        email_consent: true,
        sms_consent: null,
        push_notification_consent: null,
        consents: [
          {
            consent_type_id: 1,
            channel: 'email',
            state: true,
            source: 'answer',
            answered_at: '2026-01-01T12:00:00.000Z',
          },
          { consent_type_id: 1, channel: 'sms', state: false, source: 'default', answered_at: null },
        ],
        attribute_values: { city: 'London', referrer: 'grace' },
        state: 'active',
        version: 1,
        created_at: '2026-01-01T12:00:00.000Z',
        updated_at: '2026-01-01T12:00:00.000Z',
      },
    ],
  },
)
export type Person = Static<typeof person>

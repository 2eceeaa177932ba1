import type { Static } from 'typebox'
import { effectiveConsent, evidenceFields } from '../consents/schema.ts'
import { attributeValues, entityFields, externalId, harmlessBody } from '../entities/schema.ts'
import type { Limits } from '../process/config.ts'
import { channels } from '../values/channels.ts'
import { closedObject, flag, nullable, number, Type, text, uuid } from '../values/json-schema.ts'
import { flagFields, phoneMember, profileFlags, profileTexts, readTexts, textFields } from '../values/profile-fields.ts'

/** An element of `consents`: one answer to one purpose on one channel. */
const consentAssignment = closedObject(
  {
    consent_type_id: number('An active, non-mandatory consent type of the organization.'),
    channel: Type.Enum(channels, { description: 'A channel that the consent type is configured for.' }),
    state: flag('true grants the purpose on the channel, false refuses it.'),
    ...evidenceFields,
  },
  {
    title: 'ConsentAssignment',
    description: 'An answer to one consent type on one channel.',
    examples: [
      {
        consent_type_id: 1,
        channel: 'email',
        state: true,
        collected_at: '2026-01-01T12:00:00Z',
        method: 'web_form',
        source: 'https://shop.example/newsletter',
        ip: '192.0.2.7',
        text_version: 1,
      },
    ],
  },
)

const oneAnswerEach = {
  distinctBy: ['consent_type_id', 'channel'],
  description: 'At most one answer to each consent type on each channel.',
}

/** Body of create, PUT and PATCH of a person. Every field is optional, and null clears it. */
export function personBody(limits: Limits) {
  const texts = mapFields(profileTexts, name => {
    const { format, limit = 'profileCharacters', description } = textFields[name]
    return Type.Optional(nullable(Type.String({ ...(format && { format }), maxLength: limits[limit], description })))
  })
  const flags = mapFields(profileFlags, name => Type.Optional(nullable(flag(flagFields[name].description))))
  return closedObject(
    {
      external_id: externalId(limits),
      ...texts,
      [phoneMember]: Type.Optional(
        nullable(
          Type.String({ maxLength: limits.profileCharacters, description: 'As a read shows it. Writes ignore it.' }),
        ),
      ),
      ...flags,
      consents: Type.Optional(nullable(Type.Array(consentAssignment, { maxItems: limits.consents, ...oneAnswerEach }))),
      attribute_values: attributeValues(limits),
    },
    {
      title: 'PersonBody',
      description: 'The body of a create, PUT, PATCH or upsert of a person. A null clears the field.',
      examples: [harmlessBody],
    },
  )
}

const mapFields = <Name extends string, Value>(names: Name[], createValue: (name: Name) => Value) =>
  Object.fromEntries(names.map(name => [name, createValue(name)])) as Record<Name, Value>

export const person = Type.Object(
  {
    id: uuid('The internal identifier.'),
    external_id: nullable(text()),
    ...mapFields(readTexts, name =>
      nullable(
        Type.String(
          name === phoneMember
            ? {
                description: 'The mobile phone number in E.164. Null if what is stored is no number. Writes ignore it.',
              }
            : textFields[name].type === 'date'
              ? { format: 'date' }
              : {},
        ),
      ),
    ),
    ...mapFields(profileFlags, () => nullable(flag())),
    consents: Type.Array(effectiveConsent, {
      description: 'One entry for each active purpose and each of its channels.',
    }),
    ...entityFields,
  },
  {
    title: 'Person',
    description: 'A person as reads return it. Unset fields are null, never absent. Times are RFC 3339 in UTC.',
    examples: [
      {
        id: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f',
        external_id: 'ada',
        ...mapFields([...readTexts, ...profileFlags], () => null),
        first_name: 'Ada',
        last_name: 'Lovelace',
        email: 'ada@example.com',
        language: 'en-GB',
        email_consent: true,
        consents: [
          {
            consent_type_id: 1,
            channel: 'email',
            state: true,
            source: 'answer',
            answered_at: '2026-01-01T12:00:00.000Z',
            method: 'web_form',
            text_version: 1,
          },
          { consent_type_id: 2, channel: 'email', state: false, source: 'default', answered_at: null },
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

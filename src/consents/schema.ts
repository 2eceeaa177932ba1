import { type Static, Type } from 'typebox'
import {
  definitionDescription,
  definitionKey,
  definitionName,
  definitionState,
  nullable,
  times,
} from '../organizations/definition-schema.ts'

const channel = Type.Enum(['email', 'sms'])

/** The effective state of one purpose on one channel, answered or not. */
export const effectiveConsent = Type.Object(
  {
    consent_type_id: Type.Integer({ minimum: 1 }),
    channel,
    state: Type.Boolean({ description: 'Whether the purpose is granted on the channel.' }),
    source: Type.Enum(['answer', 'default', 'mandatory'], { description: 'Where the state comes from.' }),
    answered_at: nullable(Type.String({ format: 'date-time' })),
  },
  { title: 'EffectiveConsent' },
)

const configuredChannels = Type.Array(
  Type.Object(
    {
      channel,
      is_default: Type.Optional(Type.Boolean({ description: "Whether this is the channel's default purpose." })),
    },
    { additionalProperties: false },
  ),
  { minItems: 1, maxItems: 2, description: 'The channels that the purpose applies to, without duplicates.' },
)

/** Body of POST /v1/schema/consent-types. */
export const newConsentType = Type.Object(
  {
    key: definitionKey,
    channels: configuredChannels,
    name: Type.Optional(definitionName),
    description: Type.Optional(definitionDescription),
    mandatory: Type.Optional(
      Type.Boolean({ description: 'A mandatory purpose is always granted and cannot be answered.' }),
    ),
    default_state: Type.Optional(Type.Boolean({ description: 'The state of a person who has not answered.' })),
  },
  {
    additionalProperties: false,
    title: 'NewConsentType',
    examples: [{ key: 'your_key', name: 'Your purpose', channels: [{ channel: 'email', is_default: false }] }],
  },
)
export type NewConsentType = Static<typeof newConsentType>

/** Body of PATCH /v1/schema/consent-types/{id}. The key never changes. A type can be archived but not deleted. */
export const consentTypePatch = Type.Object(
  {
    name: Type.Optional(definitionName),
    description: Type.Optional(definitionDescription),
    channels: Type.Optional(configuredChannels),
    mandatory: Type.Optional(Type.Boolean()),
    default_state: Type.Optional(Type.Boolean()),
    state: Type.Optional(definitionState),
  },
  { additionalProperties: false, title: 'ConsentTypePatch', examples: [{}] },
)
export type ConsentTypePatch = Static<typeof consentTypePatch>

/** A consent type as a read shows it. */
export const consent_type = Type.Object(
  {
    id: Type.Integer({ minimum: 1 }),
    key: Type.String(),
    name: Type.String(),
    description: definitionDescription,
    state: definitionState,
    mandatory: Type.Boolean(),
    default_state: Type.Boolean(),
    channels: Type.Array(Type.Object({ channel, is_default: Type.Boolean() })),
    ...times,
  },
  {
    title: 'ConsentType',
    examples: [
      {
        id: 2,
        key: 'surveys',
        name: 'Surveys',
        description: null,
        state: 'active',
        mandatory: false,
        default_state: false,
        channels: [{ channel: 'email', is_default: false }],
        created_at: '2026-01-01T12:00:00.000Z',
        updated_at: '2026-01-01T12:00:00.000Z',
      },
    ],
  },
)

import { type Static, Type } from 'typebox'
import {
  definition_description,
  definition_key,
  definition_name,
  definition_state,
} from '../organizations/definition-schema.ts'

const configured_channels = Type.Array(
  Type.Object(
    {
      channel: Type.Enum(['email', 'sms']),
      is_default: Type.Optional(Type.Boolean({ description: "Whether this is the channel's default purpose." })),
    },
    { additionalProperties: false },
  ),
  { minItems: 1, maxItems: 2, description: 'The channels the purpose applies to, each once.' },
)

/** Body of POST /v1/schema/consent-types. */
export const new_consent_type = Type.Object(
  {
    key: definition_key,
    channels: configured_channels,
    name: Type.Optional(definition_name),
    description: Type.Optional(definition_description),
    mandatory: Type.Optional(
      Type.Boolean({ description: 'A mandatory purpose is always granted and cannot be answered.' }),
    ),
    default_state: Type.Optional(Type.Boolean({ description: 'The state of a person who has not answered.' })),
  },
  { additionalProperties: false },
)
export type NewConsentType = Static<typeof new_consent_type>

/** Body of PATCH /v1/schema/consent-types/{id}: the key never changes, and a type is archived, never deleted. */
export const consent_type_patch = Type.Object(
  {
    name: Type.Optional(definition_name),
    description: Type.Optional(definition_description),
    channels: Type.Optional(configured_channels),
    mandatory: Type.Optional(Type.Boolean()),
    default_state: Type.Optional(Type.Boolean()),
    state: Type.Optional(definition_state),
  },
  { additionalProperties: false },
)
export type ConsentTypePatch = Static<typeof consent_type_patch>

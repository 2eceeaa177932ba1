import { type Static, Type } from 'typebox'

const count = Type.Integer({ minimum: 0 })

/** The limits that a client meets, by the names of their settings without `KITH_LIMIT_`. */
const limits = Type.Object({
  body_bytes: count,
  batch_bytes: count,
  json_depth: count,
  request_keys: count,
  entity_keys: count,
  key_bytes: count,
  string_bytes: count,
  entity_bytes: count,
  consents: count,
  links: count,
  placeholders: count,
  stacks: count,
  attributes: count,
  consent_types: count,
  page: count,
  request_ms: count,
})

/** The organization that the token belongs to. */
export const organization = Type.Object(
  {
    key: Type.String(),
    created_at: Type.String({ format: 'date-time' }),
    schema_version: Type.Integer({
      minimum: 0,
      description: 'Grows with every change of a stack, an attribute or a consent type.',
    }),
    counts: Type.Object({
      stacks: count,
      attributes: count,
      consent_types: count,
      changes: Type.Integer({
        minimum: 0,
        description: 'How many changes the change log has: the number of the newest.',
      }),
    }),
    limits,
  },
  {
    title: 'Organization',
    examples: [
      {
        key: 'default',
        created_at: '2026-01-01T12:00:00.000Z',
        schema_version: 3,
        counts: { stacks: 2, attributes: 8, consent_types: 1, changes: 1_204 },
        limits: {
          body_bytes: 1_048_576,
          batch_bytes: 8_388_608,
          json_depth: 32,
          request_keys: 300,
          entity_keys: 1_000,
          key_bytes: 150,
          string_bytes: 65_536,
          entity_bytes: 524_288,
          consents: 100,
          links: 1_000,
          placeholders: 100,
          stacks: 1_000,
          attributes: 5_000,
          consent_types: 100,
          page: 500,
          request_ms: 10_000,
        },
      },
    ],
  },
)
export type OrganizationShape = Static<typeof organization>

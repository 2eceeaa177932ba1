import type { Static } from 'typebox'
import { camelCase, defaultLimits, type Limits } from '../process/config.ts'
import { count, Type, text, time } from '../values/json-schema.ts'

/** The limits that concern clients, by the names of their settings without `KITH_LIMIT_`. */
const limitNames = [
  'body_bytes',
  'batch_bytes',
  'json_depth',
  'request_keys',
  'entity_keys',
  'key_bytes',
  'string_bytes',
  'entity_bytes',
  'consents',
  'links',
  'placeholders',
  'stacks',
  'attributes',
  'consent_types',
  'page',
  'request_ms',
] as const

const forEachLimit = <Value>(createValue: (name: (typeof limitNames)[number]) => Value) =>
  Object.fromEntries(limitNames.map(name => [name, createValue(name)])) as Record<(typeof limitNames)[number], Value>

/** The limits that concern clients, in the form of {@link organization}. */
export const clientLimits = (limits: Limits) => forEachLimit(name => limits[camelCase(name)])

export const organization = Type.Object(
  {
    key: text(),
    created_at: time(),
    schema_version: count('Grows with every change of a stack, an attribute or a consent type.'),
    counts: Type.Object({
      stacks: count(),
      attributes: count(),
      consent_types: count(),
      changes: count('How many changes the change log has: the number of the newest.'),
    }),
    limits: Type.Object(forEachLimit(() => count())),
  },
  {
    title: 'Organization',
    description: 'The organization of the token.',
    examples: [
      {
        key: 'default',
        created_at: '2026-01-01T12:00:00.000Z',
        schema_version: 3,
        counts: { stacks: 2, attributes: 8, consent_types: 1, changes: 1_204 },
        limits: clientLimits(defaultLimits),
      },
    ],
  },
)
export type OrganizationShape = Static<typeof organization>

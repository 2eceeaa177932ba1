import type { Static } from 'typebox'
import {
  definitionKey,
  definitionName,
  definitionState,
  listSchema,
  times,
} from '../organizations/definition-schema.ts'
import { scopes as allScopes } from '../route/scopes.ts'
import { closedObject, filledText, nullable, Type, text } from '../values/json-schema.ts'

const names = Type.Array(filledText(255), {
  maxItems: 1_000,
  description:
    'Names of fields as a read shows them: `first_name`, `consents`, `attribute_values.city`. `attribute_values` names all attributes, `*` all fields.',
})
const access = closedObject({ read: names, write: Type.Optional(names) })
const shownAccess = Type.Object({ read: names, write: names })

const aboutFields =
  'By owner (`people`, or the key of a stack) the fields that may be read and written. Only what may be read may be written. An owner that ' +
  'is not named is closed. Identifiers, `state`, `version` and times are always shown. Null: all fields of all owners.'
const fields = nullable(
  Type.Record(Type.String({ pattern: '^[a-z][a-z0-9_]{0,62}$' }), access, { description: aboutFields }),
)
const scopes = Type.Array(Type.Enum([...allScopes]), {
  maxItems: allScopes.length,
  description: 'A caller has the scopes that its credential and its role both have.',
})

const example = {
  key: 'support',
  name: 'Support desk',
  scopes: ['people:read', 'people:write'],
  fields: { people: { read: ['first_name', 'last_name', 'email', 'consents'], write: ['email'] } },
} as const

/** Body of POST /v1/roles. */
export const newRole = closedObject(
  { key: definitionKey, name: Type.Optional(definitionName), scopes, fields: Type.Optional(fields) },
  { title: 'RoleBody', examples: [example] },
)
export type RoleBody = Static<typeof newRole>

/** Body of PATCH /v1/roles/{role_key}. */
export const rolePatch = closedObject(
  {
    name: Type.Optional(definitionName),
    scopes: Type.Optional(scopes),
    fields: Type.Optional(fields),
    state: Type.Optional(definitionState),
  },
  { minProperties: 1, title: 'RolePatch', examples: [{ scopes: ['people:read'] }] },
)
export type RolePatch = Static<typeof rolePatch>

/** A role as a read shows it. */
export const role = Type.Object(
  {
    key: definitionKey,
    name: definitionName,
    scopes,
    fields: nullable(Type.Record(text(), shownAccess, { description: aboutFields })),
    state: definitionState,
    ...times,
  },
  {
    title: 'Role',
    description:
      'The scopes that a client, token or session with the role may have, and the fields that it may read and write.',
    examples: [
      { ...example, state: 'active', created_at: '2026-01-01T12:00:00.000Z', updated_at: '2026-01-01T12:00:00.000Z' },
    ],
  },
)

export const roleList = listSchema(role)

import { listSchema } from '../organizations/definition-schema.ts'
import { scopes } from '../route/scopes.ts'
import { Type } from '../values/json-schema.ts'

const id = Type.String({ format: 'uuid' })
const name = Type.String({ description: 'The person or client that signed in: the actor in the change log.' })
const granted = Type.Array(Type.Enum(scopes))
const expires_at = Type.String({ format: 'date-time', description: 'Twelve hours after the sign-in.' })

const example = {
  id: '0d7f2c64-9a53-4b0e-9c5e-2f6f1d1b7a10',
  name: 'operator',
  scopes: ['people:read', 'access:read'],
  role: null,
  method: 'code',
  client_id: null,
  created_at: '2026-03-02T08:00:00.000Z',
  expires_at: '2026-03-02T20:00:00.000Z',
}

const listedSession = Type.Object(
  {
    id,
    name,
    scopes: granted,
    role: Type.Union([Type.String(), Type.Null()], { description: 'The key of its role. Null: it has none.' }),
    method: Type.Enum(['code', 'client', 'issuer'], {
      // Go clients of oapi-codegen have a type Client.
      'x-enum-varnames': ['ByCode', 'ByClient', 'ByIssuer'],
      description:
        'The way in which the session began: with a one-time link, with the credentials of a client, or at the outside issuer.',
    }),
    client_id: Type.Union([Type.String(), Type.Null()], { description: 'The client that the session began with.' }),
    created_at: Type.String({ format: 'date-time' }),
    expires_at,
  },
  {
    title: 'ConsoleSession',
    description: 'A session of the console that has not ended.',
    examples: [example],
  },
)

export const sessionList = listSchema(listedSession)

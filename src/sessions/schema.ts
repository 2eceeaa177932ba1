import type { Static } from 'typebox'
import { listSchema } from '../organizations/definition-schema.ts'
import { scopes } from '../route/scopes.ts'
import { Type, text, time, uuid } from '../values/json-schema.ts'

const example = {
  id: '0d7f2c64-9a53-4b0e-9c5e-2f6f1d1b7a10',
  name: 'operator',
  scopes: ['people:read', 'access:read'],
  role: null,
  method: 'code',
  client_id: null,
  account_id: null,
  created_at: '2026-03-02T08:00:00.000Z',
  expires_at: '2026-03-02T20:00:00.000Z',
}

const listedSession = Type.Object(
  {
    id: uuid(),
    name: text('The person or client that signed in: the actor in the change log.'),
    scopes: Type.Array(Type.Enum(scopes)),
    role: Type.Union([text(), Type.Null()], { description: 'The key of its role. Null: it has none.' }),
    method: Type.Enum(['code', 'client', 'issuer', 'account'], {
      // Without these names, Go clients of oapi-codegen would get a second type Client.
      'x-enum-varnames': ['ByCode', 'ByClient', 'ByIssuer', 'ByAccount'],
      description:
        'The way in which the session began: with a one-time link, with the credentials of a client, at the outside issuer, or with the password of an account.',
    }),
    client_id: Type.Union([text(), Type.Null()], { description: 'The client that the session began with.' }),
    account_id: Type.Union([uuid(), Type.Null()], { description: 'The account that signed in.' }),
    created_at: time(),
    expires_at: time('Twelve hours after the sign-in.'),
  },
  { title: 'ConsoleSession', description: 'A session of the console that has not ended.', examples: [example] },
)
export type ListedSession = Static<typeof listedSession>

export const sessionList = listSchema(listedSession)

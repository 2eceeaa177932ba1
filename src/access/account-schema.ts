import type { Static } from 'typebox'
import { listSchema } from '../organizations/definition-schema.ts'
import { nullable, Type, time, uuid } from '../values/json-schema.ts'

const role = nullable(
  Type.String({
    minLength: 1,
    maxLength: 63,
    description: 'The key of the role of its sessions. Null: all scopes of the console.',
  }),
)

/** Body of POST /v1/accounts. */
export const newAccount = Type.Object(
  {
    name: Type.String({
      minLength: 1,
      maxLength: 255,
      description: 'The name for the sign-in, and the actor in the change log. It cannot be changed.',
    }),
    role,
  },
  { additionalProperties: false, title: 'AccountBody', examples: [{ name: 'Ada Lovelace', role: null }] },
)
export type AccountBody = Static<typeof newAccount>

/** Body of PATCH /v1/accounts/{account_id}. */
export const accountPatch = Type.Object(
  {
    role: Type.Optional(role),
    state: Type.Optional(
      Type.Enum(['active', 'disabled'], { description: '`disabled`: nobody signs in, and the sessions end.' }),
    ),
  },
  { additionalProperties: false, minProperties: 1, title: 'AccountPatch', examples: [{ role: null }] },
)
export type AccountPatch = Static<typeof accountPatch>

const at = '2026-01-01T12:00:00.000Z'
const shown = {
  id: uuid(),
  name: Type.String(),
  role,
  state: Type.Enum(['invited', 'active', 'disabled'], {
    description: '`invited`: nobody has accepted an invitation yet, so there is no password.',
  }),
  maker: Type.String({ description: 'The actor that made it. `cli` for the command line on the database.' }),
  created_at: time(),
  last_sign_in_at: nullable(time('When somebody last signed in. Null for never.')),
  invitation_expires_at: nullable(time('The end of an invitation that nobody has accepted. Null if there is none.')),
}
const example = {
  id: '5b0c7f0e-4a3d-4c1e-8f57-6d1f0b2a9c11',
  name: 'Ada Lovelace',
  role: null,
  state: 'invited',
  maker: 'operator',
  created_at: at,
  last_sign_in_at: null,
  invitation_expires_at: '2026-01-04T12:00:00.000Z',
}

export const account = Type.Object(shown, {
  title: 'Account',
  description: 'A person who signs in to the console with a password.',
  examples: [example],
})
export type AccountShape = Static<typeof account>

export const accountList = listSchema(account)

/** An account with the invitation that was just made. No read shows it again. */
export const invitedAccount = Type.Object(
  {
    ...shown,
    invitation_path: Type.String({
      description:
        'The link to accept the invitation: put the address of the service before it. It works once, for three days, and is shown only ' +
        'this once.',
    }),
  },
  {
    title: 'InvitedAccount',
    description: 'An account with the invitation that was just made.',
    examples: [
      { ...example, invitation_path: '/console/invitation#code=default.dGhpcyBpcyBub3QgYSByZWFsIGNvZGUgb2Yga2l0aA' },
    ],
  },
)
export type InvitedAccountShape = Static<typeof invitedAccount>

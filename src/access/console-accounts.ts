import { acceptInvitation, changePassword, findInvitation } from '../auth/accounts.ts'
import { maxPasswordBytes } from '../auth/passwords.ts'
import { contextOf } from '../db/context.ts'
import type { Exchange } from '../http/pipeline/exchange.ts'
import { success } from '../http/pipeline/reply.ts'
import type { Router } from '../http/pipeline/router.ts'
import type { Services } from '../http/pipeline/services.ts'
import { refuse, throwBrokenRule } from '../values/errors.ts'
import { Type } from '../values/json-schema.ts'
import {
  accountAttempt,
  bodyReader,
  checkSignIn,
  createAttempts,
  createBrowserSessions,
  throwNoSession,
} from './console-session.ts'
import { createSignInLog } from './sign-in-log.ts'

const wrongPassword = { event: 'sign_in_failed', status: 400 } as const
const password = Type.String({ minLength: 1, maxLength: maxPasswordBytes })

const readAcceptance = bodyReader(
  Type.Object(
    { code: Type.String({ maxLength: 200 }), password: Type.Optional(password) },
    { additionalProperties: false },
  ),
)
const readPasswords = bodyReader(
  Type.Object({ current_password: password, new_password: password }, { additionalProperties: false }),
)

/**
 * Adds the endpoints with which people accept an invitation and change their password. They answer only pages of the
 * service itself. The API has no such endpoints for administrators.
 */
export function registerAccountRoutes(router: Router, services: Services): void {
  const sessions = createBrowserSessions(services)
  const attempt = createAttempts(services.config)
  const check = checkSignIn(services)
  const recordSignIn = createSignInLog(services)

  /** Without a password, answers with the account of the invitation and leaves the invitation open. */
  async function accept(exchange: Exchange, body: Buffer | undefined): Promise<void> {
    const { code, password } = readAcceptance(exchange, body, services)
    const { db } = services
    const invitation =
      (await attempt(exchange, 'invitation', ({ signal }) => findInvitation(db, code, signal))) ?? throwUsed()
    const { name, expires_at, organization } = invitation
    exchange.organization = organization.key
    if (password === undefined) {
      const data = { name, expires_at, organization: { key: organization.key } }
      return exchange.send(200, success({ data }))
    }
    const accepting = { invitation, code, password }
    const started = await attempt(exchange, 'invitation', turn => acceptInvitation(db, accepting, turn))
    await sessions.begin(exchange, started ?? throwUsed())
  }

  async function change(exchange: Exchange, body: Buffer | undefined): Promise<void> {
    const passwords = readPasswords(exchange, body, services)
    const { id: session_id, account_id, caller } = (await sessions.find(exchange)) ?? throwNoSession()
    if (account_id === null) return refuse('forbidden', 'Only the session of an account can change a password.')
    const { id, key } = caller.organization
    exchange.organization = key
    const context = contextOf(services.db, id)
    const isRight = await attempt(exchange, accountAttempt(key, caller.subject), turn =>
      changePassword(context, { account_id, session_id }, passwords, turn),
    )
    const outcome = isRight ? ({ event: 'password_changed', status: 200 } as const) : wrongPassword
    await recordSignIn(exchange, { organization: key, subject: caller.subject, ...outcome })
    if (!isRight) throwBrokenRule('/current_password', 'is not the password')
    exchange.send(200, success({ data: true }))
  }

  router.add({ method: 'POST', path: '/console/invitation', check, handle: accept })
  router.add({ method: 'POST', path: '/console/password', check, handle: change })
}

function throwUsed(): never {
  refuse('unauthorized', 'The invitation has expired or was used. Ask for a new one.')
}

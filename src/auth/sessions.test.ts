import { beforeEach, describe, expect, it, vi } from 'vitest'
import { useGate } from '../../test/support/gate.ts'
import { contextOf } from '../db/context.ts'
import { statement } from '../db/db.ts'
import { createOrganization } from '../organizations/organizations.ts'
import { endSession, type StartedSession, startSession } from '../sessions/sessions.ts'
import { Fault } from '../values/errors.ts'
import type { Authenticator } from './authenticator.ts'
import { createClient, revokeClient } from './clients.ts'

const gate = useGate()
const address = '192.0.2.1'
let organizations = 0
let organization: { id: number; key: string }
let started: StartedSession
beforeEach(async () => {
  organization = await createOrganization(gate.db, `sessions-${++organizations}`)
  started = await startSession(gate.db, organization, { name: 'Operator', scope: 'people:read', method: 'code' })
  await setExpiry(3_600)
})

/** Makes the sessions of the organization expire some seconds after the start of the test, by the clock of the gate. */
const setExpiry = (seconds: number) =>
  gate.db.query(statement('', 'update sessions set expires_at = $2 where organization_id = $1'), [
    organization.id,
    new Date(gate.nowMs + seconds * 1_000).toISOString(),
  ])

/**
 * Authenticates the value of a cookie. Returns the name and the organization of the session, or the status of the
 * refusal.
 */
async function present(token = started.token, to: Authenticator = gate.authenticator, from = address) {
  try {
    const { caller } = await to.sessions.authenticate(token, from)
    return [caller.subject, caller.organization.key]
  } catch (error) {
    if (error instanceof Fault) return error.refusal.status
    throw error
  }
}
const accepted = () => ['Operator', organization.key]

describe('a session', () => {
  it('is read once, also for twenty requests at once, and then runs no query', async () => {
    const replies = await Promise.all(Array.from({ length: 20 }, () => present()))
    expect(new Set(replies.map(reply => JSON.stringify(reply)))).toEqual(new Set([JSON.stringify(accepted())]))
    expect(gate.queries).toEqual(['find_organization', 'read_session'])
    expect(gate.authenticator.sessions.authenticate(started.token, address)).not.toBeInstanceOf(Promise)
    expect(gate.queries).toHaveLength(2)
  })

  it('is refused at its expiry, although it is cached', async () => {
    await setExpiry(3)
    expect(await present()).toEqual(accepted())
    gate.nowMs += 2_999
    expect(await present()).toEqual(accepted())
    gate.nowMs += 1
    expect(await present()).toBe(401)
  })

  it('is refused after its end: at once where it is not cached, within ten seconds where it is', async () => {
    const authenticator = gate.open({})
    expect(await present(started.token, authenticator)).toEqual(accepted())
    await endSession(contextOf(gate.db, organization.id), started.session.id)
    expect(await present(started.token, gate.open({}))).toBe(401)
    gate.nowMs += 5_000
    expect(await present(started.token, authenticator)).toEqual(accepted())
    await vi.waitFor(async () => expect(await present(started.token, authenticator)).toBe(401))
  })

  it('is refused ten seconds after its end even if it was not used in between', async () => {
    expect(await present()).toEqual(accepted())
    await endSession(contextOf(gate.db, organization.id), started.session.id)
    gate.nowMs += 10_000
    expect(await present()).toBe(401)
  })

  it('is refused at once by the process that ended it', async () => {
    expect(await present()).toEqual(accepted())
    await endSession(contextOf(gate.db, organization.id), started.session.id)
    gate.authenticator.sessions.forget(started.session.id)
    expect(await present()).toBe(401)
  })

  it('of a client is refused after the revocation of the client', async () => {
    const client = await createClient(gate.db, { organizationKey: organization.key, name: '', scope: 'people:read' })
    const identity = { name: 'A client', scope: 'people:read', method: 'client', client_id: client.client_id } as const
    const { token } = await startSession(gate.db, organization, identity)
    await setExpiry(3_600)
    expect(await present(token)).toEqual(['A client', organization.key])
    await revokeClient(gate.db, client.client_id)
    gate.nowMs += 10_000
    expect(await present(token)).toBe(401)
  })

  it('is refused after its organization was deleted', async () => {
    expect(await present()).toEqual(accepted())
    await gate.db.query(statement('', 'delete from organizations where id = $1'), [organization.id])
    gate.nowMs += 10_000
    expect(await present()).toBe(401)
  })

  it('that cannot be read causes an error, not the end of the session', async () => {
    await gate.db.query(statement('', 'alter table sessions rename to sessions_away'), [])
    const failed = await present(started.token, gate.open({})).catch(error => error.code)
    await gate.db.query(statement('', 'alter table sessions_away rename to sessions'), [])
    expect(failed).toBe('42P01')
    expect(await present()).toEqual(accepted())
  })
})

describe('guessing a session', () => {
  const guess = (number: number) => `${organization.key}.${String(number).padStart(43, 'x')}`

  it('is throttled after a hundred values from one address, without a query, and goes on after a minute', async () => {
    const authenticator = gate.open({})
    const statuses = []
    for (let number = 0; number < 120; number++) statuses.push(await present(guess(number), authenticator))
    expect([
      statuses.filter(status => status === 401).length,
      statuses.filter(status => status === 429).length,
    ]).toEqual([100, 20])
    gate.queries = []
    expect(await present(guess(500), authenticator)).toBe(429)
    expect(gate.queries).toEqual([])
    expect(await present(started.token, authenticator, '192.0.2.2')).toEqual(accepted())
    // The session is cached now, so its owner at the same address need not wait.
    expect(await present(started.token, authenticator)).toEqual(accepted())
    gate.nowMs += 60_000
    expect(await present(guess(501), authenticator)).toBe(401)
  })

  it('runs no query for a value of another form', async () => {
    const { token } = started
    for (const value of ['', 'x', `${token}x`, token.slice(0, -1), token.slice(token.indexOf('.')), `${token}\n`])
      expect(await present(value), JSON.stringify(value)).toBe(401)
    expect(gate.queries).toEqual([])
  })
})

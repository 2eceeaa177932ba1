import { beforeEach, describe, expect, it, vi } from 'vitest'
import { authenticate, invalidToken, now, signOwn, signShared, useGate, validClaims } from '../../test/support/gate.ts'
import { contextOf } from '../db/context.ts'
import { createOrganization } from '../organizations/organizations.ts'
import type { Fault } from '../values/errors.ts'
import { type Credentials, createClient, readClientPage, revokeClient, verifyClient } from './clients.ts'

const gate = useGate()
let client: Credentials
let organizations = 0
let organizationKey: string
beforeEach(async () => {
  organizationKey = `clients-${++organizations}`
  await createOrganization(gate.db, organizationKey)
  client = await createClient(gate.db, { organizationKey, name: 'shop', scope: 'people:read' })
})

const tokenOf = (claims: object = {}) =>
  signOwn(gate, { ...validClaims, org: organizationKey, exp: now + 3_600, client_id: client.client_id, ...claims })
const presentToken = (token: string, to = gate.authenticator) => authenticate(to, `Bearer ${token}`)
const accepted = {
  subject: 'attacker',
  organization: {
    get key() {
      return organizationKey
    },
  },
}
const revoked = { ...invalidToken, message: 'The token is not valid: its client has been revoked.' }

describe('a token of a client', () => {
  it('is accepted and cached while the client is not revoked', async () => {
    const token = await tokenOf()
    expect(await presentToken(token)).toMatchObject(accepted)
    gate.queries = []
    expect(gate.authenticator.authenticate([`Bearer ${token}`])).toMatchObject(accepted)
    expect(gate.queries).toEqual([])
  })

  it('is rejected after a revocation: at once if it is not cached, within ten seconds if it is', async () => {
    const token = await tokenOf()
    const authenticator = gate.open({})
    expect(await presentToken(token, authenticator)).toMatchObject(accepted)
    await revokeClient(gate.db, client.client_id)
    expect(await presentToken(token, gate.open({}))).toMatchObject(revoked)
    gate.nowMs += 5_000
    gate.queries = []
    expect(authenticator.authenticate([`Bearer ${token}`])).toMatchObject(accepted)
    // The queries for the keys, the organization and the client.
    await vi.waitFor(() => expect(gate.queries).toHaveLength(3))
    await vi.waitFor(async () => expect(await presentToken(token, authenticator)).toMatchObject(revoked))
  })

  it('is rejected ten seconds after a revocation even if it was not used in between', async () => {
    const token = await tokenOf()
    expect(await presentToken(token)).toMatchObject(accepted)
    await revokeClient(gate.db, client.client_id)
    gate.nowMs += 10_000
    expect(await presentToken(token)).toMatchObject(revoked)
  })

  it('is rejected in other organizations, and if its client id is unknown or malformed', async () => {
    expect(await presentToken(await tokenOf({ org: 'default' }))).toMatchObject(revoked)
    for (const client_id of ['', 'web', `${client.client_id} `, `x${client.client_id}`, `${organizationKey}.`])
      expect(await presentToken(await tokenOf({ client_id }))).toMatchObject(revoked)
    for (const client_id of [1, null, [client.client_id], {}])
      expect(await presentToken(await tokenOf({ client_id }))).toMatchObject(invalidToken)
  })

  it('is also checked for revocation if the shared secret signed it', async () => {
    const claims = { ...validClaims, org: organizationKey, client_id: client.client_id }
    expect(await presentToken(signShared(claims))).toMatchObject(accepted)
    await revokeClient(gate.db, client.client_id)
    expect(
      await presentToken(signShared(claims), gate.open({ AUTH_SECRET: 'a shared secret of 32 bytes or more' })),
    ).toMatchObject(revoked)
  })
})

describe('a client', () => {
  it('is verified only with its own secret, until it is revoked', async () => {
    const organization = { key: organizationKey }
    expect(await verifyClient(gate.db, client)).toMatchObject({ organization, name: 'shop', scope: 'people:read' })
    for (const client_secret of ['', client.client_secret.slice(1), `${client.client_secret}A`])
      expect(await verifyClient(gate.db, { ...client, client_secret })).toBeUndefined()
    await revokeClient(gate.db, client.client_id)
    expect(await verifyClient(gate.db, client)).toBeUndefined()
  })

  it('has a unique secret of 256 bits that is not stored', async () => {
    const created = await Promise.all(
      Array.from({ length: 100 }, () => createClient(gate.db, { organizationKey, name: '', scope: 'people:read' })),
    )
    expect(new Set(created.map(({ client_secret }) => client_secret)).size).toBe(100)
    expect(new Set(created.map(({ client_id }) => client_id)).size).toBe(100)
    for (const { client_secret } of created) expect(Buffer.from(client_secret, 'base64url')).toHaveLength(32)
    const { id } = (
      await gate.db.query({ name: '', text: 'select id from organizations where key = $1' }, [organizationKey])
    )[0]!
    const { items } = await readClientPage(contextOf(gate.db, id as number), { limit: 500 })
    expect(items).toHaveLength(101)
    expect(items.at(-1)).toEqual({
      client_id: client.client_id,
      name: 'shop',
      role: null,
      scopes: ['people:read'],
      created_at: expect.any(String),
      revoked_at: null,
    })
  })

  it.each([
    ['no scope', { scope: '' }, 'invalid_parameter'],
    ['an unknown scope', { scope: 'people:read people:all' }, 'invalid_parameter'],
    ['an unknown organization', { organizationKey: 'nobody' }, 'not_found'],
    ['no organization', { organizationKey: '' }, 'not_found'],
    ['a line end in its name', { name: 'a\nb' }, 'invalid_parameter'],
    ['a tab in its name', { name: 'a\tb' }, 'invalid_parameter'],
    ['a name of 256 characters', { name: 'a'.repeat(256) }, 'invalid_parameter'],
  ])('is not created with %s', async (_, change, code) => {
    const error = await createClient(gate.db, { organizationKey, name: '', scope: 'people:read', ...change }).catch(
      caught => caught,
    )
    expect((error as Fault).refusal).toMatchObject({ code })
  })
})

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createClient } from '../../src/auth/clients.ts'
import { migrate } from '../../src/db/migrate.ts'
import { type OwnPostgres, startOwnPostgres, startStandby } from '../faults/own-postgres.ts'
import { query, until } from '../support/embedded-service.ts'
import { endProcesses, type Kith, launch, senderTo } from '../support/process.ts'
import { type Reply, type Send, startService } from '../support/service.ts'

let primary: OwnPostgres
let standby: OwnPostgres
let kith: Kith
let address: string
let send: Send
let authorization: string
let credentials: { client_id: string; client_secret: string }

beforeAll(async () => {
  primary = await startOwnPostgres()
  await migrate(primary.url)
  const service = await startService({}, primary.url)
  const organization = await service.organization()
  await organization.client.people.create({ external_id: 'ada', first_name: 'Ada' })
  const clientOptions = { organizationKey: organization.key, name: 'a program', scope: 'people:read' }
  credentials = await createClient(service.db, clientOptions)
  await service.stop()
  standby = await startStandby(primary)
  kith = launch({ DATABASE_URL: standby.url })
  address = await kith.ready
  send = senderTo(address, organization.token)
  authorization = `Bearer ${organization.token}`
})
afterAll(async () => {
  await standby?.stop()
  await primary?.stop()
  await endProcesses()
})

const patch = { first_name: 'Grace' }
const operations = [{ op: 'patch', external_id: 'ada', body: patch }]

const writes: [what: string, write: () => Promise<Reply>][] = [
  ['a PATCH', () => send('PATCH', '/v1/people/ada', patch)],
  ['a create', () => send('POST', '/v1/people', patch)],
  ['a keyed create', () => send('POST', '/v1/people', patch, { 'Idempotency-Key': 'a-key' })],
  ['a deletion', () => send('DELETE', '/v1/people/ada')],
  ['a batch', () => send('POST', '/v1/people/batch', { operations })],
  ['an atomic batch', () => send('POST', '/v1/people/batch', { operations, atomic: true })],
  ['a new stack', () => send('POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' })],
]

const readOnly = {
  error: 'operation_failed',
  message: 'The database is read-only (a standby). It accepts no writes.',
}

describe('a service on a standby', () => {
  it('starts and answers reads', async () => {
    expect((await send('GET', '/v1/people/ada')).body.data).toMatchObject({ first_name: 'Ada' })
    expect((await send('POST', '/v1/people/list', {})).body.data.items).toHaveLength(1)
    const filter = { first_name: 'Ada' }
    expect((await send('POST', '/v1/people/filter', { filter })).body.data.items).toHaveLength(1)
    const exported = await fetch(`${address}/v1/people/export`, {
      method: 'POST',
      headers: { Authorization: authorization },
    })
    expect(JSON.parse(await exported.text())).toMatchObject({ external_id: 'ada' })
  })

  it.each(writes)('returns 503 for %s', async (_, write) => {
    const { status, headers, body } = await write()
    expect([status, headers.get('Retry-After')]).toEqual([503, '1'])
    expect(body).toMatchObject(readOnly)
    expect(body).not.toHaveProperty('outcome')
  })

  it('ends an import with the same error', async () => {
    const response = await fetch(`${address}/v1/people/import`, {
      method: 'POST',
      headers: { Authorization: authorization, 'Content-Type': 'application/x-ndjson' },
      body: '{"external_id":"ada"}\n',
    })
    expect(JSON.parse(await response.text())).toMatchObject(readOnly)
  })

  it('returns 503 for a token whose signing key would have to be extended', async () => {
    await query(primary.url, 'update signing_keys set vouches_until = now()')
    await until(
      async () => (await query(standby.url, 'select from signing_keys where vouches_until < now()')).length > 0,
    )
    const body = new URLSearchParams({ grant_type: 'client_credentials', ...credentials })
    const response = await fetch(`${address}/oauth/token`, { method: 'POST', body })
    expect([response.status, await response.json()]).toMatchObject([503, readOnly])
  })

  it('returns 503 at /readyz, since it takes no writes, and 200 at /healthz', async () => {
    const { status, headers, body } = await send('GET', '/readyz')
    expect([status, headers.get('Retry-After')]).toEqual([503, '1'])
    expect(body).toMatchObject(readOnly)
    expect((await send('GET', '/healthz')).status).toBe(200)
  })

  it('exits with 1 and tells to migrate the primary when the tables are missing', async () => {
    await query(primary.url, 'create database empty')
    const url = new URL(standby.url)
    url.pathname = '/empty'
    await until(() => query(url.href, 'select 1').then(Boolean, () => false))
    const other = launch({ DATABASE_URL: url.href })
    expect(await other.ended).toBe(1)
    expect(other.output.stderr).toMatch(/read-only.*Migrate the primary/)
  })

  it('takes writes once the standby is promoted, and has logged its state only once', async () => {
    await query(standby.url, 'select pg_promote()')
    await until(async () => (await send('GET', '/readyz')).status === 200)
    expect((await send('PATCH', '/v1/people/ada', patch)).status).toBe(200)
    const readOnlyLines = kith.output.stdout.split('\n').filter(line => line.includes('read-only'))
    expect(readOnlyLines).toHaveLength(1)
    expect(kith.output.stdout).not.toMatch(/"level":50|in the background failed/)
  })
})

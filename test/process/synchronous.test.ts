import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createClient } from '../../src/auth/clients.ts'
import { migrate } from '../../src/db/migrate.ts'
import { queueLengths } from '../../src/entities/write/request-coalescing.ts'
import { type OwnPostgres, startOwnPostgres } from '../faults/own-postgres.ts'
import { query, until } from '../support/embedded-service.ts'
import { endProcesses } from '../support/process.ts'
import { type Organization, type Reply, type Service, startService } from '../support/service.ts'

const requestMs = 1_000

let postgres: OwnPostgres
/** A service whose commits wait for no standby. It creates the data that tests start with. */
let localService: Service
/** The service under test. Its commits wait for a missing standby. */
let service: Service
let organization: Organization
let send: Organization['send']

beforeAll(async () => {
  postgres = await startOwnPostgres()
  const local = new URL(postgres.url)
  local.searchParams.set('options', '-c synchronous_commit=local')
  await migrate(local.href)
  localService = await startService({}, local.href)
  service = await startService({ KITH_LIMIT_REQUEST_MS: String(requestMs) }, postgres.url)
  await setStandby('nobody')
})
afterAll(async () => {
  await service?.stop()
  await localService?.stop()
  await postgres?.stop()
  await endProcesses()
})
beforeEach(async () => {
  organization = await localService.organization()
  send = service.sender(organization.token)
  for (const external_id of ['ada', 'bob']) await organization.client.people.create({ external_id })
})

/** Sets the standby that commits wait for, '' for none. Returns once the setting has an effect. */
async function setStandby(name: string) {
  await query(postgres.url, `alter system set synchronous_standby_names = '${name}'`)
  await query(postgres.url, 'select pg_reload_conf()')
  const { token } = await localService.organization()
  const write = () => service.sender(token)('POST', '/v1/people', {})
  await until(async () => (await write()).status === (name === '' ? 201 : 503))
}

/** The number of changes in the log with a mark. A write that runs twice has two. */
const countChanges = async (mark: string) =>
  (await query(postgres.url, `select from changes where after::text like '%"${mark}"%'`)).length

const unknownOutcome = {
  status: 503,
  body: { error: 'operation_failed', message: expect.stringMatching(/may have been done/), outcome: 'unknown' },
}

const patch = (external_id: string, first_name: string) => ({ op: 'patch', external_id, body: { first_name } })

const writes: [what: string, changes: number, write: (mark: string) => Promise<Reply>][] = [
  ['a PATCH', 1, mark => send('PATCH', '/v1/people/ada', { first_name: mark })],
  ['a PUT', 1, mark => send('PUT', '/v1/people/ada', { first_name: mark })],
  ['a create', 1, mark => send('POST', '/v1/people', { first_name: mark })],
  ['an upsert', 1, mark => send('POST', '/v1/people/upsert', { external_id: 'ada', first_name: mark })],
  ['a rename', 1, mark => send('PATCH', '/v1/people/ada', { external_id: mark })],
  ['a batch', 2, mark => send('POST', '/v1/people/batch', { operations: [patch('ada', mark), patch('bob', mark)] })],
  [
    'an atomic batch',
    2,
    mark => send('POST', '/v1/people/batch', { operations: [patch('ada', mark), patch('bob', mark)], atomic: true }),
  ],
  ['a keyed create', 1, mark => send('POST', '/v1/people', { first_name: mark }, { 'Idempotency-Key': mark })],
  ['a new stack', 1, mark => send('POST', '/v1/schema/stacks', { key: mark, kind: 'item' })],
  ['a changed consent type', 1, mark => send('PATCH', '/v1/schema/consent-types/1', { name: mark })],
]

describe('while the synchronous standby is missing', () => {
  it.each(writes)('reports an unknown outcome for %s, and does not run it again', async (what, changes, write) => {
    const mark = what.replaceAll(' ', '_').toLowerCase()
    expect(await write(mark)).toMatchObject(unknownOutcome)
    expect(await countChanges(mark)).toBe(changes)
  })

  it('reports an unknown outcome for all writes of a set, and runs none again', async () => {
    const rename = (external_id: string) => send('PATCH', `/v1/people/${external_id}`, { first_name: 'shared' })
    const lock = await service.db.connect()
    await lock.query('begin; lock table entities')
    // The first write waits for the lock and commits nothing. The others queue behind it and share the next set.
    const missing = rename('nobody')
    const waitingSql = `select from pg_stat_activity where wait_event_type = 'Lock'`
    await until(async () => (await query(postgres.url, waitingSql)).length === 1)
    const shared = ['ada', 'bob'].map(rename)
    await until(() => queueLengths(service.db).write === 2)
    await lock.end()
    expect((await missing).body.error).toBe('not_found')
    for (const reply of await Promise.all(shared)) expect(reply).toMatchObject(unknownOutcome)
    expect(await countChanges('shared')).toBe(2)
  })

  it('reports an unknown outcome for a deletion', async () => {
    expect(await send('DELETE', '/v1/people/ada')).toMatchObject(unknownOutcome)
    expect((await send('GET', '/v1/people/ada')).status).toBe(404)
  })

  it('ends an import with an unknown outcome, and counts none of its lines', async () => {
    const response = await fetch(`${service.address}/v1/people/import`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${organization.token}`, 'Content-Type': 'application/x-ndjson' },
      body: ['ada', 'bob']
        .map(external_id => JSON.stringify({ external_id, first_name: `new ${external_id}` }))
        .join('\n'),
    })
    const last = JSON.parse((await response.text()).trim().split('\n').at(-1)!)
    expect(last).toMatchObject({ ...unknownOutcome.body, progress: { received: 0, updated: 0 } })
    // Each line may be a set of its own. The set that reaches its COMMIT first holds the head, and the other one cannot commit. The
    // cancelled COMMIT may become visible a moment after the import has ended.
    const countBoth = async () => [await countChanges('new ada'), await countChanges('new bob')]
    await until(async () => (await countBoth()).includes(1))
    expect(Math.max(...(await countBoth()))).toBe(1)
  })

  it('issues no token whose signing key may expire before it', async () => {
    const { client_id, client_secret } = await createClient(localService.db, {
      organizationKey: organization.key,
      name: 'a program',
      scope: 'people:read',
    })
    await query(postgres.url, `set synchronous_commit = local; update signing_keys set vouches_until = now()`)
    const response = await fetch(`${service.address}/oauth/token`, {
      method: 'POST',
      body: new URLSearchParams({ grant_type: 'client_credentials', client_id, client_secret }),
    })
    expect({ status: response.status, body: await response.json() }).toMatchObject(unknownOutcome)
  })

  it('does not acknowledge a repeated write whose first commit still waits', async () => {
    const again = () => send('PATCH', '/v1/people/ada', { first_name: 'again' })
    const keyed = () => send('PATCH', '/v1/people/bob', { first_name: 'keyed' }, { 'Idempotency-Key': 'a-key' })
    for (const ask of [again, again, keyed, keyed]) expect(await ask()).toMatchObject(unknownOutcome)
    await setStandby('')
    expect((await keyed()).headers.get('Idempotency-Replayed')).toBe('true')
    expect((await again()).status).toBe(200)
    expect([await countChanges('again'), await countChanges('keyed')]).toEqual([1, 1])
    await setStandby('nobody')
  })

  it('answers reads', async () => {
    expect(await send('GET', '/v1/people/ada')).toMatchObject({ status: 200, body: { data: { external_id: 'ada' } } })
    expect((await send('POST', '/v1/people/list', {})).body.data.items).toHaveLength(2)
  })

  it('returns 504 for a write that is cancelled before COMMIT, and does not store it', async () => {
    const lock = await service.db.connect()
    await lock.query(`begin; select from entities where external_id = 'ada' for update`)
    expect((await send('PATCH', '/v1/people/ada', { first_name: 'late' })).status).toBe(504)
    await lock.end()
    expect(await countChanges('late')).toBe(0)
  })
})

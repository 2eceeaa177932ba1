import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createClient } from '../../src/auth/clients.ts'
import { migrate } from '../../src/db/migrate.ts'
import { queueLengths } from '../../src/entities/request-coalescing.ts'
import { type OwnPostgres, startOwnPostgres } from '../faults/own-postgres.ts'
import { query, until } from '../support/embedded-service.ts'
import { endProcesses } from '../support/process.ts'
import { type Organization, type Reply, type Service, startService } from '../support/service.ts'

const requestMs = 1_000

let postgres: OwnPostgres
/** Its commits wait for no standby: for what a test finds there before it begins. */
let prepared: Service
/** Its commits wait for a standby that is not there. */
let service: Service
let organization: Organization
let send: Organization['send']

beforeAll(async () => {
  postgres = await startOwnPostgres()
  const local = new URL(postgres.url)
  local.searchParams.set('options', '-c synchronous_commit=local')
  await migrate(local.href)
  prepared = await startService({}, local.href)
  service = await startService({ KITH_LIMIT_REQUEST_MS: String(requestMs) }, postgres.url)
  await setStandby('nobody')
})
afterAll(async () => {
  await service?.stop()
  await prepared?.stop()
  await postgres?.stop()
  await endProcesses()
})
beforeEach(async () => {
  organization = await prepared.organization()
  send = service.sender(organization.token)
  for (const external_id of ['ada', 'bob']) await organization.client.people.create({ external_id })
})

/** Sets whom commits wait for, '' for nobody, and returns once they do. */
async function setStandby(name: string) {
  await query(postgres.url, `alter system set synchronous_standby_names = '${name}'`)
  await query(postgres.url, 'select pg_reload_conf()')
  const { token } = await prepared.organization()
  const write = () => service.sender(token)('POST', '/v1/people', {})
  await until(async () => (await write()).status === (name === '' ? 201 : 503))
}

/** How many changes the log holds under a mark: what was run twice is there twice. */
const changesOf = async (mark: string) =>
  (await query(postgres.url, `select from changes where after::text like '%"${mark}"%'`)).length

const unknown = {
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

describe('while the synchronous standby is away', () => {
  it.each(writes)('%s is answered as of unknown outcome, and is not run again', async (what, changes, write) => {
    const mark = what.replaceAll(' ', '_').toLowerCase()
    expect(await write(mark)).toMatchObject(unknown)
    expect(await changesOf(mark)).toBe(changes)
  })

  it('writes that share a set are all answered so, and none is run again', async () => {
    const rename = (external_id: string) => send('PATCH', `/v1/people/${external_id}`, { first_name: 'shared' })
    const lock = await service.db.connect()
    await lock.query('begin; lock table entities')
    // The first write waits for the lock and has nothing to commit. The others queue behind it, and share the next set.
    const missing = rename('nobody')
    const waiting = `select from pg_stat_activity where wait_event_type = 'Lock'`
    await until(async () => (await query(postgres.url, waiting)).length === 1)
    const shared = ['ada', 'bob'].map(rename)
    await until(() => queueLengths(service.db).write === 2)
    await lock.end()
    expect((await missing).body.error).toBe('not_found')
    for (const reply of await Promise.all(shared)) expect(reply).toMatchObject(unknown)
    expect(await changesOf('shared')).toBe(2)
  })

  it('a deletion is answered so', async () => {
    expect(await send('DELETE', '/v1/people/ada')).toMatchObject(unknown)
    expect((await send('GET', '/v1/people/ada')).status).toBe(404)
  })

  it('an import ends with a line that says so, and counts none of its lines', async () => {
    const response = await fetch(`${service.address}/v1/people/import`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${organization.token}`, 'Content-Type': 'application/x-ndjson' },
      body: ['ada', 'bob']
        .map(external_id => JSON.stringify({ external_id, first_name: `new ${external_id}` }))
        .join('\n'),
    })
    const last = JSON.parse((await response.text()).trim().split('\n').at(-1)!)
    expect(last).toMatchObject({ ...unknown.body, progress: { received: 0, updated: 0 } })
    // The last line may have come too late for the first set; a set behind it cannot begin to commit.
    expect(await changesOf('new ada')).toBe(1)
    expect(await changesOf('new bob')).toBeLessThanOrEqual(1)
  })

  it('a token is not issued on a key that may end before it', async () => {
    const { client_id, client_secret } = await createClient(prepared.db, {
      organizationKey: organization.key,
      name: 'a program',
      scope: 'people:read',
    })
    await query(postgres.url, `set synchronous_commit = local; update signing_keys set vouches_until = now()`)
    const response = await fetch(`${service.address}/oauth/token`, {
      method: 'POST',
      body: new URLSearchParams({ grant_type: 'client_credentials', client_id, client_secret }),
    })
    expect({ status: response.status, body: await response.json() }).toMatchObject(unknown)
  })

  it('what is there already is not acknowledged when it is asked for again', async () => {
    const again = () => send('PATCH', '/v1/people/ada', { first_name: 'again' })
    const keyed = () => send('PATCH', '/v1/people/bob', { first_name: 'keyed' }, { 'Idempotency-Key': 'a-key' })
    for (const ask of [again, again, keyed, keyed]) expect(await ask()).toMatchObject(unknown)
    await setStandby('')
    expect((await keyed()).headers.get('Idempotency-Replayed')).toBe('true')
    expect((await again()).status).toBe(200)
    expect([await changesOf('again'), await changesOf('keyed')]).toEqual([1, 1])
    await setStandby('nobody')
  })

  it('reads are answered', async () => {
    expect(await send('GET', '/v1/people/ada')).toMatchObject({ status: 200, body: { data: { external_id: 'ada' } } })
    expect((await send('POST', '/v1/people/list', {})).body.data.items).toHaveLength(2)
  })

  it('a write that is cancelled before its COMMIT is not done, and is told so', async () => {
    const lock = await service.db.connect()
    await lock.query(`begin; select from entities where external_id = 'ada' for update`)
    expect((await send('PATCH', '/v1/people/ada', { first_name: 'late' })).status).toBe(504)
    await lock.end()
    expect(await changesOf('late')).toBe(0)
  })
})

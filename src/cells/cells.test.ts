import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createClient } from '../../client/index.ts'
import { signIn } from '../../test/support/browser-session.ts'
import { setConnectable } from '../../test/support/cells.ts'
import { runInProcess } from '../../test/support/command.ts'
import { createTestDatabase } from '../../test/support/database.ts'
import { query } from '../../test/support/embedded-service.ts'
import { readMetrics } from '../../test/support/metrics.ts'
import { linksOf } from '../../test/support/pages.ts'
import { type Organization, type Service, startService } from '../../test/support/service.ts'

const names = ['main', 'b'] as const
const databases = {} as Record<(typeof names)[number], Awaited<ReturnType<typeof createTestDatabase>>>
let environment: Record<string, string>
let service: Service
let inMain: Organization
let inB: Organization

beforeAll(async () => {
  for (const name of names) databases[name] = await createTestDatabase()
  environment = { DATABASE_URL: databases.main.url, KITH_CELLS: `b=${databases.b.url}` }
  service = await startService(environment, databases.main.url)
  inMain = await service.organization('first')
  inB = await service.organization('second', 'b')
})

afterAll(async () => {
  await service?.stop()
  for (const name of names) await databases[name]?.drop()
})

const kith = (...words: string[]) => runInProcess(words, environment)
const sql = (name: (typeof names)[number], text: string) => query(databases[name].url, text)

/** Runs `work` while the cell b refuses connections. */
async function withoutB(work: () => Promise<void>) {
  await setConnectable(databases.b.url, false)
  try {
    await work()
  } finally {
    await setConnectable(databases.b.url, true)
  }
}

type Readiness = { data: { ready: boolean; cells: Record<string, string> } }

const readyz = async (address = service.address) => {
  const response = await fetch(`${address}/readyz`)
  const { data } = (await response.json()) as Readiness
  return { status: response.status, data }
}

describe('an organization of a further cell', () => {
  it('has its rows there, and none in the first cell beside the directory', async () => {
    for (const { send } of [inMain, inB])
      expect((await send('POST', '/v1/people', { external_id: 'ada', first_name: 'Ada' })).status).toBe(201)
    for (const [name, organization] of [
      ['main', inMain],
      ['b', inB],
    ] as const)
      for (const table of ['entities', 'changes', 'change_heads', 'consent_types', 'tombstone_keys']) {
        const rows = await sql(name, `select distinct organization_id as id from ${table}`)
        expect([table, rows.map(row => row.id).filter(id => [inMain.id, inB.id].includes(id as number))]).toEqual([
          table,
          [organization.id],
        ])
      }
    expect(await sql('main', 'select key, cell from organizations order by id')).toEqual([
      { key: 'default', cell: 'main' },
      { key: 'first', cell: 'main' },
      { key: 'second', cell: 'b' },
    ])
  })

  it('has its clients in the first cell, and the doctor tells of both cells', async () => {
    const { access, operations, consents } = inB.client
    const { client_id, client_secret } = await access.clients.create({ name: 'Shop', scopes: ['people:read'] })
    const shop = createClient({
      url: service.address,
      clientCredentials: { clientId: client_id, clientSecret: client_secret },
      retries: 0,
    })
    expect(await shop.people.get('ada')).toMatchObject({ first_name: 'Ada' })
    expect((await access.clients.list()).items).toMatchObject([{ client_id, revoked_at: null }])
    expect((await inMain.client.access.clients.list()).items).toEqual([])
    expect(await access.clients.revoke(client_id)).toBe(true)
    const { items } = await consents.statistics({ interval: 'day' })
    expect(items.map(({ consent_type_id }) => consent_type_id)).toContain(1)
    const { findings } = await operations.doctor()
    expect(findings).toContainEqual({
      check: 'cells',
      verdict: 'ok',
      message: 'the cell b answers; it has 1 organization',
      advice: null,
    })
  })

  it('answers a read with If-Sequence by the log of its own cell', async () => {
    const written = await inB.send('PATCH', '/v1/people/ada', { language: 'en' })
    const sequence = written.headers.get('X-Kith-Sequence')!
    const read = await inB.send('GET', '/v1/people/ada', undefined, { 'If-Sequence': sequence })
    expect([read.status, read.body.data?.language]).toEqual([200, 'en'])
  })

  it('has its sessions of the console in the first cell, as its clients', async () => {
    const session = await signIn(service, inB)
    expect((await session.send('POST', '/v1/people', { external_id: 'by-session' })).status).toBe(201)
    expect(await sql('b', `select from entities where external_id = 'by-session'`)).toHaveLength(1)
    const { items } = (await inB.send('GET', '/v1/sessions')).body.data
    expect(items).toMatchObject([{ id: session.reply.body.data.id }])
    const stored = `select id from sessions where organization_id = ${inB.id}`
    expect([(await sql('main', stored)).length, (await sql('b', stored)).length]).toEqual([1, 0])
    expect((await inMain.send('DELETE', `/v1/sessions/${items[0].id}`)).status).toBe(404)
    expect((await inB.send('DELETE', `/v1/sessions/${items[0].id}`)).status).toBe(200)
    expect((await inB.send('GET', '/v1/sessions')).body.data.items).toEqual([])
  })

  it('does not see an entity of the same name in another cell', async () => {
    await inB.send('POST', '/v1/people', { external_id: 'only-b' })
    expect((await inMain.send('GET', '/v1/people/only-b')).status).toBe(404)
    expect((await inB.send('GET', '/v1/people/only-b')).status).toBe(200)
    const { body } = await inB.send('GET', '/v1/organization')
    expect(body.data).toMatchObject({ key: 'second', counts: { consent_types: 1 } })
  })

  it('signs its ledger with the key of the first cell, also after a rotation', async () => {
    const keys = 'select kid, private_jwk is not null as signs, created_at, retired_at from ledger_keys order by 1'
    expect(await sql('b', keys)).toEqual(await sql('main', keys))
    expect((await kith('ledger', 'rotate-key')).code).toBe(0)
    const rotated = await sql('main', keys)
    expect(rotated).toHaveLength(2)
    expect(await sql('b', keys)).toEqual(rotated)
  })

  it('opens the preference page of its people', async () => {
    const { pathname } = new URL((await linksOf(inB, 'ada')).preferences_url)
    const fresh = await startService({ ...environment }, databases.main.url)
    try {
      const [own, other] = await Promise.all([
        fetch(`${fresh.address}${pathname}`),
        fetch(`${fresh.address}${pathname.slice(0, -2)}AA`),
      ])
      expect([own.status, other.status]).toEqual([200, 404])
    } finally {
      await fresh.stop()
    }
  })
})

describe('a cell that is away', () => {
  it('refuses its own organizations with 503, and no other', async () => {
    await withoutB(async () => {
      const refused = await inB.send('GET', '/v1/people/ada')
      expect([refused.status, refused.headers.get('Retry-After')]).toEqual([503, '1'])
      expect((await inB.send('PATCH', '/v1/people/ada', { first_name: 'A' })).status).toBe(503)
      expect((await inMain.send('GET', '/v1/people/ada')).status).toBe(200)
      expect((await inMain.send('PATCH', '/v1/people/ada', { first_name: 'Ada' })).status).toBe(200)
      expect(await readyz()).toEqual({ status: 200, data: { ready: true, cells: { main: 'ready', b: 'away' } } })
    })
    await expect.poll(async () => (await inB.send('GET', '/v1/people/ada')).status).toBe(200)
    expect((await readyz()).data.cells).toEqual({ main: 'ready', b: 'ready' })
    await expect
      .poll(async () => (await readMetrics(service.address)).value('kith_cell_up{cell="b"}'), { timeout: 5_000 })
      .toBe(1)
  })

  it('refuses its organizations in a process that knows no further cell', async () => {
    const alone = await startService({ DATABASE_URL: databases.main.url }, databases.main.url)
    try {
      expect((await alone.sender(inB.token)('GET', '/v1/people/ada')).status).toBe(503)
      expect((await alone.sender(inMain.token)('GET', '/v1/people/ada')).status).toBe(200)
    } finally {
      await alone.stop()
    }
  })

  it('does not keep the service from starting, and is migrated when it comes', async () => {
    const c = await createTestDatabase({ tables: false })
    await setConnectable(c.url, false)
    const cells = `${environment.KITH_CELLS}\n c=${c.url}`
    const fresh = await startService({ ...environment, KITH_CELLS: cells }, databases.main.url)
    try {
      expect((await readyz(fresh.address)).data.cells).toEqual({ main: 'ready', b: 'ready', c: 'away' })
      expect(fresh.logs.join('')).toMatch(/The cell c cannot be used: .*KITH_CELLS/)
      expect(fresh.logs.join('')).not.toMatch(/DATABASE_URL/)
      await setConnectable(c.url, true)
      await expect.poll(async () => (await readyz(fresh.address)).data.cells.c, { timeout: 20_000 }).toBe('ready')
      const { send } = await fresh.organization('third', 'c')
      expect((await send('POST', '/v1/people', { external_id: 'ada' })).status).toBe(201)
      // A process that does not know the cell refuses the organization.
      const elsewhere = service.sender(await service.tokenFor('third'))
      expect((await elsewhere('GET', '/v1/people/ada')).status).toBe(503)
    } finally {
      await fresh.stop()
      await c.drop()
      await sql('main', `delete from organizations where key = 'third'`)
    }
  })
})

describe('kith', () => {
  it('creates and lists organizations with their cells', async () => {
    const created = await kith('org', 'create', 'acme', '--cell', 'b')
    expect(created).toEqual({ code: 0, stdout: '', stderr: 'Created organization acme in the cell b.\n' })
    const { stdout } = await kith('org', 'list')
    expect(stdout).toMatch(/^first\t\S+\tmain$/m)
    expect(stdout).toMatch(/^acme\t\S+\tb$/m)
    const unknown = await kith('org', 'create', 'other', '--cell', 'x')
    expect(unknown.code).toBe(1)
    expect(unknown.stderr).toBe('KITH_CELLS does not name the cell x. Known: main, b.\n')
    const taken = await kith('org', 'create', 'first', '--cell', 'b')
    expect([taken.code, taken.stderr]).toEqual([1, 'The organization first already exists.\n'])
    expect(await sql('b', `select key from organizations where key in ('first', 'other')`)).toEqual([])
  })

  it('creates an organization in a cell that has a leftover of its interrupted creation', async () => {
    await sql('b', `insert into organizations (id, key, cell) overriding system value values (900, 'again', 'b')`)
    await sql('b', 'insert into change_heads (organization_id) values (900)')
    expect((await kith('org', 'create', 'again', '--cell', 'b')).code).toBe(0)
    const [row] = await sql('main', `select id from organizations where key = 'again'`)
    expect(await sql('b', `select id from organizations where key = 'again'`)).toEqual([row])
    expect(await sql('b', 'select from change_heads where organization_id = 900')).toEqual([])
    // An organization with changes that the directory does not know is no leftover.
    await sql('b', `insert into organizations (id, key, cell) overriding system value values (901, 'grown', 'b')`)
    await sql('b', 'insert into change_heads (organization_id, sequence) values (901, 1)')
    expect((await kith('org', 'create', 'grown', '--cell', 'b')).stderr).toMatch(/^The cell b has rows of another/)
    expect(await sql('main', `select from organizations where key = 'grown'`)).toEqual([])
    expect(await sql('b', 'select from change_heads where organization_id = 901')).toHaveLength(1)
  })

  it('reaches the cell of an organization from commands on the database', async () => {
    const { stdout, code } = await kith('log', 'renew', '--all')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^second\t/m)
    const [row] = await sql('b', `select log_id from change_heads where organization_id = ${inB.id}`)
    expect(stdout).toContain(row!.log_id as string)
    expect((await kith('ledger', 'verify', '--all')).code).toBe(0)
    expect((await kith('migrate')).stderr).toBe('Nothing to do: the database has every migration.\n')
  })

  it('names rows in two cells, and cells that are away or unknown, in the doctor’s findings', async () => {
    const healthy = await kith('doctor')
    expect(healthy.stdout).toMatch(/^ok +cells +the cell b answers; it has \d organizations$/m)
    await sql('b', `insert into change_heads (organization_id) values (${inMain.id})`)
    const leftover = await kith('doctor')
    expect(leftover.stdout).toMatch(/^warning +cells +the cell b has rows of the organization first/m)
    await sql('b', `delete from change_heads where organization_id = ${inMain.id}`)
    const unknown = await runInProcess(['doctor'], { DATABASE_URL: databases.main.url })
    expect(unknown.stdout).toMatch(/^wrong +cells +the organization second lives in the cell b, which is not known$/m)
    await withoutB(async () => {
      const away = await kith('doctor')
      expect(away.code).toBe(1)
      expect(away.stdout).toMatch(/^wrong +cells +The cell b cannot be used/m)
    })
  })

  it('refuses addresses that lead to the wrong cell', async () => {
    const swapped = await runInProcess(['org', 'list'], { DATABASE_URL: databases.b.url })
    expect(swapped.stderr).toMatch(/^DATABASE_URL leads to the database of the cell b\./)
    const same = { DATABASE_URL: databases.main.url, KITH_CELLS: `c=${databases.b.url}` }
    const renamed = await runInProcess(['org', 'create', 'lost', '--cell', 'c'], same)
    expect(renamed.stderr).toMatch(/^The cell c cannot be used: Its database is the cell b/)
    const foreign = { DATABASE_URL: databases.main.url, KITH_CELLS: `c=${databases.main.url}` }
    expect((await runInProcess(['org', 'create', 'lost', '--cell', 'c'], foreign)).stderr).toMatch(/is the cell main/)
  })
})

import { afterAll, beforeAll, expect, it } from 'vitest'
import { setConnectable } from '../../../test/support/cells.ts'
import { runInProcess, startCommand } from '../../../test/support/command.ts'
import { createTestDatabase } from '../../../test/support/database.ts'
import { query } from '../../../test/support/embedded-service.ts'
import { throwReported } from '../../../test/support/followers.ts'
import { type Organization, type Service, startService } from '../../../test/support/service.ts'
import { createFollowers } from '../../followers/followers.ts'
import { ledgerFollower } from '../../ledger/seal.ts'
import { findOrganization } from '../../organizations/organizations.ts'
import { completeMove } from './complete-move.ts'
import { type MoveOptions, moveOrganization } from './move.ts'

const names = ['main', 'b'] as const
type Name = (typeof names)[number]
const databases = {} as Record<Name, Awaited<ReturnType<typeof createTestDatabase>>>
let environment: Record<string, string>
let service: Service

beforeAll(async () => {
  for (const name of names) databases[name] = await createTestDatabase()
  environment = {
    DATABASE_URL: databases.main.url,
    KITH_CELLS: `b=${databases.b.url}`,
    KITH_LIMIT_REQUEST_MS: '4000',
  }
  service = await startService(environment, databases.main.url)
})

afterAll(async () => {
  await service?.stop()
  for (const name of names) await databases[name]?.drop()
})

/** A move waits for caches and deadlines, about 15 s. */
const testTimeoutMs = 120_000

const sql = (name: Name, text: string) => query(databases[name].url, text)
const cellOf = (name: Name) => service.db.directory!.cells.find(cell => cell.name === name)!

/** How many rows of the organization each table of a cell has. */
async function rowsIn(name: Name, { id }: Organization): Promise<Record<string, number>> {
  const tables = await sql(
    name,
    `select table_name as table from information_schema.columns where table_schema = 'public' and column_name = 'organization_id'`,
  )
  const counts: Record<string, number> = {}
  for (const { table } of tables) {
    const [row] = await sql(name, `select count(*)::integer as count from ${table} where organization_id = ${id}`)
    if (row!.count !== 0) counts[table as string] = row!.count as number
  }
  return counts
}

const triggersIn = (name: Name, { id }: Organization) =>
  sql(name, `select tgname from pg_trigger where tgname like 'kith_move_${id}_%'`)

/** An organization with definitions, people, consents, records, links and index keys. */
async function createFilled(key: string): Promise<Organization> {
  const organization = await service.organization(key)
  const { send } = organization
  const created = async (path: string, body: object) => {
    const reply = await send('POST', path, body)
    expect([reply.status, reply.body.details]).toEqual([201, undefined])
  }
  await created('/v1/schema/stacks', { key: 'orders', name: 'Orders', kind: 'item' })
  await created('/v1/schema/attributes', { key: 'city', name: 'City', owner: 'people', type: 'text', indexed: true })
  for (let index = 0; index < 30; index += 1)
    await created('/v1/people', {
      external_id: `p${index}`,
      email: `p${index}@example.org`,
      attribute_values: { city: `City ${index % 3}`, note: null },
      consents: [{ consent_type_id: 1, channel: 'email', state: index % 2 === 0 }],
    })
  return organization
}

/** Moves an organization that no process has cached, so that nothing has to be waited for. */
async function moveTo(to: Name, { key }: Organization, options: Partial<MoveOptions> = {}): Promise<void> {
  const organization = (await findOrganization(service.db, key))!
  await moveOrganization(organization, cellOf(organization.cell as Name), cellOf(to), {
    first: cellOf('main').db,
    cacheMs: 0,
    signal: new AbortController().signal,
    report: () => {},
    ...options,
  })
}

it(
  'moves an organization under load: every acknowledged write is there once, and no read misses a row',
  async () => {
    const organization = await createFilled('busy')
    const { send, id } = organization
    const before = await rowsIn('main', organization)
    const [log] = await sql('main', `select log_id from change_heads where organization_id = ${id}`)
    // A second process, which must not read from the old cell what was written to the new one.
    const other = await startService(environment, databases.main.url)
    const readElsewhere = other.sender(organization.token)
    const followings = names.map(name =>
      createFollowers(cellOf(name).db, [ledgerFollower({ originName: 'kith' })], { report: () => {} }),
    )
    for (const following of followings) following.start()
    let isRunning = true
    const accepted = new Map<string, number>()
    const uncertain = new Set<string>()
    const write = async (writer: number) => {
      for (let index = 0; isRunning; ) {
        const own = `w${writer}-${index % 40}`
        const body = {
          first_name: `n${index}`,
          consents: [{ consent_type_id: 1, channel: 'sms', state: index % 80 < 40 }],
        }
        const reply =
          index < 40
            ? await send('POST', '/v1/people', { external_id: own, ...body })
            : await send('PATCH', `/v1/people/${own}`, body)
        // A slow machine may exceed the deadline of a request, whose write may then have been stored.
        if (reply.status === 504 || reply.body.outcome === 'unknown') uncertain.add(own)
        if (reply.status >= 503) {
          if (reply.status === 503) expect(reply.headers.get('Retry-After')).toBe('1')
          continue
        }
        if (uncertain.has(own) && reply.status === 409) {
          index += 1
          continue
        }
        expect(reply.status).toBe(index < 40 ? 201 : 200)
        accepted.set(own, (accepted.get(own) ?? 0) + 1)
        index += 1
        const read = await readElsewhere('GET', `/v1/people/${own}`)
        if (read.status >= 503 || uncertain.has(own)) continue
        expect([read.status, read.body.data?.version]).toEqual([200, accepted.get(own)])
      }
    }
    const read = async () => {
      for (let index = 0; isRunning; index += 1) {
        const reply = await send('GET', `/v1/people/p${index % 30}`)
        if (reply.status >= 503) continue
        expect([reply.status, reply.body.data?.email]).toEqual([200, `p${index % 30}@example.org`])
      }
    }
    const loads = Promise.all([write(1), write(2), write(3), read()])
    const moved = await runInProcess(['org', 'move', 'busy', '--to', 'b'], environment)
    isRunning = false
    await loads.finally(() => other.stop())
    for (const following of followings) await following.stop()
    expect(moved).toMatchObject({ code: 0 })
    expect(moved.stderr).toMatch(/lives in the cell b\.\nDeleted its rows in the cell main\.\n$/)
    expect(accepted.size).toBe(120)
    for (const [own, version] of accepted) {
      const [row] = await sql(
        'b',
        `select version from entities where organization_id = ${id} and external_id = '${own}'`,
      )
      // Each acknowledged write is one version, and no refused one was stored.
      if (!uncertain.has(own)) expect([own, row!.version]).toEqual([own, version])
    }
    const [numbers] = await sql(
      'b',
      `select count(*)::integer as changes, count(distinct sequence)::integer as numbers, max(sequence)::integer as last,
       (select h.sequence::integer from change_heads h where h.organization_id = ${id}) as head,
       (select h.log_id from change_heads h where h.organization_id = ${id}) as log_id
     from changes where organization_id = ${id}`,
    )
    const { head } = numbers as { head: number }
    expect(numbers).toEqual({ changes: head, numbers: head, last: head, head, log_id: log!.log_id })
    const after = await rowsIn('b', organization)
    for (const [table, count] of Object.entries(before)) expect([table, after[table]! >= count]).toEqual([table, true])
    expect(await rowsIn('main', organization)).toEqual({ change_heads: 1 })
    expect(await triggersIn('main', organization)).toEqual([])
    const sealing = createFollowers(cellOf('b').db, [ledgerFollower({ originName: 'kith' })], { report: throwReported })
    await sealing.settle()
    await sealing.stop()
    const verified = await runInProcess(['ledger', 'verify', '--org', 'busy'], environment)
    expect(verified.stdout).toMatch(/^busy: [\d,]+ entries verified/)
    const [answers] = await sql('b', `select count(*)::integer as n from consent_history where organization_id = ${id}`)
    expect(verified.stdout.replaceAll(',', '')).toContain(`busy: ${answers!.n} entries`)
    // The head that remains in the old cell refuses every write.
    await expect(
      sql('main', `update change_heads set sequence = sequence + 1 where organization_id = ${id}`),
    ).rejects.toThrow(/change_heads_moved/)
    const again = await runInProcess(['org', 'move', 'busy', '--to', 'b', '--json'], environment)
    expect(again.stdout).toBe('{"key":"busy","cell":"b","moved":false}\n')
  },
  testTimeoutMs,
)

it(
  'is undone when it is interrupted, and can go there and back later',
  async () => {
    const organization = await createFilled('calm')
    const before = await rowsIn('main', organization)
    const aborting = new AbortController()
    const report = (message: string) => {
      if (message === 'Copying entities.') aborting.abort(new Error('interrupted'))
    }
    await expect(moveTo('b', organization, { signal: aborting.signal, report })).rejects.toThrow('interrupted')
    expect(await rowsIn('b', organization)).toEqual({})
    expect(await rowsIn('main', organization)).toEqual(before)
    expect(await triggersIn('main', organization)).toEqual([])
    expect(await findOrganization(service.db, 'calm')).toMatchObject({ cell: 'main', moving_to: null })
    await moveTo('b', organization)
    expect(await rowsIn('b', organization)).toEqual(before)
    await moveTo('main', organization)
    expect(await rowsIn('main', organization)).toEqual(before)
    expect(await findOrganization(service.db, 'calm')).toMatchObject({ cell: 'main', moves: 2 })
  },
  testTimeoutMs,
)

it(
  'starts over after its command was killed',
  async () => {
    const organization = await createFilled('killed')
    const command = startCommand(['org', 'move', 'killed', '--to', 'b'], environment)
    const hasCopied = new Promise<void>(resolve => {
      command.child.stderr.on('data', data => /Comparing/.test(String(data)) && resolve())
    })
    await hasCopied
    command.child.kill('SIGKILL')
    await command.ended
    const { send } = organization
    expect((await send('PATCH', '/v1/people/p1', { first_name: 'Between' })).status).toBe(200)
    const doctor = await runInProcess(['doctor'], environment)
    expect(doctor.stdout).toMatch(/^warning +cells +a move of the organization killed from the cell main to b/m)
    const again = await runInProcess(['org', 'move', 'killed', '--to', 'b'], environment)
    expect(again.stderr).toMatch(/^The earlier move to the cell b has been undone\.\n/)
    expect(again.code).toBe(0)
    const { body } = await send('GET', '/v1/people/p1')
    expect(body.data.first_name).toBe('Between')
    expect((await runInProcess(['doctor'], environment)).stdout).not.toMatch(/organization killed/)
  },
  testTimeoutMs,
)

it(
  'is completed by the service when its command dies after the decision',
  async () => {
    const organization = await createFilled('decided')
    const { send } = organization
    const { db } = cellOf('main')
    const dying = { ...db, transaction: () => Promise.reject(new Error('killed')) }
    await expect(moveTo('b', organization, { first: dying as typeof db })).rejects.toThrow('killed')
    // The directory in this process is outdated, so it sends the write to the old cell.
    const refused = await send('PATCH', '/v1/people/p1', { first_name: 'Late' })
    expect([refused.status, refused.headers.get('Retry-After')]).toEqual([503, '1'])
    const placement = (await findOrganization(service.db, 'decided'))!
    const both = [0, 1].map(() => completeMove(db, placement, db, cellOf('b')))
    expect(await Promise.all(both)).toEqual([true, true])
    const found = (await findOrganization(service.db, 'decided'))!
    expect(found).toMatchObject({ cell: 'b', moving_to: null, moves: 1 })
    service.db.directory!.learn(found)
    expect((await send('PATCH', '/v1/people/p1', { first_name: 'Late' })).status).toBe(200)
    expect((await send('GET', '/v1/people/p1')).body.data.first_name).toBe('Late')
  },
  testTimeoutMs,
)

it(
  'loses nothing when the new cell vanishes, and says what to do',
  async () => {
    const organization = await createFilled('vanishing')
    const { send } = organization
    let refusing: Promise<void> | undefined
    const report = (message: string) => {
      if (message === 'Copying entities.') refusing = setConnectable(databases.b.url, false)
    }
    await expect(moveTo('b', organization, { report })).rejects.toThrow(
      /It could not be undone: .* Nothing is lost\. Run the command again\.$/,
    )
    await refusing
    expect((await send('PATCH', '/v1/people/p1', { first_name: 'Safe' })).status).toBe(200)
    await setConnectable(databases.b.url, true)
    const undone = await runInProcess(['org', 'move', 'vanishing', '--to', 'main'], environment)
    expect(undone.stderr).toBe(
      'The earlier move to the cell b has been undone.\nThe organization vanishing lives in the cell main.\n',
    )
    expect(await rowsIn('b', organization)).toEqual({})
    expect(await triggersIn('main', organization)).toEqual([])
  },
  testTimeoutMs,
)

import { stat } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { migrate } from '../src/db/migrate.ts'
import { compareWithLog } from '../test/faults/against-log.ts'
import { replay } from '../test/faults/replay.ts'
import { readStored } from '../test/faults/stored.ts'
import { contentsOf, underWriters, useBackupFixture, writePerson } from '../test/support/backups.ts'
import { query } from '../test/support/embedded-service.ts'
import type { Organization, Send } from '../test/support/service.ts'

const ground = useBackupFixture()
const { emptyDatabase, kith, newDatabase, newFile, pathTo, serveOn } = ground

/** Creates definitions of each kind, and people with links and consent answers. */
async function seed({ send, client }: Pick<Organization, 'send' | 'client'>) {
  await client.schema.stacks.create({ key: 'orders', kind: 'item' })
  await client.schema.attributes.create({ key: 'referrer', owner: 'people', type: 'person' })
  await client.schema.attributes.create({
    key: 'bought',
    owner: 'people',
    type: 'stack',
    target_stack: 'orders',
    cardinality: 'many',
  })
  await client
    .stack('orders')
    .create({ external_id: 'o1', attribute_values: { total: 1.5, note: 'a\tb\\c\nd "é" 🌍' } })
  await client.people.create({ external_id: 'gone' })
  await client.people.delete('gone')
  for (let turn = 0; turn < 3; turn++) await writePerson(send, 'seed', turn)
}

/** Expects that the restored rows match their change log, and that this log is a prefix of the original's. */
async function expectConsistent(restored: string, origin: string, organizationId: number) {
  const stored = await readStored(restored, organizationId)
  const replayed = replay(stored)
  expect([...replayed.findings, ...compareWithLog(stored, replayed)]).toEqual([])
  const { changes } = await readStored(origin, organizationId)
  expect(stored.head).toBe(stored.changes.length)
  expect(stored.changes).toEqual(changes.slice(0, stored.head))
  return stored.head
}

/** Records bounces of the address of a person and of the address of an erased person. */
async function suppress({ send, client }: Pick<Organization, 'send' | 'client'>) {
  for (const name of ['bounced', 'erased']) {
    await client.people.create({ external_id: name, email: `${name}@example.com` })
    await client.deliverability.record([{ channel: 'email', external_id: name, type: 'hard_bounce' }])
  }
  expect((await send('POST', '/v1/people/erased/erase', { reason: 'Request of the person' })).status).toBe(200)
}

describe('a backup of the server that DATABASE_URL names', { timeout: 90_000 }, () => {
  it('restores every row and sequence into an empty database, which then accepts reads and writes', async () => {
    const url = await newDatabase()
    const service = await serveOn(url)
    const organization = await service.organization()
    await seed(organization)
    await suppress(organization)
    // A table that a later version may add, with types and columns that COPY handles specially.
    const later = `create table "a ""later"" table" (id integer generated always as identity, "select" bytea, ratio float8,
      twice float8 generated always as (ratio * 2) stored, at timestamptz, body jsonb)`
    await query(url, later)
    await query(
      url,
      String.raw`insert into "a ""later"" table" ("select", ratio, at, body)
        values ('\x00ff', 0.1, '2027-01-15 10:00:00.123456+02', '{"a": 1e400}'), (null, 'NaN', null, 'null')`,
    )
    const file = newFile()
    const backup = await kith(['backup', file, '--json'], url)
    expect(backup.code).toBe(0)
    const { mode, size } = await stat(pathTo(file))
    expect(mode & 0o777).toBe(0o600)
    const contents = await contentsOf(url)
    const rows = Object.values(contents).flat().length
    expect(await query(url, 'select at from backups')).toEqual([{ at: new Date(JSON.parse(backup.stdout).at) }])
    expect(JSON.parse(backup.stdout)).toMatchObject({ file, rows, bytes: size, tables: Object.keys(contents).length })

    const target = await emptyDatabase()
    await migrate(target)
    await query(target, later)
    const restored = await kith(['restore', file, '--keep-log-id', '--json'], target)
    expect(restored.code).toBe(0)
    expect(JSON.parse(restored.stdout)).toMatchObject({ rows, left_out: [], ran: [] })
    expect(await contentsOf(target)).toEqual(contents)
    const next = `insert into "a ""later"" table" (ratio) values (1) returning id`
    expect(await query(target, next)).toEqual([{ id: 3 }])

    const second = await serveOn(target)
    const send = second.sender(organization.token)
    const exportOf = async (from: Send) => (await from('GET', '/v1/people/export')).body.data
    expect(await exportOf(send)).toEqual(await exportOf(organization.send))
    await writePerson(send, 'seed', 3)
    const suppressed = async (name: string, from = send) =>
      (await from('GET', `/v1/people/${name}/deliverability`)).body.data.items
    expect(await suppressed('bounced')).toEqual(await suppressed('bounced', organization.send))
    const returning = { external_id: 'returning', email: 'erased@example.com' }
    await send('POST', '/v1/people', returning, { Prefer: 'erased=recreate' })
    expect(await suppressed('returning')).toMatchObject([{ address: 'erased@example.com', state: 'suppressed' }])
    expect((await second.sql('select max(id)::integer as id from organizations'))[0]).toEqual({ id: organization.id })
    expect((await second.organization('next_one')).id).toBe(organization.id + 1)
  })

  it('is a consistent snapshot while four writers write, and includes the Idempotency-Keys', async () => {
    const url = await newDatabase()
    const service = await serveOn(url)
    const organization = await service.organization()
    await seed(organization)
    const [acknowledged] = await service.sql('select sequence from change_heads where organization_id = $1', [
      organization.id,
    ])
    const file = newFile()
    const backup = await underWriters(organization.send, () => kith(['backup', file], url))
    expect(backup).toMatchObject({ code: 0, stdout: '' })
    expect(backup.stderr).toMatch(
      /^[\d,]+ rows of \d+ tables in \d+ s, \d+\.\d MB: \d+\.backup\nSigned by kith\+\S+\n$/m,
    )

    const target = await emptyDatabase()
    const restored = await kith(['restore', file], target)
    // The restored log assigns numbers after the backup again, so it must refuse positions of the original.
    const logIds = (at: string) => query(at, 'select organization_id, log_id from change_heads order by 1')
    const [old, renewed] = [await logIds(url), await logIds(target)]
    expect(renewed.map(({ organization_id }) => organization_id)).toEqual(old.map(each => each.organization_id))
    expect(new Set([...old, ...renewed].map(({ log_id }) => log_id)).size).toBe(2 * old.length)
    expect(restored.stderr).toContain('The change logs have a new log_id')
    expect(restored).toMatchObject({ code: 0, stdout: '', stderr: expect.stringMatching(/the state of \d{4}-/) })
    const head = await expectConsistent(target, url, organization.id)
    expect(head).toBeGreaterThan(acknowledged!.sequence as number)
    const settled = ['attributes', 'consent_types', 'signing_keys', 'stacks', 'organizations', 'idempotency_keys']
    const [before, after] = [await contentsOf(url), await contentsOf(target)]
    for (const table of settled) expect(after[table]).toEqual(before[table])

    const send = (await serveOn(target)).sender(organization.token)
    expect((await send('PATCH', '/v1/people/seed', { first_name: 'restored' })).status).toBe(200)
    const again = await send('POST', '/v1/people', { external_id: 'x' }, { 'Idempotency-Key': 'seed' })
    expect(again.status).toBe(422)
    expect(
      await query(target, `select sequence::integer from change_heads where organization_id = ${organization.id}`),
    ).toEqual([{ sequence: head + 1 }])
  })

  it('runs newer migrations after the restore of a backup of an older version', async () => {
    const url = await emptyDatabase()
    await migrate(url, 6)
    await query(url, `insert into organizations (key) values ('default')`)
    await query(url, 'insert into change_heads (organization_id, sequence) values (1, 0)')
    const file = newFile()
    expect((await kith(['backup', file], url)).code).toBe(0)
    const target = await emptyDatabase()
    const { code, stderr } = await kith(['restore', file], target)
    expect(code).toBe(0)
    expect(stderr).toMatch(/Ran migration 0007_identity\.\nRan migration 0008_webhooks\.\n/)
    expect(await migrate(target)).toEqual([])
    const organization = await (await serveOn(target)).organization('acme')
    expect(organization.id).toBe(2)
    expect((await organization.send('POST', '/v1/people', { external_id: 'ada' })).status).toBe(201)
  })

  it('is written also if the database refuses to store when it was made, and says so', async () => {
    const url = await newDatabase()
    await serveOn(url)
    await query(url, `alter database ${new URL(url).pathname.slice(1)} set default_transaction_read_only = on`)
    const file = newFile()
    const { code, stderr } = await kith(['backup', file], url)
    expect(code).toBe(0)
    expect(stderr).toContain(
      'The database does not store the time of this backup (cannot execute INSERT in a read-only',
    )
    expect((await kith(['restore', file], await emptyDatabase())).code).toBe(0)
  })

  it('contains tables that kith does not have, and the restore reports that it skips them', async () => {
    const url = await newDatabase()
    await serveOn(url)
    await query(url, `create table notes as select 'kept' as text`)
    const file = newFile()
    expect((await kith(['backup', file], url)).code).toBe(0)
    const { code, stderr } = await kith(['restore', file], await emptyDatabase())
    expect(code).toBe(0)
    expect(stderr).toContain('Skipped tables that kith does not have: notes.')
  })
})

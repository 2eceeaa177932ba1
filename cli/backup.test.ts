import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { migrate } from '../src/db/migrate.ts'
import { compareWithLog } from '../test/faults/against-log.ts'
import { replay } from '../test/faults/replay.ts'
import { readStored } from '../test/faults/stored.ts'
import { startCommand } from '../test/support/command.ts'
import { createTestDatabase } from '../test/support/database.ts'
import { query, until } from '../test/support/embedded-service.ts'
import { endProcesses, launch, makeFolder, senderTo, terminate, tokenFrom } from '../test/support/process.ts'
import { type Organization, type Send, type Service, startService } from '../test/support/service.ts'
import { verifyBackup } from './backup/container.ts'

let folder: string
const cleanups: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kith-backup-'))
})
afterEach(async () => {
  await endProcesses()
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})
afterAll(() => rm(folder, { recursive: true }))

let files = 0
const newFile = () => `${++files}.backup`
const pathTo = (file: string) => join(folder, file)

const start = (words: string[], environment: Record<string, string>) => startCommand(words, environment, folder)
const kith = (words: string[], url: string) => start(words, { DATABASE_URL: url }).ended

async function newDatabase(options?: { tables: boolean }): Promise<string> {
  const { url, drop } = await createTestDatabase(options)
  cleanups.push(drop)
  return url
}
const emptyDatabase = () => newDatabase({ tables: false })

async function serveOn(url: string): Promise<Service> {
  const service = await startService({}, url)
  cleanups.push(service.stop)
  return service
}

/** Every row of every table that PostgreSQL logs, found in the catalog by a way of the test's own. */
async function contentsOf(url: string): Promise<Record<string, unknown[]>> {
  const tables = await query(
    url,
    `select relname as name from pg_class where relkind = 'r' and relpersistence = 'p' and relname <> 'migrations'
       and relnamespace = 'public'::regnamespace order by relname`,
  )
  const contents: Record<string, unknown[]> = {}
  for (const { name } of tables) {
    const text = `select to_jsonb(t) as row from ${pg.escapeIdentifier(name as string)} t order by to_jsonb(t)::text collate "C"`
    contents[name as string] = (await query(url, text)).map(({ row }) => row)
  }
  return contents
}

/** Definitions of each kind, and people with links and answers. */
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
  for (let turn = 0; turn < 3; turn++) await write(send, 'seed', turn)
}

/** Creates a person, then answers and links each time it is written again; every write is acknowledged. */
async function write(send: Send, external_id: string, turn: number) {
  const body = {
    first_name: `turn ${turn}`,
    email_consent: turn % 2 === 0,
    attribute_values: { turn, referrer: `hub_${turn % 3}`, bought: ['o1', `o_${external_id}_${turn % 5}`] },
  }
  const { status } =
    turn === 0
      ? await send('POST', '/v1/people', { external_id, ...body }, { 'Idempotency-Key': external_id })
      : await send('PATCH', `/v1/people/${external_id}`, body)
  expect(status).toBe(turn === 0 ? 201 : 200)
}

/** Writes with four writers until `work` is done, and a little before it begins. */
async function underWriters<T>(send: Send, work: () => Promise<T>): Promise<T> {
  let writing = true
  const begun = Promise.withResolvers<void>()
  const writers = ['a', 'b', 'c', 'd'].map(async name => {
    for (let turn = 0; writing; turn++) {
      await write(send, `writer_${name}`, turn)
      if (turn === 5) begun.resolve()
    }
  })
  await Promise.race([begun.promise, ...writers])
  const result = await work()
  writing = false
  await Promise.all(writers)
  return result
}

/** What is restored is what its change log tells, and its change log is the beginning of the one it was taken from. */
async function expectOneMoment(restored: string, origin: string, organizationId: number) {
  const stored = await readStored(restored, organizationId)
  const replayed = replay(stored)
  expect([...replayed.findings, ...compareWithLog(stored, replayed)]).toEqual([])
  const { changes } = await readStored(origin, organizationId)
  expect(stored.head).toBe(stored.changes.length)
  expect(stored.changes).toEqual(changes.slice(0, stored.head))
  return stored.head
}

describe('a backup of the server that DATABASE_URL names', { timeout: 90_000 }, () => {
  it('brings every row of every table and the sequences to an empty database, which then is served and written', async () => {
    const url = await newDatabase()
    const service = await serveOn(url)
    const organization = await service.organization()
    await seed(organization)
    // A table that a later version may bring, of the kinds that COPY treats in ways of their own.
    const later = `create table "a ""later"" table" (id integer generated always as identity, "select" bytea, ratio float8,
      twice float8 generated always as (ratio * 2) stored, at timestamptz, body jsonb)`
    await query(url, later)
    await query(
      url,
      String.raw`insert into "a ""later"" table" ("select", ratio, at, body)
        values ('\x00ff', 0.1, '2027-01-15 10:00:00.123456+02', '{"a": 1e400}'), (null, 'NaN', null, 'null')`,
    )
    const file = newFile()
    const made = await kith(['backup', file, '--json'], url)
    expect(made.code).toBe(0)
    const { mode, size } = await stat(pathTo(file))
    expect(mode & 0o777).toBe(0o600)
    const contents = await contentsOf(url)
    const rows = Object.values(contents).flat().length
    expect(JSON.parse(made.stdout)).toMatchObject({ file, rows, bytes: size, tables: Object.keys(contents).length })

    const target = await emptyDatabase()
    await migrate(target)
    await query(target, later)
    const restored = await kith(['restore', file, '--json'], target)
    expect(restored.code).toBe(0)
    expect(JSON.parse(restored.stdout)).toMatchObject({ rows, left_out: [], ran: [] })
    expect(await contentsOf(target)).toEqual(contents)
    const next = `insert into "a ""later"" table" (ratio) values (1) returning id`
    expect(await query(target, next)).toEqual([{ id: 3 }])

    const second = await serveOn(target)
    const send = second.sender(organization.token)
    const exportOf = async (from: Send) => (await from('GET', '/v1/people/export')).body.data
    expect(await exportOf(send)).toEqual(await exportOf(organization.send))
    await write(send, 'seed', 3)
    expect((await second.sql('select max(id)::integer as id from organizations'))[0]).toEqual({ id: organization.id })
    expect((await second.organization('next_one')).id).toBe(organization.id + 1)
  })

  it('is of one moment though four writers go on, and keeps the Idempotency-Keys of that moment', async () => {
    const url = await newDatabase()
    const service = await serveOn(url)
    const organization = await service.organization()
    await seed(organization)
    const [acknowledged] = await service.sql('select sequence from change_heads where organization_id = $1', [
      organization.id,
    ])
    const file = newFile()
    const made = await underWriters(organization.send, () => kith(['backup', file], url))
    expect(made).toMatchObject({ code: 0, stdout: '' })
    expect(made.stderr).toMatch(/^[\d,]+ rows of \d+ tables in \d+ s, \d+\.\d MB: \d+\.backup\n$/)

    const target = await emptyDatabase()
    const restored = await kith(['restore', file], target)
    expect(restored).toMatchObject({ code: 0, stdout: '', stderr: expect.stringMatching(/all as it stood at \d{4}-/) })
    const head = await expectOneMoment(target, url, organization.id)
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

  it('of an older version is migrated forward', async () => {
    const url = await emptyDatabase()
    await migrate(url, 5)
    await query(url, `insert into organizations (key) values ('default')`)
    await query(url, 'insert into change_heads (organization_id, sequence) values (1, 0)')
    const file = newFile()
    expect((await kith(['backup', file], url)).code).toBe(0)
    const target = await emptyDatabase()
    const { code, stderr } = await kith(['restore', file], target)
    expect(code).toBe(0)
    expect(stderr).toMatch(/ran 0006_idempotency\nran 0007_change_numbers\n/)
    expect(await migrate(target)).toEqual([])
    const organization = await (await serveOn(target)).organization('acme')
    expect(organization.id).toBe(2)
    expect((await organization.send('POST', '/v1/people', { external_id: 'ada' })).status).toBe(201)
  })

  it('holds tables that are not kith’s too, and the restore says that it leaves them out', async () => {
    const url = await newDatabase()
    await serveOn(url)
    await query(url, `create table notes as select 'kept' as text`)
    const file = newFile()
    expect((await kith(['backup', file], url)).code).toBe(0)
    const { code, stderr } = await kith(['restore', file], await emptyDatabase())
    expect(code).toBe(0)
    expect(stderr).toContain('left out, because kith has no such tables: notes')
  })
})

describe('a backup of the embedded server', { timeout: 120_000 }, () => {
  it('is taken while the service runs and while it does not, and comes up in another data folder', async () => {
    const [first, second] = await Promise.all(
      [1, 2].map(async () => ({ KITH_DATA_DIR: join(await makeFolder(), '.kith') })),
    )
    const service = launch(first!)
    const address = await service.ready
    const token = await tokenFrom(first!)
    const send = senderTo(address, token)
    for (const body of [
      { key: 'referrer', owner: 'people', type: 'person' },
      { key: 'bought', owner: 'people', type: 'person', cardinality: 'many' },
    ])
      expect((await send('POST', '/v1/schema/attributes', body)).status).toBe(201)
    const [online, offline] = [newFile(), newFile()]
    expect(await underWriters(send, () => start(['backup', online], first!).ended)).toMatchObject({ code: 0 })
    expect(await terminate(service)).toBe(0)

    expect(await start(['restore', online], second!).ended).toMatchObject({ code: 0 })
    const restored = launch(second!)
    const sendThere = senderTo(await restored.ready, token)
    const { body } = await sendThere('GET', '/v1/people/writer_a')
    expect(body.data.version).toBeGreaterThan(5)
    const { version } = body.data
    await write(sendThere, 'writer_a', 3)
    expect((await sendThere('GET', '/v1/people/writer_a')).body.data.version).toBe(version + 1)
    expect(await terminate(restored)).toBe(0)
    const made = await start(['backup', offline, '--json'], second!).ended
    expect(JSON.parse(made.stdout).rows).toBeGreaterThan(20)
  })
})

/** A database with so many changes that copying them takes a while. */
async function largeDatabase(): Promise<string> {
  const url = await newDatabase()
  await query(url, `insert into organizations (key) values ('default')`)
  await query(
    url,
    `insert into changes (organization_id, sequence, at, subject, operation, before, after, actor, request_id)
     select 1, i, now(), 'entity', 'create', null, jsonb_build_object('text', md5(i::text) || md5((i + 1)::text)), 'tests', 'r'
       from generate_series(1, 300000) i`,
  )
  return url
}

const rowsIn = async (url: string) => Object.values(await contentsOf(url)).flat().length

describe('a restore', { timeout: 90_000 }, () => {
  it('refuses a database that holds rows, and a backup of a newer version, and changes nothing', async () => {
    const url = await newDatabase()
    await (await serveOn(url)).organization()
    const file = newFile()
    expect((await kith(['backup', file], url)).code).toBe(0)
    const before = await contentsOf(url)
    const filled = await kith(['restore', file], url)
    expect(filled).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/^The database is not empty: /) })
    expect(await contentsOf(url)).toEqual(before)

    await query(url, `insert into migrations (name, run_on) values ('9999_later', now())`)
    const later = newFile()
    expect((await kith(['backup', later], url)).code).toBe(0)
    const target = await emptyDatabase()
    const newer = await kith(['restore', later], target)
    expect(newer).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('the migration 9999_later') })
    expect(await contentsOf(target)).toEqual({})
  })

  it('notices a file that is damaged, cut off, longer, of another format or no backup, before anything is stored', async () => {
    const url = await newDatabase()
    await (await serveOn(url)).organization()
    const file = newFile()
    expect((await kith(['backup', file], url)).code).toBe(0)
    const bytes = await readFile(pathTo(file))
    const flipped = (at: number) => bytes.with(at, bytes[at]! ^ 1)
    const body = bytes.indexOf(10) + 1
    const newer = bytes.toString('latin1', 0, body - 1).replace('"version":1,', '"version":2,')
    const broken: [Uint8Array, RegExp][] = [
      ...[body + 20, bytes.length - 100, bytes.length - 10, 30].map(
        at => [flipped(at), /damaged/] as [Uint8Array, RegExp],
      ),
      ...[bytes.length - 1, bytes.length - 65, bytes.length - 300, body + 1, body].map(
        end => [bytes.subarray(0, end), /damaged or incomplete/] as [Uint8Array, RegExp],
      ),
      [Buffer.concat([bytes, bytes]), /damaged/],
      [Buffer.from(`${newer}\n`), /format 2/],
      [bytes.subarray(0, 100), /not a backup/],
      [Buffer.from('hello'), /not a backup/],
      [Buffer.alloc(0), /not a backup/],
    ]
    for (const [content, sentence] of broken) {
      await writeFile(pathTo('broken'), content)
      const verified = verifyBackup('broken', pathTo('broken'), () => {}, new AbortController().signal)
      await expect(verified).rejects.toThrow(sentence)
    }
    await writeFile(pathTo('broken'), flipped(body + 20))
    const target = await emptyDatabase()
    const refused = await kith(['restore', 'broken'], target)
    expect(refused).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/^broken is damaged[^\n]*\n$/) })
    expect(await contentsOf(target)).toEqual({})
    expect(await kith(['restore', 'nothing'], target)).toMatchObject({ code: 1, stderr: 'There is no file nothing.\n' })
  })

  it('stores nothing when a file ends early though its SHA-256 is right', async () => {
    const url = await newDatabase()
    await (await serveOn(url)).organization()
    const file = newFile()
    expect((await kith(['backup', file], url)).code).toBe(0)
    const bytes = await readFile(pathTo(file))
    const cut = bytes.subarray(0, bytes.length - 65 - 200)
    await writeFile(
      pathTo('short'),
      Buffer.concat([cut, Buffer.from(`${createHash('sha256').update(cut).digest('hex')}\n`)]),
    )
    const target = await emptyDatabase()
    const { code, stderr } = await kith(['restore', 'short'], target)
    expect(code).toBe(1)
    expect(stderr).not.toMatch(/^ {4}at /m)
    expect(await rowsIn(target)).toBe(0)
    expect((await kith(['restore', file], target)).code).toBe(0)
  })

  it.each(['SIGKILL', 'SIGINT', 'pg_terminate_backend'])(
    'ended midway by %s leaves no row, and works the next time',
    async how => {
      const url = await newDatabase()
      await (await serveOn(url)).organization()
      const file = newFile()
      expect((await kith(['backup', file], url)).code).toBe(0)
      const target = await emptyDatabase()
      await migrate(target)
      // The restore waits here, with rows of half of the tables stored.
      const holder = new pg.Client({ connectionString: target })
      await holder.connect()
      try {
        await query(
          target,
          'create function wait() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(1); return new; end $$',
        )
        await query(target, 'create trigger wait before insert on organizations for each row execute function wait()')
        await holder.query('select pg_advisory_lock(1)')
        const { child, ended } = start(['restore', file], { DATABASE_URL: target })
        const waiting = `select pid from pg_stat_activity where application_name = 'kith restore' and wait_event = 'advisory' and datname = current_database()`
        await until(async () => (await query(target, waiting)).length > 0)
        const [{ pid }] = (await query(target, waiting)) as [{ pid: number }]
        if (how === 'pg_terminate_backend') await query(target, `select pg_terminate_backend(${pid})`)
        else child.kill(how as NodeJS.Signals)
        await holder.query('select pg_advisory_unlock(1)')
        const { code, stdout, stderr } = await ended
        expect({ code, stdout }).toEqual({ code: how === 'SIGKILL' ? null : 1, stdout: '' })
        expect(stderr).not.toMatch(/^ {4}at /m)
      } finally {
        await holder.end()
      }
      await until(
        async () =>
          (
            await query(
              target,
              `select from pg_stat_activity where application_name = 'kith restore' and datname = current_database()`,
            )
          ).length === 0,
      )
      expect(await rowsIn(target)).toBe(0)
      expect((await kith(['restore', file], target)).code).toBe(0)
      expect(await contentsOf(target)).toEqual(await contentsOf(url))
    },
  )
})

describe('a file', { timeout: 90_000 }, () => {
  const names = async (file: string) => (await readdir(folder)).filter(name => name.startsWith(file))

  it('is there whole or not at all when the disk is full', async () => {
    const url = await largeDatabase()
    const file = newFile()
    const limited = ['-c', 'ulimit -f 256 && exec "$0" "$@"', process.execPath]
    const program = new URL('./main.ts', import.meta.url).pathname
    const child = spawn('bash', [...limited, program, 'backup', file], { cwd: folder, env: { DATABASE_URL: url } })
    let said = ''
    child.stderr.on('data', part => (said += part))
    expect(await once(child, 'close')).toEqual([1, null])
    expect(said).toMatch(/no room/)
    expect(await names(file)).toEqual([])
    expect((await kith(['backup', file], url)).code).toBe(0)
    expect(await names(file)).toEqual([file])
  })

  it('is never half: a backup that is killed leaves a partial one, which --force removes', async () => {
    const url = await largeDatabase()
    const file = newFile()
    const { child, ended } = start(['backup', file], { DATABASE_URL: url })
    await until(async () => (await names(file)).length > 0)
    child.kill('SIGKILL')
    await ended
    expect(await names(file)).toEqual([`${file}.partial`])
    const refused = await kith(['backup', file], url)
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining(`${file}.partial exists`) })
    expect((await kith(['backup', file, '--force'], url)).code).toBe(0)
    expect(await kith(['backup', file], url)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('exists already'),
    })
    expect(await names(file)).toEqual([file])
  })

  it('is taken away when Ctrl-C or a lost connection ends the backup', async () => {
    const url = await largeDatabase()
    for (const how of ['SIGINT', 'lost']) {
      const file = newFile()
      const { child, ended } = start(['backup', file], { DATABASE_URL: url })
      await until(async () => (await names(file)).length > 0)
      if (how === 'SIGINT') child.kill('SIGINT')
      else
        await query(
          url,
          `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'kith backup'`,
        )
      const { code, stderr } = await ended
      expect(code).toBe(1)
      expect(stderr).not.toMatch(/^ {4}at /m)
      expect(await names(file)).toEqual([])
    }
  })

  it('is refused where there is nothing to back up', async () => {
    const nothing = await kith(['backup', newFile()], await emptyDatabase())
    expect(nothing).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^There is nothing to back up/),
    })
    const data_dir = join(folder, 'none')
    const none = await start(['backup', newFile()], { KITH_DATA_DIR: data_dir }).ended
    expect(none).toMatchObject({ code: 1, stderr: expect.stringMatching(/^There is nothing to back up/) })
    expect(await names('none')).toEqual([])
  })
})

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { migrate } from '../src/db/migrate.ts'
import { contentsOf, useBackupFixture } from '../test/support/backups.ts'
import { createTestDatabase } from '../test/support/database.ts'
import { query, until } from '../test/support/embedded-service.ts'
import { sealLedgers } from '../test/support/ledger.ts'

const ground = useBackupFixture()
const { emptyDatabase, kith, newDatabase, newFile, serveOn, start } = ground

/** Fills a database with enough changes to make a copy slow. */
async function fillLargeDatabase(url: string): Promise<void> {
  await query(url, `insert into organizations (key) values ('default')`)
  await query(
    url,
    `insert into changes (organization_id, sequence, at, subject, operation, before, after, actor, request_id)
     select 1, i, now(), 'entity', 'create', null, jsonb_build_object('text', md5(i::text) || md5((i + 1)::text)), 'tests', 'r'
       from generate_series(1, 100000) i`,
  )
}

const rowsIn = async (url: string) => Object.values(await contentsOf(url)).flat().length

describe('kith backup verify', { timeout: 90_000 }, () => {
  it('restores a backup elsewhere, examines it, and leaves nothing behind', async () => {
    const url = await newDatabase()
    const service = await serveOn(url)
    const { client } = await service.organization()
    await client.people.create({
      external_id: 'ada',
      consents: [{ consent_type_id: 1, channel: 'email', state: true }],
    })
    const file = newFile()
    expect((await kith(['backup', file], url)).code).toBe(0)
    const before = await contentsOf(url)
    const temporary = async () => (await readdir(tmpdir())).filter(name => name.startsWith('kith-verify-'))
    const others = await temporary()
    const { code, stdout } = await kith(['backup', 'verify', file, '--json'], url)
    const result = JSON.parse(stdout)
    expect({ code, ...result }).toMatchObject({ code: 0, file, valid: true })
    expect(result.findings.map(({ check }: { check: string }) => check)).toContain('indexes')
    expect(result.ledgers).toContainEqual(expect.objectContaining({ findings: [] }))
    expect(await contentsOf(url)).toEqual(before)
    expect((await temporary()).filter(name => !others.includes(name))).toEqual([])
  })

  it('exits with 1 if an answer was changed before the backup was made', async () => {
    const url = await newDatabase()
    const service = await serveOn(url)
    const { client } = await service.organization()
    await client.people.create({
      external_id: 'ada',
      consents: [{ consent_type_id: 1, channel: 'email', state: true }],
    })
    await sealLedgers(service)
    await query(url, 'update consent_history set state = not state')
    const file = newFile()
    expect((await kith(['backup', file], url)).code).toBe(0)
    const { code, stdout } = await kith(['backup', 'verify', file], url)
    expect({ code, stdout }).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('the ledger of 1 entry was changed'),
    })
    expect(stdout).toContain('The backup restores, and something in it is wrong')
  })
})

describe('kith restore', { timeout: 90_000 }, () => {
  it.each(['SIGKILL', 'SIGINT', 'SIGTERM', 'pg_terminate_backend'])(
    'leaves no row when %s ends it midway, and succeeds the next time',
    async how => {
      const url = await newDatabase()
      await (await serveOn(url)).organization()
      const file = newFile()
      expect((await kith(['backup', file], url)).code).toBe(0)
      const target = await emptyDatabase()
      await migrate(target)
      // The trigger blocks the restore when half of the tables are stored.
      const holder = new pg.Client({ connectionString: target })
      holder.on('error', () => {})
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
        await until(async () => (await holder.query(waiting)).rowCount === 1)
        const [{ pid }] = (await holder.query<{ pid: number }>(waiting)).rows as [{ pid: number }]
        if (how === 'pg_terminate_backend') await query(target, `select pg_terminate_backend(${pid})`)
        else child.kill(how as NodeJS.Signals)
        await holder.query('select pg_advisory_unlock(1)')
        const { code, stdout, stderr } = await ended
        expect({ code, stdout }).toEqual({ code: how === 'SIGKILL' ? null : 1, stdout: '' })
        expect(stderr).not.toMatch(/^ {4}at /m)
      } finally {
        await holder.end()
      }
      const connected = `select from pg_stat_activity where application_name = 'kith restore' and datname = current_database()`
      await expect.poll(() => query(target, connected)).toEqual([])
      expect(await rowsIn(target)).toBe(0)
      expect((await kith(['restore', file, '--keep-log-id'], target)).code).toBe(0)
      expect(await contentsOf(target)).toEqual(await contentsOf(url))
    },
  )
})

describe('a backup file', { timeout: 90_000 }, () => {
  let large: Awaited<ReturnType<typeof createTestDatabase>>
  let url: string
  beforeAll(async () => {
    large = await createTestDatabase()
    url = large.url
    await fillLargeDatabase(url)
  })
  afterAll(() => large.drop())

  const names = async (file: string) => (await readdir(ground.folder)).filter(name => name.startsWith(file))

  it('does not exist if the disk is full', async () => {
    const file = newFile()
    const limited = ['-c', 'ulimit -f 256 && exec "$0" "$@"', process.execPath]
    const program = fileURLToPath(new URL('./main.ts', import.meta.url))
    const child = spawn('bash', [...limited, program, 'backup', file], {
      cwd: ground.folder,
      env: { DATABASE_URL: url },
    })
    let stderr = ''
    child.stderr.on('data', part => (stderr += part))
    expect(await once(child, 'close')).toEqual([1, null])
    expect(stderr).toMatch(/no room/)
    expect(await names(file)).toEqual([])
    expect((await kith(['backup', file], url)).code).toBe(0)
    expect(await names(file)).toEqual([file])
  })

  it('is a .partial file after the backup was killed, which --force removes', async () => {
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

  it('is removed when Ctrl-C or a lost connection ends the backup', async () => {
    for (const how of ['SIGINT', 'lost']) {
      const file = newFile()
      const { child, ended } = start(['backup', file], { DATABASE_URL: url })
      await until(async () => (await names(file)).length > 0)
      if (how === 'SIGINT') child.kill('SIGINT')
      else
        await query(
          url,
          `select pg_terminate_backend(pid) from pg_stat_activity
            where application_name = 'kith backup' and datname = current_database()`,
        )
      const { code, stderr } = await ended
      expect(code).toBe(1)
      expect(stderr).not.toMatch(/^ {4}at /m)
      expect(await names(file)).toEqual([])
    }
  })
})

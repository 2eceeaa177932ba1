import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { contentsOf, useBackupFixture } from '../test/support/backups.ts'
import { createTestDatabase } from '../test/support/database.ts'
import { query } from '../test/support/embedded-service.ts'
import { startService } from '../test/support/service.ts'

const fixture = useBackupFixture()
const { emptyDatabase, kith, newFile, pathTo } = fixture

const program = fileURLToPath(new URL('./main.ts', import.meta.url))

/** Runs a line of bash with these variables. `kith` calls the program. */
async function bash(line: string, variables: Record<string, string>) {
  const child = spawn('bash', ['--norc', '-c', `set -o pipefail; kith() { "$node" "$program" "$@"; }; ${line}`], {
    cwd: fixture.folder,
    env: { PATH: process.env.PATH, node: process.execPath, program, ...variables },
  })
  child.stdin.end()
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: child.exitCode, stdout, stderr }
}

/** A database whose backup is larger than the buffers of a pipe. */
let large: Awaited<ReturnType<typeof createTestDatabase>>
beforeAll(async () => {
  large = await createTestDatabase()
  const service = await startService({}, large.url)
  const { id } = await service.organization()
  await service.sql(
    `insert into changes (organization_id, sequence, at, subject, operation, before, after, actor, request_id)
     select $1, i + 1000, now(), 'entity', 'create', null, jsonb_build_object('text', md5(i::text) || md5((i + 1)::text)), 'tests', 'r'
       from generate_series(1, 20000) i`,
    [id],
  )
  await service.stop()
})
afterAll(() => large.drop())

it('kith backup - | kith restore - copies every row of a database, and leaves no file', {
  timeout: 60_000,
}, async () => {
  const [url, target, temporary] = [large.url, await emptyDatabase(), pathTo('temporary')]
  await mkdir(temporary)
  const variables = { SOURCE: url, TARGET: target, TMPDIR: temporary }
  const { code, stdout, stderr } = await bash(
    'DATABASE_URL=$SOURCE kith backup - | DATABASE_URL=$TARGET kith restore --keep-log-id -',
    variables,
  )
  expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
  expect(stderr).toMatch(/^[\d,]+ rows of \d+ tables in .*: standard output$/m)
  expect(stderr).toMatch(/^[\d,]+ rows of \d+ tables in .*: the state of /m)
  expect(await contentsOf(target)).toEqual(await contentsOf(url))
  expect((await readdir(temporary)).filter(name => name.startsWith('kith'))).toEqual([])
  expect(await readdir(fixture.folder)).not.toContain('-')
})

it('kith backup - writes the bytes of a backup file, and kith restore - accepts a file', {
  timeout: 60_000,
}, async () => {
  const [url, target, file] = [large.url, await emptyDatabase(), newFile()]
  expect(await bash(`kith backup - > ${file}`, { DATABASE_URL: url })).toMatchObject({ code: 0 })
  expect((await readFile(pathTo(file))).toString('latin1', 0, 24)).toBe('{"format":"kith-backup",')
  expect(await bash(`kith restore - --json --keep-log-id < ${file}`, { DATABASE_URL: target })).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^\{"file":"-","rows":\d+,/),
  })
  expect(await contentsOf(target)).toEqual(await contentsOf(url))
})

it('kith backup - says that its reader has ended, and exits with 1', { timeout: 60_000 }, async () => {
  const recorded = () => query(large.url, 'select at from backups')
  const before = await recorded()
  const line = 'kith backup - --quiet | head --bytes=100 >/dev/null'
  expect(await bash(line, { DATABASE_URL: large.url })).toEqual({
    code: 1,
    stdout: '',
    stderr: 'The program that reads the backup has ended (EPIPE). The backup that it received is incomplete.\n',
  })
  expect(await recorded()).toEqual(before)
})

it('kith restore - stores nothing of a backup that was cut off, of anything else and of nothing', {
  timeout: 60_000,
}, async () => {
  const [url, target, file] = [large.url, await emptyDatabase(), newFile()]
  expect((await kith(['backup', file], url)).code).toBe(0)
  const refusals: [string, RegExp][] = [
    [`head --bytes=-1 ${file} | kith restore -`, /^Standard input is damaged or incomplete/],
    ['echo hello | kith restore -', /^Standard input is not a backup of kith/],
    ['kith restore - </dev/null', /^Standard input is not a backup of kith/],
  ]
  for (const [line, message] of refusals)
    expect(await bash(line, { DATABASE_URL: target })).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(message),
    })
  expect(await contentsOf(target)).toEqual({})
})

it('kith backup - and kith restore - refuse a terminal, and backup - refuses --json', { timeout: 60_000 }, async () => {
  const { url } = large
  const onTerminal = (words: string) =>
    bash(`script --quiet --return --command '"$node" "$program" ${words}' /dev/null`, { DATABASE_URL: url })
  expect(await onTerminal('backup -')).toMatchObject({ code: 2, stdout: expect.stringContaining('is a terminal') })
  expect(await onTerminal('restore -')).toMatchObject({ code: 2, stdout: expect.stringContaining('is a terminal') })
  expect(await kith(['backup', '-', '--json'], url)).toMatchObject({ code: 2, stdout: '' })
})

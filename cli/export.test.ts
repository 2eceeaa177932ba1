import { mkdir, mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createClient } from '../client/index.ts'
import { breakingProxy, runInProcess } from '../test/support/command.ts'
import { useService } from '../test/support/service.ts'

const peopleCount = 1_000

const service = useService()
let token: string
let base: string
let directory: string
let folders = 0

beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), 'kith-export-'))
  ;({ token } = await service.organization())
  const client = createClient({ url: service.address, token })
  const bodies = Array.from({ length: peopleCount }, (_, i) => ({ external_id: `p${i}`, first_name: `a\n"${i}` }))
  for await (const answer of client.people.import(bodies)) expect(answer).not.toHaveProperty('error')
})
afterAll(async () => {
  await rm(base, { recursive: true })
})
beforeEach(async () => {
  directory = join(base, String(++folders))
  await mkdir(directory)
})

const file = (name: string) => join(directory, name)
function run(args: string[], url = service.address) {
  const words = ['export', 'people', ...args]
  const environment = { KITH_URL: url, KITH_TOKEN: token }
  return runInProcess(words, environment, directory)
}

const names = (text: string) =>
  text
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line).external_id)
const allNames = Array.from({ length: peopleCount }, (_, i) => `p${i}`)

describe('kith export', () => {
  it('begins CSV with a byte order mark if asked, also where it resumes, and an import takes it back', async () => {
    const args = ['--output', 'people.csv', '--byte-order-mark']
    expect((await run(args)).code).toBe(0)
    const whole = await readFile(file('people.csv'), 'utf8')
    expect(whole).toMatch(/^\ufeffexternal_id,/)
    await writeFile(file('people.csv.part'), whole.slice(0, whole.length / 2))
    expect((await run([...args, '--resume', '--force'])).code).toBe(0)
    expect(await readFile(file('people.csv'), 'utf8')).toBe(whole)
    const environment = { KITH_URL: service.address, KITH_TOKEN: token }
    const again = ['import', 'people', 'people.csv', '--encoding', 'windows-1252', '--dry-run']
    expect((await runInProcess(again, environment, directory)).stderr).toMatch(/1,000 unchanged/)
    expect(await run(['--output', 'people.ndjson', '--byte-order-mark'])).toMatchObject({ code: 2 })
  })

  it('writes each person once, to standard output or a file', async () => {
    const { code, stdout, stderr } = await run([])
    expect(code).toBe(0)
    expect(names(stdout).toSorted()).toEqual(allNames.toSorted())
    expect(stderr).toMatch(/^1,000 entities in \d+ s\n$/)
    const toFile = await run(['--output', 'people.ndjson', '--json'])
    expect(JSON.parse(toFile.stdout)).toMatchObject({ count: 1_000, file: 'people.ndjson', error: null })
    expect(await readFile(file('people.ndjson'), 'utf8')).toBe(stdout)
    const packed = await run(['--output', 'people.ndjson.gz'])
    expect(packed.code).toBe(0)
    expect(gunzipSync(await readFile(file('people.ndjson.gz'))).toString()).toBe(stdout)
    expect(await readdir(directory)).toEqual(['people.ndjson', 'people.ndjson.gz'])
    const last = JSON.parse(stdout.trimEnd().split('\n').at(-2)!).id
    expect(names((await run(['--after-id', last])).stdout)).toHaveLength(1)
  })

  it('overwrites an existing file only with --force', async () => {
    await writeFile(file('people.ndjson'), 'mine')
    expect(await run(['--output', 'people.ndjson'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/--force/),
    })
    expect(await readFile(file('people.ndjson'), 'utf8')).toBe('mine')
    expect(await run(['--output', 'people.ndjson', '--force'])).toMatchObject({ code: 0 })
    expect(names(await readFile(file('people.ndjson'), 'utf8'))).toHaveLength(peopleCount)
  })

  it('reconnects after a broken connection, continues, and reports it', async () => {
    const proxy = await breakingProxy(service.address, { down: 200_000 })
    const { code, stdout, stderr } = await run([], proxy.address)
    proxy.server.close()
    expect(code).toBe(0)
    expect(stderr).toMatch(
      /broke.*Resuming after [\d,]+ entities in 0\.2 s; later entities have the state of a later moment/,
    )
    expect(names(stdout).toSorted()).toEqual(allNames.toSorted())
  })

  it.each(['people.ndjson', 'people.csv', 'people.ndjson.gz', 'people.csv.gz'])(
    'continues %s with --resume wherever it was cut off',
    async name => {
      await run(['--output', name])
      const whole = await readFile(file(name))
      await writeFile(file(`${name}.part`), whole)
      await rm(file(name))
      const without = await run(['--output', name])
      expect(without).toMatchObject({ code: 1, stderr: expect.stringMatching(/--resume/) })
      for (const part of [0, 0.3, 0.7]) {
        await rm(file(name), { force: true })
        await writeFile(file(`${name}.part`), whole)
        await truncate(file(`${name}.part`), Math.floor(whole.length * part))
        expect(await run(['--output', name, '--resume'])).toMatchObject({ code: 0 })
        const read = (bytes: Buffer) => (name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString()
        expect(read(await readFile(file(name)))).toBe(read(whole))
        expect(await readdir(directory)).toEqual([name])
      }
    },
  )

  it.each([
    ['people.csv', ['--list-separator', ';'], [], /people\.csv\.part is of kith export people .*--list-separator ";"/],
    ['people.csv', [], ['--links', 'id'], /Repeat these options, or start again with --force/],
    ['people.ndjson', ['--links', 'id'], [], /people\.ndjson\.part is of kith export people .*--links id/],
  ])('continues %s, begun with %j, not with %j', async (name, begun, others, pattern) => {
    await run(['--output', name, ...begun])
    const whole = await readFile(file(name), 'utf8')
    await rm(file(name))
    // The service refuses the position, so the export ends before its first row.
    expect((await run(['--output', name, ...begun, '--after-id', 'x'])).code).toBe(1)
    await writeFile(file(`${name}.part`), whole.slice(0, whole.length / 2))
    const before = await readFile(file(`${name}.part`), 'utf8')
    const refused = await run(['--output', name, ...others, '--resume'])
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(pattern) })
    expect(await readFile(file(`${name}.part`), 'utf8')).toBe(before)
    expect((await run(['--output', name, ...begun, '--resume'])).code).toBe(0)
    expect(await readFile(file(name), 'utf8')).toBe(whole)
    expect(await readdir(directory)).toEqual([name])
  })

  it('does not continue CSV after its columns have changed', async () => {
    const shop = await service.organization()
    const words = ['export', 'people', '--output', 'people.csv']
    const environment = { KITH_URL: service.address, KITH_TOKEN: shop.token }
    expect((await runInProcess([...words, '--after-id', 'x'], environment, directory)).code).toBe(1)
    await shop.client.schema.attributes.create({ key: 'city', owner: 'people', type: 'text' })
    const refused = await runInProcess([...words, '--resume'], environment, directory)
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/the columns of people\.csv\.part/) })
  })

  it.each([
    ['a missing folder', ['--output', 'none/people.ndjson'], 1, /none/],
    ['--resume without a file', ['--resume'], 2, /--output/],
    ['an incomplete file of another kind', ['--output', 'other.ndjson', '--resume'], 1, /not an export of this kind/],
    ['an invalid identifier', ['--after-id', 'x'], 1, /after_id|uuid|UUID/],
  ])('reports %s without a stack trace', async (_, args, exitCode, pattern) => {
    await writeFile(file('other.ndjson.part'), 'something\nelse\n')
    const { code, stdout, stderr } = await run(args)
    expect({ code, stdout }).toEqual({ code: exitCode, stdout: '' })
    expect(stderr).toMatch(pattern)
    expect(stderr).not.toMatch(/^ {4}at /m)
  })
})

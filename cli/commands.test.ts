import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startCommand } from '../test/support/command.ts'
import { createTestDatabase } from '../test/support/database.ts'
import { type Service, startService } from '../test/support/service.ts'

let service: Service
let folder: string
let empty: Awaited<ReturnType<typeof createTestDatabase>> | undefined
let environment: Record<string, string>

beforeAll(async () => {
  service = await startService()
  const { token } = await service.organization()
  environment = { DATABASE_URL: service.databaseUrl, KITH_URL: service.address, KITH_TOKEN: token, PORT: '0' }
  folder = await mkdtemp(join(tmpdir(), 'kith-commands-'))
  await writeFile(join(folder, 'people.ndjson'), '{"external_id":"ada"}\n')
})
afterAll(async () => {
  await service.stop()
  await empty?.drop()
  await rm(folder, { recursive: true })
})

const run = (words: string[]) => startCommand(words, environment, folder).ended

/** Runs a command with `--json` and returns the parsed result. */
const json = async (...words: string[]) => JSON.parse((await run([...words, '--json'])).stdout)
/** Returns the kid of an older key whose tokens this file does not use. */
async function spareKey(): Promise<string> {
  const { kid } = await json('keys', 'rotate')
  // The next rotation deletes a key that has signed nothing.
  await json('token', ...defaultReader)
  await json('keys', 'rotate')
  return kid
}

const defaultReader = ['--org', 'default', '--scope', 'people:read']

type Row = { words: string[]; wrong: string[]; use: () => Promise<string[]> | string[]; answers: object }

/** Makes a backup. From then on the commands use an empty database. */
async function restoreElsewhere(): Promise<string[]> {
  await json('backup', 'whole.backup')
  empty = await createTestDatabase()
  environment = { ...environment, DATABASE_URL: empty.url }
  return ['whole.backup']
}

/** Every command with wrong arguments, correct arguments, and the result of the correct ones. */
const commands: Row[] = [
  { words: ['migrate'], wrong: ['now'], use: () => [], answers: { ran: [] } },
  { words: ['org', 'create'], wrong: [], use: () => ['acme'], answers: { key: 'acme' } },
  { words: ['org', 'list'], wrong: ['--all'], use: () => [], answers: [{ key: 'default' }] },
  {
    words: ['token'],
    wrong: ['--org', 'default'],
    use: () => defaultReader,
    answers: { token: expect.any(String), expires_in: 3_600 },
  },
  {
    words: ['client', 'create'],
    wrong: ['--org'],
    use: () => defaultReader,
    answers: { client_secret: expect.any(String) },
  },
  { words: ['client', 'list'], wrong: ['x'], use: () => [], answers: [{ scope: 'people:read' }] },
  {
    words: ['client', 'revoke'],
    wrong: [],
    use: async () => [(await json('client', 'create', ...defaultReader)).client_id],
    answers: { client_id: expect.any(String) },
  },
  { words: ['keys', 'list'], wrong: ['x'], use: () => [], answers: [{ algorithm: 'ES256', signs: true }] },
  { words: ['keys', 'rotate'], wrong: ['x'], use: () => [], answers: { kid: expect.any(String) } },
  {
    words: ['keys', 'revoke'],
    wrong: [],
    use: async () => [await spareKey()],
    answers: { kid: expect.any(String) },
  },
  { words: ['codegen'], wrong: [], use: () => ['--out', 'schema.ts'], answers: { file: 'schema.ts', written: true } },
  { words: ['import'], wrong: ['people'], use: () => ['people', 'people.ndjson'], answers: { received: 1, failed: 0 } },
  { words: ['export'], wrong: [], use: () => ['people', '--output', 'out.csv'], answers: { file: 'out.csv' } },
  {
    words: ['backup'],
    wrong: [],
    use: () => ['kith.backup'],
    answers: { file: 'kith.backup', tables: expect.any(Number) },
  },
  { words: ['restore'], wrong: [], use: restoreElsewhere, answers: { file: 'whole.backup', leftOut: [] } },
  {
    words: ['schema', 'pull'],
    wrong: ['a.json', 'b.json'],
    use: () => [],
    answers: { file: 'kith.schema.json', written: true },
  },
  { words: ['schema', 'diff'], wrong: ['a.json', 'b.json'], use: () => [], answers: { equal: true, steps: [] } },
  { words: ['schema', 'push'], wrong: ['a.json', 'b.json'], use: () => [], answers: { equal: true, missing: [] } },
  {
    words: ['seed'],
    wrong: ['--people', 'ten'],
    use: () => ['--people', '5'],
    answers: { people: { received: 5, failed: 0 } },
  },
  { words: ['doctor'], wrong: ['extra'], use: () => [], answers: { healthy: true } },
  { words: ['completion'], wrong: ['tcsh'], use: () => ['bash'], answers: { shell: 'bash' } },
]
const groups = [[], ['org'], ['client'], ['keys'], ['schema']]

describe.each(commands)('kith $words', { timeout: 60_000 }, ({ words, wrong, use, answers }) => {
  it('has help with an example, exits with 2 on wrong usage, and prints one JSON value with --json', async () => {
    const mistakes = [wrong, ['--no-such-option']].map(mistake => run([...words, ...mistake]))
    const help = await run([...words, '--help'])
    expect(help).toMatchObject({ code: 0, stderr: '' })
    expect(help.stdout).toMatch(new RegExp(`Examples?:\n.*npm run -s kith -- ${words.join(' ')}`))
    for (const { code, stdout, stderr } of await Promise.all(mistakes)) {
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(stderr).toContain(`See npm run -s kith -- ${words.join(' ')} --help`)
    }
    const { code, stdout, stderr } = await run([...words, ...(await use()), '--json'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.any(String) })
    expect(stdout).toMatch(/^[^\n]+\n$/)
    expect(JSON.parse(stdout)).toMatchObject(
      Array.isArray(answers) ? expect.arrayContaining(answers.map(each => expect.objectContaining(each))) : answers,
    )
  })
})

it.each(groups.map(words => ({ words })))(
  'kith $words without a subcommand is wrong usage and lists the subcommands',
  async ({ words }) => {
    expect(await run(words)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('Commands:') })
    expect(await run([...words, 'help'])).toMatchObject({ code: 0, stderr: '' })
  },
)

it('serve --json prints its address on standard output and logs to standard error', async () => {
  const { child, ended } = startCommand(['serve', '--json'], environment, folder)
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  const { address } = JSON.parse(line)
  expect((await fetch(`${address}/healthz`)).status).toBe(200)
  child.kill('SIGTERM')
  const { code, stderr } = await ended
  expect(code).toBe(0)
  expect((await run(['serve', '--help'])).stdout).toContain('npm run -s kith -- serve')
  expect(await run(['serve', '--workers', 'x'])).toMatchObject({ code: 2, stdout: '' })
  for (const said of stderr.trimEnd().split('\n')) expect(() => JSON.parse(said)).not.toThrow()
})

it('this file tests every command', async () => {
  const names = async (...path: string[]) =>
    (JSON.parse((await run(['complete', '--json', '--', ...path, ''])).stdout) as { value: string }[]).map(
      ({ value }) => value,
    )
  const found = []
  for (const name of await names()) {
    const inner = groups.some(([group]) => group === name) ? await names(name) : ['']
    found.push(...inner.filter(each => each !== 'help').map(each => `${name} ${each}`.trim()))
  }
  const known = [...commands.map(({ words }) => words.join(' ')), 'serve', 'help']
  expect(found.toSorted()).toEqual(known.toSorted())
}, 60_000)

it('prints no color if NO_COLOR is set', async () => {
  environment = { ...environment, NO_COLOR: '1' }
  const { stdout, stderr } = await run(['import', 'people', 'people.ndjson'])
  expect(stdout + stderr).not.toContain('\x1b')
})

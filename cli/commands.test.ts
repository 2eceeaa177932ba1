import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runInProcess } from '../test/support/command.ts'
import { createTestDatabase } from '../test/support/database.ts'
import { receiptOf } from '../test/support/receipts.ts'
import { useOwnService } from '../test/support/service.ts'

const service = useOwnService({ KITH_WEBHOOK_ALLOW: '127.0.0.0/8' })
let folder: string
let empty: Awaited<ReturnType<typeof createTestDatabase>> | undefined
let environment: Record<string, string>

beforeAll(async () => {
  const { token, client } = await service.organization()
  await client.webhooks.create({ url: 'https://127.0.0.1:9/kith', events: ['person.*'] })
  for (const external_id of ['erasable', 'mergeable', 'mergeable-too']) await client.people.create({ external_id })
  environment = { DATABASE_URL: service.databaseUrl, KITH_URL: service.address, KITH_TOKEN: token, PORT: '0' }
  folder = await mkdtemp(join(tmpdir(), 'kith-commands-'))
  environment.XDG_CONFIG_HOME = folder
  await writeFile(join(folder, 'people.ndjson'), '{"external_id":"ada"}\n')
  await writeFile(join(folder, 'receipt.json'), JSON.stringify(await receiptOf()))
})
afterAll(async () => {
  await empty?.drop()
  await rm(folder, { recursive: true })
})

const run = (args: string[]) => runInProcess(args, environment, folder)

/** Runs a command with `--json` and returns the parsed result. */
const json = async (...args: string[]) => JSON.parse((await run([...args, '--json'])).stdout)
/** Returns the kid of an older key. No test of this file uses its tokens. */
async function spareKey(): Promise<string> {
  const { kid } = await json('keys', 'rotate')
  // The next rotation deletes a key that has signed nothing.
  await json('token', ...defaultReader)
  await json('keys', 'rotate')
  return kid
}

const defaultReader = ['--org', 'default', '--scope', 'people:read']

type Row = {
  args: string[]
  wrongArgs: string[]
  correctArgs: () => Promise<string[]> | string[]
  result: object
}

/** Creates an organization whose deletion began a minute ago. */
async function leftOrganization(): Promise<string[]> {
  await json('org', 'create', 'left')
  await service.sql(`update organizations set deleted_at = now() - interval '1 minute' where key = 'left'`)
  return ['left', '--yes']
}

/** Makes a backup, and switches the following commands to an empty database. */
async function restoreElsewhere(): Promise<string[]> {
  await json('backup', 'whole.backup')
  empty = await createTestDatabase()
  environment = { ...environment, DATABASE_URL: empty.url }
  return ['whole.backup']
}

/** The id of the newest bulk job. */
const firstJob = async (): Promise<string[]> => [(await json('bulk', 'list', '--limit', '1'))[0].id]

/** A role of PostgreSQL, which all databases of the server share. */
const views = `views_${process.pid}`

/** Every command with wrong arguments, correct arguments, and the result of the correct ones. */
const commands: Row[] = [
  { args: ['migrate'], wrongArgs: ['now'], correctArgs: () => [], result: { ran: [] } },
  { args: ['org', 'create'], wrongArgs: [], correctArgs: () => ['acme'], result: { key: 'acme' } },
  { args: ['org', 'list'], wrongArgs: ['--all'], correctArgs: () => [], result: [{ key: 'default' }] },
  {
    args: ['org', 'delete'],
    wrongArgs: [],
    correctArgs: leftOrganization,
    result: { key: 'left', removed: expect.objectContaining({ change_heads: 1 }) },
  },
  {
    args: ['token'],
    wrongArgs: ['--org', 'default'],
    correctArgs: () => defaultReader,
    result: { token: expect.any(String), expires_in: 3_600 },
  },
  {
    args: ['role', 'create'],
    wrongArgs: [],
    correctArgs: () => ['desk', '--scope', 'people:read'],
    result: { key: 'desk', scopes: ['people:read'], fields: null },
  },
  { args: ['role', 'list'], wrongArgs: ['--all'], correctArgs: () => [], result: [{ key: 'desk' }] },
  { args: ['role', 'show'], wrongArgs: [], correctArgs: () => ['desk'], result: { key: 'desk', state: 'active' } },
  { args: ['role', 'patch'], wrongArgs: [], correctArgs: () => ['desk', '--archive'], result: { state: 'archived' } },
  {
    args: ['console'],
    wrongArgs: ['--org'],
    correctArgs: () => ['--name', 'Operator'],
    result: { url: expect.stringMatching(/\/console\/sign-in#code=default\.[\w-]{43}$/), expires_in: 60 },
  },
  {
    args: ['log', 'renew'],
    wrongArgs: ['--org'],
    correctArgs: () => ['--all'],
    result: [{ organization: 'default', log_id: expect.any(String), head: 0 }, { organization: 'acme' }],
  },
  {
    args: ['ledger', 'checkpoint'],
    wrongArgs: ['x'],
    correctArgs: () => [],
    result: { checkpoint: expect.stringContaining('kith/default/'), size: expect.any(Number) },
  },
  {
    args: ['ledger', 'verify'],
    wrongArgs: ['--since'],
    correctArgs: () => ['--all'],
    result: [{ organization: 'default', findings: [] }, { organization: 'acme' }],
  },
  { args: ['ledger', 'keys'], wrongArgs: ['x'], correctArgs: () => [], result: [{ retired_at: null }] },
  { args: ['ledger', 'rotate-key'], wrongArgs: ['x'], correctArgs: () => [], result: { kid: expect.any(String) } },
  { args: ['verify'], wrongArgs: [], correctArgs: () => ['receipt.json'], result: { valid: true, index: 4 } },
  {
    args: ['merge'],
    wrongArgs: ['mergeable'],
    correctArgs: () => ['mergeable', 'mergeable-too', '--yes'],
    result: { merge_id: 1, merged: { external_id: 'mergeable-too' } },
  },
  {
    args: ['unmerge'],
    wrongArgs: ['mergeable'],
    correctArgs: () => ['mergeable', 'mergeable-too', '--yes'],
    result: { merge_id: 1, unmerged: { external_id: 'mergeable-too' } },
  },
  {
    args: ['erase'],
    wrongArgs: ['ada'],
    correctArgs: () => ['erasable', '--reason', 'test', '--dry-run'],
    result: { dry_run: true, certificate: null },
  },
  {
    ...{ args: ['people', 'get'] },
    ...{ wrongArgs: [], correctArgs: () => ['erasable'], result: { external_id: 'erasable' } },
  },
  {
    ...{ args: ['people', 'list'] },
    ...{ wrongArgs: ['x'], correctArgs: () => ['--limit', '1'], result: [{ state: 'active' }] },
  },
  {
    ...{ args: ['people', 'filter'] },
    ...{
      wrongArgs: ['x'],
      correctArgs: () => ['--where', 'external_id=erasable'],
      result: [{ external_id: 'erasable' }],
    },
  },
  { args: ['people', 'count'], wrongArgs: ['x'], correctArgs: () => [], result: { count: 3 } },
  {
    ...{ args: ['aggregate'] },
    ...{ wrongArgs: [], correctArgs: () => ['people', '--group-by', 'state'], result: [{ state: 'active', count: 3 }] },
  },
  {
    ...{ args: ['segments', 'create'], wrongArgs: [] },
    ...{ correctArgs: () => ['vips', '--where', 'language=en'], result: { key: 'vips', filter: { language: 'en' } } },
  },
  { args: ['segments', 'list'], wrongArgs: ['x'], correctArgs: () => [], result: [{ key: 'vips' }] },
  { args: ['segments', 'get'], wrongArgs: [], correctArgs: () => ['vips'], result: { key: 'vips' } },
  { args: ['segments', 'delete'], wrongArgs: [], correctArgs: () => ['vips', '--yes'], result: { key: 'vips' } },
  {
    ...{ args: ['observed', 'declare'], wrongArgs: ['people', 'shoe'] },
    ...{ correctArgs: () => ['people', 'shoe', '--type', 'number', '--dry-run'], result: { attribute: null, fits: 0 } },
  },
  { args: ['erasures', 'list'], wrongArgs: ['x'], correctArgs: () => [], result: [] },
  { args: ['erasures', 'apply'], wrongArgs: ['a.txt', 'b.txt'], correctArgs: () => ['--yes'], result: [] },
  { args: ['webhooks', 'list'], wrongArgs: ['x'], correctArgs: () => [], result: [{ id: 1, events: ['person.*'] }] },
  { args: ['webhooks', 'deliveries'], wrongArgs: ['x'], correctArgs: () => ['1'], result: [] },
  {
    args: ['webhooks', 'replay'],
    wrongArgs: ['1'],
    correctArgs: () => ['1', '--after', '0'],
    result: { after: 0, until: 1 },
  },
  {
    ...{ args: ['views', 'create'], wrongArgs: ['x'] },
    ...{ correctArgs: () => ['--org', 'default', '--schema', views], result: { schema: views, role: views } },
  },
  { args: ['views', 'list'], wrongArgs: ['x'], correctArgs: () => [], result: [{ schema: views, state: 'current' }] },
  { args: ['views', 'renew'], wrongArgs: [], correctArgs: () => ['--org', 'default'], result: { renewed: [] } },
  {
    args: ['views', 'drop'],
    wrongArgs: [],
    correctArgs: () => ['--org', 'default', '--yes'],
    result: { dropped: [views] },
  },
  {
    args: ['access-log'],
    wrongArgs: ['--kind', 'other'],
    correctArgs: async () => {
      await json('keys', 'rotate')
      return ['--kind', 'security']
    },
    result: [{ kind: 'security', event: 'key_rotated', subject: 'cli', route: 'kith keys rotate' }],
  },
  {
    args: ['client', 'create'],
    wrongArgs: ['--org'],
    correctArgs: () => defaultReader,
    result: { client_secret: expect.any(String) },
  },
  {
    args: ['client', 'list'],
    wrongArgs: ['x'],
    correctArgs: () => ['--org', 'default'],
    result: [{ scopes: ['people:read'] }],
  },
  {
    args: ['client', 'revoke'],
    wrongArgs: [],
    correctArgs: async () => [
      (await json('client', 'create', ...defaultReader)).client_id,
      ...['--org', 'default', '--yes'],
    ],
    result: { client_id: expect.any(String) },
  },
  {
    args: ['user', 'add'],
    wrongArgs: [],
    correctArgs: () => ['Ada Lovelace', '--org', 'default'],
    result: { state: 'invited', invitation_url: expect.stringContaining('/console/invitation#code=default.') },
  },
  {
    args: ['user', 'list'],
    wrongArgs: ['x'],
    correctArgs: () => ['--org', 'default'],
    result: [{ name: 'Ada Lovelace', role: null, maker: 'cli' }],
  },
  {
    args: ['user', 'invite'],
    wrongArgs: [],
    correctArgs: () => ['Ada Lovelace', '--org', 'default'],
    result: { invitation_url: expect.any(String) },
  },
  {
    args: ['user', 'role'],
    wrongArgs: [],
    correctArgs: () => ['Ada Lovelace', '--org', 'default'],
    result: { role: null },
  },
  {
    args: ['user', 'disable'],
    wrongArgs: [],
    correctArgs: () => ['Ada Lovelace', '--org', 'default'],
    result: { state: 'disabled' },
  },
  {
    args: ['user', 'enable'],
    wrongArgs: [],
    correctArgs: () => ['Ada Lovelace', '--org', 'default'],
    result: { state: 'invited' },
  },
  {
    args: ['user', 'remove'],
    wrongArgs: [],
    correctArgs: () => ['Ada Lovelace', '--org', 'default', '--yes'],
    result: { name: 'Ada Lovelace' },
  },
  { args: ['keys', 'list'], wrongArgs: ['x'], correctArgs: () => [], result: [{ algorithm: 'ES256', state: 'signs' }] },
  { args: ['keys', 'rotate'], wrongArgs: ['x'], correctArgs: () => [], result: { kid: expect.any(String) } },
  {
    args: ['keys', 'revoke'],
    wrongArgs: [],
    correctArgs: async () => [await spareKey(), '--yes'],
    result: { kid: expect.any(String) },
  },
  {
    args: ['codegen'],
    wrongArgs: [],
    correctArgs: () => ['--output', 'schema.ts'],
    result: { file: 'schema.ts', written: true },
  },
  {
    args: ['import'],
    wrongArgs: ['people'],
    correctArgs: () => ['people', 'people.ndjson'],
    result: { received: 1, failed: 0 },
  },
  {
    args: ['deliverability', 'import'],
    wrongArgs: [],
    correctArgs: async () => {
      const event = { channel: 'email', address: 'bounced@example.com', type: 'hard_bounce', at: new Date() }
      await writeFile(join(folder, 'events.ndjson'), `${JSON.stringify(event)}\n`)
      return ['events.ndjson']
    },
    result: { stored: 1 },
  },
  {
    args: ['deliverability', 'export'],
    wrongArgs: ['x'],
    correctArgs: () => ['--output', 'deliverability.ndjson'],
    result: { count: 1, file: 'deliverability.ndjson' },
  },
  {
    args: ['deliverability', 'list'],
    wrongArgs: ['x'],
    correctArgs: () => [],
    result: [{ address: 'bounced@example.com', reason: 'hard_bounce' }],
  },
  {
    args: ['deliverability', 'lift'],
    wrongArgs: ['email'],
    correctArgs: () => ['email', 'bounced@example.com'],
    result: { channel: 'email', address: 'bounced@example.com' },
  },
  { args: ['imports', 'list'], wrongArgs: ['x'], correctArgs: () => [], result: [{ owner: 'people' }] },
  {
    args: ['imports', 'undo'],
    wrongArgs: [],
    correctArgs: async () => {
      const [{ id }] = await json('imports', 'list', '--limit', '1')
      return [id, '--dry-run']
    },
    result: { dry_run: true, has_more: false },
  },
  {
    args: ['bulk', 'patch'],
    wrongArgs: ['people'],
    correctArgs: () => ['people', '--where', 'language=xx', '--body', '{"first_name":"X"}', '--yes', '--no-wait'],
    result: { owner: 'people', op: 'patch', total: 0 },
  },
  {
    args: ['bulk', 'delete'],
    wrongArgs: [],
    correctArgs: () => ['people', '--where', 'language=xx', '--dry-run'],
    result: { dry_run: true, total: 0 },
  },
  {
    args: ['bulk', 'erase'],
    wrongArgs: ['--all'],
    correctArgs: () => ['--where', 'language=xx', '--reason', 'asked', '--dry-run'],
    result: { dry_run: true, total: 0 },
  },
  { args: ['bulk', 'list'], wrongArgs: ['x'], correctArgs: () => [], result: [{ owner: 'people', op: 'patch' }] },
  { args: ['bulk', 'refused'], wrongArgs: [], correctArgs: firstJob, result: [] },
  { args: ['bulk', 'cancel'], wrongArgs: [], correctArgs: firstJob, result: { owner: 'people' } },
  {
    args: ['bulk', 'undo'],
    wrongArgs: [],
    correctArgs: async () => [...(await firstJob()), '--dry-run'],
    result: { dry_run: true, has_more: false },
  },
  {
    args: ['export'],
    wrongArgs: [],
    correctArgs: () => ['people', '--output', 'out.csv'],
    result: { file: 'out.csv' },
  },
  {
    args: ['backup'],
    wrongArgs: [],
    correctArgs: () => ['kith.backup'],
    result: { file: 'kith.backup', tables: expect.any(Number) },
  },
  { args: ['restore'], wrongArgs: [], correctArgs: restoreElsewhere, result: { file: 'whole.backup', left_out: [] } },
  {
    args: ['schema', 'pull'],
    wrongArgs: ['a.json', 'b.json'],
    correctArgs: () => [],
    result: { file: 'kith.schema.json', written: true },
  },
  {
    args: ['schema', 'diff'],
    wrongArgs: ['a.json', 'b.json'],
    correctArgs: () => [],
    result: { equal: true, steps: [] },
  },
  {
    args: ['schema', 'push'],
    wrongArgs: ['a.json', 'b.json'],
    correctArgs: () => [],
    result: { equal: true, missing: [] },
  },
  {
    args: ['seed'],
    wrongArgs: ['--people', 'ten'],
    correctArgs: () => ['--people', '5'],
    result: { people: { received: 5, failed: 0 } },
  },
  { args: ['doctor'], wrongArgs: ['extra'], correctArgs: () => [], result: { healthy: true } },
  {
    args: ['login'],
    wrongArgs: [],
    correctArgs: () => ['--url', service.address],
    result: { profile: 'default', url: expect.any(String) },
  },
  {
    args: ['profiles'],
    wrongArgs: ['x'],
    correctArgs: () => [],
    result: [{ name: 'default', credentials: 'token' }],
  },
  { args: ['logout'], wrongArgs: ['x'], correctArgs: () => [], result: { profile: 'default' } },
  { args: ['completion'], wrongArgs: ['tcsh'], correctArgs: () => ['bash'], result: { shell: 'bash' } },
]
const groups = [
  [],
  ['org'],
  ['archive'],
  ['views'],
  ['client'],
  ['user'],
  ['role'],
  ['keys'],
  ['log'],
  ['ledger'],
  ['webhooks'],
  ['schema'],
  ['ledger'],
  ['erasures'],
  ['imports'],
  ['bulk'],
  ['deliverability'],
  ['people'],
  ['records'],
  ['segments'],
  ['observed'],
]

/** Matches the sentence of the documents that lists a command, or its whole group, as one that asks first. */
const askingCommand = ([group, name]: string[]) =>
  new RegExp(`^.*\`${group}( ${name})?\`.*\n?.* ask on a terminal`, 'm')

describe.each(commands)('kith $args', { timeout: 60_000 }, ({ args, wrongArgs, correctArgs, result }) => {
  it('has help with an example, exits with 2 on wrong usage, and prints one JSON value with --json', async () => {
    const wrongRuns = [wrongArgs, ['--no-such-option']].map(each => run([...args, ...each]))
    const help = await run([...args, '--help'])
    expect(help).toMatchObject({ code: 0, stderr: '' })
    expect(help.stdout).toMatch(new RegExp(`Examples?:\n.*npx kith ${args.join(' ')}`))
    if (help.stdout.includes('--yes'))
      expect(await readFile(new URL('../docs/cli.md', import.meta.url), 'utf8')).toMatch(askingCommand(args))
    for (const { code, stdout, stderr } of await Promise.all(wrongRuns)) {
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(stderr).toContain(`See npx kith ${args.join(' ')} --help`)
    }
    const { code, stdout, stderr } = await run([...args, ...(await correctArgs()), '--json'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.any(String) })
    expect(stdout).toMatch(/^[^\n]+\n$/)
    expect(JSON.parse(stdout)).toMatchObject(
      Array.isArray(result) ? expect.arrayContaining(result.map(each => expect.objectContaining(each))) : result,
    )
  })
})

it.each(groups.map(args => ({ args })))(
  'kith $args without a subcommand is wrong usage and lists the subcommands',
  async ({ args }) => {
    expect(await run(args)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('Commands:') })
    expect(await run([...args, 'help'])).toMatchObject({ code: 0, stderr: '' })
  },
)

it('serve has help with an example, and exits with 2 on wrong usage', async () => {
  expect((await run(['serve', '--help'])).stdout).toContain('npx kith serve')
  expect(await run(['serve', '--workers', 'x'])).toMatchObject({ code: 2, stdout: '' })
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
  // Other files test the other commands. follow prints lines until a signal ends it: cli/follow.system.test.ts. dossier
  // and duplicates print lines too, and api prints the body of a response. mcp waits for an assistant:
  // cli/mcp.system.test.ts. distribute needs Citus: cli/distribute.test.ts. The rest is in cli/entities.test.ts,
  // cli/segments.test.ts, cli/lifetimes.test.ts, cli/duplicates.test.ts, cli/webhooks.test.ts, cli/keys.test.ts,
  // cli/restore.system.test.ts (backup verify) and test/process/archive.test.ts.
  const records = ['get', 'list', 'filter', 'search', 'count'].map(name => `records ${name}`)
  const rows = [
    ...records,
    'people search',
    'search',
    'segments people',
    'observed list',
    'webhooks headers',
    'webhooks links',
    'keys rewrap',
    'keys forget',
    'archive list',
    'archive base',
  ]
  const others = [
    'serve',
    'follow',
    'help',
    'dossier',
    'duplicates',
    'hold',
    'set-aside',
    'retention-rule',
    'api',
    'mcp',
    'distribute',
    ...rows,
  ]
  const known = [...commands.map(({ args }) => args.join(' ')), ...others]
  expect(found.toSorted()).toEqual(known.toSorted())
}, 60_000)

it('prints no color if NO_COLOR is set', async () => {
  environment = { ...environment, NO_COLOR: '1' }
  const { stdout, stderr } = await run(['import', 'people', 'people.ndjson'])
  expect(stdout + stderr).not.toContain('\x1b')
})

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Client } from '../client/index.ts'
import { backfillIndexes } from '../src/entities/indexes/index-backfill.ts'
import { runInProcess } from '../test/support/command.ts'
import { type Organization, useOwnService } from '../test/support/service.ts'
import { groupSteps } from './schema/apply.ts'
import type { Step } from './schema/plan.ts'

const service = useOwnService()
let organization: Organization
let client: Client
let directory: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'kith-schema-'))
})
afterAll(async () => {
  await rm(directory, { recursive: true })
})
beforeEach(async () => {
  organization = await service.organization()
  client = organization.client
})

/** Runs `kith schema` in the folder, by default for the organization of the test. */
async function schema(args: string[], { token, input = '' } = { token: organization.token, input: '' }) {
  const environment = { KITH_URL: service.address, KITH_TOKEN: token }
  return runInProcess(['schema', ...args], environment, directory, input)
}

type Content = { stacks?: object[]; attributes?: object[]; consent_types?: object[]; segments?: object[] }

const marketing = {
  key: 'marketing',
  channels: [
    { channel: 'email', is_default: true },
    { channel: 'sms', is_default: true },
  ],
}

/** Writes kith.schema.json. A missing list is that of a new organization. */
function write(content: Content) {
  const file = { version: 1, stacks: [], attributes: [], consent_types: [marketing], ...content }
  return writeFile(join(directory, 'kith.schema.json'), JSON.stringify(file))
}

const orders = { key: 'orders', kind: 'item' }
const total = { owner: 'orders', key: 'total', type: 'number' }

it('kith schema refuses a segment whose consent type has another number in the organization', async () => {
  await client.schema.consentTypes.create({ key: 'surveys', channels: [{ channel: 'email' }] })
  const surveys = { key: 'surveys', channels: [{ channel: 'email' }] }
  const news = { ...surveys, key: 'news' }
  const segmentOf = (consent_type_id: number) => ({
    key: 'mail',
    filter: { contactable: { consent_type_id, channel: 'email' } },
  })
  await write({ consent_types: [marketing, news], segments: [segmentOf(2)] })
  for (const command of ['push', 'diff']) {
    const { stderr } = await schema([command])
    expect(stderr).toContain(
      '/segments/0/filter names the consent type 2, which is news in the file and surveys in the',
    )
  }
  expect(await client.segments.list().all()).toEqual([])
  await write({ consent_types: [marketing, surveys, news], segments: [segmentOf(3)] })
  expect((await schema(['push'])).code).toBe(0)
  expect((await client.schema.consentTypes.list().all()).map(({ id, key }) => [id, key])).toContainEqual([3, 'news'])
  await write({ consent_types: [marketing], segments: [segmentOf(3)] })
  expect((await schema(['push'])).code).toBe(0)
})

it('kith schema push makes an attribute unique when the index of its stored values is ready', async () => {
  await client.people.create({ external_id: 'ada', attribute_values: { code: 'x' } })
  const code = { owner: 'people', key: 'code', type: 'text', indexed: true, unique: true, pattern: '^.$' }
  await write({ attributes: [code] })
  let isOver = false
  const filling = (async () => {
    while (!isOver) {
      await backfillIndexes(service.db)
      await setTimeout(10)
    }
  })()
  const pushed = await schema(['push']).finally(() => {
    isOver = true
  })
  await filling
  expect(pushed.stdout).toContain('+ attribute people.code (text, indexed, unique, pattern "^.$")')
  expect(await client.schema.attributes.list().all()).toMatchObject([{ key: 'code', unique: true, pattern: '^.$' }])
  expect((await schema(['diff'])).code).toBe(0)
  await write({ attributes: [{ ...code, pattern: null, enum: ['x', 'y'] }] })
  const changed = await schema(['push'])
  expect(changed.stdout).toContain('~ attribute people.code: enum null → ["x","y"]; pattern "^.$" → null')
})

it('kith schema push declares new attributes in one request, those whose values need an index as not unique first', async () => {
  await client.people.create({ external_id: 'ada', attribute_values: { code: 'x' } })
  const text = (key: string, more: object = {}) => ({ owner: 'people', key, type: 'text', ...more })
  const unique = { indexed: true, unique: true }
  await write({ stacks: [orders], attributes: [text('a'), text('code', unique), total, text('free', unique)] })
  let isOver = false
  const filling = (async () => {
    while (!isOver) {
      await backfillIndexes(service.db)
      await setTimeout(10)
    }
  })()
  const pushed = await schema(['push']).finally(() => {
    isOver = true
  })
  await filling
  expect(pushed.code).toBe(0)
  const attributes = await client.schema.attributes.list().all()
  expect(attributes.map(({ key, unique }) => [key, unique])).toEqual([
    ['a', false],
    ['code', true],
    ['total', false],
    ['free', true],
  ])
  const changes = await client.changes.list().all()
  const declared = changes.filter(({ subject, operation }) => subject === 'attribute' && operation === 'create')
  expect([declared.length, new Set(declared.map(({ request_id }) => request_id)).size]).toEqual([4, 1])
  expect((await schema(['diff'])).code).toBe(0)
})

it('attributes that follow each other are pushed together, up to 5,000 or 2 MB', () => {
  const create = (key: string, description: string | null = null) =>
    ({ action: 'create', kind: 'attribute', name: key, definition: { key, description } }) as Step
  const stack = { action: 'create', kind: 'stack', name: 'orders', definition: orders } as Step
  const lengths = (steps: Step[]) => groupSteps(steps).map(({ length }) => length)
  expect(lengths([stack, stack, create('a'), create('b'), stack, create('c')])).toEqual([1, 1, 2, 1, 1])
  expect(lengths(Array.from({ length: 5_001 }, (_, n) => create(`k${n}`)))).toEqual([5_000, 1])
  const long = 'x'.repeat(2_000)
  const groups = lengths(Array.from({ length: 1_500 }, (_, n) => create(`k${n}`, long)))
  expect([groups.length, groups.reduce((sum, length) => sum + length, 0)]).toEqual([2, 1_500])
})

it('kith schema push changes the label of a stack after it has declared the attributes that the label names', async () => {
  await write({ stacks: [orders] })
  await schema(['push'])
  const visits = { key: 'visits', kind: 'event', label: '{page}' }
  await write({ stacks: [{ ...orders, label: '{total}' }, visits], attributes: [total] })
  const pushed = await schema(['push'])
  expect(pushed.code).toBe(0)
  expect(pushed.stdout).toContain('+ stack visits (event, label {page})')
  expect(pushed.stdout).toContain('~ stack orders: label null → "{total}"')
  expect((await client.schema.stacks.list().all()).map(({ label }) => label)).toEqual(['{total}', '{page}'])
  expect((await schema(['diff'])).code).toBe(0)
  await schema(['pull'])
  expect(await readFile(join(directory, 'kith.schema.json'), 'utf8')).toContain('"label": "{total}"')
})

it('carries what a stack says about people, whatever the order of its members, and a pull has it', async () => {
  const buyer = { owner: 'orders', key: 'buyer', type: 'person' }
  const summary = { person: 'buyer', measures: [{ op: 'count' }, { key: 'total', op: 'sum' }] }
  await write({ stacks: [orders] })
  await schema(['push'])
  await write({ stacks: [{ ...orders, summary, erased_with: 'buyer' }], attributes: [buyer, total] })
  expect((await schema(['push'])).stdout).toContain('erased_with null → "buyer"')
  expect((await schema(['diff'])).code).toBe(0)
  await schema(['pull'])
  expect(await readFile(join(directory, 'kith.schema.json'), 'utf8')).toContain('"erased_with": "buyer"')
  expect((await schema(['diff'])).code).toBe(0)
})

it('removes the label of a stack that the file no longer has, and a pull leaves it out', async () => {
  const labeled = { stacks: [{ ...orders, label: '{total}' }], attributes: [total] }
  await write(labeled)
  await schema(['push'])
  await write({ ...labeled, stacks: [orders] })
  const removed = '~ stack orders: label "{total}" → null\n'
  expect(await schema(['push'])).toEqual({ code: 0, stdout: removed, stderr: 'Steps done: 1.\n' })
  expect((await client.schema.stacks.list().all()).map(({ label }) => label)).toEqual([null])
  expect((await schema(['pull', '-'])).stdout).not.toContain('"label"')
  expect((await schema(['diff'])).code).toBe(0)
})

describe('kith schema push of a file with a step that the service refuses', () => {
  const file = {
    stacks: [
      { ...orders, label: '{total}' },
      { key: 'visits', kind: 'event' },
    ],
    attributes: [total, { owner: 'people', key: 'city', type: 'text' }],
    consent_types: [
      { ...marketing, name: 'Marketing' },
      { key: 'news', channels: [{ channel: 'sms' }] },
    ],
    segments: [{ key: 'rome', filter: { 'attribute_values.city': 'Rome' } }],
  }

  it.each<[string, Content, { step: string; done: number; stored: number[] }]>([
    [
      'a label',
      { stacks: [{ ...orders, label: '{totl}' }, file.stacks[1]!] },
      { step: '~ stack orders: label', done: 3, stored: [2, 2, 1] },
    ],
    [
      'a segment',
      { segments: [{ key: 'rome', filter: { 'attribute_values.city': 7 } }] },
      { step: '+ segment rome', done: 5, stored: [2, 2, 2] },
    ],
  ])('keeps the steps before %s, and the corrected file completes them', async (_, wrong, { step, done, stored }) => {
    await client.schema.stacks.create({ key: 'orders', kind: 'item' })
    await write({ ...file, ...wrong })
    const refused = await schema(['push'])
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining(step) })
    expect(refused.stderr).toContain(`${done} of 6 steps are done. Run the command again to continue.`)
    const { stacks, attributes, consent_types } = await client.schema.get()
    expect([stacks, attributes, consent_types].map(({ length }) => length)).toEqual(stored)
    expect(await client.segments.list().all()).toEqual([])
    expect((await schema(['push'])).stderr).toContain(`0 of ${6 - done} steps are done.`)
    await write(file)
    expect(await schema(['push'])).toMatchObject({ code: 0, stderr: `Steps done: ${6 - done}.\n` })
    expect(await schema(['diff'])).toEqual({ code: 0, stdout: '', stderr: '' })
  })
})

it.each([
  ['with', '{total} of {buyer.city}'],
  ['without', null],
])('a pulled file %s labels gives an empty organization the same file', async (_, label) => {
  await write({
    stacks: [{ ...orders, label }],
    attributes: [total, { owner: 'orders', key: 'buyer', type: 'person' }],
    consent_types: [{ ...marketing, name: 'Marketing' }],
  })
  await schema(['push'])
  const { stdout: pulled } = await schema(['pull', '-'])
  expect(pulled.includes('"label"')).toBe(label !== null)
  const { token } = await service.organization()
  expect((await schema(['push', '-'], { token, input: pulled })).code).toBe(0)
  expect((await schema(['pull', '-'], { token, input: '' })).stdout).toBe(pulled)
  expect((await schema(['diff', '-'], { token, input: pulled })).code).toBe(0)
})

describe('kith schema pull', () => {
  it('writes a sorted file without times, ids and defaults', async () => {
    const { stacks, attributes } = client.schema
    await stacks.create({ key: 'visits', kind: 'event' })
    await stacks.create({ key: 'orders', kind: 'item', name: 'Orders' })
    await attributes.create({ key: 'total', owner: 'orders', type: 'number', indexed: true })
    await attributes.create({ key: 'city', owner: 'people', type: 'text' })
    const old = await attributes.create({ key: 'age', owner: 'people', type: 'number' })
    await attributes.patch(old.id, { state: 'archived' })
    expect(await schema(['pull'])).toEqual({ code: 0, stdout: '', stderr: 'Wrote kith.schema.json.\n' })
    const written = await readFile(join(directory, 'kith.schema.json'), 'utf8')
    expect(written).toBe(`{
  "version": 1,
  "stacks": [
    {
      "key": "orders",
      "kind": "item",
      "name": "Orders"
    },
    {
      "key": "visits",
      "kind": "event"
    }
  ],
  "attributes": [
    {
      "owner": "people",
      "key": "city",
      "type": "text"
    },
    {
      "owner": "orders",
      "key": "total",
      "type": "number",
      "indexed": true
    }
  ],
  "consent_types": [
    {
      "key": "marketing",
      "channels": [
        {
          "channel": "email",
          "is_default": true
        },
        {
          "channel": "sms",
          "is_default": true
        }
      ],
      "name": "Marketing"
    }
  ]
}
`)
    expect(await schema(['pull', '-'])).toEqual({ code: 0, stdout: written, stderr: '' })
    expect((await schema(['pull', '--json'])).stdout).toBe('{"file":"kith.schema.json","written":false}\n')
    expect(await schema(['diff'])).toEqual({ code: 0, stdout: '', stderr: '' })
  })
})

it('copies the schema of one organization to another, with the example of the documentation', async () => {
  const document = await readFile(new URL('../docs/schema-file.md', import.meta.url), 'utf8')
  const [, example] = /```json\n([\s\S]*?)```/.exec(document)!
  const other = await service.organization()
  await writeFile(join(directory, 'kith.schema.json'), example!)
  expect(await schema(['push'])).toMatchObject({ code: 0, stderr: 'Steps done: 4.\n' })
  expect(await schema(['pull'])).toMatchObject({ code: 0, stderr: 'Wrote kith.schema.json.\n' })
  const pushed = await schema(['push'], { token: other.token, input: '' })
  expect(pushed).toMatchObject({ code: 0, stderr: 'Steps done: 4.\n' })
  expect(await schema(['diff'], { token: other.token, input: '' })).toEqual({ code: 0, stdout: '', stderr: '' })
  const pulled = await schema(['pull', '-'], { token: other.token, input: '' })
  expect(pulled.stdout).toBe(await readFile(join(directory, 'kith.schema.json'), 'utf8'))
})

it('says that the file does not have the texts of consent types, and pushes nothing for them', async () => {
  await client.schema.consentTypes.addText(1, { language: 'en', text: 'Yes.' })
  const notice = 'The file does not have the texts of the consent types marketing: see docs/schema-file.md.\n'
  expect((await schema(['pull'])).stderr).toBe(`${notice}Wrote kith.schema.json.\n`)
  expect((await schema(['diff'])).code).toBe(0)
})

it.each([
  ['an unreachable service', ['--url', 'http://127.0.0.1:1'], 1, /127\.0\.0\.1:1/],
  ['a token without the scope', [], 1, /schema:write/],
  ['an unknown option', ['--delete'], 2, /--delete/],
])('push reports %s and changes nothing', async (_, args, exitCode, pattern) => {
  await write({ stacks: [orders] })
  const token = await service.tokenFor(organization.key, 'schema:read')
  const { code, stderr } = await schema(['push', ...args], { token, input: '' })
  expect(code).toBe(exitCode)
  expect(stderr).toMatch(pattern)
  expect(stderr).not.toMatch(/^ {4}at /m)
  expect((await client.schema.get()).stacks).toEqual([])
})

describe('kith schema diff', () => {
  it.each<[string, { token?: string; file?: string }, RegExp]>([
    ['a missing file', { file: 'nothing.json' }, /^The file nothing\.json does not exist\.$/m],
    ['an invalid file', { file: 'broken.json' }, /broken\.json cannot be used/],
    ['an invalid token', { token: 'none' }, /token/],
  ])('exits with 2, not with 1, for %s', async (_, { token = organization.token, file }, pattern) => {
    await write({})
    await writeFile(join(directory, 'broken.json'), '{}')
    const { code, stdout, stderr } = await schema(['diff', ...(file ? [file] : [])], { token, input: '' })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(pattern)
    expect(stderr).not.toMatch(/^ {4}at /m)
  })
})

describe('kith schema push', () => {
  it('shows the steps, applies them, and has nothing to do the next time', async () => {
    const surveys = { key: 'surveys', channels: [{ channel: 'email', is_default: true }, { channel: 'sms' }] }
    await write({
      stacks: [orders],
      attributes: [
        { ...total, indexed: true },
        { owner: 'orders', key: 'buyer', type: 'person' },
        { owner: 'people', key: 'orders', type: 'stack', target_stack: 'orders', cardinality: 'many' },
      ],
      consent_types: [
        { key: 'marketing', name: 'Marketing', channels: [{ channel: 'email' }, { channel: 'sms' }] },
        surveys,
      ],
    })
    const shown = `+ stack orders (item)
+ attribute orders.total (number, indexed)
+ attribute orders.buyer (to a person)
+ attribute people.orders (to orders, many)
+ consent type surveys (email (default) and sms)
~ consent type marketing: channels email (default) and sms (default) → email and sms
`
    expect(await schema(['push', '--dry-run'])).toEqual({ code: 0, stdout: shown, stderr: '' })
    expect((await client.schema.get()).stacks).toEqual([])
    expect(await schema(['diff'])).toEqual({ code: 1, stdout: shown, stderr: '' })
    expect(await schema(['push'])).toEqual({ code: 0, stdout: shown, stderr: 'Steps done: 6.\n' })
    expect(await schema(['diff'])).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(await schema(['push'])).toEqual({ code: 0, stdout: '', stderr: 'Nothing to do.\n' })
    const file = await readFile(join(directory, 'kith.schema.json'), 'utf8')
    expect(await schema(['diff', '-', '--json'], { token: organization.token, input: file })).toMatchObject({
      code: 0,
      stdout: '{"equal":true,"steps":[],"missing":[]}\n',
    })
  })

  it('keeps definitions that the file does not name; --archive-missing archives all but stacks', async () => {
    await client.schema.stacks.create({ key: 'orders', kind: 'item' })
    await client.schema.attributes.create({ key: 'total', owner: 'orders', type: 'number' })
    await write({ consent_types: [] })
    const stack = '? stack orders is not in the file: it stays, because stacks cannot be archived\n'
    const rest = `? attribute orders.total is not in the file: it stays without --archive-missing
? consent type marketing is not in the file: it stays without --archive-missing
`
    expect(await schema(['diff'])).toMatchObject({ code: 1, stdout: stack + rest })
    expect(await schema(['push'])).toEqual({ code: 0, stdout: stack + rest, stderr: 'Nothing to do.\n' })
    const archived = `- attribute orders.total: archived\n- consent type marketing: archived\n${stack}`
    expect(await schema(['push', '--archive-missing'])).toEqual({
      code: 0,
      stdout: archived,
      stderr: 'Steps done: 2.\n',
    })
    const { attributes, consent_types } = await client.schema.get()
    expect([...attributes, ...consent_types].map(({ state }) => state)).toEqual(['archived', 'archived'])
    expect(await schema(['diff'])).toMatchObject({ code: 1, stdout: stack })
  })

  it('reactivates an archived attribute with its links, or declares a new one if the type differs', async () => {
    const { attributes } = client.schema
    const friend = await attributes.create({ key: 'friend', owner: 'people', type: 'person' })
    const age = await attributes.create({ key: 'age', owner: 'people', type: 'text' })
    await client.people.create({ external_id: 'ada', attribute_values: { friend: 'grace' } })
    for (const { id } of [friend, age]) await attributes.patch(id, { state: 'archived' })
    await write({
      attributes: [
        { owner: 'people', key: 'friend', type: 'person' },
        { owner: 'people', key: 'age', type: 'number' },
      ],
      consent_types: [{ ...marketing, name: 'Marketing' }],
    })
    const { stdout } = await schema(['push'])
    expect(stdout).toBe('~ attribute people.friend: state "archived" → "active"\n+ attribute people.age (number)\n')
    const found = await client.people.filter({ 'attribute_values.friend': 'grace' }).page()
    expect(found.items.map(({ external_id }) => external_id)).toEqual(['ada'])
  })

  it('replaces the default of a channel even if the file does not name the previous default', async () => {
    await write({ consent_types: [{ key: 'news', channels: [{ channel: 'sms', is_default: true }] }] })
    expect((await schema(['push'])).stdout).toBe(`+ consent type news (sms (default))
~ consent type marketing: channels email (default) and sms (default) → email (default) and sms
? consent type marketing is not in the file: it stays without --archive-missing
`)
  })

  it.each<[string, Content, string[]]>([
    ['a stack of another kind', { stacks: [{ ...orders, kind: 'event' }] }, ['/stacks/0/kind']],
    [
      'changes of type, target and cardinality of an attribute',
      {
        stacks: [orders],
        attributes: [
          { ...total, type: 'text' },
          { owner: 'people', key: 'orders', type: 'stack', target_stack: 'orders' },
          { owner: 'people', key: 'last', type: 'stack', target_stack: 'visits' },
        ],
      },
      ['/attributes/0/type', '/attributes/1/cardinality', '/attributes/2/target_stack'],
    ],
    [
      'an unknown owner and an unknown target',
      {
        attributes: [
          { ...total, owner: 'nowhere' },
          { ...total, type: 'stack', target_stack: 'nowhere', key: 'x' },
        ],
      },
      ['/attributes/0/owner', '/attributes/1/target_stack'],
    ],
  ])('refuses %s before it changes anything', async (_, content, paths) => {
    await client.schema.stacks.create({ key: 'orders', kind: 'item' })
    await client.schema.stacks.create({ key: 'visits', kind: 'event' })
    await client.schema.attributes.create({ key: 'total', owner: 'orders', type: 'number' })
    const many = { owner: 'people', type: 'stack', target_stack: 'orders', cardinality: 'many' } as const
    await client.schema.attributes.create({ ...many, key: 'orders' })
    await client.schema.attributes.create({ ...many, key: 'last', cardinality: 'one' })
    const before = await client.schema.get()
    const stacks = [{ key: 'visits', kind: 'event' }, { key: 'also_new', kind: 'item' }, ...(content.stacks ?? [])]
    await write({ ...content, stacks: content.stacks ? [...content.stacks, stacks[1]!] : stacks })
    const { code, stdout, stderr } = await schema(['push', '--archive-missing'])
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect([...stderr.matchAll(/^ {2}(\/\S+) \S/gm)].map(([, path]) => path)).toEqual(paths)
    expect(await client.schema.get()).toEqual(before)
  })
})

describe('the segments of a file', () => {
  const rome = { key: 'rome', filter: { 'attribute_values.city': 'Rome' } }
  const others = { key: 'a_others', name: 'Others', filter: { $not: { $segment: 'rome' } } }
  const city = { owner: 'people', key: 'city', type: 'text' }

  it('are pushed after all that they name, pulled in order of their keys, and equal then', async () => {
    await write({ attributes: [city], segments: [others, rome] })
    const pushed = await schema(['push'])
    expect([pushed.code, pushed.stdout]).toEqual([
      0,
      expect.stringMatching(/\+ attribute people\.city .*\n\+ segment rome .*\n\+ segment a_others /s),
    ])
    const pulled = JSON.parse((await schema(['pull', '-'])).stdout)
    expect(pulled.segments).toEqual([others, rome])
    expect((await schema(['diff'])).code).toBe(0)
  })

  it('are changed and named if they are missing, but never deleted', async () => {
    await write({ attributes: [city], segments: [others, rome] })
    await schema(['push'])
    const swapped = [
      { ...rome, filter: { $segment: 'a_others' } },
      { ...others, filter: { language: { $neq: 'it' }, first_name: { $exists: true } } },
    ]
    await client.segments.create({ key: 'extra', filter: { language: 'en' } })
    await write({ attributes: [city], segments: swapped })
    const pushed = await schema(['push', '--archive-missing'])
    expect([pushed.code, pushed.stdout]).toEqual([0, expect.stringContaining('? segment extra is not in the file')])
    const stored = await client.segments.list().all()
    expect(stored.map(({ key, filter }) => [key, filter])).toEqual([
      ['rome', swapped[0]!.filter],
      ['a_others', swapped[1]!.filter],
      ['extra', { language: 'en' }],
    ])
  })

  it('are left alone by a file without the list', async () => {
    await client.segments.create({ key: 'extra', filter: { language: 'en' } })
    await write({})
    expect((await schema(['push'])).stdout).not.toContain('segment')
    expect((await schema(['diff'])).code).toBe(0)
    expect(await client.segments.list().all()).toHaveLength(1)
  })
})

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { runInProcess, useFolder } from '../test/support/command.ts'
import { useService } from '../test/support/service.ts'
import { useSharedShop } from '../test/support/shop.ts'

const service = useService()
const folder = useFolder()
const organization = useSharedShop(service, 'buyer', { key: 'total', owner: 'orders', type: 'number', indexed: true })
beforeAll(async () => {
  const { client } = organization
  await client.people.create({ external_id: 'ada', first_name: 'Ada', last_name: 'Lovelace', email: 'ada@example.org' })
  await client.people.create({ external_id: 'grace', first_name: 'Grace', last_name: 'Hopper', language: 'en' })
  await client.people.create({
    external_id: 'evil',
    first_name: '\x1b[2J\u202e,"x"',
    attribute_values: { city: 'Rome', tags: ['a'] },
  })
  await client.stack('orders').create({ external_id: 'o-1', attribute_values: { total: 10, buyer: 'ada' } })
  await client.stack('orders').create({ external_id: 'o-2', attribute_values: { total: 5, note: 'late' } })
})

const environment = () => ({ KITH_URL: service.address, KITH_TOKEN: organization.token })
const kith = (...words: string[]) => runInProcess(words, environment(), folder)
/** The parsed lines of JSON that a command prints. */
const rowsOf = async (...words: string[]) => {
  const { code, stdout, stderr } = await kith(...words, '--format', 'ndjson')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return stdout
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
}
const namesOf = async (...words: string[]) => (await rowsOf(...words)).map(({ external_id }) => external_id)
const orders = ['--stack', 'orders']

describe('kith people list and filter', () => {
  it('print lines of JSON, newest first, in full or with the fields that are asked for', async () => {
    const [evil, grace, ada] = await rowsOf('people', 'list')
    expect([evil, grace, ada]).toEqual(
      await Promise.all(['evil', 'grace', 'ada'].map(name => organization.client.people.get(name))),
    )
    expect(await rowsOf('people', 'list', '--fields', 'external_id,attribute_values.city')).toEqual([
      { external_id: 'evil', attribute_values: { city: 'Rome' } },
      { external_id: 'grace', attribute_values: {} },
      { external_id: 'ada', attribute_values: {} },
    ])
  })

  it('print a table with a column for each field, without characters that move the cursor', async () => {
    const { code, stdout, stderr } = await kith('people', 'list', '--format', 'table')
    expect([code, stderr]).toEqual([0, '3 people\n'])
    const lines = stdout.trimEnd().split('\n')
    expect(lines[0]).toMatch(/^external_id +first_name +last_name +email +mobile_number +state +created_at$/)
    expect(lines[1]).toMatch(/^evil +\\u\{1b\}\[2J\\u\{202e\},"x" +active +\d{4}-/)
    expect(lines[3]).toMatch(/^ada +Ada +Lovelace +ada@example\.org +active +\d{4}-/)
    expect(lines).toHaveLength(4)
  })

  it('print CSV with a header, also without rows', async () => {
    const fields = ['--fields', 'external_id,first_name,attribute_values.tags', '--format', 'csv']
    const { stdout } = await kith('people', 'filter', '--where', 'attribute_values.city=Rome', ...fields)
    expect(stdout).toBe('external_id,first_name,attribute_values.tags\nevil,"\x1b[2J\u202e,""x""","[""a""]"\n')
    const none = await kith('people', 'filter', '--where', 'external_id=nobody', ...fields)
    expect(none.stdout).toBe('external_id,first_name,attribute_values.tags\n')
  })

  it('escape control characters in JSON without changing the value', async () => {
    const { stdout } = await kith('people', 'get', 'evil', '--format', 'ndjson')
    expect(stdout).toContain('\\u001b[2J\\u202e')
    expect(JSON.parse(stdout).first_name).toBe('\x1b[2J\u202e,"x"')
  })

  it('select by pairs, by JSON and by a file', async () => {
    expect(await namesOf('people', 'filter', '--where', 'last_name=Hopper', '--where', 'language=en')).toEqual([
      'grace',
    ])
    expect(await namesOf('people', 'filter', '--filter', '{"email":{"$exists":true}}')).toEqual(['ada'])
    await writeFile(join(folder, 'filter.json'), '{"first_name":{"$starts_with":"G"}}')
    expect(await namesOf('people', 'filter', '--filter', '@filter.json')).toEqual(['grace'])
  })

  it('sort, in both directions', async () => {
    const sorted = async (sort: string) => {
      // The first request that sorts by a field builds its index. The service may answer it with 503 until then.
      await expect.poll(async () => (await kith('people', 'list', '--sort', sort)).code).toBe(0)
      return namesOf('people', 'list', '--sort', sort)
    }
    expect(await sorted('last_name')).toEqual(['grace', 'ada', 'evil'])
    expect(await sorted('last_name:desc')).toEqual(['ada', 'grace', 'evil'])
  })

  it('stop at the limit and tell that there are more', async () => {
    const { stdout, stderr } = await kith('people', 'list', '--limit', '2', '--format', 'table')
    expect(stdout.trimEnd().split('\n')).toHaveLength(3)
    expect(stderr).toBe('2 people. There are more: use --limit <count>, or --limit all.\n')
    expect(await namesOf('people', 'list', '--limit', '1')).toEqual(['evil'])
    expect(await namesOf('people', 'list', '--limit', 'all')).toEqual(['evil', 'grace', 'ada'])
  })

  it('print warnings about a key that nobody has', async () => {
    const { code, stdout, stderr } = await kith('people', 'filter', '--where', 'attribute_values.ctiy=Rome')
    expect([code, stdout]).toEqual([0, ''])
    expect(stderr).toMatch(/^Warning: \/filter\/attribute_values\.ctiy /)
    const counted = await kith('people', 'count', '--where', 'attribute_values.ctiy=Rome', '--format', 'json')
    expect(JSON.parse(counted.stdout)).toEqual({ count: 0, sequence: expect.any(Number) })
    expect(counted.stderr).toBe(stderr)
    const change = ['--body', '{"language": "it"}', '--where', 'attribute_values.ctiy=null', '--dry-run']
    expect((await kith('bulk', 'patch', 'people', ...change)).stderr).toContain(stderr)
  })

  it('fail with the reason of the service, and print nothing', async () => {
    const refused = await kith('people', 'list', '--fields', 'frist_name')
    expect([refused.code, refused.stdout]).toEqual([1, ''])
    expect(refused.stderr).toContain('/fields/0')
    expect(await kith('people', 'filter')).toMatchObject({ code: 2, stdout: '' })
    expect(await kith('people', 'list', '--limit', '0')).toMatchObject({ code: 2, stdout: '' })
    expect(await kith('people', 'list', '--format', 'xml')).toMatchObject({ code: 2, stdout: '' })
  })
})

describe('the rows that a command prints', () => {
  const wide = '漢字'.repeat(20)
  const formula = '=HYPERLINK("https://evil.example")'
  it('are one table, JSON value, CSV or lines of JSON, aligned by the columns of the terminal and without formulas', async () => {
    const { client, token } = await service.organization()
    for (const [external_id, first_name] of [
      ['wide', wide],
      ['formula', formula],
      ['emoji', 'e\u0301\u{1f469}\u{1f3fd}'],
    ] as const)
      await client.people.create({ external_id, first_name, attribute_values: { n: -5, list: ['-1'] } })
    const words = ['people', 'list', '--fields', 'external_id,first_name,attribute_values.n,attribute_values.list']
    const print = async (...format: string[]) =>
      (await runInProcess([...words, ...format], { KITH_URL: service.address, KITH_TOKEN: token })).stdout
    expect(await print('--format', 'table')).toBe(
      [
        `external_id  first_name${' '.repeat(49)}  attribute_values.n  attribute_values.list`,
        `emoji        e\u0301\u{1f469}\u{1f3fd}${' '.repeat(56)}  -5                  ["-1"]`,
        `formula      ${formula}${' '.repeat(59 - formula.length)}  -5                  ["-1"]`,
        `wide         ${wide.slice(0, 29)}…  -5                  ["-1"]`,
        '',
      ].join('\n'),
    )
    expect((await print('--format', 'csv')).split('\n').slice(0, 3)).toEqual([
      'external_id,first_name,attribute_values.n,attribute_values.list',
      'emoji,e\u0301\u{1f469}\u{1f3fd},-5,"[""-1""]"',
      `formula,"'${formula.replaceAll('"', '""')}",-5,"[""-1""]"`,
    ])
    const value = await print('--json')
    expect(value).toMatch(/^\[[^\n]+\]\n$/)
    expect(JSON.parse(value)).toHaveLength(3)
    expect(await print('--format', 'json')).toBe(value)
    const lines = await print('--format', 'ndjson')
    expect(lines.trimEnd().split('\n')).toEqual(JSON.parse(value).map((row: object) => JSON.stringify(row)))
    expect(await print()).toBe(lines)
    words.splice(1, 1, 'filter', '--where', 'external_id=nobody')
    expect([await print('--json'), await print('--format', 'table'), await print()]).toEqual(['[]\n', '', ''])
  })
})

describe('kith records', () => {
  it('print names for people to read with --labels, first in a table', async () => {
    await organization.client.schema.stacks.patch('orders', { label: '{buyer}: {total}' })
    const labeled = { label: 'Ada Lovelace: 10', relationship_labels: { buyer: { ada: 'Ada Lovelace' } } }
    const get = ['records', 'get', 'o-1', ...orders, '--labels']
    expect(await rowsOf(...get, '--fields', 'external_id')).toEqual([{ external_id: 'o-1', ...labeled }])
    const one = await kith(...get, '--format', 'table')
    expect(one.stdout).toMatch(/^label +Ada Lovelace: 10$/m)
    expect(one.stdout).toMatch(/^relationship_labels\.buyer +Ada Lovelace$/m)
    const fields = ['--labels', '--fields', 'external_id']
    const [, first] = await rowsOf('records', 'list', ...orders, ...fields)
    expect(first).toEqual({ external_id: 'o-1', ...labeled, relationship_labels: {} })
    const table = await kith(
      'records',
      'filter',
      ...orders,
      '--where',
      'external_id=o-1',
      ...fields,
      '--format',
      'table',
    )
    expect(table.stdout).toBe('label             external_id\nAda Lovelace: 10  o-1\n')
  })

  it('print the targets of relationships by internal identifiers with --links id', async () => {
    const { id } = await organization.client.people.get('ada')
    for (const words of [['get', 'o-1'], ['list'], ['filter', '--where', 'external_id=o-1']]) {
      const rows = await rowsOf('records', ...words, ...orders, '--links', 'id')
      const order = rows.find(row => (row as { external_id: string }).external_id === 'o-1')
      expect(order).toMatchObject({ attribute_values: { buyer: { id } } })
    }
    expect(await kith('records', 'get', 'o-1', ...orders, '--links', 'name')).toMatchObject({ code: 2, stdout: '' })
  })

  it('list a stack, with a column for each attribute and the included targets', async () => {
    const { stdout } = await kith('records', 'list', ...orders, '--format', 'table')
    const header = stdout.split('\n')[0]!.split(/ +/)
    expect(header.toSorted()).toEqual(['buyer', 'created_at', 'external_id', 'note', 'state', 'total'])
    expect([header.at(0), header.slice(-2)]).toEqual(['external_id', ['state', 'created_at']])
    const included = await rowsOf('records', 'list', ...orders, '--include', 'buyer', '--fields', 'external_id')
    expect(included).toEqual([
      { external_id: 'o-2', included: { buyer: null } },
      { external_id: 'o-1', included: { buyer: await organization.client.people.get('ada') } },
    ])
    const table = await kith(
      'records',
      'list',
      ...orders,
      '--include',
      'buyer',
      '--fields',
      'external_id',
      '--format',
      'table',
    )
    expect(table.stdout).toBe('external_id  included.buyer\no-2\no-1          Ada Lovelace\n')
  })

  it('need a stack', async () => {
    const { code, stderr } = await kith('records', 'list')
    expect([code, stderr]).toEqual([2, expect.stringContaining('--stack')])
  })
})

describe('kith people get', () => {
  it('prints the members that have a value, or some of them, or one line of JSON', async () => {
    const { code, stdout, stderr } = await kith('people', 'get', 'ada', '--format', 'table')
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^external_id +ada$/m)
    expect(stdout).toMatch(/^consents\.1\.email +refused \(default\)$/m)
    expect(stdout).not.toContain('language')
    const { id } = await organization.client.people.get('evil')
    const fields = ['--fields', 'external_id,attribute_values.city,attribute_values.none']
    expect(await rowsOf('people', 'get', id, '--id', ...fields)).toEqual([
      { external_id: 'evil', attribute_values: { city: 'Rome' } },
    ])
    expect((await kith('people', 'get', 'ada', '--fields', 'email', '--format', 'csv')).stdout).toBe(
      'email\nada@example.org\n',
    )
  })

  it('prints the values of a time', async () => {
    const { created_at } = await organization.client.people.get('ada')
    const [past] = await rowsOf('people', 'get', 'ada', '--at', created_at)
    expect(past).toMatchObject({ external_id: 'ada', as_of: { version: 1 } })
  })

  it('fails for a person who does not exist, and for a field that is none', async () => {
    expect(await kith('people', 'get', 'nobody')).toMatchObject({ code: 1, stdout: '' })
    const wrong = await kith('people', 'get', 'ada', '--fields', 'name')
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('"name" is not a field')])
  })
})

describe('kith people count', () => {
  it('prints the number, or also the change that it holds at', async () => {
    expect(await kith('people', 'count')).toEqual({ code: 0, stdout: '3\n', stderr: '' })
    expect((await kith('people', 'count', '--where', 'last_name=Hopper')).stdout).toBe('1\n')
    expect((await kith('records', 'count', ...orders, '--where', 'attribute_values.total=10')).stdout).toBe('1\n')
    const [{ count, sequence }] = await rowsOf('people', 'count')
    expect([count, sequence]).toEqual([3, (await organization.client.changes.list({ size: 1 }).page()).head])
    expect((await kith('people', 'count', '--format', 'csv')).stdout).toBe(`count,sequence\n3,${sequence}\n`)
  })
})

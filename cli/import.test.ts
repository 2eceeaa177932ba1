import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Client } from '../client/index.ts'
import { breakingProxy, runInProcess } from '../test/support/command.ts'
import { useService } from '../test/support/service.ts'

const service = useService()
let client: Client
let token: string
let base: string
let directory: string

beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), 'kith-import-'))
})
afterAll(async () => {
  await rm(base, { recursive: true })
})
beforeEach(async () => {
  const organization = await service.organization()
  ;({ token, client } = organization)
  directory = join(base, organization.key)
  await mkdir(directory)
})

const file = (name: string) => join(directory, name)
const put = (name: string, content: string | Buffer) => writeFile(file(name), content)
const lines = (count: number) =>
  Array.from({ length: count }, (_, i) => `{"external_id":"p${i}","first_name":"N${i}"}\n`)
const settings = () => ({ KITH_URL: service.address, KITH_TOKEN: token })

const run = (args: string[], input: string | Buffer = '', environment: Record<string, string> = settings()) =>
  runInProcess(['import', ...args], environment, directory, input)

/** Runs an import and returns its JSON result. */
async function counts(...args: string[]) {
  const { stdout } = await run([...args, '--json'])
  return JSON.parse(stdout)
}

describe('kith import of NDJSON', () => {
  it('creates new people, changes existing ones, and changes nothing the second time', async () => {
    await client.people.create({ external_id: 'p0', last_name: 'Kept' })
    await put('people.ndjson', lines(3).join(''))
    const first = await run(['people', 'people.ndjson'])
    expect(first).toMatchObject({ code: 0, stdout: '' })
    expect(first.stderr).toMatch(/^3 lines in \d+ s: 2 created, 1 updated, 0 unchanged, 0 refused\n$/)
    expect(await client.people.get('p0')).toMatchObject({ first_name: 'N0', last_name: 'Kept' })
    expect(await counts('people', 'people.ndjson')).toMatchObject({ received: 3, unchanged: 3, failed: 0, error: null })
  })

  it('reads a table as an import of the console did that had the same header, says so, and lets options come first', async () => {
    const header = ['Nr', 'Wohnt in', 'Notiz']
    await client.imports.saveMapping({
      owner: 'people',
      header,
      fields: ['external_id', 'attribute_values.city', null],
    })
    await put('people.csv', 'Nr,Wohnt in,Notiz\na,Bozen,geheim\n')
    const { code, stderr } = await run(['people', 'people.csv'])
    expect([code, stderr]).toEqual([
      0,
      expect.stringMatching(
        /Read the columns as tests did on \d{4}-\d\d-\d\d: Nr as external_id, Wohnt in as attribute_values\.city; ignored Notiz\. Use --no-mapping/,
      ),
    ])
    expect((await client.people.get('a')).attribute_values).toEqual({ city: 'Bozen' })

    await run(['people', 'people.csv', '--map', 'Notiz=last_name'])
    expect(await client.people.get('a')).toMatchObject({ last_name: 'geheim', attribute_values: { city: 'Bozen' } })
    const unread = await run(['people', 'people.csv', '--no-mapping'])
    expect([unread.code, unread.stderr]).toEqual([1, expect.stringContaining('Wohnt in')])
    // The import reads another header, or the same header for a stack, by its column names.
    await put('other.csv', 'Nr,Notiz,Wohnt in\nb,geheim,Bozen\n')
    expect((await run(['people', 'other.csv'])).code).toBe(1)
    await client.schema.stacks.create({ key: 'orders', kind: 'item' })
    expect((await run(['orders', 'people.csv'])).code).toBe(1)
  })

  it('reads the refused lines of a remembered file in the same way', async () => {
    await client.imports.saveMapping({ owner: 'people', header: ['Nr', 'Wohin'], fields: ['external_id', 'email'] })
    await put('people.csv', 'Nr,Wohin\na,none\n')
    expect((await run(['people', 'people.csv', '--refused', 'refused.csv'])).code).toBe(1)
    const refused = await readFile(file('refused.csv'), 'utf8')
    await put('mended.csv', refused.replace('a,none', 'a,a@example.com'))
    expect(await run(['people', 'mended.csv'])).toMatchObject({ code: 0 })
    expect(await client.people.get('a')).toMatchObject({ email: 'a@example.com' })
  })

  it('gives numbers without a prefix the country of --phone-country, with and without a table', async () => {
    await put('people.ndjson', '{"external_id":"a","mobile_number":"333 1234567"}\n')
    await put('people.csv', 'external_id,mobile_number\nb,333 7654321\n')
    for (const name of ['people.ndjson', 'people.csv'])
      expect(await counts('people', name, '--phone-country', 'IT')).toMatchObject({ created: 1, failed: 0 })
    expect(await client.people.get('a')).toMatchObject({ mobile_prefix: '+39', mobile_number: '333 1234567' })
    expect(await client.people.get('b')).toMatchObject({ mobile_prefix: '+39', mobile_number: '333 7654321' })
    const refused = await run(['people', 'people.csv', '--phone-country', 'ZZ'])
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('country')])
  })

  it('writes refused lines with their reasons to a file, which can be corrected and imported', async () => {
    const wrong = ['{"external_id":"b","email":"none"}', 'no json', '{"external_id":"\xff"}', '[1]']
    await put('people.jsonl', Buffer.from(['{"external_id":"a"}', '', ...wrong].join('\r\n'), 'latin1'))
    const { code, stderr } = await run(['people', 'people.jsonl'])
    expect(code).toBe(1)
    expect(stderr).toContain('1 created, 0 updated, 0 unchanged, 4 refused')
    expect(stderr).toContain('people.refused.ndjson')
    const refused = await readFile(file('people.refused.ndjson'), 'latin1')
    const reasons = refused
      .trimEnd()
      .split('\n')
      .map(line => /^\{"refused_because":"(line \d+: \w+)/.exec(line)?.[1])
    expect(reasons).toEqual([
      'line 3: invalid_parameter',
      'line 4: failed_binding_json',
      'line 5: is',
      'line 6: invalid_json',
    ])
    for (const line of wrong.slice(1, 3)) expect(refused).toContain(line.replace(/^\{/, ''))
    const mended = refused.replace('none', 'b@example.org').replace('no json', '{"external_id":"c"}')
    await put('people.refused.ndjson', Buffer.from(mended.replace('\xff', 'd').replace('[1]', '{"external_id":"e"}')))
    expect(await counts('people', 'people.refused.ndjson')).toMatchObject({ created: 4, failed: 0, refused_file: null })
    expect((await readdir(directory)).sort()).toEqual(['people.jsonl', 'people.refused.ndjson'])
    expect(await client.people.get('b')).toMatchObject({ email: 'b@example.org' })
  })

  it('reads a file of refused lines that were refused again, each with the last reason alone', async () => {
    await put('people.ndjson', '{"external_id":"a","email":"none"}\nno json\n')
    for (const name of ['people.ndjson', 'people.refused.ndjson'])
      expect(await counts('people', name)).toMatchObject({ created: 0, failed: 2 })
    const refused = await readFile(file('people.refused.refused.ndjson'), 'utf8')
    expect(refused.match(/refused_because/g)).toHaveLength(2)
    const mended = refused.replace('none', 'a@example.org').replace('no json', '{"external_id":"c"}')
    await put('people.refused.refused.ndjson', mended.replace('{', '{"refused_because":"an earlier reason",'))
    expect(await counts('people', 'people.refused.refused.ndjson')).toMatchObject({ created: 2, failed: 0 })
  })

  it('never overwrites an earlier file of refused lines', async () => {
    await put('people.ndjson', '{"email":"none"}\n')
    for (const name of ['people.refused.ndjson', 'people.refused-2.ndjson'])
      expect(await counts('people', 'people.ndjson')).toMatchObject({ refused_file: name })
    const named = await run(['people', 'people.ndjson', '--refused', 'people.refused.ndjson'])
    expect(named).toMatchObject({ code: 1, stderr: expect.stringMatching(/exists already/) })
  })

  it('decompresses files, reads standard input, and imports records of a stack', async () => {
    await client.schema.stacks.create({ key: 'orders', kind: 'item' })
    await client.schema.stacks.create({ key: 'visits', kind: 'event' })
    await put('orders.ndjson.gz', gzipSync(Buffer.from('\ufeff{"external_id":"o1","attribute_values":{"total":1}}')))
    expect(await counts('orders', 'orders.ndjson.gz')).toMatchObject({ created: 1 })
    expect(await client.stack('orders').get('o1')).toMatchObject({ attribute_values: { total: 1 } })
    const { code } = await run(['visits', '-', '--format', 'ndjson'], gzipSync('{"external_id":"v1"}\n'))
    expect(code).toBe(0)
    expect(await client.stack('visits').get('v1')).toMatchObject({ stack_key: 'visits' })
  })

  it('stores nothing with --dry-run, and refuses missing references with --strict-references', async () => {
    await client.schema.attributes.create({ key: 'friend', owner: 'people', type: 'person' })
    await put(
      'people.ndjson',
      `${lines(1)}{"external_id":"x","attribute_values":{"friend":"nobody"}}\n{"email":"none"}\n`,
    )
    expect(await counts('people', 'people.ndjson', '--dry-run')).toMatchObject({ created: 2, failed: 1, dry_run: true })
    expect(await counts('people', 'people.ndjson', '--dry-run', '--strict-references')).toMatchObject({ failed: 2 })
    for await (const person of client.people.list()) expect(person).toBeUndefined()
  })

  it('counts the lines that are stored with a mobile number that is none', async () => {
    const file = ['n/a', '+39 333 1234567'].map(
      (mobile_number, n) => `{"external_id":"m${n}","mobile_number":"${mobile_number}"}\n`,
    )
    await put('people.ndjson', file.join(''))
    const { stderr } = await run(['people', 'people.ndjson', '--dry-run'])
    expect(stderr).toContain('1 line has a mobile_number that is no phone number with its country.')
    expect(await counts('people', 'people.ndjson')).toMatchObject({ created: 2, failed: 0, warnings: 1 })
  })

  it('converts exported lines into bodies, and refuses lines exported from another stack', async () => {
    await client.schema.stacks.create({ key: 'orders', kind: 'item' })
    const person = await client.people.create({
      external_id: 'ada',
      consents: [{ consent_type_id: 1, channel: 'email', state: true }],
      attribute_values: { city: 'Rome' },
    })
    const order = await client.stack('orders').create({ external_id: 'o1' })
    await client.people.delete('ada')
    const placeholder = { ...person, external_id: 'bob', state: 'placeholder' }
    await put('all.ndjson', [person, placeholder, order].map(read => `${JSON.stringify(read)}\n`).join(''))
    expect(await counts('people', 'all.ndjson')).toMatchObject({ received: 2, created: 1, failed: 1, left_out: 1 })
    const { id, created_at, updated_at, consents, version, ...same } = person
    expect(await client.people.get('ada')).toMatchObject(same)
  })

  it('recognizes people by email and phone with --match, in NDJSON and in CSV, and changes nothing the second time', async () => {
    const { id } = await client.people.create({ external_id: 'shop-1', email: 'ada@example.com' })
    await put('people.ndjson', '{"email":"Ada@Example.com","first_name":"Ada"}\n{"mobile_number":"+39 333 1234567"}\n')
    const match = ['--match', 'external_id, email,mobile']
    expect(await counts('people', 'people.ndjson', ...match)).toMatchObject({ created: 1, updated: 1, failed: 0 })
    await put(
      'news.csv',
      'external_id,email,mobile_prefix,mobile_number\nnews-7,ADA@example.com,,\n,,0039,333/1234567\n',
    )
    expect(await counts('people', 'news.csv', ...match)).toMatchObject({ created: 0, updated: 2, failed: 0 })
    expect(await counts('people', 'news.csv', ...match)).toMatchObject({ unchanged: 2 })
    expect(await client.people.get('news-7')).toMatchObject({ id, external_id: 'shop-1', first_name: 'Ada' })
  })

  it('recognizes nobody by an address that more than ten lines share unless told, and counts the lines that met an earlier one', async () => {
    const shared = Array.from({ length: 11 }, (_, i) => `{"email":"info@example.com","first_name":"N${i}"}\n`)
    const met = ['{"email":"ada@example.com"}\n', '{"email":"Ada@example.com","last_name":"L"}\n']
    await put('people.ndjson', [...shared, ...met].join(''))
    const { stderr } = await run(['people', 'people.ndjson', '--match', 'email'])
    expect(stderr).toMatch(/^13 lines in \d+ s: 12 created, 1 updated/)
    expect(stderr).toContain('1 line met a person of an earlier line of the file.')
    expect(stderr).toContain('11 lines have an email or phone that more than ten lines of the file share')
    await put('told.ndjson', shared.join('').replaceAll('info@', 'team@'))
    const told = await counts('people', 'told.ndjson', '--match', 'email', '--shared-addresses')
    expect(told).toMatchObject({ created: 1, updated: 10, met_earlier: 10, shared_addresses: 0 })
    const piped = await run(['people', '-', '--format', 'ndjson', '--match', 'email'], shared.join(''))
    expect([piped.code, piped.stderr]).toEqual([2, expect.stringContaining('--shared-addresses')])
  })

  it.each(['phone', '', 'email,email', 'email,'])('refuses --match %j', async keys => {
    await put('people.ndjson', '')
    const { code, stderr } = await run(['people', 'people.ndjson', '--match', keys])
    expect([code, stderr]).toEqual([2, expect.stringContaining('Give external_id, email and mobile')])
  })

  it('refuses --match for records', async () => {
    await put('orders.ndjson', '')
    const { code, stderr } = await run(['orders', 'orders.ndjson', '--match', 'email'])
    expect([code, stderr]).toEqual([2, expect.stringContaining('--match applies only to people.')])
  })

  it('refuses lines that would change an existing person with --create-only', async () => {
    await client.people.create({ external_id: 'p0', first_name: 'Kept' })
    await put('people.ndjson', lines(3).join(''))
    expect(await counts('people', 'people.ndjson', '--create-only')).toMatchObject({
      created: 2,
      updated: 0,
      failed: 1,
    })
    expect(await client.people.get('p0')).toMatchObject({ first_name: 'Kept', version: 1 })
    expect(await readFile(file('people.refused.ndjson'), 'utf8')).toContain('line 1: duplicate_entry')
  })

  it('prints messages on standard error, and only JSON on standard output', async () => {
    await put('people.ndjson', `${lines(1)}{"email":"none"}\n`)
    const plain = await run(['people', 'people.ndjson'])
    expect(plain.stdout).toBe('')
    expect(plain.stderr).toContain('1 created')
    const { stdout } = await run(['people', 'people.ndjson', '--json'])
    expect(JSON.parse(stdout)).toMatchObject({ unchanged: 1, failed: 1 })
  })

  it('records the --subject of the token that it creates itself in the change log', async () => {
    await put('people.ndjson', '{"external_id":"of-the-night"}\n')
    const here = { DATABASE_URL: service.databaseUrl, PORT: new URL(service.address).port }
    expect((await run(['people', 'people.ndjson', '--subject', 'nightly import'], '', here)).code).toBe(0)
    const actors = await service.sql(`select actor from changes where after ->> 'external_id' = 'of-the-night'`)
    expect(actors).toEqual([{ actor: 'nightly import' }])
    for (const option of ['--subject', '--org']) {
      const given = await run(['people', 'people.ndjson', option, 'x'])
      expect(given).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(option) })
    }
    const set = await run(['people', 'people.ndjson', '--set', 'a=b'])
    expect(set).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('CSV') })
  })

  it('skips the lines before --skip-lines', async () => {
    await put('people.ndjson', lines(5).join(''))
    expect(await counts('people', 'people.ndjson', '--skip-lines', '3')).toMatchObject({ created: 2 })
    expect(await client.people.get('p3')).toMatchObject({ first_name: 'N3' })
  })
})

describe('the connection of an import', () => {
  it('is retried from the last acknowledged line when it breaks, with a message', async () => {
    const proxy = await breakingProxy(service.address, { up: 100_000 })
    await put('people.ndjson', lines(5_000).join(''))
    const { code, stdout, stderr } = await run(['people', 'people.ndjson', '--json'], '', {
      KITH_URL: proxy.address,
      KITH_TOKEN: token,
    })
    proxy.server.close()
    expect(stderr).toMatch(/broke.* Continuing after line \d+ in 0\.2 s\./)
    expect({ code, ...JSON.parse(stdout) }).toMatchObject({ code: 0, received: 5_000, failed: 0, error: null })
    expect(await counts('people', 'people.ndjson')).toMatchObject({ unchanged: 5_000 })
  })

  it('ends the import when it breaks if the lines on the way have no external_id, and stores none of them twice', async () => {
    const proxy = await breakingProxy(service.address, { up: 100_000 })
    const nameless = Array.from({ length: 5_000 }, (_, i) => `{"first_name":"nameless ${i}"}\n`)
    await put('people.ndjson', nameless.join(''))
    const { code, stderr } = await run(['people', 'people.ndjson'], '', { KITH_URL: proxy.address, KITH_TOKEN: token })
    proxy.server.close()
    expect([code, stderr]).toEqual([1, expect.stringMatching(/may be stored already/)])
    const names: unknown[] = []
    for await (const { first_name } of client.people.export()) names.push(first_name)
    expect(new Set(names).size).toBe(names.length)
  })

  it('is not retried if the service never answered', async () => {
    await put('people.ndjson', lines(1).join(''))
    const nowhere = { KITH_URL: 'http://127.0.0.1:2', KITH_TOKEN: token }
    const { code, stdout, stderr } = await run(['people', 'people.ndjson'], '', nowhere)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(/^127\.0\.0\.1:2 cannot be reached[^\n]*\n$/)
    expect(await readdir(directory)).toEqual(['people.ndjson'])
  })

  it('uses the token of a file or of standard input, or a client', async () => {
    await put('people.ndjson', lines(1).join(''))
    await put('token', `${token}\n`)
    const onlyUrl = { KITH_URL: service.address }
    const byFile = await run(['people', 'people.ndjson', '--token-file', 'token'], '', onlyUrl)
    expect(byFile.code).toBe(0)
    const byInput = await run(['people', 'people.ndjson', '--token-file', '-'], token, onlyUrl)
    expect(byInput.code).toBe(0)
    const wrong = await run(['people', 'people.ndjson', '--client-id', 'x.y', '--client-secret', 'z'], '', onlyUrl)
    expect(wrong).toMatchObject({ code: 1, stderr: expect.stringMatching(/client/i) })
    const forbidden = { ...onlyUrl, KITH_TOKEN: await service.tokenFor('default', 'people:read') }
    const refused = await run(['people', 'people.ndjson'], '', forbidden)
    expect(refused).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/people:write/) })
  })
})

describe('invalid input', () => {
  it.each([
    ['a missing file', ['people', 'nothing.csv'], 1, /no file nothing\.csv/],
    ['a folder', ['people', '.', '--format', 'csv'], 1, /is a folder/],
    ['a file of an unknown format', ['people', 'people.xlsx'], 2, /--format/],
    ['a refused file that cannot be written', ['people', 'a.ndjson', '--refused', 'none/x'], 1, /--refused/],
    ['an unknown stack', ['nothing', 'a.ndjson'], 1, /no such stack/],
    ['an unknown stack for a table', ['nothing', 'table.csv'], 1, /^There is no such stack: "nothing"\.$/m],
    ['an encoding that the bytes do not tell', ['people', 'dos.csv'], 1, /encoding of dos\.csv.*--encoding/],
    ['a damaged compressed file', ['people', 'broken.ndjson.gz'], 1, /cannot be decompressed/],
    ['an empty CSV', ['people', 'empty.csv'], 1, /empty/],
    ['a header with malformed quotes', ['people', 'open.csv'], 1, /header has a quote that is not closed/],
    ['a name of refused lines of another format', ['people', 'a.ndjson', '--refused', 'a.csv'], 2, /ends in \.ndjson/],
    [
      'a word of two meanings',
      ['people', 'empty.csv', '--true-words', 'x', '--null-words', 'y,X'],
      2,
      /both true and null/,
    ],
    [
      'standard input for both file and token',
      ['people', '-', '--format', 'csv', '--token-file', '-'],
      2,
      /standard input/,
    ],
  ])('reports %s without a stack trace and creates no file', async (_, args, exitCode, pattern) => {
    await put('a.ndjson', lines(1).join(''))
    await put('dos.csv', Buffer.from('external_id,first_name\na,J\x81rgen\n', 'latin1'))
    await put('broken.ndjson.gz', gzipSync(lines(2_000).join('')).subarray(0, 1_000))
    await put('empty.csv', '')
    await put('table.csv', 'external_id,total\na,1\n')
    await put('open.csv', 'external_id,"first_name\na,b\n')
    const { code, stdout, stderr } = await run(args)
    expect({ code, stdout }).toEqual({ code: exitCode, stdout: '' })
    expect(stderr).toMatch(pattern)
    expect(stderr).not.toMatch(/^ {4}at /m)
    expect((await readdir(directory)).filter(name => name.includes('refused'))).toEqual([])
  })

  it('writes all refused lines to the file, even those without a reported reason', async () => {
    const bad = Array.from({ length: 12_000 }, (_, i) => `{"email":"none ${i}"}`)
    await put('people.ndjson', `${bad.join('\n')}\n${lines(1)}`)
    const unlimited = ['--max-refused', '20000']
    expect(await counts('people', 'people.ndjson', ...unlimited)).toMatchObject({ created: 1, failed: 12_000 })
    const refused = (await readFile(file('people.refused.ndjson'), 'utf8')).trimEnd().split('\n')
    expect(refused.map(line => /none \d+/.exec(line)?.[0])).toEqual(bad.map((_, i) => `none ${i}`))
    expect(refused[0]).toMatch(/^\{"refused_because":"line 1: invalid_parameter: \/email/)
    expect(refused.at(-1)).toMatch(/^\{"refused_because":"line 12000: refused without a reason/)
  })

  it('ends at the thousandth refused line in a row, and writes the refused lines to the file', async () => {
    await put('people.ndjson', `${lines(1)}${'{"email":"none"}\n'.repeat(5_000)}{"external_id":"last"}\n`)
    const { code, stdout } = await run(['people', 'people.ndjson', '--json'])
    const { received, created, failed, error } = JSON.parse(stdout)
    expect({ code, created, error }).toMatchObject({
      code: 1,
      created: 1,
      error: expect.stringMatching(/1000 lines in a row were refused, up to line 1001/),
    })
    expect(failed).toBe(received - 1)
    expect(failed).toBeLessThan(5_000)
    const refused = (await readFile(file('people.refused.ndjson'), 'utf8')).trimEnd().split('\n')
    expect(refused).toHaveLength(failed)
  })

  it('refuses a line of 20 MB, keeps only its beginning, and imports the others', async () => {
    const long = `{"external_id":"long","first_name":"${'x'.repeat(20_000_000)}"}\n`
    await put('people.ndjson', `${lines(1)}${long}{"external_id":"last"}\n`)
    expect(await counts('people', 'people.ndjson')).toMatchObject({ created: 2, failed: 1 })
    const refused = await readFile(file('people.refused.ndjson'), 'utf8')
    expect(refused.length).toBeLessThan(2_000)
    expect(refused).toMatch(/^\{"refused_because":"line 2: has more than/)
    expect(await counts('people', 'people.refused.ndjson')).toMatchObject({ failed: 1 })
  })
})

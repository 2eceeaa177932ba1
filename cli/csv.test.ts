import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Client } from '../client/index.ts'
import { runInProcess } from '../test/support/command.ts'
import { useService } from '../test/support/service.ts'

const service = useService()
let client: Client
let token: string
let base: string
let directory: string

beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), 'kith-csv-'))
})
afterAll(async () => {
  await rm(base, { recursive: true })
})
beforeEach(async () => {
  const organization = await service.organization()
  ;({ token, client } = organization)
  directory = join(base, organization.key)
  await mkdir(directory)
  const { stacks, attributes } = client.schema
  await stacks.create({ key: 'orders', kind: 'item' })
  const types = {
    age: 'number',
    member: 'boolean',
    since: 'date',
    seen: 'datetime',
    extra: 'json',
    friend: 'person',
  } as const
  for (const [key, type] of Object.entries(types)) await attributes.create({ key, owner: 'people', type })
  await attributes.create({ key: 'tags', owner: 'people', type: 'text', cardinality: 'many' })
})

/** Imports this text as people.csv. Returns the exit code, the messages and the counts. */
async function importCsv(content: string | Buffer, ...args: string[]) {
  await writeFile(join(directory, 'people.csv'), content)
  const all = ['import', 'people', 'people.csv', '--json', ...args]
  const environment = { KITH_URL: service.address, KITH_TOKEN: token }
  const { code, stdout, stderr } = await runInProcess(all, environment, directory)
  return { code, stderr, counts: stdout === '' ? null : JSON.parse(stdout) }
}

const refusedText = () => readFile(join(directory, 'people.refused.csv'), 'latin1')

describe('kith import of CSV', () => {
  it('adds a prefix to the values of a column, and sets a constant on every record', async () => {
    const { attributes } = client.schema
    await attributes.create({ key: 'friends', owner: 'people', type: 'person', cardinality: 'many' })
    const text = 'CustomerId,friend,friends,first_name\n 5 ,7,1|2,A\n6,,"[3, ""4""]",B\n'
    const args = [
      '--map',
      'CustomerId=external_id',
      '--prefix',
      'external_id=customer-',
      '--prefix',
      'friend=employee-',
    ]
    const more = ['--prefix', 'friends=customer-', '--set', 'age=4', '--set', 'attribute_values.kind=a=b ']
    expect(await importCsv(text, ...args, ...more)).toMatchObject({ code: 0, counts: { created: 2, failed: 0 } })
    const { attribute_values } = await client.people.get('customer-5')
    expect(attribute_values).toEqual({
      friend: 'employee-7',
      friends: ['customer-1', 'customer-2'],
      age: 4,
      kind: 'a=b',
    })
    expect((await client.people.get('customer-6')).attribute_values).toEqual({
      friends: ['customer-3', 'customer-4'],
      age: 4,
      kind: 'a=b',
    })
  })

  it('writes the original cells of a refused record, without prefix and constant', async () => {
    const args = ['--prefix', 'external_id=c-', '--set', 'age=4']
    expect(await importCsv('external_id,email\n1,none\n', ...args)).toMatchObject({ code: 1, counts: { failed: 1 } })
    expect(await refusedText()).toMatch(/^\xef\xbb\xbfrefused_because,external_id,email\n.*[^-],1,none\n$/)
    const long = await importCsv('external_id,email\n1,a@example.com,x\n', ...args)
    expect(long.counts).toMatchObject({ failed: 1, refused_file: 'people.refused-2.csv' })
  })

  it.each([
    ['a prefix for a missing column', ['--prefix', 'nobody=x'], 1, /--prefix nobody: /],
    ['a prefix for a number', ['--prefix', 'age=x'], 1, /--prefix age: only texts/],
    ['a constant for an unknown field', ['--set', 'kind=x'], 1, /--set attribute_values\.kind=/],
    ['a constant for an existing column', ['--set', 'age=1'], 1, /columns age and --set age are both/],
    ['a prefix without a text', ['--prefix', 'age'], 2, /name=value/],
    ['an unknown encoding', ['--encoding', 'klingon'], 2, /windows-1252/],
  ])('refuses %s and imports nothing', async (_, args, code, pattern) => {
    const refused = await importCsv('external_id,age\na,1\n', ...args)
    expect(refused.code).toBe(code)
    expect(refused.stderr).toMatch(pattern)
    expect((await client.people.list().page()).items).toEqual([])
  })

  it.each([
    ['latin1', Buffer.from('external_id,first_name\na,J\xf6rg\n', 'latin1')],
    ['windows-1252', Buffer.from('external_id,first_name\na,J\xf6rg\n', 'latin1')],
    ['utf-16le', Buffer.from('\ufeffexternal_id,first_name\na,Jörg\n', 'utf16le')],
    ['UTF-16BE', Buffer.from('\ufeffexternal_id,first_name\na,Jörg\n', 'utf16le').swap16()],
  ])('reads a file encoded in %s', async (encoding, content) => {
    expect(await importCsv(content, '--encoding', encoding)).toMatchObject({ code: 0, counts: { created: 1 } })
    expect(await client.people.get('a')).toMatchObject({ first_name: 'Jörg' })
  })

  it('finds the encoding of a file and of its names from the bytes, and says if it is not UTF-8', async () => {
    const content = 'external_id,Größe\na,L\n'
    expect((await importCsv(content, '--attributes', 'rest')).counts).toMatchObject({ created: 1 })
    expect((await client.people.get('a')).attribute_values).toEqual({ Größe: 'L' })
    const { stderr, counts } = await importCsv(Buffer.from(content, 'latin1'), '--attributes', 'rest')
    expect(counts).toMatchObject({ unchanged: 1 })
    expect(stderr).toContain('people.csv is not UTF-8, and was read as windows-1252.')
    for (const utf16 of [Buffer.from(content, 'utf16le'), Buffer.from(`\ufeff${content}`, 'utf16le').swap16()])
      expect((await importCsv(utf16, '--attributes', 'rest')).counts).toMatchObject({ unchanged: 1 })
  })

  it('imports a corrected file of refused lines under the options of the first file', async () => {
    const args = ['--encoding', 'windows-1252', '--skip-lines', '2', '--map', 'Nummer=external_id']
    const first = 'sep=;\nNummer;first_name;email\n1;"Zoë; ""Z""";none\n2;Jörg;jorg@example.com\n3;"Zoë" ;z\n'
    expect((await importCsv(Buffer.from(first, 'latin1'), ...args)).counts).toMatchObject({ created: 1, failed: 2 })
    const refused = await readFile(join(directory, 'people.refused.csv'), 'utf8')
    expect(refused).toMatch(/line 5: has a character between a closing quote and the next separator/)
    // A spreadsheet writes its own separator, and the service may refuse a corrected file again.
    await writeFile(join(directory, 'people.refused.csv'), refused.replace('none', 'zoe@example.com'))
    const environment = { KITH_URL: service.address, KITH_TOKEN: token }
    const again = ['import', 'people', 'people.refused.csv', ...args]
    const { stderr } = await runInProcess(again, environment, directory)
    expect(stderr).toMatch(/1 created, 0 updated, 0 unchanged, 1 refused\n/)
    expect(stderr).toContain('--skip-lines skipped none of the lines that were refused before.')
    const twice = await readFile(join(directory, 'people.refused.refused.csv'), 'utf8')
    expect(twice.split('\n')[1]).toMatch(/^line 3: .*;3;"Zoë" ;z$/)
    await writeFile(join(directory, 'people.refused.refused.csv'), twice.replace('"Zoë" ;z', '"Zoë";z@example.com'))
    const third = ['import', 'people', 'people.refused.refused.csv', ...args]
    expect(await runInProcess(third, environment, directory)).toMatchObject({ code: 0 })
    expect(await client.people.get('1')).toMatchObject({ first_name: 'Zoë; "Z"', email: 'zoe@example.com' })
    expect(await client.people.get('3')).toMatchObject({ first_name: 'Zoë' })
  })

  it('refuses a record with malformed quotes, and stores no quote as a part of a value', async () => {
    const malformed = [String.raw`b,"Mary \"Molly\"",1`, 'c, "Ann" ,1', 'd,"open,1\ne,E,2\n']
    const text = `external_id,first_name,age\na,"A ""Q""",1\n${malformed.join('\n')}`
    expect((await importCsv(text)).counts).toMatchObject({ received: 4, created: 1, failed: 3 })
    const refused = await refusedText()
    for (const record of malformed) expect(refused).toContain(record)
    expect((await client.people.list().all()).map(({ first_name }) => first_name)).toEqual(['A "Q"'])
  })

  it('reads a decimal comma, words for yes, no and nothing, and the separator of a first line, and finds the mark from the cells', async () => {
    await client.people.create({ external_id: 'b', first_name: 'Kept', attribute_values: { age: 3, member: true } })
    const text =
      'sep=;\r\nexternal_id;first_name;age;member;consents.1.email\r\na;A;-1,50;Ja;nein\r\nb;NULL;\\N;n/a;null\r\n'
    const words = ['--true-words', 'ja', '--false-words', 'nein,non', '--null-words', 'null,\\n', '--null-words', 'N/A']
    expect((await importCsv(text, '--decimal', ',', ...words)).counts).toMatchObject({ created: 1, unchanged: 1 })
    expect(await client.people.get('a')).toMatchObject({
      attribute_values: { age: -1.5, member: true },
      email_consent: false,
    })
    const cleared = await importCsv(text, '--decimal', ',', ...words, '--empty', 'null')
    expect(cleared.counts).toMatchObject({ unchanged: 1, updated: 1 })
    expect(await client.people.get('b')).toMatchObject({ first_name: null, attribute_values: {} })
    const found = await importCsv('external_id,age\nc,"1,5"\nd,"1.000,5"\n')
    expect(found.counts).toMatchObject({ created: 2 })
    expect(await client.people.get('d')).toMatchObject({ attribute_values: { age: 1000.5 } })
    expect((await importCsv('external_id;age\nc;1,5\n', '--decimal', '.')).counts).toMatchObject({ failed: 1 })
    expect((await importCsv('external_id;age\nc;1.5\n', '--decimal', ',')).counts).toMatchObject({ failed: 1 })
    expect(await importCsv(text, '--decimal', ',', '--list-separator', ',')).toMatchObject({ code: 2 })
  })

  it('takes missing last cells as absent and ignores empty cells behind the last column', async () => {
    await client.people.create({ external_id: 'a', first_name: 'Kept', attribute_values: { age: 3 } })
    const text = 'external_id,age,first_name,,\na\nb,1,B,,,,\nc,2,C,,x\n'
    expect((await importCsv(text, '--empty', 'null')).counts).toMatchObject({ created: 1, unchanged: 1, failed: 1 })
    expect(await client.people.get('a')).toMatchObject({ first_name: 'Kept', attribute_values: { age: 3 } })
    expect(await refusedText()).toContain('line 4: has 5 cells, but the header has 3')
  })

  it('reports that the file is not in the given encoding', async () => {
    const { code, stderr } = await importCsv(Buffer.from([0x61, 0xff, 0x0a]), '--encoding', 'utf-8')
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining('is not encoded in utf-8') })
  })

  it('maps columns by the header and converts each cell to its type', async () => {
    const text = `\ufeffexternal_id;first_name;date_of_birth;age;member;since;seen;extra;tags;friend;consents.1.email;sms_consent
a;"Ä ""q""
b";31.12.1999;-1.5;yes;1999-1-2;31.12.1999 23:59 +0100;{"a":[1]};x|y z;b;no;1
"b";B;;;;;;;;;;\r\n;;;;;;;;;;;\n`
    expect(await importCsv(text)).toMatchObject({ code: 0, counts: { received: 2, created: 2, failed: 0 } })
    expect(await client.people.get('a')).toMatchObject({
      first_name: 'Ä "q"\nb',
      date_of_birth: '1999-12-31',
      email_consent: false,
      sms_consent: true,
      attribute_values: {
        age: -1.5,
        member: true,
        since: '1999-01-02',
        seen: '1999-12-31T23:59:00+01:00',
        extra: { a: [1] },
        tags: ['x', 'y z'],
        friend: 'b',
      },
    })
  })

  it('reads the evidence of an answer, and refuses evidence without an answer', async () => {
    const columns = ['', '.collected_at', '.method', '.source', '.ip', '.user_agent', '.reference']
    const header = `external_id,${columns.map(column => `consents.1.email${column}`).join()}\n`
    const text = `${header}a,yes,2020-01-01 12:00 +0100,paper,the fair,192.0.2.7,,17\nb,,2020-01-01T00:00:00Z,,,,,\nc,,,,,,,\n`
    expect((await importCsv(text)).counts).toMatchObject({ created: 2, failed: 1 })
    expect(await refusedText()).toContain(
      'consents.1.email.collected_at needs an answer in the column consents.1.email',
    )
    const [email] = (await client.people.get('a')).consents
    expect(email).toMatchObject({ state: true, answered_at: '2020-01-01T11:00:00.000Z', method: 'paper' })
    expect((await importCsv(text)).counts).toMatchObject({ unchanged: 2, failed: 1 })
  })

  it('adds constant evidence to the records that have an answer', async () => {
    const text = 'external_id,consents.1.email\na,yes\nb,\n'
    const constants = ['--set', 'consents.1.email.method=import', '--set', 'consents.1.email.source=list.csv']
    expect((await importCsv(text, ...constants)).counts).toMatchObject({ created: 2, failed: 0 })
    const methodOf = async (id: string) => (await client.people.get(id)).consents[0]!.method
    expect([await methodOf('a'), await methodOf('b')]).toEqual(['import', undefined])
  })

  it('refuses ambiguous dates and times without --date-order and --offset', async () => {
    const text = 'external_id,since,seen\na,01/02/1999,1999-12-31 10:00\nb,31/12/1999,1999-12-31T10:00Z\n'
    expect((await importCsv(text)).counts).toMatchObject({ created: 1, failed: 1 })
    expect(await refusedText()).toMatch(
      /^\xef\xbb\xbfrefused_because,external_id,since,seen\n"?line 2: .*--date-order.*--offset/,
    )
    const explicit = await importCsv(text, '--date-order', 'mdy', '--offset', 'Z')
    expect(explicit.counts).toMatchObject({ created: 1, failed: 1 })
    expect((await client.people.get('a')).attribute_values).toMatchObject({
      since: '1999-01-02',
      seen: '1999-12-31T10:00:00Z',
    })
  })

  it('refuses a local time that clocks are put forward over', async () => {
    const rows = ['a,2026-03-29 02:30', 'b,2026-03-29 01:59:59.999', 'c,2026-03-29 03:00', 'd,2026-10-25 02:30']
    const { counts } = await importCsv(`external_id,seen\n${rows.join('\n')}\n`, '--time-zone', 'Europe/Berlin')
    expect(counts).toMatchObject({ created: 3, failed: 1 })
    expect(await refusedText()).toContain('does not exist in the time zone: clocks are put forward over it')
    const seen = async (id: string) => (await client.people.get(id)).attribute_values.seen
    // Clocks show the time of d twice. The import takes the first one.
    expect([await seen('b'), await seen('c'), await seen('d')]).toEqual([
      '2026-03-29T01:59:59.999+01:00',
      '2026-03-29T03:00:00+02:00',
      '2026-10-25T02:30:00+02:00',
    ])
  })

  it('keeps the stored value for an empty cell, or clears it with --empty null', async () => {
    await client.people.create({ external_id: 'a', first_name: 'Ada', attribute_values: { age: 1 } })
    expect((await importCsv('external_id,first_name,age\na,,\n')).counts).toMatchObject({ unchanged: 1 })
    expect((await importCsv('external_id,first_name,age\na,,\n', '--empty', 'null')).counts).toMatchObject({
      updated: 1,
    })
    expect(await client.people.get('a')).toMatchObject({ first_name: null, attribute_values: {} })
  })

  it('refuses an unknown column until it is mapped, imported as an attribute, or ignored', async () => {
    const text = 'ID\tVorname\tColour\tnotes\na\tAda\tred\tx\n'
    const { code, counts, stderr } = await importCsv(text)
    expect({ code, counts }).toMatchObject({ code: 1, counts: { received: 0 } })
    expect(stderr).toMatch(/"ID", "Colour", "notes".*--map.*--attributes rest.*first_name/)
    const maps = ['--map', 'ID=external_id', '--ignore', 'notes', '--attributes', 'rest']
    const mapped = await importCsv(text, ...maps)
    expect(mapped.counts).toMatchObject({ created: 1 })
    expect(mapped.stderr).toContain('Read by their names: Vorname as first_name.')
    expect(await client.people.get('a')).toMatchObject({ first_name: 'Ada', attribute_values: { Colour: 'red' } })
    expect((await importCsv(text, '--map', 'Id=external_id')).stderr).toContain('no column Id')
    expect((await importCsv('age,attribute_values.age\n1,2\n')).stderr).toMatch(
      /age and attribute_values\.age are both/,
    )
  })

  it('refuses records with surplus cells and with cells that are not UTF-8, and imports them after they are corrected', async () => {
    const wrong = Buffer.concat([
      Buffer.from('external_id,first_name,age,member\na,Ä,1,no\nb,B,1,yes,5\nc,'),
      Buffer.from([0xe4]),
      Buffer.from(',many,perhaps\nd,a "quoted" D,1,no\n'),
    ])
    expect((await importCsv(wrong)).counts).toMatchObject({ created: 2, failed: 2 })
    expect((await client.people.get('d')).first_name).toBe('a "quoted" D')
    const refused = await refusedText()
    expect(refused.split('\n')[1]).toMatch(/^"line 3: has 5 cells, but the header has 4",b,/)
    expect(refused).toContain('c,\xe4,many,perhaps')
    const mended = Buffer.from(refused.replace('yes,5', 'yes').replace('\xe4,many,perhaps', 'C,3,no'), 'latin1')
    expect((await importCsv(mended)).counts).toMatchObject({ created: 2, failed: 0 })
  })
})

describe('a CSV file of kith export', () => {
  it('restores the same entities when it is imported, including values that no cell can represent', async () => {
    const bodies = [
      { external_id: 'ada', first_name: 'A, "b"\nc', date_of_birth: '1999-12-31', push_notification_consent: false },
      {
        external_id: 'bob',
        consents: [
          { consent_type_id: 1, channel: 'sms' as const, state: false },
          {
            ...{ consent_type_id: 1, channel: 'email' as const, state: true, method: 'paper' as const },
            ...{ collected_at: '2020-01-01T01:00:00+01:00', text_version: 1 },
          },
        ],
        attribute_values: {
          ...{ age: 0.5, member: false, since: '2020-02-29', seen: '2020-02-29T00:00:00.123Z', extra: 'text' },
          ...{ tags: ['a|b', '[c'], friend: 'ada', undeclared: { deep: [1, null, ''] }, empty: '' },
        },
      },
      { external_id: 'cy', attribute_values: { tags: ['x', 'y'], extra: [], friend: 'cy' } },
    ]
    await client.schema.consentTypes.addText(1, { language: 'en', text: 'Yes.' })
    for (const body of bodies) await client.people.create(body)
    await client.people.create({ external_id: 'dan', attribute_values: { friend: 'ghost' } })
    await client.people.delete('dan')
    const environment = { KITH_URL: service.address, KITH_TOKEN: token }
    const args = ['export', 'people', '--output', 'out.csv.gz']
    expect(await runInProcess(args, environment, directory)).toMatchObject({ code: 0, stdout: '' })
    const before = await Promise.all(bodies.map(({ external_id }) => client.people.get(external_id)))
    for (const { external_id } of [...bodies, { external_id: 'ghost' }]) await client.people.delete(external_id)
    expect(await runInProcess(['import', 'people', 'out.csv.gz'], environment, directory)).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/3 created.*\nSkipped 1 placeholder, which/),
    })
    const bare = ({ id, version, created_at, updated_at, ...rest }: (typeof before)[number]) => rest
    const after = await Promise.all(bodies.map(({ external_id }) => client.people.get(external_id)))
    expect(after.map(bare)).toEqual(before.map(bare))
  })
})

it('kith export says in its help that CSV escapes no formula, and escapes none', async () => {
  await client.people.create({ external_id: 'eve', first_name: '=1+1' })
  const environment = { KITH_URL: service.address, KITH_TOKEN: token }
  const { stdout } = await runInProcess(['export', 'people', '--format', 'csv'], environment, directory)
  expect(stdout.split('\n')[1]).toMatch(/^eve,=1\+1,/)
  const help = await runInProcess(['export', '--help'], environment, directory)
  expect(help.stdout.replace(/\s+/g, ' ')).toContain(
    'escapes nothing else: a text that begins with =, +, - or @ is a formula',
  )
})

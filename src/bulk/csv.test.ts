import { beforeAll, describe, expect, it } from 'vitest'
import { importLines } from '../../test/support/lines.ts'
import { useService } from '../../test/support/service.ts'
import { useSharedShop } from '../../test/support/shop.ts'

const service = useService()
const shop = useSharedShop(
  service,
  { key: 'score', owner: 'people', type: 'number' },
  { key: 'vip', owner: 'people', type: 'boolean' },
  { key: 'seen', owner: 'people', type: 'date' },
  { key: 'tags', owner: 'people', type: 'text', cardinality: 'many' },
  { key: 'at', owner: 'people', type: 'datetime' },
  'orders',
)
const people = '/v1/people/import'
const csv = { 'Content-Type': 'text/csv; charset=whatever' }
const importCsv = (query: string, body: string | Uint8Array, path = people) =>
  importLines(shop, `${path}${query}`, body, csv)
const get = (name: string, path = '/v1/people') => shop.ok('GET', `${path}/${name}`)
/** The error that ended an import. Its line takes the place of the counts. */
const faultOf = async (query: string, body: string | Uint8Array) =>
  (await importCsv(query, body)).counts as unknown as { error: string; message: string; progress: object }

beforeAll(() =>
  shop.ok('POST', '/v1/schema/consent-types', {
    key: 'news',
    name: 'News',
    channels: [{ channel: 'email', is_default: true }],
  }),
)

describe('an import of CSV', () => {
  it('reads a file of a German Excel as its options say', async () => {
    const text =
      'sep=;\r\nexternal_id;first_name;score;vip;seen;tags;consents.1.email\r\nzoe;Zoë;1234,5;ja;01.02.2024;a+b;nein\r\nleer;;NULL\r\n'
    const query = '?decimal=,&true_words=ja&false_words=nein&null_words=none,NULL&date_order=dmy&list_separator=%2B'
    const { counts, refused } = await importCsv(query, Buffer.from(text, 'latin1'))
    expect([refused, counts]).toEqual([[], { received: 2, created: 2, updated: 0, unchanged: 0, failed: 0 }])
    expect(await get('zoe')).toMatchObject({
      first_name: 'Zoë',
      attribute_values: { score: 1234.5, vip: true, seen: '2024-02-01', tags: ['a', 'b'] },
      email_consent: false,
    })
    expect((await get('leer')).attribute_values).toEqual({})
  })

  it('stores what the same lines of JSON store, and counts as they do', async () => {
    const rows = Array.from({ length: 3_000 }, (_, n) => ({
      external_id: `same${n}`,
      last_name: `L "${n}", x`,
      score: n,
    }))
    const lines = rows
      .map(({ score, ...row }) => `${JSON.stringify({ ...row, attribute_values: { score } })}\n`)
      .join('')
    const cells = rows.map(row => `${row.external_id},"${row.last_name.replaceAll('"', '""')}",${row.score}\n`).join('')
    const head = 'external_id,last_name,attribute_values.score\n'
    expect((await importCsv('', head + cells)).counts).toMatchObject({ received: 3_000, created: 3_000 })
    expect((await importLines(shop, people, lines)).counts).toMatchObject({ received: 3_000, unchanged: 3_000 })
    expect((await importCsv('?dry_run=true', head + cells)).counts).toMatchObject({ received: 3_000, unchanged: 3_000 })
  })

  it('refuses a record with the line where it begins and the column, and stores the others', async () => {
    const body =
      'external_id,first_name,score\nok,"two\nlines",1\nbad,X,many\ntoo,many,1,cells\nmal,"x"y,1\nlast,Y,\nbirth,Z,7\n'
    const { counts, refused } = await importCsv('', body)
    expect(counts).toMatchObject({ received: 6, created: 3, failed: 3 })
    expect(refused.map(({ line, error, message, details }) => [line, error, details[0]?.path ?? message])).toEqual([
      [4, 'invalid_parameter', 'attribute_values.score'],
      [5, 'invalid_parameter', 'The record has 4 cells, but the header has 3.'],
      [6, 'invalid_parameter', expect.stringContaining('has a character between a closing quote')],
    ])
    expect((await get('ok')).first_name).toBe('two\nlines')
  })

  it('leaves out the read-only columns and the placeholders of an exported table', async () => {
    const rest = 'version,created_at,updated_at\nback,Back,+391,00000000-0000-7000-8000-000000000000,'
    const body = `external_id,first_name,mobile_e164,id,state,${rest}active,3,,\nlinked,,,,placeholder,1,,\n`
    const { counts, refused } = await importCsv('', body)
    expect([refused, counts]).toMatchObject([[], { received: 1, created: 1 }])
    expect(await get('back')).toMatchObject({ first_name: 'Back', version: 1 })
  })

  it('names the parameters of the query where it refuses a cell', async () => {
    const { refused } = await importCsv(
      '',
      'external_id,score,vip,seen,attribute_values.at\ndot,1.5,,,\nhint,"1,5",maybe,01/02/1999,2020-01-01 10:00\n',
    )
    expect(refused[0]?.details.map(({ message }) => message)).toEqual([
      expect.stringMatching(/For a decimal comma use decimal=,$/),
      expect.stringMatching(/name the words with true_words and false_words$/),
      expect.stringMatching(/Use date_order=dmy or date_order=mdy$/),
      expect.stringMatching(/has no offset\. Write one, such as Z or \+01:00$/),
    ])
  })

  it('imports records of a stack, and columns that are no fields if it is told to', async () => {
    const path = '/v1/stacks/orders'
    await importCsv('?attributes=rest', 'external_id\tNote to self\no1\tHello\n', `${path}/import`)
    expect((await get('o1', path)).attribute_values).toEqual({ 'Note to self': 'Hello' })
  })

  it.each([
    ['an unknown column', '', 'external_id,nmae\nx,y\n', 'The column "nmae" is not a field. Rename or remove'],
    ['two unknown columns', '', 'nmae,mial\nx,y\n', 'The columns "nmae", "mial" are not fields. Rename or remove'],
    [
      'a column twice',
      '',
      'external_id,email,email\nx,y,z\n',
      'The columns email and email are both email. Rename or remove one of them.',
    ],
    ['an empty body', '', '', 'The file is empty.'],
    [
      'an encoding that it does not have',
      '?encoding=utf-8',
      Buffer.from('external_id\nZo\xeb\n', 'latin1'),
      'The body is not encoded in utf-8. Give the parameter encoding.',
    ],
    [
      'a record without an end',
      '',
      `external_id,first_name\nx,"${'y'.repeat(1_100_000)}`,
      'The record that begins in line 2 does not end.',
    ],
    [
      'a comma as decimal mark and separator',
      '?decimal=,&list_separator=,',
      'external_id\nx\n',
      'A comma cannot be both',
    ],
  ])('ends with a message about %s, and stores nothing', async (_, query, body, message) => {
    const before = await shop.head()
    expect(await faultOf(query, body)).toMatchObject({
      error: 'invalid_parameter',
      message: expect.stringContaining(message),
    })
    expect(await shop.head()).toBe(before)
  })

  it.each(['decimal=,', 'true_words=ja', 'encoding=utf-8', 'attributes=rest'])(
    'has the option %s, which JSON lines have not',
    async option => {
      const { status, body } = await shop.send('POST', `${people}?${option}`, '{}\n', {
        'Content-Type': 'application/x-ndjson',
      })
      expect([status, body.message]).toEqual([
        400,
        `${option.split('=')[0]} applies only to a body with Content-Type: text/csv.`,
      ])
    },
  )
})

import { beforeAll, describe, expect, it } from 'vitest'
import { searchFollower } from '../src/entities/indexes/search-index.ts'
import { runInProcess } from '../test/support/command.ts'
import { follow } from '../test/support/followers.ts'
import { useOwnService } from '../test/support/service.ts'
import { useSharedShop } from '../test/support/shop.ts'

const service = useOwnService()
const organization = useSharedShop(service, { key: 'total', owner: 'orders', type: 'number' })
beforeAll(async () => {
  const { people } = organization.client
  await people.create({ external_id: 'ada', first_name: 'Ada', last_name: 'Lovelace', language: 'en' })
  await people.create({ external_id: 'grace', first_name: 'Grace', last_name: 'Hopper', language: 'en' })
  await people.create({ external_id: 'rosa', first_name: 'Rosa', attribute_values: { shoe: 39, nickname: 'R' } })
  const orders = organization.client.stack('orders')
  for (const [external_id, total, country] of [
    ['o-1', 9_007_199_254_740_990, 'it'],
    ['o-2', 13, 'it'],
    ['o-3', 5.25, 'de'],
    ['o-4', 1, null],
  ] as const)
    await orders.create({ external_id, attribute_values: { total, ...(country && { country }) } })
})

const kith = (...words: string[]) => runInProcess(words, { KITH_URL: service.address, KITH_TOKEN: organization.token })
const output = async (...words: string[]) => {
  const { code, stdout, stderr } = await kith(...words)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return stdout
}

describe('kith segments', () => {
  it('creates, shows, uses and deletes a segment', async () => {
    const created = await kith('segments', 'create', 'english', '--name', 'English', '--where', 'language=en')
    expect(created).toEqual({ code: 0, stdout: '', stderr: 'Created the segment english.\n' })
    expect(await output('segments', 'get', 'english')).toBe('{\n  "language": "en"\n}\n')
    expect(await output('segments', 'list', '--format', 'csv')).toBe(
      'key,name,filter\nenglish,English,"{""language"":""en""}"\n',
    )
    const people = await kith(
      'segments',
      'people',
      'english',
      '--format',
      'table',
      '--fields',
      'external_id,first_name',
    )
    expect(people.stdout).toBe('external_id  first_name\ngrace        Grace\nada          Ada\n')
    expect(people.stderr).toBe('2 people\n')
    expect(
      await output('segments', 'people', 'english', '--fields', 'external_id', '--limit', '1', '--format', 'csv'),
    ).toBe('external_id\ngrace\n')
    expect(await output('people', 'count', '--segment', 'english')).toBe('2\n')
    expect(await output('people', 'count', '--segment', 'english', '--where', 'last_name=Hopper')).toBe('1\n')
    await kith('segments', 'create', 'hoppers', '--segment', 'english', '--where', 'last_name=Hopper')
    expect(await output('people', 'count', '--segment', 'hoppers')).toBe('1\n')
    const refused = await kith('segments', 'delete', 'english', '--yes')
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('hoppers')])
    expect((await kith('segments', 'delete', 'hoppers', '--yes')).code).toBe(0)
    expect((await kith('segments', 'delete', 'english', '--yes')).stderr).toBe('Deleted the segment english.\n')
    expect((await kith('segments', 'people', 'english')).code).toBe(1)
  })

  it('refuses a segment without a condition', async () => {
    expect(await kith('segments', 'create', 'all')).toMatchObject({ code: 2, stdout: '' })
  })
})

describe('kith aggregate', () => {
  it('prints groups with all digits of their numbers', async () => {
    const words = ['orders', '--group-by', 'attribute_values.country', '--measure', 'count']
    const sums = [...words, '--measure', 'sum:attribute_values.total']
    expect(await output('aggregate', ...sums, '--format', 'csv')).toBe(
      'attribute_values.country,count,sum:attribute_values.total\nde,1,5.25\nit,2,9007199254741003\n,1,1\n',
    )
    const lines = (await output('aggregate', ...sums, '--format', 'ndjson')).trimEnd().split('\n')
    expect(lines[1]).toBe('{"attribute_values.country":"it","count":2,"sum:attribute_values.total":9007199254741003}')
    const table = await kith('aggregate', ...words, '--format', 'table')
    expect(table.stdout).toMatch(/^attribute_values\.country +count\nde +1\nit +2\n +1\n$/)
    expect(table.stderr).toMatch(/^3 groups, at change \d+\n$/)
  })

  it('sorts, tests and cuts the groups', async () => {
    const total = 'attribute_values.total'
    const words = ['orders', '--group-by', 'attribute_values.country', '--measure', 'count', '--format', 'csv']
    const medians = [...words, '--measure', `percentile:0.5:${total}`, '--having', `percentile:0.5:${total}>1`]
    expect(await output('aggregate', ...medians)).toBe(
      `attribute_values.country,count,percentile:0.5:${total}\nde,1,5.25\nit,2,4503599627370501.5\n`,
    )
    expect(await output('aggregate', ...words, '--sort', 'count:desc', '--limit', '1')).toBe(
      'attribute_values.country,count\nit,2\n',
    )
    const last = ['--sort', 'attribute_values.country:desc', '--having', 'count=1']
    expect(await output('aggregate', ...words, ...last)).toBe('attribute_values.country,count\nde,1\n,1\n')
  })

  it('counts people by a time of a zone, under a condition', async () => {
    const { created_at } = await organization.client.people.get('ada')
    const words = ['--group-by', 'created_at:year', '--time-zone', 'Europe/Berlin', '--where', 'language=en']
    const [row] = (await output('aggregate', 'people', ...words)).split('\n')
    const year = new Intl.DateTimeFormat('en', { year: 'numeric', timeZone: 'Europe/Berlin' })
    expect(JSON.parse(row!)).toEqual({ 'created_at:year': `${year.format(new Date(created_at))}-01-01`, count: 2 })
  })

  it.each([
    ['an unknown unit', ['--group-by', 'created_at:hour'], 2],
    ['an unknown operation', ['--measure', 'mode:total'], 2],
    ['a percentile without its part', ['--measure', 'percentile:attribute_values.total'], 2],
    ['an order by what is not measured', ['--sort', 'sum:attribute_values.total'], 2],
    ['a test of what is not measured', ['--having', 'sum:attribute_values.total>1'], 2],
    ['a test without an operator', ['--having', 'count'], 2],
    ['a field that is no number', ['--measure', 'sum:last_name'], 1],
  ])('refuses %s', async (_, words, code) => {
    expect(await kith('aggregate', 'people', ...words)).toMatchObject({ code, stdout: '' })
  })
})

describe('kith observed', () => {
  it('lists the keys, and declares one after a preview', async () => {
    const listed = await kith('observed', 'list', 'people', '--format', 'table')
    expect(listed.code).toBe(0)
    expect(listed.stdout).toMatch(
      /^key +types +count +first_seen +last_seen +declarable\nnickname +text 1 +1 .* true\nshoe +number 1 /,
    )
    const declare = ['observed', 'declare', 'people', 'shoe', '--type']
    const preview = await output(...declare, 'text', '--dry-run')
    expect(preview).toMatch(
      /^Nothing has changed\. Stored values that fit: 0, that do not: 1\.\n {2}types of those that do not: number 1\n/,
    )
    expect(await output(...declare, 'number')).toBe(
      'Declared shoe of people. Stored values that fit: 1, that do not: 0.\n',
    )
    expect((await kith(...declare, 'number')).code).toBe(1)
    const left = (await output('observed', 'list', 'people', '--format', 'ndjson')).trimEnd().split('\n')
    expect(left.map(line => JSON.parse(line).key)).toEqual(['nickname'])
    expect(await output('observed', 'list', 'people', '--all', '--format', 'ndjson')).toBe(`${left.join('\n')}\n`)
  })
})

describe('kith people search', () => {
  it('prints the best match first, or only some of its fields', async () => {
    await follow(service.db, [searchFollower()])
    const [row] = (await output('people', 'search', 'ada lovlace')).split('\n')
    expect(JSON.parse(row!)).toEqual(await organization.client.people.get('ada'))
    const words = ['people', 'search', 'hopper', '--fields', 'external_id,last_name']
    expect(await output(...words, '--format', 'ndjson')).toBe('{"external_id":"grace","last_name":"Hopper"}\n')
    expect(await output(...words, '--format', 'csv')).toBe('external_id,last_name\ngrace,Hopper\n')
    expect(await kith('people', 'search', ' ')).toMatchObject({ code: 0, stdout: '' })
    expect(await kith('people', 'search', 'a b c d e f g h i')).toMatchObject({ code: 1, stdout: '' })
  })
})

describe('kith search', () => {
  it('prints the hits of several owners with their owner', async () => {
    const { send } = organization
    await send('POST', '/v1/schema/stacks', { key: 'tickets', kind: 'item' })
    await send('POST', '/v1/stacks/tickets', { external_id: 'ada', attribute_values: { title: 'Lost' } })
    await follow(service.db, [searchFollower()])
    const both = ['--owner', 'people', '--owner', 'tickets']
    const lines = (await output('search', 'ada', ...both, '--format', 'ndjson')).trimEnd().split('\n')
    expect(lines.map(line => JSON.parse(line)).map(({ owner, entity }) => [owner, entity.external_id])).toEqual([
      ['people', 'ada'],
      ['tickets', 'ada'],
    ])
    expect(await output('search', 'ada', ...both, '--format', 'csv')).toMatch(
      /^owner,external_id,first_name,last_name,email,attribute_values,created_at\npeople,ada,Ada,Lovelace,.*,,.*\ntickets,ada,,,,.*Lost.*\n$/,
    )
    const one = await kith('search', 'ada', ...both, '--limit', '1', '--format', 'ndjson')
    expect([one.code, one.stdout.trimEnd().split('\n').length]).toEqual([0, 1])
    expect((await kith('search', 'lovlace')).stdout.trimEnd().split('\n')).toHaveLength(1)
    expect(await kith('search', '…')).toMatchObject({ code: 0, stdout: '' })
    expect((await kith('search', 'ada')).stderr).toMatch(/^Searched: people, .*tickets.*\.\n/)
    expect((await kith('search', 'ada', '--owner', 'tickets', '--format', 'table')).stderr).toMatch(
      /^Searched: tickets\./,
    )
    expect((await kith('search', 'ada', '--owner', 'none')).stderr).toContain('/owners/0')
  })
})

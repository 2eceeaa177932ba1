import { beforeAll, describe, expect, it } from 'vitest'
import { runInProcess } from '../test/support/command.ts'
import { useService } from '../test/support/service.ts'
import { useSharedShop } from '../test/support/shop.ts'

const service = useService()
const organization = useSharedShop(service)
beforeAll(async () => {
  for (const person of [
    { external_id: 'shop-1', first_name: 'Ada', last_name: 'Lovelace', email: 'ada@example.com' },
    { external_id: 'news-1', email: 'ADA@example.com' },
    { external_id: 'a\u202eb', mobile_number: '+393331234567' },
    { external_id: 'support-1', mobile_prefix: '39', mobile_number: '333 123 4567' },
  ])
    expect((await organization.send('POST', '/v1/people', person)).status).toBe(201)
})

const run = (...args: string[]) =>
  runInProcess(['duplicates', ...args], { KITH_URL: service.address, KITH_TOKEN: organization.token })

describe('kith duplicates', () => {
  it('lists the groups as a table, with characters that change the direction made visible', async () => {
    const { code, stdout, stderr } = await run()
    expect([code, stderr.trim()]).toEqual([0, '2 groups'])
    const today = new Date().toISOString().slice(0, 10)
    expect(stdout.split('\n')).toEqual([
      '0.95  2 people share email ada@example.com',
      `  shop-1  Ada Lovelace  ada@example.com      since ${today}`,
      `  news-1                ADA@example.com      since ${today}`,
      '',
      '0.9  2 people share mobile +393331234567',
      expect.stringContaining('a\\u{202e}b'),
      expect.stringContaining('support-1'),
      '',
      '',
    ])
  })

  it('lists them as lines of JSON, by the keys and up to the number that are asked for', async () => {
    const parse = (text: string) =>
      text
        .trimEnd()
        .split('\n')
        .map(line => JSON.parse(line))
    const all = parse((await run('--format', 'ndjson')).stdout)
    expect(all).toEqual((await organization.send('POST', '/v1/people/duplicates')).body.data.items)
    expect(parse((await run('--format', 'ndjson', '--by', 'mobile,name')).stdout)).toEqual(all.slice(1))
    expect(parse((await run('--format', 'ndjson', '--limit', '1')).stdout)).toEqual(all.slice(0, 1))
    expect((await run('--by', 'phone')).code).toBe(2)
  })
})

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
    { external_id: 'crm-1', first_name: 'a\u202eb', mobile_number: '+393331234567' },
    { external_id: 'support-1', mobile_prefix: '39', mobile_number: '333 123 4567' },
  ])
    await organization.ok('POST', '/v1/people', person)
})

const kith = (...args: string[]) => runInProcess(args, { KITH_URL: service.address, KITH_TOKEN: organization.token })
const run = (...args: string[]) => kith('duplicates', ...args)

describe('kith duplicates', () => {
  it('lists the people of the groups as a table, with characters that change the direction made visible', async () => {
    const { code, stdout, stderr } = await run('--format', 'table')
    expect([code, stderr.trim()]).toEqual([0, '2 groups'])
    const lines = stdout.trimEnd().split('\n')
    expect(lines[0]).toMatch(
      /^group +score +size +shared +external_id +name +email +mobile +date_of_birth +created_at$/,
    )
    const shared = 'email ada@example\\.com'
    expect(lines[1]).toMatch(new RegExp(`^1 +0\\.95 +2 +${shared} +shop-1 +Ada Lovelace +ada@example\\.com +\\d{4}-`))
    expect(lines[2]).toMatch(new RegExp(`^1 +0\\.95 +2 +${shared} +news-1 +ADA@example\\.com +\\d{4}-`))
    expect(lines[3]).toMatch(/^2 +0\.9 +2 +mobile \+393331234567 +crm-1 +a\\u\{202e\}b +/)
    expect(lines).toHaveLength(5)
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

it('kith set-aside takes people out of the duplicates, and back', async () => {
  const added = await kith('set-aside', 'add', 'shop-1', 'news-1', '--json')
  expect([added.code, added.stderr]).toEqual([0, expect.stringContaining('are set aside')])
  const { id } = JSON.parse(added.stdout)
  expect((await run('--format', 'csv')).stdout).not.toContain('shop-1')
  expect((await kith('set-aside', 'list', '--format', 'csv')).stdout).toContain(`${id},shop-1 news-1,tests,`)
  expect((await kith('set-aside', 'end', id)).code).toBe(0)
  expect((await run('--format', 'csv')).stdout).toContain('shop-1')
  expect((await kith('set-aside', 'end', id)).code).toBe(1)
})

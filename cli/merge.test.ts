import { beforeEach, describe, expect, it } from 'vitest'
import { runInProcess } from '../test/support/command.ts'
import { useService } from '../test/support/service.ts'
import { useShop } from '../test/support/shop.ts'

const service = useService()
const organization = useShop(service, 'referrer')
beforeEach(async () => {
  const { people } = organization.client
  const consents = (state: boolean, collected_at: string) => [
    { consent_type_id: 1, channel: 'email' as const, state, collected_at },
  ]
  await people.create({ external_id: 'ada', first_name: 'Ada', consents: consents(true, '2020-01-01T00:00:00Z') })
  await people.create({
    external_id: 'news',
    email: 'ada@example.org',
    attribute_values: { city: 'Rome' },
    consents: consents(false, '2020-02-01T00:00:00Z'),
  })
  await people.create({ external_id: 'fan', attribute_values: { referrer: 'news' } })
})

const run = (...args: string[]) => runInProcess(args, { KITH_URL: service.address, KITH_TOKEN: organization.token })

describe('kith merge and kith unmerge', () => {
  it('print what changes, and change nothing in a dry run', async () => {
    const news = await organization.client.people.get('news')
    const diff = [
      '  /email: null → "ada@example.org"',
      '  /email_consent: true → false',
      '  /attribute_values/city: null → "Rome"',
      `  consent 1 by email: granted at 2020-01-01T00:00:00.000Z → refused at 2020-02-01T00:00:00.000Z by ${news.id}`,
      '  links: 1 to news lead to ada, 0 of news move to ada, 0 end',
      '  identifiers that lead to ada: news',
      '',
    ]
    const dry = await run('merge', 'ada', 'news', '--dry-run')
    expect([dry.code, dry.stderr]).toEqual([0, ''])
    expect(dry.stdout.split('\n')).toEqual(['Nothing has changed. Without --dry-run: Merged news into ada.', ...diff])
    expect(await organization.client.people.get('news')).toEqual(news)
    expect((await run('merge', 'ada', 'news', '--yes')).stdout.split('\n')).toEqual([
      'Merged news into ada (merge 1).',
      ...diff,
    ])
    const undone = await run('unmerge', 'ada', 'news', '--yes')
    expect(undone.stdout.split('\n').filter(line => !line.startsWith('  /'))).toEqual([
      'Unmerged news from ada (merge 1).',
      `  consent 1 by email: refused at 2020-02-01T00:00:00.000Z by ${news.id} → granted at 2020-01-01T00:00:00.000Z`,
      '  links: 1 lead to news again, 0 of news return, 0 have no target any more',
      '  identifiers that lead to news again: news',
      '',
    ])
    expect((await organization.client.people.get('news')).id).toBe(news.id)
  })

  it('takes the values that --keep names, and refuses another word than survivor or other', async () => {
    const keep = ['--keep', 'external_id=other,attribute_values.city=survivor', '--keep', 'first_name=other']
    const { code, stdout } = await run('merge', 'ada', 'news', '--yes', ...keep)
    expect(code).toBe(0)
    expect(stdout).toContain('  /external_id: "ada" → "news"')
    expect(stdout).toContain('  /first_name: "Ada" → null')
    expect(stdout).toContain('  identifiers that lead to news: ada')
    expect(stdout).not.toContain('city')
    expect((await run('unmerge', 'ada', 'news', '--yes')).code).toBe(0)
    expect((await run('merge', 'ada', 'news', '--yes', '--keep', 'email=both')).code).toBe(2)
    const refused = await run('merge', 'ada', 'news', '--yes', '--keep', 'emial=other')
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('/keep/emial')])
  })

  it('take internal identifiers with --ids, print JSON, and exit with 1 when refused', async () => {
    const { people } = organization.client
    const [ada, news] = [await people.get('ada'), await people.get('news')]
    const { code, stdout } = await run('merge', ada.id, news.id, '--ids', '--json', '--yes')
    expect([code, JSON.parse(stdout).merged]).toEqual([0, { id: news.id, external_id: 'news' }])
    const refused = await run('merge', 'ada', 'news', '--yes')
    expect([refused.code, refused.stdout]).toEqual([1, ''])
    expect(refused.stderr).toContain('leads to the same person')
  })
})

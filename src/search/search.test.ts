import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { follow } from '../../test/support/followers.ts'
import { importLines, linesFrom } from '../../test/support/lines.ts'
import { type Organization, useOwnService } from '../../test/support/service.ts'
import { createShop } from '../../test/support/shop.ts'
import { typoLetters, withTypo } from '../../test/support/typos.ts'
import { searchFollower } from '../entities/indexes/search-index.ts'
import { type Frequencies, findPlaces } from './search.ts'
import { parseSearchText } from './search-text.ts'

const service = useOwnService()

const index = () => follow(service.db, [searchFollower({ entitiesPerBatch: 3 })])
const search = ({ send }: Pick<Organization, 'send'>, body: object, path = '/v1/people') =>
  send('POST', `${path}/search`, body)
type Item = { external_id: string | null }
const namesIn = async (organization: Organization, body: object, path?: string): Promise<(string | null)[]> => {
  const { status, body: answer } = await search(organization, body, path)
  expect([status, answer.details]).toEqual([200, undefined])
  return answer.data.items.map(({ external_id }: Item) => external_id)
}
const create = async ({ send }: Organization, body: object, path = '/v1/people') => {
  const created = await send('POST', path, body)
  expect(created.status).toBe(201)
  return created.body.data
}
const stored = (organization: Organization) =>
  service.sql(
    `select words from search_documents where organization_id = $1 union all select word from search_words where organization_id = $1
     union all select word from search_features where organization_id = $1`,
    [organization.id],
  )

const ada = {
  external_id: 'crm-17',
  first_name: 'Ada',
  last_name: 'Lovelace',
  email: 'ada.byron@engines.example',
  mobile_prefix: '+39',
  mobile_number: '333 1234567',
}

describe('a search of people', () => {
  it('finds a person by names, email, phone, external identifier and their beginnings, as reads show it', async () => {
    const shop = await service.organization()
    const person = await create(shop, ada)
    await create(shop, { external_id: 'other', first_name: 'Grace', last_name: 'Hopper' })
    await index()
    const { data } = (await search(shop, { text: 'Lovelace' })).body
    expect(data).toEqual({ items: [person], has_more: false, next_cursor: null, sequence: 2 })
    const texts = [
      'ada',
      'ADA lovelace',
      'lovelace ada',
      'Lovel',
      'l',
      'ada.byron@engines.example',
      'byron',
      'engines',
      'ada@engines',
    ]
    const identifiers = [
      'crm-17',
      'crm 17',
      'CRM',
      '+39 333 1234567',
      '0039/333/1234567',
      '3331234567',
      '333 1234',
      '+39 333',
    ]
    for (const text of [...texts, ...identifiers])
      expect([text, await namesIn(shop, { text })]).toEqual([text, ['crm-17']])
    for (const text of ['ada hopper', 'grace lovelace', 'zzz', 'crm-18', '+39 333 1234568'])
      expect([text, await namesIn(shop, { text })]).toEqual([text, []])
  })

  it('finds a number as it is written, and a phone also by its digits in one', async () => {
    const shop = await service.organization()
    await create(shop, { external_id: 'darcy', last_name: 'Darcy', mobile_prefix: '+39', mobile_number: '333 1234567' })
    for (const external_id of ['C-000123', 'CUST-000451', 'Invoice 2026-000777', 'ORD-2026-11-23', 'x-123456'])
      await create(shop, { external_id })
    await index()
    for (const [text, ...found] of [
      ['000123', 'C-000123'],
      ['C-000123', 'C-000123'],
      ['CUST 000451', 'CUST-000451'],
      ['2026-000777', 'Invoice 2026-000777'],
      ['2026 000777', 'Invoice 2026-000777'],
      ['2026-11-23', 'ORD-2026-11-23'],
      ['11-23 2026', 'ORD-2026-11-23'],
      // These are prefixes of a number, as a user types it.
      ...['333 1', '333 12', '333 123', '(333) 123-45', '0039 333', '0039 333 12', '+39 333 1'].map(typed => [
        typed,
        'darcy',
      ]),
      ['darcy 333 1234567', 'darcy'],
      ['333 1234567 darcy', 'darcy'],
      ['dracy 0039 333 1234567', 'darcy'],
      ['3 3 3 1 2 3 4 5 6 7', 'darcy'],
      ['00123456', 'x-123456'],
      ['333 1234568'],
      ['bingley 333 1234567'],
    ] as [string, ...string[]][])
      expect([text, await namesIn(shop, { text })]).toEqual([text, found])
  })

  it('finds names of scripts without spaces by any part of them, also across first and last name', async () => {
    const shop = await service.organization()
    const people = {
      wang: { last_name: '王小明' },
      xiao: { first_name: '小明', last_name: '王' },
      taro: { first_name: '太郎', last_name: '山田' },
      minsu: { first_name: '김민수' },
      kim: { first_name: '민수', last_name: '김' },
      somchai: { first_name: 'สมชาย', last_name: 'ใจดี' },
      john: { first_name: 'ジョン', last_name: 'スミス' },
      ann: { first_name: 'Ann', last_name: '李' },
    }
    for (const [external_id, names] of Object.entries(people)) await create(shop, { external_id, ...names })
    await index()
    for (const [text, ...found] of [
      ['王小明', 'wang', 'xiao'],
      ['王 小明', 'xiao', 'wang'],
      ['小明王', 'xiao'],
      ['明', 'wang', 'xiao'],
      ['小', 'wang', 'xiao'],
      ['山田太郎', 'taro'],
      ['山田　太郎', 'taro'],
      ['太郎山田', 'taro'],
      ['田太', 'taro'],
      ['郎', 'taro'],
      ['민수', 'minsu', 'kim'],
      ['김민수', 'minsu', 'kim'],
      ['김 민수', 'kim', 'minsu'],
      // These are words with an incomplete last syllable, as a user types them.
      ['김민ㅅ', 'minsu', 'kim'],
      ['ชาย', 'somchai'],
      ['สมชายใจดี', 'somchai'],
      ['ｽﾐｽ', 'john'],
      ['ジョンスミス', 'john'],
      ['李 ann', 'ann'],
      ['李ann', 'ann'],
      ['王太郎'],
      ['明小王'],
      ['山田王'],
    ] as [string, ...string[]][])
      expect([text, await namesIn(shop, { text })]).toEqual([text, found])
  })

  it('finds a long name without spaces, as one word, and not one that differs in a character', async () => {
    const shop = await service.organization()
    const name = '東京都千代田区丸の内一丁目山田太郎記念国際文化交流振興財団'
    await create(shop, { external_id: 'fund', last_name: name })
    await index()
    expect(await namesIn(shop, { text: name })).toEqual(['fund'])
    expect(await namesIn(shop, { text: name.replace('念', '年') })).toEqual([])
  })

  it('indexes again the words that an earlier version stored', async () => {
    const shop = await service.organization()
    await create(shop, { external_id: 'wang', last_name: '王小明' })
    await create(shop, { external_id: 'ada', first_name: 'Ada' })
    await index()
    const words = await stored(shop)
    // These rows have the form of versions before migration 0017.
    const statements = [
      `update search_indexes set form = 1 where organization_id = $1`,
      `update search_documents set words = ' 王小明 wang ' where organization_id = $1 and words like '%王小%'`,
      `delete from search_words where organization_id = $1 and word < 'a' or word > 'z'`,
      `update followers set wake_at = '-infinity' where organization_id = $1 and name = 'search'`,
    ]
    for (const statement of statements) await service.sql(statement, [shop.id])
    await service.sql(
      `insert into search_words (organization_id, stack_id, word, entity_id)
       select organization_id, stack_id, '王小明', entity_id from search_documents where organization_id = $1 and words like '%王小明%'`,
      [shop.id],
    )
    expect(await namesIn(shop, { text: '小明' })).toEqual([])
    await index()
    expect(await namesIn(shop, { text: '小明' })).toEqual(['wang'])
    expect(new Set((await stored(shop)).map(({ words }) => words))).toEqual(new Set(words.map(({ words }) => words)))
  })

  it('finds a phone by its last four digits, also beside a name', async () => {
    const shop = await service.organization()
    const phone = (mobile_number: string) => ({ mobile_prefix: '+39', mobile_number })
    await create(shop, { external_id: 'darcy', last_name: 'Darcy', ...phone('333 1230021') })
    await create(shop, { external_id: 'bingley', last_name: 'Bingley', ...phone('333 4560021') })
    await create(shop, { external_id: 'bennet', last_name: 'Bennet', ...phone('333 0021789') })
    await create(shop, { external_id: 'short', last_name: 'Lucas', mobile_number: '0021' })
    await index()
    for (const [text, ...found] of [
      ['0021', 'short', 'darcy', 'bingley'],
      ['00 21', 'short', 'darcy', 'bingley'],
      ['…0021', 'short', 'darcy', 'bingley'],
      ['darcy 0021', 'darcy'],
      ['0021 binglye', 'bingley'],
      ['1789', 'bennet'],
      ['0022'],
      ['021'],
      ['bennet 0021'],
    ] as [string, ...string[]][])
      expect([text, await namesIn(shop, { text })]).toEqual([text, found])
    await shop.send('PATCH', '/v1/people/darcy', phone('333 1239876'))
    await index()
    expect(await namesIn(shop, { text: '0021' })).toEqual(['short', 'bingley'])
    expect(await namesIn(shop, { text: '9876' })).toEqual(['darcy'])
  })

  it('finds a phone in any notation, and by its last four to nine digits', async () => {
    const shop = await service.organization()
    await create(shop, { external_id: 'written', mobile_number: '+49 171 1000003' })
    await create(shop, { external_id: 'parted', mobile_prefix: '49', mobile_number: '0171/100 0004' })
    await create(shop, { external_id: 'italian', mobile_number: '+39 06 1234 5678' })
    await create(shop, { external_id: 'none', mobile_number: 'call 0171 100 0003 and ask' })
    await index()
    const whole = ['0171 1000003', '0171/100-0003', '+49 171 1000003', '0049 171 1000003', '+49 (0)171 1000003']
    // These are prefixes of a number, as a user types it.
    const begun = ['0171 1000 0', '+49 171 100', '0049 171 1000']
    const last = ['00 03', '0 0003', '000003', '1000003', '100 0003', '11000003', '711-000-003']
    for (const text of [...whole, ...begun, ...last])
      expect([text, await namesIn(shop, { text })]).toEqual([text, expect.arrayContaining(['written'])])
    for (const text of ['0171 1000004', '+49 171 100 0004', '1000004', '00 04', 'parted 00004'])
      expect([text, await namesIn(shop, { text })]).toEqual([text, ['parted']])
    for (const text of ['06 12345678', '0039 06 12345678', '12345678', '345 678'])
      expect([text, await namesIn(shop, { text })]).toEqual([text, ['italian']])
    for (const text of ['0171 1000005', '2000003', 'b3000001', 'B3000001', '003'])
      expect([text, await namesIn(shop, { text })]).toEqual([text, []])
    await shop.send('PATCH', '/v1/people/written', { mobile_number: null })
    await index()
    expect(await namesIn(shop, { text: '11000003' })).toEqual(['none'])
  })

  it('finds two names in either order with a typo in each', async () => {
    const shop = await service.organization()
    const name = fc.string({ unit: fc.constantFrom(...typoLetters), minLength: 4, maxLength: 12 })
    const people = fc.sample(fc.tuple(name, name), { numRuns: 60, seed: 7 }).map(([first_name, last_name], n) => ({
      external_id: `x${n}`,
      first_name,
      last_name,
    }))
    await importLines(shop, '/v1/people/import', linesFrom(people))
    await index()
    const misspelt = fc
      .constantFrom(...people)
      .chain(({ external_id, first_name, last_name }) =>
        fc.tuple(fc.constant(external_id), withTypo(first_name), withTypo(last_name), fc.boolean()),
      )
    await fc.assert(
      fc.asyncProperty(misspelt, async ([external_id, first, last, isReversed]) => {
        const text = isReversed ? `${last} ${first}` : `${first} ${last}`
        expect(await namesIn(shop, { text, size: 100 }), text).toContain(external_id)
      }),
      { numRuns: 150 },
    )
  })

  it('finds a pair of misspelt names among more people with each of them than it compares', async () => {
    const shop = await service.organization()
    // Two words are similar to `clare`, and words that begin with `hug` come before the correct one.
    const lines = Array.from({ length: 1_300 }, (_, n) => [
      { external_id: `c${n}`, first_name: 'Oliver', last_name: 'Clara' },
      { external_id: `h${n}`, first_name: 'Hughes', last_name: 'Clarke' },
    ]).flat()
    lines.push({ external_id: 'sought', first_name: 'Hugo', last_name: 'Clarke' })
    await importLines(shop, '/v1/people/import', linesFrom(lines))
    await follow(service.db, [searchFollower()])
    expect(await namesIn(shop, { text: 'Hugoo Clare' })).toEqual(['sought'])
    expect(await namesIn(shop, { text: 'Clare Hugo' })).toEqual(['sought'])
    expect(await namesIn(shop, { text: 'Clare Olivre' })).toHaveLength(20)
  }, 60_000)

  it('finds a person once, whether by the words of a number or by its digits in one', async () => {
    const shop = await service.organization()
    const phone = { mobile_prefix: '+39', mobile_number: '2026 1123' }
    for (const [external_id, more] of [
      ['digits', phone],
      ['ORD-2026-1123', {}],
      ['both-2026-1123', phone],
      ['begins-20261123456', {}],
      ['ORD-2026-11234', phone],
      ['ORD-2026-11235', {}],
    ] as const)
      await create(shop, { external_id, ...more })
    await index()
    const exact = ['digits', 'ORD-2026-1123', 'both-2026-1123', 'ORD-2026-11234']
    const expected = [...exact, 'begins-20261123456', 'ORD-2026-11235']
    for (const size of [1, 2, 100]) {
      const names: (string | null)[] = []
      let cursor: string | null | undefined
      do {
        const { data } = (await search(shop, { text: '2026-1123', size, ...(cursor && { cursor }) })).body
        names.push(...data.items.map(({ external_id }: Item) => external_id))
        cursor = data.next_cursor
      } while (cursor !== null && names.length < 20)
      expect([size, names]).toEqual([size, expected])
    }
  })

  it('finds a person in spite of typos, case and accents', async () => {
    const shop = await service.organization()
    await create(shop, ada)
    await create(shop, { external_id: 'jose', first_name: 'José', last_name: "O'Neill-Łukasz" })
    await create(shop, { external_id: 'john', first_name: 'John', last_name: 'Catherine' })
    await create(shop, { external_id: 'soft', last_name: 'Wil\u00adhelm\u200bina' })
    await index()
    for (const text of [
      'wilhelmina',
      'wilhel',
      'Wilhelm\u00adina',
      'wil\u2060hel\ufeff',
      '\u202ewilhel\u200fmina\u202c',
    ])
      expect([text, await namesIn(shop, { text })]).toEqual([text, ['soft']])
    for (const text of ['Lovlace', 'ada lovlace', 'adda lovelace', 'Loevlace', 'lovelaec', 'Ada Lovelac', 'LOVELASE'])
      expect([text, await namesIn(shop, { text })]).toEqual([text, ['crm-17']])
    for (const text of ['jose', 'JOSÉ', 'oneill', 'O’Neill', 'lukasz', 'Jose Oneil', "O'Neill-Lukasz"])
      expect([text, (await namesIn(shop, { text }))[0]]).toEqual([text, 'jose'])
    for (const text of ['jhon', 'jon', 'johm', 'cathrine', 'catherien', 'katherine'])
      expect([text, (await namesIn(shop, { text }))[0]]).toEqual([text, 'john'])
  })

  it('finds words of six letters or more with two typos, if they share three letters in a row', async () => {
    const shop = await service.organization()
    const texts = {
      martin: 'mertim',
      garcia: 'gaecie',
      schmidt: 'shmitd',
      johnson: 'jahnsen',
      sanchez: 'samchex',
      petersen: 'pitersan',
      williams: 'wullioms',
      lovelace: 'lxvelbce',
      catherine: 'cadherime',
    }
    for (const external_id of Object.keys(texts)) await create(shop, { last_name: external_id, external_id })
    await index()
    for (const [name, text] of Object.entries(texts))
      expect([text, await namesIn(shop, { text })]).toEqual([text, [name]])
  })

  it('lists the identifier first, then exact words, then beginnings, then words with the fewest typos', async () => {
    const shop = await service.organization()
    const people = [
      { external_id: 'two typos', last_name: 'Marrtinn' },
      { external_id: 'one typo', last_name: 'Martim' },
      { external_id: 'beginning', last_name: 'Martinez' },
      { external_id: 'exact', last_name: 'Martin' },
      { external_id: 'exact too', first_name: 'Martin', last_name: 'Martinez' },
      { external_id: 'martin', last_name: 'Zorn' },
      { external_id: 'unlike', last_name: 'Morton' },
    ]
    for (const person of people) await create(shop, person)
    await index()
    const ranked = ['exact', 'exact too', 'martin', 'beginning', 'one typo', 'two typos']
    expect(await namesIn(shop, { text: 'Martin' })).toEqual(ranked)
    expect(await namesIn(shop, { text: 'Martin', size: 4 })).toEqual(ranked.slice(0, 4))
    // The text is the identifier of a person, so the search looks for no typos.
    expect(await namesIn(shop, { text: 'martin' })).toEqual(['martin', 'exact', 'exact too', 'beginning'])
    expect(await namesIn(shop, { text: 'exact martin' })).toEqual(['exact', 'exact too'])
  })

  it('returns each person once over all pages, in the same order, whatever their size', async () => {
    const shop = await service.organization()
    const names = ['Anna', 'Anne', 'Annabel', 'Ana', 'Hanna', 'Anna Maria', 'Bert']
    const lines = Array.from({ length: 42 }, (_, n) => ({
      external_id: `a${n}`,
      first_name: names[n % names.length],
      last_name: n % 3 === 0 ? 'Anna' : 'Berg',
    }))
    await importLines(shop, '/v1/people/import', linesFrom(lines))
    await index()
    for (const text of ['ann', 'an b', 'anan']) {
      const whole = await namesIn(shop, { text, size: 100 })
      for (const size of [1, 5]) {
        const paged: (string | null)[] = []
        let cursor: string | null | undefined
        while (cursor !== null && paged.length < 200) {
          const { data } = (await search(shop, { text, size, ...(cursor && { cursor }) })).body
          expect(data.has_more).toBe(data.next_cursor !== null)
          if (data.has_more) expect(data.items).toHaveLength(size)
          paged.push(...data.items.map(({ external_id }: Item) => external_id))
          cursor = data.next_cursor
        }
        expect(new Set(paged).size).toBe(paged.length)
        expect([text, size, paged.slice(0, 100)]).toEqual([text, size, whole])
      }
    }
  })

  it('finds the same people in the same order, whatever it takes for a frequent word', async () => {
    const shop = await service.organization()
    const words = ['an', 'anna', 'anne', 'berg', 'bergen', 'crm', 'maria', 'mario']
    const wordsOf = (n: number) => words.filter((_, index) => ((n * 37) >> index) & 1)
    const lines = Array.from({ length: 120 }, (_, n) => ({
      external_id: `x${n}`,
      last_name: wordsOf(n).join(' ') || 'none',
    }))
    await importLines(shop, '/v1/people/import', linesFrom(lines))
    await index()
    const find = (text: string, frequencies?: Frequencies) =>
      service.db.transaction(tx => {
        const searched = { organization_id: shop.id, stacks: [{ stack_id: 0, text: parseSearchText(text, 0, null) }] }
        return findPlaces(tx, searched, undefined, 200, frequencies)
      })
    for (const text of ['anna', 'an', 'anna berg', 'an be', 'an be mari crm', 'maria mario anna', 'marai berg']) {
      const places = await find(text)
      for (const frequencies of [
        { rare: 0, frequent: 0 },
        { rare: 5, frequent: 1_000 },
        { rare: 0, frequent: 1_000 },
      ])
        expect([text, await find(text, frequencies)]).toEqual([text, places])
      const found = lines.filter(({ last_name }) => {
        const own = last_name.split(' ')
        return text.split(' ').every(word => own.some(each => each.startsWith(word)))
      })
      expect([text, places.filter(({ rank }) => rank <= 2).length]).toEqual([text, found.length])
    }
  })

  it('sees what the log has up to its sequence, and never a deleted person', async () => {
    const shop = await service.organization()
    const { id } = await create(shop, ada)
    await index()
    await shop.send('PATCH', '/v1/people/crm-17', { last_name: 'King', language: 'en' })
    const before = (await search(shop, { text: 'lovelace' })).body.data
    expect([before.sequence, before.items.length]).toEqual([1, 1])
    await index()
    expect(await namesIn(shop, { text: 'lovelace' })).toEqual([])
    expect(await namesIn(shop, { text: 'king' })).toEqual(['crm-17'])
    await shop.send('DELETE', '/v1/people/crm-17')
    expect(await namesIn(shop, { text: 'king' })).toEqual([])
    await index()
    expect(await stored(shop)).toEqual([])
    await shop.send('POST', `/v1/people/internal/${id}/restore`)
    await index()
    expect(await namesIn(shop, { text: 'king' })).toEqual(['crm-17'])
  })

  it('finds placeholders by their identifier, and a survivor by the identifiers of the merged', async () => {
    const shop = await createShop(service, 'referrer')
    await create(shop, { ...ada, attribute_values: { referrer: 'unborn-5' } })
    await create(shop, { external_id: 'news-9', first_name: 'Augusta' })
    await index()
    expect(await namesIn(shop, { text: 'unborn' })).toEqual(['unborn-5'])
    await shop.send('POST', '/v1/people/crm-17/merge', { from: 'news-9' })
    expect(await namesIn(shop, { text: 'news-9' })).toEqual(['crm-17'])
    await index()
    expect(await namesIn(shop, { text: 'news' })).toEqual(['crm-17'])
    await shop.send('POST', '/v1/people/crm-17/unmerge', { from: 'news-9' })
    await index()
    expect(await namesIn(shop, { text: 'news' })).toEqual(['news-9'])
    const body = { match: ['email'], external_id: 'shop-4', email: ada.email }
    expect((await shop.send('POST', '/v1/people/upsert', body)).status).toBe(200)
    await index()
    expect(await namesIn(shop, { text: 'shop' })).toEqual(['crm-17'])
  })

  it('finds a person by a searchable attribute once its index is ready', async () => {
    const shop = await service.organization()
    const attribute = { key: 'nickname', owner: 'people', type: 'text', cardinality: 'many' }
    const { id } = (await shop.send('POST', '/v1/schema/attributes', attribute)).body.data
    await create(shop, { ...ada, attribute_values: { nickname: ['Countess', 'Enchantress'] } })
    await index()
    expect(await namesIn(shop, { text: 'countess' })).toEqual([])
    const patched = await shop.send('PATCH', `/v1/schema/attributes/${id}`, { searchable: true })
    expect(patched.body.data.searchable).toBe(true)
    const refused = await search(shop, { text: 'ada' })
    expect([refused.status, refused.headers.get('Retry-After')]).toEqual([503, '2'])
    expect(refused.body.message).toMatch(/still indexing/)
    await index()
    expect(await namesIn(shop, { text: 'countess' })).toEqual(['crm-17'])
    expect(await namesIn(shop, { text: 'enchantres' })).toEqual(['crm-17'])
    await shop.send('PATCH', '/v1/people/crm-17', { attribute_values: { nickname: ['Queen'] } })
    await index()
    expect(await namesIn(shop, { text: 'countess' })).toEqual([])
    await shop.send('PATCH', `/v1/schema/attributes/${id}`, { state: 'archived' })
    await index()
    expect(await namesIn(shop, { text: 'queen' })).toEqual([])
    expect(await namesIn(shop, { text: 'ada' })).toEqual(['crm-17'])
  })

  it('indexes people that were stored before, and tells how far it is', async () => {
    const shop = await service.organization()
    for (let n = 0; n < 7; n += 1) await create(shop, { external_id: `p${n}`, last_name: 'Former' })
    expect((await search(shop, { text: 'former' })).status).toBe(503)
    const stopping = follow(service.db, [searchFollower({ entitiesPerBatch: 1 })])
    await stopping
    expect(await namesIn(shop, { text: 'former' })).toHaveLength(7)
    await service.sql(`update search_indexes set is_ready = false, indexed = 3 where organization_id = $1`, [shop.id])
    const { body } = await search(shop, { text: 'former' })
    expect(body.message).toContain('3 of about 7 are done')
  })

  it('finds nobody before the first change', async () => {
    expect(await namesIn(await service.organization(), { text: 'lovelace' })).toEqual([])
  })

  it('removes the words of an erased person in the same transaction, but not those that others have', async () => {
    const shop = await service.organization()
    await create(shop, ada)
    await create(shop, { external_id: 'kept', first_name: 'Ada' })
    await index()
    const { body } = await shop.send('POST', '/v1/people/crm-17/erase', { reason: 'Request of the person' })
    expect(body.data.erasure.removed.search_documents).toBe(1)
    const words = new Set((await stored(shop)).map(row => row.words))
    expect(words).toEqual(new Set([' ada kept ', 'ada', 'kept']))
    await index()
    expect(await namesIn(shop, { text: 'ada' })).toEqual(['kept'])
    expect(await namesIn(shop, { text: 'adda' })).toEqual(['kept'])
    expect(await namesIn(shop, { text: 'lovelace' })).toEqual([])
  })

  it('finds nobody by a text without a letter or digit, except by an identifier', async () => {
    const shop = await service.organization()
    await create(shop, ada)
    await create(shop, { external_id: '+%' })
    await index()
    const marks = [
      '+',
      '"',
      '%',
      '@ — …',
      '',
      ' \t ',
      '\u0301'.repeat(50),
      '. '.repeat(900),
      '\u202e\u2066\u200f',
      '\u3164',
    ]
    for (const text of [...marks, '😀', '👩‍👩‍👧 🇮🇹 '.repeat(50)])
      expect([text, await namesIn(shop, { text })]).toEqual([text, []])
    expect(await namesIn(shop, { text: '+%' })).toEqual(['+%'])
    expect(await namesIn(shop, { text: 'ada — … & + . / lovelace ! 😀' })).toEqual(['crm-17'])
  })

  it.each<[string, object, string]>([
    ['no text', {}, '/text'],
    ['NUL', { text: 'ada\0' }, '/text'],
    ['half of an emoji', { text: 'ada \ud83d' }, '/text'],
    ['10,000 marks', { text: '.'.repeat(10_000) }, '/text'],
    ['201 characters', { text: 'a'.repeat(201) }, '/text'],
    ['64 KiB', { text: 'a '.repeat(32_768) }, '/text'],
    ['a short text that is long when folded', { text: '\ufdfa'.repeat(100) }, '/text'],
    ['nine words', { text: 'a b c d e f g h i' }, '/text'],
    ['17 parts', { text: Array.from({ length: 17 }, (_, n) => `p${n}`).join('.') }, '/text'],
    ['a size of 0', { text: 'a', size: 0 }, '/size'],
    ['a size of 101', { text: 'a', size: 101 }, '/size'],
    ['an unknown member', { text: 'a', sort: 'x' }, '/sort'],
    ['a cursor that is none', { text: 'a', cursor: 'x' }, '/cursor'],
    ['a cursor with another rank', { text: 'a', cursor: Buffer.from('[-1,"x","y"]').toString('base64url') }, '/cursor'],
  ])('refuses %s', async (_, body, path) => {
    const shop = await service.organization()
    const refused = await search(shop, body)
    expect([refused.status, refused.body.details?.map(detail => detail.path)]).toEqual([400, [path]])
  })

  it('takes 200 characters, eight words and marks, and a query in place of a body', async () => {
    const shop = await service.organization()
    await create(shop, ada)
    await index()
    for (const text of ['a'.repeat(200), 'a b c d e f g h', `${'e\u0301'.repeat(200)}`])
      expect(await namesIn(shop, { text })).toEqual([])
    const { data } = (await shop.send('POST', '/v1/people/search?text=lovelace&size=1')).body
    expect(data.items).toHaveLength(1)
  })

  it('refuses the cursor of another text', async () => {
    const shop = await service.organization()
    for (const external_id of ['a1', 'a2']) await create(shop, { external_id, first_name: 'Ada' })
    await index()
    const { next_cursor } = (await search(shop, { text: 'ada', size: 1 })).body.data
    expect((await search(shop, { text: ' ada', size: 1, cursor: next_cursor })).body.data.items).toHaveLength(1)
    for (const text of ['adam', 'ADA'])
      expect((await search(shop, { text, cursor: next_cursor })).body.details?.[0]?.path).toBe('/cursor')
  })
})

describe('a search of records', () => {
  it('finds records by searchable attributes and by their external identifier', async () => {
    const shop = await createShop(service, { key: 'books', kind: 'item' })
    const title = { key: 'title', owner: 'books', type: 'text' }
    const { id } = (await shop.send('POST', '/v1/schema/attributes', title)).body.data
    const path = '/v1/stacks/books'
    const refused = await search(shop, { text: 'sketch' }, path)
    expect(refused.status).toBe(400)
    expect(refused.body.details?.[0]?.message).toContain(`PATCH /v1/schema/attributes/${id} {"searchable": true}`)
    const book = await create(
      shop,
      { external_id: 'isbn-9', attribute_values: { title: 'Sketch of the Engine' } },
      path,
    )
    await shop.send('PATCH', `/v1/schema/attributes/${id}`, { searchable: true })
    await index()
    expect((await search(shop, { text: 'engin skech' }, path)).body.data.items).toEqual([book])
    expect(await namesIn(shop, { text: 'isbn-9' }, path)).toEqual(['isbn-9'])
    await create(shop, { external_id: 'isbn-10', attribute_values: { title: '0012345 of 2026-000777' } }, path)
    await index()
    for (const text of ['0012345', '2026-000777', '000777'])
      expect([text, await namesIn(shop, { text }, path)]).toEqual([text, ['isbn-10']])
    for (const text of ['12345', '2026000777']) expect([text, await namesIn(shop, { text }, path)]).toEqual([text, []])
    await shop.send('DELETE', `${path}/isbn-10`)
    expect(await namesIn(shop, { text: 'engine' })).toEqual([])
    await shop.send('PATCH', `/v1/schema/attributes/${id}`, { searchable: false })
    await index()
    expect((await search(shop, { text: 'sketch' }, path)).status).toBe(400)
    expect((await stored(shop)).length).toBe(0)
  })

  it('names what to declare if a stack has no text attribute', async () => {
    const shop = await createShop(service, { key: 'books', kind: 'item' })
    const { body } = await search(shop, { text: 'x' }, '/v1/stacks/books')
    expect(body.details?.[0]?.message).toContain('POST /v1/schema/attributes {"owner": "books"')
    expect((await search(shop, { text: 'x' }, '/v1/stacks/none')).status).toBe(404)
  })

  it('refuses searchable for another type than text', async () => {
    const shop = await service.organization()
    const send = (body: object) => shop.send('POST', '/v1/schema/attributes', { key: 'k', owner: 'people', ...body })
    const refused = await send({ type: 'number', searchable: true })
    expect([refused.status, refused.body.details?.[0]?.path]).toEqual([400, '/searchable'])
    const { id } = (await send({ type: 'date' })).body.data
    const patched = await shop.send('PATCH', `/v1/schema/attributes/${id}`, { searchable: true })
    expect([patched.status, patched.body.details?.[0]?.path]).toEqual([400, '/searchable'])
  })
})

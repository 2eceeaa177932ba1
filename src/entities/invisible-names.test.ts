import { describe, expect, it } from 'vitest'
import { useService } from '../../test/support/service.ts'
import { useSharedShop } from '../../test/support/shop.ts'

const service = useService()
const shop = useSharedShop(service, 'friends', 'buyer', { key: 'since', owner: 'people', type: 'date' })

const zeroWidth = 'a\u200bda'
const described = 'U+200B ZERO WIDTH SPACE'
const detailsOf = async (...request: Parameters<typeof shop.send>) => {
  const { status, body } = await shop.send(...request)
  return [status, body.details?.map(({ path, message }) => [path, message.includes(described)])]
}

describe('a name with an invisible character', () => {
  it('is refused for people, records, renames and links, by the name of the character, and nothing is stored', async () => {
    await shop.ok('POST', '/v1/people', { external_id: 'bo' })
    const head = await shop.head()
    for (const [method, path, body, at] of [
      ['POST', '/v1/people', { external_id: zeroWidth }, '/external_id'],
      ['POST', '/v1/people/upsert', { external_id: zeroWidth }, '/external_id'],
      ['PATCH', '/v1/people/bo', { external_id: zeroWidth }, '/external_id'],
      ['PATCH', '/v1/people/bo', { attribute_values: { friends: ['cy', zeroWidth] } }, '/attribute_values/friends/1'],
      ['POST', '/v1/stacks/orders', { external_id: zeroWidth }, '/external_id'],
      ['POST', '/v1/stacks/orders', { attribute_values: { buyer: zeroWidth } }, '/attribute_values/buyer'],
    ] as const)
      expect(await detailsOf(method, path, body)).toEqual([400, [[at, true]]])
    expect(await shop.head()).toBe(head)
  })

  it('that an entity has from an earlier version still leads to it', async () => {
    const { id } = await shop.ok('POST', '/v1/people', { external_id: 'eve' })
    await service.db.query({ name: 'rename_before', text: 'update entities set external_id = $1 where id = $2' }, [
      'e\u200bve',
      id,
    ])
    const path = `/v1/people/${encodeURIComponent('e\u200bve')}`
    expect((await shop.ok('GET', path)).id).toBe(id)
    await shop.ok('PATCH', '/v1/people/bo', { attribute_values: { friends: ['e\u200bve'] } })
    await shop.ok('POST', '/v1/people/upsert', { external_id: 'e\u200bve', first_name: 'Eve' })
    await shop.ok('PATCH', path, { external_id: 'eve' })
  })
})

describe('an address or another value with an invisible character', () => {
  it('is refused by the name of the character', async () => {
    const filler = await shop.send('POST', '/v1/people', { email: 'ada\u3164@example.com' })
    expect([filler.status, filler.body.details]).toEqual([
      400,
      [
        {
          path: '/email',
          message:
            'must be an email address, such as ada@example.com, without quotes, comments and IP addresses. It contains U+3164 HANGUL FILLER',
        },
      ],
    ])
    for (const [body, at] of [
      [{ email: 'ada@exa\u200bmple.com' }, '/email'],
      [{ date_of_birth: '1990-01-01\u200b' }, '/date_of_birth'],
      [{ attribute_values: { since: '\u200b1990-01-01' } }, '/attribute_values/since'],
    ] as const)
      expect(await detailsOf('POST', '/v1/people', body)).toEqual([400, [[at, true]]])
    expect(await detailsOf('GET', `/v1/changes?limit=${encodeURIComponent('1\u200b')}`)).toEqual([
      400,
      [['/limit', true]],
    ])
  })
})

import { expect, it } from 'vitest'
import { channels } from '../../client/src/vocabulary.ts'
import { writable } from '../../client/src/writable.ts'
import { useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'

const service = useService()
const shop = useShop(service, 'friends')

const patch = (body: object) => shop.ok('PATCH', '/v1/people/ada', body)
const cases: [string, () => Promise<unknown>, string | null, boolean][] = [
  ['nothing', async () => undefined, null, false],
  ['a write that repeats the value', () => patch({ first_name: 'Bob' }), null, false],
  ['a write of another field', () => patch({ last_name: 'Byron' }), null, false],
  ['a write that clears the value', () => patch({ first_name: null }), null, true],
  ['a write of another value', () => patch({ first_name: 'Ada' }), 'Ada', true],
  [
    'a write of another value and one of the same again',
    async () => [await patch({ first_name: 'Ada' }), await patch({ first_name: 'Bob' })],
    'Bob',
    true,
  ],
]

it.each(cases)(
  'keeps a filled value with the survivor after %s, if it was written since',
  async (_, write, value, isKept) => {
    await shop.ok('POST', '/v1/people', { external_id: 'ada' })
    await shop.ok('POST', '/v1/people', { external_id: 'bob', first_name: 'Bob' })
    await shop.ok('POST', '/v1/people/ada/merge', { from: 'bob' })
    await write()
    const { person, changes } = await shop.ok('POST', '/v1/people/ada/unmerge', { from: 'bob' })
    expect(person.first_name).toBe(value)
    expect(changes.kept).toEqual(isKept ? [{ path: '/first_name', reason: 'written_since' }] : [])
  },
)

it('keeps the filled prefix of a phone whose number was written since', async () => {
  await shop.ok('POST', '/v1/people', { external_id: 'ada' })
  const phone = { mobile_prefix: '+39', mobile_number: '3331234567' }
  await shop.ok('POST', '/v1/people', { external_id: 'bob', ...phone })
  await shop.ok('POST', '/v1/people/ada/merge', { from: 'bob' })
  await patch({ ...phone, mobile_number: '3331234568' })
  const { person, unmerged } = await shop.ok('POST', '/v1/people/ada/unmerge', { from: 'bob' })
  expect([person.mobile_e164, unmerged.mobile_e164]).toEqual(['+393331234568', '+393331234567'])
})

it('keeps the filled prefix of a number that another merge took away for a while', async () => {
  for (const external_id of ['ada', 'cleo']) await shop.ok('POST', '/v1/people', { external_id })
  await shop.ok('POST', '/v1/people', { external_id: 'bob', mobile_prefix: '+39' })
  await shop.ok('POST', '/v1/people/ada/merge', { from: 'bob' })
  await patch({ mobile_prefix: '+39', mobile_number: '3331234567' })
  await shop.ok('POST', '/v1/people/ada/merge', { from: 'cleo', keep: { mobile_number: 'other' } })
  await shop.ok('POST', '/v1/people/ada/unmerge', { from: 'bob' })
  const { person } = await shop.ok('POST', '/v1/people/ada/unmerge', { from: 'cleo' })
  expect(person.mobile_e164).toBe('+393331234567')
})

const friendsOf = async (name: string) => (await shop.ok('GET', `/v1/people/${name}`)).attribute_values.friends

it('takes back a link that an earlier merge had brought too, if a write had removed it in between', async () => {
  for (const external_id of ['dan', 'eve']) await shop.ok('POST', '/v1/people', { external_id })
  for (const external_id of ['ada', 'bob', 'cleo'])
    await shop.ok('POST', '/v1/people', { external_id, attribute_values: { friends: ['dan'] } })
  await shop.ok('POST', '/v1/people/ada/merge', { from: 'bob' })
  await patch({ attribute_values: { friends: ['eve'] } })
  await shop.ok('POST', '/v1/people/ada/merge', { from: 'cleo' })
  expect(await friendsOf('ada')).toEqual(['eve', 'dan'])
  for (const from of ['cleo', 'bob']) {
    await shop.ok('POST', '/v1/people/ada/unmerge', { from })
    expect(await friendsOf('ada')).toEqual(['eve'])
  }
})

it('gives back links that were written after the first of two merges, in whatever order these are undone', async () => {
  for (const external_id of ['ada', 'dan', 'eve', 'fay']) await shop.ok('POST', '/v1/people', { external_id })
  await shop.ok('POST', '/v1/people', { external_id: 'bob', attribute_values: { friends: ['dan'] } })
  await shop.ok('POST', '/v1/people', { external_id: 'cleo', attribute_values: { friends: ['fay'] } })
  await shop.ok('POST', '/v1/people/ada/merge', { from: 'bob' })
  await patch({ attribute_values: { friends: ['dan', 'eve'] } })
  await shop.ok('POST', '/v1/people/ada/merge', { from: 'cleo', keep: { 'attribute_values.friends': 'other' } })
  for (const from of ['bob', 'cleo']) await shop.ok('POST', '/v1/people/ada/unmerge', { from })
  expect(await friendsOf('ada')).toEqual(['dan', 'eve'])
})

it('gives back a grant that was written after an earlier merge had refused', async () => {
  await shop.ok('POST', '/v1/people', { external_id: 'ada', push_notification_consent: true })
  for (const external_id of ['bob', 'cleo'])
    await shop.ok('POST', '/v1/people', { external_id, push_notification_consent: false })
  await shop.ok('POST', '/v1/people/ada/merge', { from: 'bob' })
  await patch({ push_notification_consent: true })
  await shop.ok('POST', '/v1/people/ada/merge', { from: 'cleo' })
  for (const from of ['cleo', 'bob']) {
    const { person } = await shop.ok('POST', '/v1/people/ada/unmerge', { from })
    expect(person.push_notification_consent).toBe(true)
  }
})

const refusing = ['bob', 'cleo', 'dan']
const orders = refusing.flatMap(one => refusing.filter(two => two !== one).map(two => [one, two]))
it.each(orders)('keeps a refusal until the last of three who refuse is separate, after %s and %s', async (...first) => {
  await shop.ok('POST', '/v1/people', { external_id: 'ada', push_notification_consent: true })
  for (const external_id of refusing) {
    await shop.ok('POST', '/v1/people', { external_id, push_notification_consent: false })
    await shop.ok('POST', '/v1/people/ada/merge', { from: external_id })
  }
  const last = refusing.find(name => !first.includes(name))
  for (const from of [...first, last]) {
    const { person } = await shop.ok('POST', '/v1/people/ada/unmerge', { from })
    expect(person.push_notification_consent).toBe(from === last)
  }
})

it('copies a person without the summary flag of any channel', async () => {
  await shop.ok('POST', '/v1/people', { external_id: 'ada' })
  const copy = writable(await shop.ok('GET', '/v1/people/ada'))
  for (const { flag } of Object.values(channels)) expect(copy).not.toHaveProperty(flag)
})

import { expect, it } from 'vitest'
import { followSegments, SegmentMirror } from '../../test/support/segments.ts'
import { useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'
import { completeMerges } from './lead-links.ts'

const service = useService()
const shop = useShop(service, 'referrer', 'friends')

const many = 4_500

const create = (external_id: string, body: object = {}) => shop.send('POST', '/v1/people', { external_id, ...body })
const identify = (kind: 'merge' | 'unmerge', from: string, rest: object = {}) =>
  shop.send('POST', `/v1/people/ada/${kind}`, { from, ...rest })

/** Imports people who refer to one of three, and have all three as friends. */
async function importFans() {
  const lines = Array.from({ length: many }, (_, n) =>
    JSON.stringify({
      external_id: `fan-${n}`,
      attribute_values: {
        referrer: ['shopper', 'earlier', 'ada'][n % 3],
        friends: ['earlier', 'bob', 'shopper', 'ada'],
      },
    }),
  )
  const imported = await shop.send('POST', '/v1/people/import', lines.join('\n'), {
    'Content-Type': 'application/x-ndjson',
  })
  expect(imported.status).toBe(200)
}

/** The numbers of people who refer to a person and who have it as a friend. */
async function counts(name: string) {
  const count = async (key: string) => {
    const filter = { [`attribute_values.${key}`]: name }
    return (await shop.send('POST', '/v1/people/filter', { filter, count: true })).body.data.count
  }
  return [await count('referrer'), await count('friends')]
}

const friendsOf = async (name: string) =>
  (await shop.send('GET', `/v1/people/${name}`)).body.data.attribute_values.friends

it('moves the links of a person with very many, and back', async () => {
  for (const name of ['ada', 'bob', 'shopper', 'earlier']) await create(name)
  await importFans()
  await shop.send('POST', '/v1/people/shopper/merge', { from: 'earlier' })
  expect(await counts('shopper')).toEqual([3_000, many])
  const dry = await identify('merge', 'shopper', { dry_run: true })
  const merged = await identify('merge', 'shopper')
  expect([merged.status, merged.body.data.completed, dry.body.data.completed]).toEqual([200, true, false])
  expect(merged.body.data.changes.links.moved_in).toBe(3_000 + many)
  expect(dry.body.data.changes.links).toEqual(merged.body.data.changes.links)
  expect(await counts('ada')).toEqual([many, many])
  expect(await friendsOf('fan-7')).toEqual(['ada', 'bob'])
  const unmerged = await identify('unmerge', 'shopper')
  expect([unmerged.status, unmerged.body.data.completed]).toEqual([200, true])
  expect(unmerged.body.data.changes.links.moved_in).toBe(3_000 + many)
  expect(await counts('ada')).toEqual([1_500, many])
  expect(await counts('shopper')).toEqual([3_000, many])
  expect(await friendsOf('fan-7')).toEqual(['shopper', 'bob', 'ada'])
  // The undone merge is marked as unfinished. The second merge of the same people has already moved its links, so it
  // ends.
  await service.sql(
    'update merges set moving = array[merged_id] where organization_id = $1 and unmerged_sequence is not null',
    [shop.id],
  )
  await identify('merge', 'shopper')
  await completeMerges(service.db)
  expect(await counts('ada')).toEqual([many, many])
}, 60_000)

/** Merges `shopper` into `ada`, as if the process had ended before it moved the links of other people. */
async function mergeWithoutLinks() {
  const { merged } = (await identify('merge', 'shopper')).body.data
  await service.sql('update merges set moving = $2 where organization_id = $1', [shop.id, [merged.id]])
  await service.sql(
    'update links set target_id = written_id, written_id = null where organization_id = $1 and written_id = $2',
    [shop.id, merged.id],
  )
}

it('is stored, and answered with 202, where a further set fails', async () => {
  for (const name of ['ada', 'bob', 'shopper', 'earlier']) await create(name)
  await importFans()
  // The trigger fails the last set of links.
  await service.sql(
    `create function fail_set() returns trigger language plpgsql as 'begin raise exception ''no''; end'`,
  )
  await service.sql(
    `create trigger fail_set before update on merges for each row
     when (old.organization_id = ${shop.id} and old.moving is not null and new.moving is null) execute function fail_set()`,
  )
  const merged = await identify('merge', 'shopper').finally(() => service.sql('drop function fail_set cascade'))
  expect([merged.status, merged.body.data.completed]).toEqual([202, false])
  expect((await counts('ada'))[1]).toBe(many)
  expect(
    await service.sql('select id from merges where organization_id = $1 and moving is not null', [shop.id]),
  ).toHaveLength(1)
  await completeMerges(service.db)
  expect(await counts('ada')).toEqual([3_000, many])
}, 60_000)

it('goes on where a process ended, and a write meanwhile keeps the links that are left', async () => {
  for (const name of ['ada', 'bob', 'shopper', 'eve']) await create(name)
  for (const name of ['fan', 'writer', 'replaced'])
    await create(name, { attribute_values: { friends: ['shopper', 'bob'] } })
  await mergeWithoutLinks()
  expect(await friendsOf('fan')).toEqual(['bob'])
  await shop.send('PATCH', '/v1/people/writer', { attribute_values: { friends: { $add: ['eve'] } } })
  await shop.send('PATCH', '/v1/people/replaced', { attribute_values: { friends: ['eve'] } })
  await completeMerges(service.db)
  expect(await friendsOf('fan')).toEqual(['ada', 'bob'])
  expect(await friendsOf('writer')).toEqual(['ada', 'bob', 'eve'])
  expect(await friendsOf('replaced')).toEqual(['eve'])
  expect(await service.sql('select id from merges where moving is not null')).toEqual([])
  await identify('unmerge', 'shopper')
  expect(await friendsOf('fan')).toEqual(['shopper', 'bob'])
  expect(await friendsOf('writer')).toEqual(['shopper', 'bob', 'eve'])
})

it('moves people of segments over links once these have moved', async () => {
  for (const name of ['ada', 'shopper']) await create(name)
  for (const name of ['fan', 'other']) await create(name, { attribute_values: { friends: ['shopper'] } })
  const filter = { 'incoming.people.friends': { $count: { $gte: 2 } } }
  await shop.send('POST', '/v1/segments', { key: 'liked', filter })
  await followSegments(service)
  const idOf = async (name: string) => (await shop.send('GET', `/v1/people/${name}`)).body.data.id
  const shopper = await idOf('shopper')
  const mirror = new SegmentMirror(shop, 'liked')
  await mirror.follow()
  await mergeWithoutLinks()
  await followSegments(service)
  await mirror.follow()
  expect([...mirror.people]).toEqual([shopper])
  await completeMerges(service.db)
  await followSegments(service)
  await mirror.follow()
  expect([...mirror.people]).toEqual([await idOf('ada')])
})

import { describe, expect, it } from 'vitest'
import { openEvents, readFeed } from '../../test/support/changes.ts'
import { importLines, linesFrom } from '../../test/support/lines.ts'
import { followSegments, readSegmentPeople, type SegmentChange, SegmentMirror } from '../../test/support/segments.ts'
import { useOwnService } from '../../test/support/service.ts'
import { dataOf, useShop } from '../../test/support/shop.ts'
import { names } from '../../test/support/writes.ts'
import { countSubscribers } from '../changes/log-tail.ts'
import { contextOf } from '../db/context.ts'
import { tell } from './members.ts'

const service = useOwnService()
const shop = useShop(service, 'referrer', 'friends', 'employer')

const follow = () => followSegments(service)
const person = async (external_id: string, body: object = {}): Promise<string> =>
  (await dataOf(shop.send('POST', '/v1/people', { external_id, ...body }))).id
const patch = (external_id: string, body: object) => dataOf(shop.send('PATCH', `/v1/people/${external_id}`, body))
const company = (external_id: string, attribute_values: object) =>
  dataOf(shop.send('POST', '/v1/stacks/companies/upsert', { external_id, attribute_values }))
const segment = (key: string, filter: object) => dataOf(shop.send('POST', '/v1/segments', { key, filter }))
const english = { language: 'en' }
const feed = (query: string) => shop.send('GET', `/v1/changes?${query}`)
const readItems = async (query: string): Promise<SegmentChange[]> => (await dataOf(feed(query))).items
const told = (items: SegmentChange[]) =>
  items.map(({ sequence, segments: { entered, left } }) => ({ sequence, entered, left }))
const entry = (key: string, ...people: string[]) => [{ key, people: people.sort() }]

describe('the feed of a segment', () => {
  it('tells of a person who moves again between two pages of a batch by the later change, with what holds last', async () => {
    await segment('english', english)
    await follow()
    const bob = await person('bob', { language: 'it' })
    const { head } = await readFeed(shop)
    const [stored] = await service.sql<{ id: number }>('select id from segments where organization_id = $1', [shop.id])
    const moved = [{ segment_id: stored!.id, person_id: bob }]
    await service.db.transaction(async tx => {
      const within = { tx, organization_id: shop.id }
      await tell(within, { entered: moved, left: [] }, () => head)
      await tell(within, { entered: [], left: moved }, () => head - 1)
    })
    await follow()
    const { items } = await dataOf(feed('segment=english'))
    expect(told(items)).toEqual([{ sequence: head, entered: [], left: entry('english', bob) }])
  })

  it('has only the changes by which somebody entered or left, and who', async () => {
    const ada = await person('ada', english)
    await segment('english', english)
    await follow()
    const bob = await person('bob', english)
    await patch('ada', { first_name: 'Ada' })
    await patch('ada', { language: 'it' })
    await person('eve', { language: 'it' })
    const { head } = await readFeed(shop)
    await follow()
    const page = await dataOf(feed('segment=english'))
    expect(page).toMatchObject({ last: head, head })
    expect(told(page.items)).toEqual([
      { sequence: head - 3, entered: entry('english', bob), left: [] },
      { sequence: head - 1, entered: [], left: entry('english', ada) },
    ])
    const [, all] = await Promise.all([page, readFeed(shop, `after=${head - 4}`)])
    const { segments: _, ...change } = page.items[0]
    expect(change).toEqual(all.items[0])
    expect(await readItems(`segment=english&after=${head - 3}`)).toHaveLength(1)
    expect(await readItems('segment=english&operation=create')).toHaveLength(1)
    expect(await readItems('segment=english&subject=record')).toEqual([])
    expect((await dataOf(feed('segment=english&limit=1'))).last).toBe(head - 3)
  })

  it('ends a page after 2,000 people who moved by changes that do not match, and the next one goes on', async () => {
    await segment('english', english)
    await segment('others', { $not: { $segment: 'english' } })
    await follow()
    const { head: start } = await readFeed(shop)
    await importLines(
      shop,
      '/v1/people/import',
      linesFrom(names('p', 2_500).map(external_id => ({ external_id, ...english }))),
    )
    await follow()
    await patch('p0', { language: 'it' })
    await follow()
    for (const [query, ...expected] of [
      ['operation=merge', [0, 2_000], [0, 2_501]],
      ['operation=update&segment=others', [0, 2_000], [1, 2_501]],
      ['operation=create&limit=1000', [1_000, 1_000], [1_000, 2_000], [500, 2_501]],
    ] as [string, ...number[][]][]) {
      const [pages, position] = [[] as number[][], { last: start, head: Number.POSITIVE_INFINITY }]
      while (position.last < position.head) {
        const { items, last, head } = await dataOf(feed(`segment=english&after=${position.last}&${query}`))
        Object.assign(position, { last, head })
        pages.push([items.length, last - start])
      }
      expect(pages, query).toEqual(expected)
    }
  })

  it('tells of several segments at once', async () => {
    await segment('english', english)
    await segment('others', { $not: { $segment: 'english' } })
    await follow()
    const ada = await person('ada', english)
    await follow()
    await patch('ada', { language: 'it' })
    await follow()
    const [first, second] = await readItems('segment=english&segment=others')
    expect(first!.segments).toEqual({ entered: entry('english', ada), left: [], reason: 'change' })
    expect(second!.segments).toEqual({ entered: entry('others', ada), left: entry('english', ada), reason: 'change' })
  })

  it('shows the change of the related entity that moved people, over several relationships', async () => {
    await dataOf(shop.send('POST', '/v1/schema/attributes', { owner: 'companies', key: 'owner', type: 'person' }))
    await company('acme', { plan: 'free', owner: 'boss' })
    const people = [await person('p0', { attribute_values: { employer: 'acme' } })]
    people.push(await person('p1', { attribute_values: { employer: 'acme' } }))
    const friend = await person('friend', { attribute_values: { friends: ['p1'] } })
    const employer = (filter: object) => ({ 'attribute_values.employer': { $some: filter } })
    await segment('pro', employer({ 'attribute_values.plan': 'pro' }))
    await segment('led', {
      'attribute_values.friends': { $some: employer({ 'attribute_values.owner': { $some: english } }) },
    })
    await follow()
    await company('acme', { plan: 'pro', owner: 'boss' })
    await patch('boss', english)
    const { head } = await readFeed(shop)
    await follow()
    const [pro] = await readItems('segment=pro')
    expect(pro).toMatchObject({ sequence: head - 1, subject: 'record', operation: 'update' })
    expect(pro!.segments).toEqual({ entered: entry('pro', ...people), left: [], reason: 'change' })
    const [led] = await readItems('segment=led')
    expect(led).toMatchObject({ sequence: head, subject: 'person' })
    expect(led!.segments.entered).toEqual(entry('led', friend))
    await dataOf(shop.send('DELETE', '/v1/stacks/companies/acme'))
    await follow()
    const items = await readItems('segment=pro&segment=led')
    expect(items.at(-1)).toMatchObject({ sequence: head + 1, operation: 'delete' })
    expect(items.at(-1)!.segments.left).toEqual([...entry('led', friend), ...entry('pro', ...people)])
  })

  it('begins with the members that it has told, from which a copy ends equal whatever moves meanwhile', async () => {
    for (const id of ['ada', 'bob', 'eve', 'joe']) await person(id, english)
    await person('kim')
    await segment('english', english)
    await follow()
    const members = (query = '') => shop.send('GET', `/v1/segments/english/members${query}`)
    const copy = new Set<string>()
    const read = async (query: string) => {
      const page = await dataOf(members(query))
      for (const id of page.people) copy.add(id)
      return page
    }
    await patch('ada', { language: 'it' })
    const { head, log_id, people, has_more } = await read('?size=2')
    expect([has_more, head, log_id]).toEqual([true, (await readFeed(shop)).head - 1, expect.any(String)])
    await patch('ada', english)
    await patch('bob', { language: 'it' })
    await patch('kim', english)
    await follow()
    await patch('joe', { language: 'it' })
    expect((await read(`?after_id=${people.at(-1)}`)).has_more).toBe(false)
    await follow()
    for (const { segments } of await readItems(`segment=english&after=${head}&log_id=${log_id}`)) {
      for (const id of segments.entered.flatMap(entered => entered.people)) copy.add(id)
      for (const id of segments.left.flatMap(left => left.people)) copy.delete(id)
    }
    const now = (await dataOf(shop.send('GET', '/v1/segments/english/people'))).items as { id: string }[]
    expect([...copy].sort()).toEqual(now.map(({ id }) => id).sort())
    expect([...copy].sort()).toEqual((await dataOf(members())).people)
    await dataOf(shop.send('PATCH', '/v1/segments/english', { filter: { language: 'it' } }))
    await follow()
    expect((await feed(`segment=english&after=${head}`)).status).toBe(410)
  })

  it('shows its members to whom the fields of the filter are open, once they are computed', async () => {
    await segment('pro', { 'attribute_values.employer': { $some: { 'attribute_values.plan': 'pro' } } })
    const members = (key: string) => shop.send('GET', `/v1/segments/${key}/members`)
    expect((await members('pro')).status).toBe(503)
    await follow()
    expect(await dataOf(members('pro'))).toMatchObject({ people: [], has_more: false })
    expect((await members('none')).status).toBe(404)
    const reader = await service.sender(await service.tokenFor(shop.key, 'people:read changes:read'))
    expect((await reader('GET', '/v1/segments/pro/members')).status).toBe(403)
  })

  it('ends where the follower is', async () => {
    await segment('english', english)
    await follow()
    const { head } = await readFeed(shop)
    await person('ada', english)
    expect(await dataOf(feed(`segment=english&after=${head}`))).toMatchObject({ items: [], last: head, head })
    // A position of the whole log may be ahead of the feed.
    expect(await dataOf(feed(`segment=english&after=${head + 1}`))).toMatchObject({ items: [], last: head + 1 })
    expect((await feed(`segment=english&after=${head + 2}`)).status).toBe(410)
    await follow()
    expect(await readItems(`segment=english&after=${head}`)).toHaveLength(1)
  })

  it('waits for a change, and streams lines and events', async () => {
    await segment('english', english)
    await follow()
    const { head } = await readFeed(shop)
    const waiting = feed(`segment=english&after=${head}&wait=20`)
    const stream = await openEvents(service, shop.token, 'segment=english')
    const other = await openEvents(service, shop.token, 'segment=english&operation=update')
    await expect.poll(() => countSubscribers(contextOf(service.db, shop.id))).toBe(3)
    await person('bob')
    const ada = await person('ada', english)
    await patch('ada', { language: 'it' })
    await follow()
    await patch('ada', english)
    await follow()
    // The follower reports two changes of one person in one run as one move, or not at all.
    expect(await dataOf(waiting)).toMatchObject({ last: head + 4, items: [{ sequence: head + 4 }] })
    const event = await stream.next()
    expect([event!.id, event!.event]).toEqual([`${head + 4}`, 'person.updated'])
    expect(JSON.parse(event!.data).segments.entered).toEqual(entry('english', ada))
    expect((await other.next())!.id).toBe(`${head + 4}`)
    const lines = await shop.send('GET', '/v1/changes?segment=english', undefined, { Accept: 'application/x-ndjson' })
    expect([lines.headers.get('kith-log-head'), lines.body.data.length]).toEqual([`${head + 4}`, 1])
    expect(lines.body.data[0]).toEqual(JSON.parse(event!.data))
    stream.close()
    other.close()
  })

  it('begins where the people were computed: later for a changed filter, and the feed before is gone', async () => {
    await person('ada', english)
    expect((await feed('segment=english')).status).toBe(400)
    await segment('english', english)
    const early = await feed('segment=english')
    expect([early.status, early.headers.get('retry-after')]).toEqual([503, '1'])
    await follow()
    const created = (await readFeed(shop)).head
    expect(await dataOf(feed('segment=english'))).toMatchObject({ items: [], last: created, head: created })
    const eve = await person('eve', english)
    await follow()
    const stream = await openEvents(service, shop.token, `segment=english&after=${created}`)
    expect((await stream.next())!.id).toBe(`${created + 1}`)
    await dataOf(shop.send('PATCH', '/v1/segments/english', { filter: { language: { $in: ['en', 'it'] } } }))
    await follow()
    await patch('eve', { language: 'fr' })
    await follow()
    // The stream ends, so that its client reconnects and gets the refusal.
    expect(await stream.next()).toBeUndefined()
    const gone = await feed(`segment=english&after=${created + 1}`)
    expect([gone.status, gone.body.details![0]!.path]).toEqual([410, '/after'])
    expect(gone.body.details![0]!.message).toContain('at least')
    const again = await openEvents(service, shop.token, 'segment=english', { 'Last-Event-ID': `${created + 1}` })
    expect(again.status).toBe(410)
    again.close()
    expect(told(await readItems('segment=english'))).toEqual([
      { sequence: created + 3, entered: [], left: entry('english', eve) },
    ])
  })

  it('stays as it is when a definition changes that its filter does not depend on', async () => {
    await segment('english', english)
    await follow()
    await person('ada', english)
    await dataOf(shop.send('PATCH', '/v1/segments/english', { name: 'English' }))
    await dataOf(shop.send('POST', '/v1/schema/attributes', { owner: 'people', key: 'score', type: 'number' }))
    await follow()
    expect(await readItems('segment=english')).toHaveLength(1)
  })

  it('goes on after the first merge and after its undoing, and tells who leads to the survivor by the alias', async () => {
    const ids = new Map<string, string>()
    for (const name of ['ada', 'eve', 'bob']) ids.set(name, await person(name))
    for (const name of ['friend', 'other'])
      ids.set(name, await person(name, { attribute_values: { friends: [name === 'friend' ? 'ada' : 'bob'] } }))
    const filters = { named: { external_id: 'eve' }, friends: { 'attribute_values.friends': 'eve' } }
    for (const [key, filter] of Object.entries(filters)) await segment(key, filter)
    await follow()
    const { head } = await readFeed(shop)
    const mirrors = Object.keys(filters).map(key => new SegmentMirror(shop, key))
    const expectPeople = async (...expected: string[][]) => {
      await follow()
      for (const mirror of mirrors) await mirror.follow()
      const people = expected.map(names => names.map(name => ids.get(name)!).sort())
      expect(mirrors.map(({ people }) => [...people].sort())).toEqual(people)
      expect(await Promise.all(mirrors.map(({ key }) => readSegmentPeople(shop, key)))).toEqual(people)
      expect(mirrors.map(({ restarts }) => restarts)).toEqual([0, 0])
    }
    await expectPeople(['eve'], [])
    await dataOf(shop.send('POST', '/v1/people/ada/merge', { from: 'eve' }))
    await expectPeople(['ada'], ['friend'])
    await dataOf(shop.send('POST', '/v1/people/ada/unmerge', { from: 'eve' }))
    await expectPeople(['eve'], [])
    const upsert = { match: ['email'], external_id: 'shop-4', email: 'bob@example.org' }
    await patch('bob', { email: 'bob@example.org' })
    await dataOf(shop.send('POST', '/v1/people/upsert', upsert))
    await expectPeople(['eve'], [])
    expect((await feed(`segment=named&segment=friends&after=${head}`)).status).toBe(200)
  })

  it('begins anew when a consent type that its filter tests changes, also by way of another segment', async () => {
    const refused = { $not: { consents: { $some: { consent_type_id: 1, channel: 'email', state: true } } } }
    await segment('refused', refused)
    await segment('both', { $segment: 'refused', ...english })
    await segment('english', english)
    const ada = await person('ada', english)
    await follow()
    const mirrors = ['refused', 'both', 'english'].map(key => new SegmentMirror(shop, key))
    for (const mirror of mirrors) {
      await mirror.follow()
      expect([...mirror.people]).toEqual([ada])
    }
    await dataOf(shop.send('PATCH', '/v1/schema/consent-types/1', { default_state: true }))
    await follow()
    for (const mirror of mirrors) await mirror.follow()
    expect(mirrors.map(({ people, restarts }) => [people.size, restarts])).toEqual([
      [0, 1],
      [0, 1],
      [1, 0],
    ])
  })

  it('is refused until a filter that became invalid is repaired', async () => {
    const { id } = await dataOf(
      shop.send('POST', '/v1/schema/consent-types', { key: 'news', channels: [{ channel: 'email' }] }),
    )
    await segment('readers', { consents: { $some: { consent_type_id: id, channel: 'email', state: false } } })
    await segment('english', english)
    await follow()
    await dataOf(shop.send('PATCH', `/v1/schema/consent-types/${id}`, { state: 'archived' }))
    await person('ada', english)
    await follow()
    expect((await feed('segment=readers')).status).toBe(409)
    expect(await readItems('segment=english')).toHaveLength(1)
    await dataOf(shop.send('PATCH', '/v1/segments/readers', { filter: english }))
    await follow()
    expect(await readSegmentPeople(shop, 'readers')).toHaveLength(1)
    expect(await readItems('segment=readers')).toEqual([])
  })

  it('moves very many people by one change, in sets', async () => {
    const lines = names('p', 2_500).map(external_id => ({ external_id, attribute_values: { employer: 'acme' } }))
    await importLines(shop, '/v1/people/import', linesFrom(lines))
    await segment('pro', { 'attribute_values.employer': { $some: { 'attribute_values.plan': 'pro' } } })
    await follow()
    await company('acme', { plan: 'pro' })
    await follow()
    const [item, ...others] = await readItems('segment=pro')
    expect(others).toEqual([])
    expect(item!.segments.entered).toEqual(entry('pro', ...(await readSegmentPeople(shop, 'pro'))))
    expect(item!.segments.entered[0]!.people).toHaveLength(2_500)
  })

  it('needs changes:read, people:read, and the scopes that read what the filter tests', async () => {
    await segment('english', english)
    await segment('pro', { 'attribute_values.employer': { $some: { 'attribute_values.plan': 'pro' } } })
    await follow()
    const statusWith = async (scope: string, key: string) =>
      (await service.sender(await service.tokenFor(shop.key, scope))('GET', `/v1/changes?segment=${key}`)).status
    expect(await statusWith('people:read', 'english')).toBe(403)
    expect(await statusWith('changes:read', 'english')).toBe(403)
    expect(await statusWith('changes:read people:read', 'english')).toBe(200)
    expect(await statusWith('changes:read people:read', 'pro')).toBe(403)
    expect(await statusWith('changes:read people:read records:read', 'pro')).toBe(200)
    const unknown = await feed('segment=english&segment=unknown')
    expect([unknown.status, unknown.body.details![0]!.path]).toEqual([400, '/segment/1'])
  })

  it('forgets an erased person, but tells that it left, also those who linked to it', async () => {
    const ada = await person('ada', english)
    const friend = await person('friend', { attribute_values: { friends: ['ada'] } })
    await segment('english', english)
    await segment('friends', { 'attribute_values.friends': { $some: english } })
    await follow()
    await patch('ada', { language: 'it' })
    await follow()
    await patch('ada', english)
    await follow()
    const mirrors = [new SegmentMirror(shop, 'english'), new SegmentMirror(shop, 'friends')]
    for (const mirror of mirrors) await mirror.follow()
    expect(mirrors.map(({ people }) => [...people])).toEqual([[ada], [friend]])
    await dataOf(shop.send('POST', '/v1/people/ada/erase', { reason: 'Request of the person' }))
    const { head } = await readFeed(shop)
    await follow()
    for (const mirror of mirrors) await mirror.follow()
    expect(mirrors.map(({ people }) => people.size)).toEqual([0, 0])
    const rows = await service.sql(
      `select s.sequence, s.entered from segment_changes s where organization_id = $1 and person_id = $2`,
      [shop.id, ada],
    )
    expect(rows).toEqual([{ sequence: head, entered: false }])
    for (const table of ['segment_members', 'segment_checks'])
      expect(await service.sql(`select 1 from ${table} where organization_id = $1`, [shop.id])).toEqual([])
    const [left] = await readItems('segment=english')
    expect(left).toMatchObject({ sequence: head, operation: 'erase', id: ada, after: {} })
  })

  it('tells a late reader that an erased person left, also a segment that it left before', async () => {
    const ada = await person('ada', english)
    await segment('english', english)
    await follow()
    const mirror = new SegmentMirror(shop, 'english')
    await mirror.follow()
    expect([...mirror.people]).toEqual([ada])
    await patch('ada', { language: 'it' })
    await follow()
    await dataOf(shop.send('POST', '/v1/people/ada/erase', { reason: 'Request of the person' }))
    const { head } = await readFeed(shop)
    await follow()
    await mirror.follow()
    expect([...mirror.people]).toEqual([])
    expect(mirror.restarts).toBe(0)
    const rows = 'select sequence, entered from segment_changes where organization_id = $1'
    expect(await service.sql(rows, [shop.id])).toEqual([{ sequence: head, entered: false }])
  })

  it('of a deleted segment is unknown, and nothing of it is kept', async () => {
    await person('ada', english)
    await segment('english', english)
    await segment('others', { $not: english })
    await follow()
    await person('eve', english)
    await follow()
    const stream = await openEvents(service, shop.token, 'segment=english')
    expect((await stream.next())!.event).toBe('person.created')
    await dataOf(shop.send('DELETE', '/v1/segments/english'))
    await person('bob', english)
    await follow()
    expect(await stream.next()).toBeUndefined()
    expect((await feed('segment=english')).status).toBe(400)
    for (const table of ['segment_members', 'segment_changes'])
      expect(
        await service.sql(`select 1 from ${table} where organization_id = $1 and segment_id = 1`, [shop.id]),
      ).toEqual([])
    await segment('english', english)
    await follow()
    expect(await readSegmentPeople(shop, 'english')).toHaveLength(3)
    expect(await readItems('segment=english')).toEqual([])
  })
})

describe('the follower of segments', () => {
  it('has no row in an organization without segments', async () => {
    await person('ada', english)
    await follow()
    const rows = () =>
      service.sql(`select 1 from followers where organization_id = $1 and name = 'segments'`, [shop.id])
    expect(await rows()).toEqual([])
    await segment('english', english)
    expect(await rows()).toHaveLength(1)
  })

  it('computes the people of a segment again when it was interrupted', async () => {
    await importLines(
      shop,
      '/v1/people/import',
      linesFrom(names('p', 1_200).map(external_id => ({ external_id, ...english }))),
    )
    await segment('english', english)
    await service.sql(
      `insert into segment_members (organization_id, person_id, segment_id)
       select $1, gen_random_uuid(), 1 from generate_series(1, 50)`,
      [shop.id],
    )
    await follow()
    const [{ count }] = (await service.sql<{ count: number }>(
      'select count(*)::integer as count from segment_members where organization_id = $1',
      [shop.id],
    )) as [{ count: number }]
    expect(count).toBe(1_200)
  })
})

import { describe, expect, it } from 'vitest'
import { follow } from '../../test/support/followers.ts'
import { importLines, linesFrom } from '../../test/support/lines.ts'
import { useOwnService } from '../../test/support/service.ts'
import { defaultLimits } from '../process/config.ts'
import { jobsFollower } from './run-jobs.ts'

const service = useOwnService()
const options = { originName: 'kith.test', limits: defaultLimits, pausePerWork: 0 }
const work = () => follow(service.db, [jobsFollower(options)])

// biome-ignore lint/suspicious/noExplicitAny: each test names the shape that it expects
type Item = Record<string, any>

/** An organization of 250 people in Rome and 10 in Oslo. */
async function organizationWithPeople() {
  const organization = await service.organization()
  const ok = async (method: string, path: string, body?: object, headers?: Record<string, string>): Promise<Item> => {
    const reply = await organization.send(method, path, body, headers)
    expect([path, reply.status, reply.body?.details]).toEqual([path, expect.toBeOneOf([200, 201, 202]), undefined])
    return reply.body.data
  }
  const people = Array.from({ length: 260 }, (_, n) => ({
    external_id: `p${n}`,
    last_name: 'Rossi',
    attribute_values: { city: n < 250 ? 'Rome' : 'Oslo' },
  }))
  await importLines(organization, '/v1/people/import', linesFrom(people))
  const count = async (filter: object): Promise<number> =>
    (await ok('POST', '/v1/people/filter', { filter, count: true })).count
  const idOf = async (name: string): Promise<string> => (await ok('GET', `/v1/people/${name}`)).id
  const start = (change: object, rest: object = { filter: inRome }) =>
    ok('POST', '/v1/people/bulk', { ...rest, change })
  const job = (id: string) => ok('GET', `/v1/jobs/${id}`)
  const refused = async (id: string): Promise<Item[]> => (await ok('GET', `/v1/jobs/${id}/refused`)).items
  return { ...organization, ok, count, idOf, start, job, refused }
}

const inRome = { 'attribute_values.city': 'Rome' }
const toMilan = { op: 'patch', body: { attribute_values: { city: 'Milan' } } }

describe('POST /v1/people/bulk', () => {
  it('changes all whom a filter selects in the background, each once and under one request id, and counts them', async () => {
    const org = await organizationWithPeople()
    const { sequence } = (await org.ok('GET', '/v1/changes?limit=1000')).items.at(-1)
    const begun = await org.start(toMilan)
    expect(begun).toMatchObject({ owner: 'people', op: 'patch', state: 'running', total: 250, done: 0, remaining: 250 })
    expect(await org.count(inRome)).toBe(250)
    await work()
    expect(await org.job(begun.id)).toMatchObject({ state: 'done', done: 250, unchanged: 0, refused: 0, remaining: 0 })
    expect(await org.count({ 'attribute_values.city': 'Milan' })).toBe(250)
    expect(await org.count({ 'attribute_values.city': 'Oslo' })).toBe(10)
    const changes: Item[] = (await org.ok('GET', `/v1/changes?after=${sequence}&limit=1000`)).items
    expect(changes).toHaveLength(250)
    expect(new Set(changes.map(({ request_id }) => request_id))).toEqual(new Set([begun.id]))
    expect((await org.ok('GET', '/v1/jobs')).items).toMatchObject([{ id: begun.id, state: 'done' }])
  })

  it('leaves those alone who come to match after it began', async () => {
    const org = await organizationWithPeople()
    const { id } = await org.start(toMilan)
    await org.ok('POST', '/v1/people', { external_id: 'later', attribute_values: { city: 'Rome' } })
    await work()
    expect(await org.job(id)).toMatchObject({ state: 'done', done: 250 })
    expect((await org.ok('GET', '/v1/people/later')).attribute_values).toEqual({ city: 'Rome' })
  })

  it('tells in a dry run how many would change and who would be refused, and writes nothing', async () => {
    const org = await organizationWithPeople()
    const ids = [await org.idOf('p0'), await org.idOf('p1'), '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f']
    const preview = await org.start(toMilan, { filter: inRome, dry_run: true })
    expect(preview).toEqual({
      ...{ dry_run: true, total: 250, tested: 250, done: 250, unchanged: 0, refused: 0, refusals: [] },
    })
    const misspelt = { 'attribute_values.ctiy': { $neq: 'Rome' } }
    const all = await org.start(toMilan, { filter: misspelt, dry_run: true })
    expect(all).toMatchObject({ total: 260, warnings: [{ path: '/filter/attribute_values.ctiy' }] })
    const ofIds = await org.start({ op: 'delete' }, { ids, dry_run: true })
    expect(ofIds).toMatchObject({ total: 3, done: 2, refused: 1, refusals: [{ id: ids[2], error: 'not_found' }] })
    expect((await org.ok('GET', '/v1/jobs')).items).toEqual([])
    expect(await org.count(inRome)).toBe(250)
  })

  it('lists whom it was refused to change with the reasons, in pages, and changes the others', async () => {
    const org = await organizationWithPeople()
    const attribute = { key: 'size', owner: 'people', type: 'number' }
    await org.ok('POST', '/v1/schema/attributes', attribute)
    const missing = Array.from({ length: 3 }, (_, n) => `01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4${n}`)
    const ids = [await org.idOf('p0'), ...missing]
    const { id } = await org.start({ op: 'patch', body: { attribute_values: { size: 3 } } }, { ids })
    const wrong = await org.start({ op: 'patch', body: { attribute_values: { size: 'large' } } }, { ids: [ids[0]] })
    await work()
    expect(await org.job(id)).toMatchObject({ total: 4, done: 1, refused: 3, remaining: 0 })
    const page = await org.ok('GET', `/v1/jobs/${id}/refused?limit=2`)
    expect(page).toMatchObject({ items: [{ id: missing[0], error: 'not_found' }, { id: missing[1] }], has_more: true })
    expect(await org.ok('GET', `/v1/jobs/${id}/refused?after=${missing[1]}`)).toMatchObject({ has_more: false })
    expect(await org.refused(wrong.id)).toMatchObject([
      { id: ids[0], external_id: 'p0', error: 'invalid_parameter', details: [{ path: '/attribute_values/size' }] },
    ])
  })

  it('ends at a cancel, and what it changed is undone with earlier values but for what was changed since', async () => {
    const org = await organizationWithPeople()
    const { id } = await org.start(toMilan)
    expect((await org.send('POST', `/v1/jobs/${id}/undo`, {})).status).toBe(409)
    await work()
    await org.ok('PATCH', '/v1/people/p7', { attribute_values: { city: 'Turin' } })
    expect(await org.ok('POST', `/v1/jobs/${id}/undo`, {})).toMatchObject({
      ...{ updated: 249, deleted: 0, restored: 0, has_more: false },
      left: [{ external_id: 'p7', path: '/attribute_values/city', reason: 'changed_since' }],
    })
    expect(await org.count(inRome)).toBe(249)
    expect((await org.job(id)).undone_at).not.toBeNull()
    const other = await org.start(toMilan)
    expect(await org.ok('POST', `/v1/jobs/${other.id}/cancel`)).toMatchObject({ state: 'cancelled', remaining: 249 })
    await work()
    expect(await org.count(inRome)).toBe(249)
  })

  it('deletes, and an undo restores those whom it deleted', async () => {
    const org = await organizationWithPeople()
    const { id } = await org.start({ op: 'delete' }, { filter: { 'attribute_values.city': 'Oslo' } })
    await work()
    expect(await org.count({})).toBe(250)
    const undone = { restored: 10, updated: 0, deleted: 0, left: [], has_more: false }
    expect(await org.ok('POST', `/v1/jobs/${id}/undo`, { dry_run: true })).toMatchObject(undone)
    expect(await org.count({})).toBe(250)
    expect(await org.ok('POST', `/v1/jobs/${id}/undo`, {})).toMatchObject(undone)
    expect(await org.count({ 'attribute_values.city': 'Oslo' })).toBe(10)
  })

  it('adds a consent with its evidence, which an undo leaves', async () => {
    const org = await organizationWithPeople()
    const answer = { consent_type_id: 1, channel: 'email', state: true, method: 'paper', source: 'fair 2026' }
    const { id } = await org.start({ op: 'patch', body: { consents: [answer] } })
    await work()
    expect(await org.job(id)).toMatchObject({ state: 'done', done: 250 })
    const { items } = await org.ok('GET', '/v1/people/p0/consents/history')
    expect(items).toMatchObject([{ method: 'paper', source: 'fair 2026', request_id: id }])
    const undone = await org.ok('POST', `/v1/jobs/${id}/undo`, {})
    expect(undone).toMatchObject({ updated: 0, has_more: false })
    expect(undone.left[0]).toMatchObject({ path: '/consents', reason: 'consents' })
  })

  it('erases people with a certificate each, and not those under a hold', async () => {
    const org = await organizationWithPeople()
    await org.ok('POST', '/v1/people/p255/hold', { reason: 'a dispute' })
    const change = { op: 'erase', reason: 'the end of the contract' }
    const filter = { 'attribute_values.city': 'Oslo' }
    expect(await org.start(change, { filter, dry_run: true })).toMatchObject({ total: 10, done: 9, refused: 1 })
    const { id } = await org.start(change, { filter })
    await work()
    expect(await org.job(id)).toMatchObject({ state: 'done', done: 9, refused: 1 })
    expect(await org.refused(id)).toMatchObject([{ external_id: 'p255' }])
    const erasures: Item[] = (await org.ok('GET', '/v1/erasures')).items
    expect(erasures).toHaveLength(9)
    expect(erasures.every(({ reason, certificate }) => reason === change.reason && certificate)).toBe(true)
  })

  it('erases a deleted person, and the one whom a merged person leads to, as its dry run tells', async () => {
    const org = await organizationWithPeople()
    const ids = await Promise.all(['p0', 'p1', 'p2', 'p3', 'p4'].map(org.idOf))
    ids.push('01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f')
    await org.ok('POST', '/v1/people/p0/merge', { from: 'p1' })
    await org.ok('POST', '/v1/people/p2/merge', { from: 'p3' })
    await org.ok('POST', '/v1/people/p3/hold', { reason: 'a dispute' })
    await org.send('DELETE', '/v1/people/p4')
    const change = { op: 'erase', reason: 'a request' }
    const counts = { total: 6, done: 2, unchanged: 1, refused: 3 }
    expect(await org.start(change, { ids, dry_run: true })).toMatchObject(counts)
    const { id } = await org.start(change, { ids })
    await work()
    expect(await org.job(id)).toMatchObject({ state: 'done', ...counts })
    expect((await org.send('GET', '/v1/people/p0')).status).toBe(404)
    expect(await org.start(change, { ids: ids.slice(0, 2), dry_run: true })).toMatchObject({ done: 0, unchanged: 2 })
  })

  it('begins once under an Idempotency-Key, and refuses a request id that a job has', async () => {
    const org = await organizationWithPeople()
    const body = { filter: inRome, change: toMilan }
    const headers = { 'Idempotency-Key': 'once' }
    const first = await org.ok('POST', '/v1/people/bulk', body, headers)
    expect(await org.ok('POST', '/v1/people/bulk', body, headers)).toEqual(first)
    expect((await org.ok('GET', '/v1/jobs')).items).toHaveLength(1)
    const again = await org.send('POST', '/v1/people/bulk', body, { 'X-Request-Id': first.id })
    expect(again.status).toBe(409)
  })

  it.each([
    ['neither a filter nor ids', { change: { op: 'delete' } }, '/filter'],
    ['both', { ids: ['01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f'], filter: {}, change: { op: 'delete' } }, '/filter'],
    ['a patch without a body', { filter: {}, change: { op: 'patch' } }, '/change/body'],
    ['a field that does not exist', { filter: {}, change: { op: 'patch', body: { nam: 1 } } }, '/change/body/nam'],
    [
      'one identifier for several',
      { filter: {}, change: { op: 'patch', body: { external_id: 'x' } } },
      '/change/body/external_id',
    ],
    ['an erasure without a reason', { filter: {}, change: { op: 'erase' } }, '/change/reason'],
    [
      'a filter that is none',
      { filter: { last_name: { $like: 'x' } }, change: { op: 'delete' } },
      '/filter/last_name/$like',
    ],
  ])('refuses %s', async (_, body, path) => {
    const org = await service.organization()
    const { status, body: reply } = await org.send('POST', '/v1/people/bulk', body)
    expect([status, reply.details?.[0]?.path]).toEqual([400, path])
    expect((await org.send('GET', '/v1/jobs')).body.data.items).toEqual([])
  })

  it('fails, with the reason, when its filter is not valid any more', async () => {
    const org = await organizationWithPeople()
    await org.ok('POST', '/v1/segments', { key: 'rome', filter: inRome })
    const { id } = await org.start(toMilan, { filter: { $segment: 'rome' } })
    await org.send('DELETE', '/v1/segments/rome')
    await work()
    expect(await org.job(id)).toMatchObject({ state: 'failed', failure: expect.stringContaining('segment') })
  })
})

describe('POST /v1/stacks/{stack_key}/bulk', () => {
  it('changes the records of a stack', async () => {
    const org = await organizationWithPeople()
    await org.ok('POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' })
    for (const name of ['a', 'b']) await org.ok('POST', '/v1/stacks/orders', { external_id: name })
    const { id } = await org.ok('POST', '/v1/stacks/orders/bulk', {
      filter: { external_id: 'a' },
      change: { op: 'patch', body: { attribute_values: { paid: true } } },
    })
    await work()
    expect(await org.job(id)).toMatchObject({ owner: 'orders', state: 'done', done: 1 })
    expect((await org.ok('GET', '/v1/stacks/orders/a')).attribute_values).toEqual({ paid: true })
    expect((await org.ok('GET', '/v1/stacks/orders/b')).attribute_values).toEqual({})
  })

  it('leaves the list of jobs open to a token for people, which does not have it', async () => {
    const org = await organizationWithPeople()
    await org.ok('POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' })
    const { id } = await org.start(toMilan)
    const ofRecords = await org.ok('POST', '/v1/stacks/orders/bulk', { filter: {}, change: { op: 'delete' } })
    const marketer = service.sender(await service.tokenFor(org.key, 'people:write'))
    const { status, body } = await marketer('GET', '/v1/jobs')
    expect([status, body.data.items.map((job: Item) => job.id)]).toEqual([200, [id]])
    expect((await marketer('GET', `/v1/jobs/${ofRecords.id}`)).status).toBe(403)
    expect((await org.ok('GET', '/v1/jobs')).items).toHaveLength(2)
  })
})

import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { createTestDatabase } from '../../test/support/database.ts'
import { importLines, linesFrom } from '../../test/support/lines.ts'
import { someRuns } from '../../test/support/runs.ts'
import { useService } from '../../test/support/service.ts'
import { createShop, useShop } from '../../test/support/shop.ts'
import { names, write, writeAll } from '../../test/support/writes.ts'
import { openDatabase, statement } from '../db/db.ts'
import { createOrganization } from '../organizations/organizations.ts'
import type { LoggedLinks } from './link-names.ts'

const service = useService()
let start: number
const shop = useShop(service, 'referrer', 'friends', 'employer')
const { send } = shop
beforeEach(async () => {
  start = (await changes()).length
})

type Values = Record<string, unknown>
type Row = {
  sequence: number
  at: string
  subject: string
  stack_id: number | null
  entity_id: string | null
  definition_id: number | null
  operation: string
  version: number | null
  before: Values | null
  after: Values
  links: LoggedLinks | null
  actor: string
  request_id: string
}
const changes = async (after = 0) =>
  service.sql<Row>('select * from changes where organization_id = $1 and sequence > $2 order by sequence', [
    shop.id,
    after,
  ])
const entriesOfTest = async () => (await changes(start)).map(row => [row.operation, row.version, row.before, row.after])

describe('the change log of entities', () => {
  it('has the changed keys before and after each write, with actor, request and time', async () => {
    const writer = service.sender(await service.tokenFor(shop.key, 'people:write people:read', 'importer'))
    await send('POST', '/v1/people', { external_id: 'ada', first_name: 'Ada', attribute_values: { a: 1, b: [2] } })
    const body = { first_name: 'A', email: 'a@example.com', attribute_values: { a: null, b: [2], c: {} } }
    await writer('PATCH', '/v1/people/ada', body, { 'X-Request-Id': 'the-request' })
    const [, row] = await changes(start)
    const { data } = (await send('GET', '/v1/people/ada')).body
    expect(row).toMatchObject({
      sequence: start + 2,
      at: data.updated_at,
      subject: 'entity',
      stack_id: 0,
      entity_id: data.id,
      definition_id: null,
      operation: 'update',
      version: 2,
      actor: 'importer',
      request_id: 'the-request',
    })
    expect([row!.before, row!.after]).toEqual([
      { first_name: 'Ada', email: null, attribute_values: { a: 1, c: null } },
      { first_name: 'A', email: 'a@example.com', attribute_values: { a: null, c: {} } },
    ])
  })

  it('has an entry without `before` for each creation, in an import or alone', async () => {
    const first_name = 'A\t\\\r\n"'
    const lines = linesFrom(names('p', 2_000).map(external_id => ({ external_id, first_name: `${first_name}A` })))
    await importLines(shop, '/v1/people/import', lines)
    await send('POST', '/v1/people', { external_id: 'p', first_name: `${first_name}A` })
    const entries = await entriesOfTest()
    expect(entries).toHaveLength(2_001)
    for (const [, version, before, after] of entries) {
      expect([version, before]).toEqual([1, null])
      expect(after).toMatchObject({ first_name: `${first_name}A`, state: 'active' })
    }
  })

  it('numbers the changes of two organizations that import at once, each without gaps', async () => {
    const other = await createShop(service)
    const lines = linesFrom(names('p', 4_000).map(external_id => ({ external_id })))
    await Promise.all([shop, other].map(organization => importLines(organization, '/v1/people/import', lines)))
    for (const { id } of [shop, other]) {
      const [head] = await service.sql<{ sequence: number }>(
        'select sequence from change_heads where organization_id = $1',
        [id],
      )
      const rows = await service.sql<Row>(
        `select sequence from changes where organization_id = $1 and subject = 'entity' order by sequence`,
        [id],
      )
      const last = Number(head!.sequence)
      expect(rows.map(({ sequence }) => Number(sequence))).toEqual(
        Array.from({ length: 4_000 }, (_, n) => last - 3_999 + n),
      )
    }
  })

  it('numbers a set with more changes than a session reserves numbers for', async () => {
    const friends = (n: number) => names(`f${n}-`, 15)
    const lines = names('p', 448).map((external_id, n) => ({ external_id, attribute_values: { friends: friends(n) } }))
    const { counts } = await importLines(shop, '/v1/people/import', linesFrom(lines))
    expect(counts.created).toBe(448)
    const rows = await changes(start)
    expect(rows).toHaveLength(448 * 16)
    expect(rows.map(({ sequence }) => Number(sequence))).toEqual(rows.map((_, n) => start + 1 + n))
  })

  it('has the creation of a placeholder once, before the write that links to it, in every stack', async () => {
    await send('POST', '/v1/people', {
      external_id: 'ada',
      attribute_values: { friends: ['bob', 'eve'], employer: 'acme' },
    })
    await send('PATCH', '/v1/people/ada', { attribute_values: { referrer: 'bob' } })
    const born = (external_id: string) => ['create', 1, null, { external_id, state: 'placeholder' }]
    const all = await entriesOfTest()
    expect(all.slice(0, 3).sort((a, b) => JSON.stringify(a[3]).localeCompare(JSON.stringify(b[3])))).toEqual(
      ['acme', 'bob', 'eve'].map(born),
    )
    expect(all.slice(3)).toMatchObject([
      ['create', 1, null, { external_id: 'ada' }],
      ['update', 2, { attribute_values: { referrer: null } }, { attribute_values: {} }],
    ])
    const [, , , created, updated] = await changes(start)
    const bob = (await send('GET', '/v1/people/bob')).body.data.id
    expect(Object.values(created!.links!).map(({ after }) => after!.length)).toEqual([2, 1])
    expect(Object.values(updated!.links!)).toEqual([{ after: [bob] }])
  })

  it('has completions, consent answers, renames and deletions', async () => {
    await send('POST', '/v1/people', { external_id: 'ada', attribute_values: { referrer: 'bob' } })
    await send('POST', '/v1/people', { external_id: 'bob' })
    const answer = { consent_type_id: 1, channel: 'sms' }
    await send('PATCH', '/v1/people/bob', { consents: [{ ...answer, state: false }] })
    await send('PATCH', '/v1/people/bob', { sms_consent: true })
    await send('PATCH', '/v1/people/bob', { external_id: 'robert' })
    await send('DELETE', '/v1/people/ada')
    expect((await entriesOfTest()).slice(2)).toMatchObject([
      ['update', 2, { state: 'placeholder' }, { state: 'active' }],
      [
        'update',
        3,
        { sms_consent: null, consents: [{ ...answer, state: null }] },
        { sms_consent: false, consents: [{ ...answer, state: false }] },
      ],
      [
        'update',
        4,
        { sms_consent: false, consents: [{ ...answer, state: false }] },
        { sms_consent: true, consents: [{ ...answer, state: true }] },
      ],
      ['update', 5, { external_id: 'bob' }, { external_id: 'robert' }],
      ['delete', 2, { external_id: 'ada' }, {}],
    ])
  })

  it('has the last consent answers in a deletion, including archived purposes, and omits them if there are none', async () => {
    await send('POST', '/v1/schema/consent-types', { key: 'news', channels: [{ channel: 'sms' }] })
    const [marketing, news] = [1, 2].map(consent_type_id => ({ consent_type_id, channel: 'sms' }))
    const byEmail = { consent_type_id: 1, channel: 'email', state: true }
    const consents = [{ ...news, state: true }, { ...marketing, state: true }, byEmail]
    await send('POST', '/v1/people', { external_id: 'ada', consents })
    await send('PATCH', '/v1/people/ada', { consents: [{ ...marketing, state: false }] })
    await send('POST', '/v1/people', { external_id: 'bob' })
    await send('PATCH', '/v1/schema/consent-types/2', { state: 'archived' })
    await send('DELETE', '/v1/people/ada')
    await send('DELETE', '/v1/people/bob')
    const previous = [byEmail, { ...marketing, state: false }, { ...news, state: true }]
    const entry = { external_id: 'ada', state: 'active', email_consent: true, sms_consent: true, consents: previous }
    expect((await entriesOfTest()).slice(-2)).toEqual([
      ['delete', 3, entry, {}],
      ['delete', 2, { external_id: 'bob', state: 'active' }, {}],
    ])
  })

  it.each([
    ['PATCH', '/v1/people/ada', {}],
    ['PATCH', '/v1/people/ada', { first_name: ' Ada ', attribute_values: { referrer: ' bob', gone: null } }],
    ['PUT', '/v1/people/ada', { first_name: 'Ada', attribute_values: { referrer: 'bob' } }],
    ['POST', '/v1/people/upsert', { external_id: 'ada', first_name: 'Ada' }],
    ['PATCH', '/v1/people/ada', { email: 'wrong' }],
    ['PATCH', '/v1/people/ada', { attribute_values: { referrer: 'new', employer: true } }],
    ['PATCH', '/v1/people/nobody', { first_name: 'x' }],
    ['POST', '/v1/people', { external_id: 'ada' }],
    ['DELETE', '/v1/people/nobody', undefined],
    ['POST', '/v1/schema/stacks', { key: 'companies', kind: 'item' }],
    ['PATCH', '/v1/schema/attributes/1', { name: 'referrer' }],
    ['PATCH', '/v1/schema/consent-types/1', { mandatory: true }],
  ])('has no entry for a write that is refused or changes nothing: %s %s %j', async (method, path, body) => {
    await send('POST', '/v1/people', { external_id: 'ada', first_name: 'Ada', attribute_values: { referrer: 'bob' } })
    const before = await changes()
    await send(method, path, body)
    expect(await changes()).toEqual(before)
  })
})

it('logs changes of definitions, and a moved default on both consent types', async () => {
  await send('POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' })
  await send('POST', '/v1/schema/attributes', { key: 'total', owner: 'orders', type: 'number' })
  await send('PATCH', '/v1/schema/attributes/4', { state: 'archived', name: 'total' })
  await send('POST', '/v1/schema/consent-types', { key: 'news', channels: [{ channel: 'sms', is_default: true }] })
  const rows = await changes(start)
  expect(rows.map(row => [row.subject, row.definition_id, row.operation, row.entity_id, row.actor])).toEqual([
    ['stack', 2, 'create', null, 'tests'],
    ['attribute', 4, 'create', null, 'tests'],
    ['attribute', 4, 'update', null, 'tests'],
    ['consent_type', 1, 'update', null, 'tests'],
    ['consent_type', 2, 'create', null, 'tests'],
  ])
  expect(rows[1]!.after).toMatchObject({ key: 'total', owner: 'orders', type: 'number', cardinality: 'one' })
  expect([rows[2]!.before, rows[2]!.after]).toEqual([{ state: 'active' }, { state: 'archived' }])
  const sms = (is_default: boolean) => ({
    channels: expect.arrayContaining([{ channel: 'sms', is_default, double_opt_in: false }]),
  })
  expect([rows[3]!.before, rows[3]!.after, rows[4]!.after]).toMatchObject([sms(true), sms(false), sms(true)])
  expect(rows.map(row => row.sequence)).toEqual([1, 2, 3, 4, 5].map(number => start + number))
})

const value = fc.constantFrom<unknown>(null, 'x', 7, [1], { deep: null })
const attribute_values = fc.option(
  fc.record(
    {
      a: value,
      b: value,
      referrer: fc.constantFrom(null, 't0', 't1'),
      friends: fc.constantFrom(null, ['t0'], ['t1', 't0']),
    },
    { requiredKeys: [] },
  ),
)
const body = fc.record(
  { first_name: fc.constantFrom(null, 'A', 'B'), push_notification_consent: fc.option(fc.boolean()), attribute_values },
  { requiredKeys: [] },
)
const randomWrite = fc.record({
  method: fc.constantFrom('POST', 'PUT', 'PATCH', 'PATCH', 'DELETE'),
  name: fc.constantFrom('p0', 'p1'),
  body,
})

it('has the previous state in every entry, and replays to the state that reads return', async () => {
  const run = async (writes: { method: string; name: string; body: object }[]) => {
    for (const { method, name, body } of writes)
      await (method === 'POST'
        ? send(method, '/v1/people', { ...body, external_id: name })
        : send(method, `/v1/people/${name}`, method === 'DELETE' ? undefined : body))
    const model = new Map<string, Values>()
    const { items } = (await send('GET', `/v1/changes?after=${start}&limit=1000`)).body.data
    for (const { id, operation, before, after } of items) {
      const state = model.get(id) ?? {}
      expect(before === null).toBe(operation === 'create')
      const previous = Object.keys(flat(before ?? {})).map(key => [key, state[key] ?? null])
      expect(flat(before ?? {})).toEqual(Object.fromEntries(previous))
      model.set(id, operation === 'delete' ? {} : { ...state, ...flat(after) })
    }
    for (const name of ['p0', 'p1']) {
      const { status, body } = await send('GET', `/v1/people/${name}`)
      if (status !== 200) continue
      const { id, external_id, state, first_name, push_notification_consent, attribute_values } = body.data
      const entity = { external_id, state, first_name, push_notification_consent, attribute_values }
      expect(present(model.get(id)!)).toEqual(present(flat(entity)))
    }
  }
  await fc.assert(fc.asyncProperty(fc.array(randomWrite, { minLength: 1, maxLength: 10 }), run), someRuns(15))
})

/** Puts the attribute values among the fields. */
function flat({ attribute_values, ...fields }: Values): Values {
  const values = Object.entries((attribute_values ?? {}) as Values)
  return { ...fields, ...Object.fromEntries(values.map(([key, inner]) => [`values.${key}`, inner])) }
}

const present = (values: Values) => Object.fromEntries(Object.entries(values).filter(([, inner]) => inner !== null))

it('shows a reader that follows by number each change of two writing processes once, in order', async () => {
  const database = await createTestDatabase()
  const [one, two, reader] = [1, 2, 3].map(() =>
    openDatabase(database.url, { connections: 6, statementTimeoutMs: 10_000 }),
  )
  try {
    const organization = { ...shop, ...(await createOrganization(one!, 'followed')) }
    const follow = statement(
      'follow',
      'select sequence from changes where organization_id = $1 and sequence > $2 order by sequence',
    )
    const total = 2 * 5 * 12 * 3
    const writing = [one!, two!].flatMap((db, process) =>
      names(`w${process}-`, 5).map(async writer => {
        for (let turn = 0; turn < 12; turn += 1) {
          const people = names(`${writer}-${turn}-`, 2).map(name => write('create', name))
          const shared = write('upsert', `shared${turn}`, {
            external_id: `shared${turn}`,
            attribute_values: { [writer]: turn },
          })
          await writeAll(db, organization, turn % 2 ? [shared, ...people] : [...people, shared])
        }
      }),
    )
    const seen: number[] = []
    const following = async () => {
      while (seen.length < total) {
        const rows = await reader!.query<{ sequence: number }>(follow, [organization.id, seen.at(-1) ?? 0])
        seen.push(...rows.map(row => row.sequence))
      }
    }
    await Promise.all([following(), ...writing])
    expect(seen).toEqual(Array.from({ length: total }, (_, n) => n + 1))
  } finally {
    await Promise.all([one!.close(), two!.close(), reader!.close()])
    await database.drop()
  }
})

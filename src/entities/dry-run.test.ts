import { describe, expect, it, vi } from 'vitest'
import { readDigest } from '../../test/hostile/test-tenant.ts'
import { readFeed, type WireChange } from '../../test/support/changes.ts'
import { dryRunOf, findDryRunMismatch, type WireDryRun } from '../../test/support/dry-runs.ts'
import { type Reply, useService } from '../../test/support/service.ts'
import { createShop, useShop } from '../../test/support/shop.ts'
import { onCommit } from '../db/commit-events.ts'

const service = useService()
const shop = useShop(service, 'referrer', 'friends', 'employer')
const { ok } = shop

type Request = { method: string; path: string; body?: unknown; headers?: Record<string, string> }

const send = ({ method, path, body, headers }: Request) => shop.send(method, path, body, headers)
const create = (body: object) => ok('POST', '/v1/people', body)
const head = async () => (await readFeed(shop)).head

/** Sends a request as a dry run, which must leave every row of the organization as it was. */
async function rehearse(request: Request): Promise<Reply> {
  const before = await readDigest(service, shop.id)
  const reply = await send({ ...request, path: dryRunOf(request.path) })
  expect(await readDigest(service, shop.id)).toBe(before)
  return reply
}

/** Rehearses a request and sends it. Returns the data of the dry run, and the log entries of the write. */
async function rehearseAndSend(request: Request): Promise<{ dry: WireDryRun; logged: WireChange[]; real: Reply }> {
  const before = await head()
  const reply = await rehearse(request)
  expect(reply.status, JSON.stringify(reply.body)).toBe(200)
  const real = await send(request)
  expect(real.status).toBeLessThan(300)
  const { items } = await readFeed(shop, `after=${before}&limit=1000`)
  // A dry run uses no sequence number.
  expect(items.map(({ sequence }) => sequence)).toEqual(items.map((_, index) => before + index + 1))
  return { dry: reply.body.data, logged: items, real }
}

describe('a dry run of a creation', () => {
  it('returns the change as the log has it after the write, with the placeholders and answers', async () => {
    const consents = [{ consent_type_id: 1, channel: 'email', state: true, collected_at: '2026-01-01T00:00:00Z' }]
    const attribute_values = { referrer: 'bob', employer: 'acme', city: 'Rome' }
    const body = { external_id: 'ada', first_name: 'Ada', consents, attribute_values }
    const { dry, logged } = await rehearseAndSend({ method: 'POST', path: '/v1/people', body })
    expect(dry).toEqual({
      dry_run: true,
      result: 'created',
      id: null,
      external_id: 'ada',
      version: 1,
      before: null,
      after: logged.at(-1)!.after,
      placeholders: [
        { kind: 'people', external_id: 'bob' },
        { kind: 'companies', external_id: 'acme' },
      ],
      consents: [
        {
          ...{ consent_type_id: 1, channel: 'email', before: null },
          after: { state: true, pending: false, answered_at: '2026-01-01T00:00:00.000Z', person_id: null },
        },
      ],
    })
    expect(findDryRunMismatch('people', [dry], logged)).toBeUndefined()
  })

  it('that completes a placeholder has its internal identifier', async () => {
    await create({ external_id: 'ada', attribute_values: { referrer: 'bob' } })
    const { id } = await ok('GET', '/v1/people/bob')
    const request = { method: 'POST', path: '/v1/people', body: { external_id: 'bob' } }
    const { dry } = await rehearseAndSend(request)
    expect(dry).toMatchObject({ result: 'created', id, version: 2, before: { state: 'placeholder' } })
  })
})

describe('a dry run of a write to an existing entity', () => {
  it.each([
    ['PATCH', '/v1/people/ada', { first_name: 'A', attribute_values: { friends: ['new', 'bob'] } }, 'updated'],
    ['PATCH', '/v1/people/ada', { first_name: 'Ada' }, 'unchanged'],
    ['PATCH', '/v1/people/ada', { external_id: 'augusta' }, 'updated'],
    ['PUT', '/v1/people/ada', { last_name: 'L' }, 'updated'],
    ['POST', '/v1/people/upsert', { external_id: 'ada', last_name: 'L' }, 'updated'],
    ['POST', '/v1/people/upsert', { external_id: 'shop-1', email: 'ada@example.com', match: ['email'] }, 'updated'],
    ['DELETE', '/v1/people/ada', undefined, 'deleted'],
    ['PATCH', '/v1/stacks/companies/acme', { attribute_values: { size: 3 } }, 'updated'],
    ['PUT', '/v1/stacks/companies/acme', { external_id: 'emca' }, 'updated'],
    ['DELETE', '/v1/stacks/companies/acme', undefined, 'deleted'],
  ] as const)('%s %s with %j', async (method, path, body, result) => {
    const values = { attribute_values: { referrer: 'bob', employer: 'acme', city: 'Rome' }, sms_consent: true }
    const ada = await create({ external_id: 'ada', first_name: 'Ada', email: 'ada@example.com', ...values })
    const acme = await ok('GET', '/v1/stacks/companies/acme')
    const { dry, logged } = await rehearseAndSend({ method, path, body })
    const [kind, id] = path.includes('companies') ? ['companies', acme.record_id] : ['people', ada.id]
    expect([dry.result, dry.id]).toEqual([result, id])
    expect(findDryRunMismatch(kind, [dry], logged)).toBeUndefined()
    if (result === 'deleted' && kind === 'people') expect(dry.consents).toMatchObject([{ channel: 'sms', after: null }])
  })

  it('restores by both kinds of identifiers, with what the deletion took', async () => {
    const { id } = await create({ external_id: 'ada', attribute_values: { referrer: 'bob' }, email_consent: true })
    await ok('DELETE', '/v1/people/ada')
    const { dry, logged } = await rehearseAndSend({ method: 'POST', path: `/v1/people/internal/${id}/restore` })
    expect(dry).toMatchObject({ result: 'restored', id, external_id: 'ada', before: null })
    expect(dry.consents).toMatchObject([{ channel: 'email', before: null, after: { state: true } }])
    expect(findDryRunMismatch('people', [dry], logged)).toBeUndefined()
  })

  it('takes the body from the query too', async () => {
    await create({ external_id: 'ada' })
    const reply = await shop.send('PATCH', '/v1/people/ada?dry_run=true&first_name=Ada')
    expect(reply.body.data).toMatchObject({ result: 'updated', after: { first_name: 'Ada' } })
    expect((await ok('GET', '/v1/people/ada')).first_name).toBeNull()
    await ok('PATCH', '/v1/people/ada?dry_run=false&first_name=Ada')
    expect((await ok('GET', '/v1/people/ada')).first_name).toBe('Ada')
    await ok('PATCH', '/v1/people/ada?dry_run=false', { first_name: 'Augusta' })
    expect((await ok('GET', '/v1/people/ada')).first_name).toBe('Augusta')
  })
})

describe('a dry run is refused', () => {
  const refused: [string, string, unknown, Record<string, string>?][] = [
    ['PATCH', '/v1/people/nobody', { first_name: 'x' }],
    ['PATCH', '/v1/people/internal/01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f', { first_name: 'x' }],
    ['DELETE', '/v1/people/nobody', undefined],
    ['POST', '/v1/people', { external_id: 'ada' }],
    ['PATCH', '/v1/people/ada', { external_id: 'bob' }],
    ['PATCH', '/v1/people/ada', { first_name: 'x' }, { 'If-Match': '"7"' }],
    ['DELETE', '/v1/people/ada', undefined, { 'If-Match': '"7"' }],
    ['PUT', '/v1/people/ada', { email: 'not one' }],
    ['PUT', '/v1/people/ada', { attribute_values: { referrer: ['a', 'b'] } }],
    ['PATCH', '/v1/people/ada', { attribute_values: { referrer: 'nobody' } }, { Prefer: 'references=strict' }],
    ['PATCH', '/v1/people/ada', { consents: [{ consent_type_id: 99, channel: 'sms', state: true }] }],
    ['POST', '/v1/people/upsert', { first_name: 'x' }],
    ['POST', '/v1/people/internal/01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f/restore', undefined],
    ['POST', '/v1/stacks/nothing', { external_id: 'x' }],
    ['POST', '/v1/people/batch', { atomic: true, operations: [{ op: 'delete', external_id: 'nobody' }] }],
    ['POST', '/v1/people/ada/merge', { from: 'nobody' }],
    ['POST', '/v1/people/nobody/erase', { reason: 'a request' }],
  ]
  it.each(refused)('as the write is: %s %s with %j', async (method, path, body, headers = {}) => {
    await create({ external_id: 'ada' })
    await create({ external_id: 'bob' })
    const dry = await rehearse({ method, path, body, headers })
    const real = await shop.send(method, path, body, headers)
    const { request_id: _, errorstack: __, ...refusal } = real.body
    expect(real.status).toBeGreaterThanOrEqual(400)
    expect([dry.status, dry.body]).toMatchObject([real.status, refusal])
  })

  it.each(['dry_run=1', 'dry_run=', 'dry_run=TRUE', 'dry_run=true&dry_run=true', 'dry%5Frun=yes'])(
    'with the query %s, and nothing is written',
    async query => {
      await create({ external_id: 'ada' })
      const before = await readDigest(service, shop.id)
      for (const [method, path, body] of [
        ['PATCH', '/v1/people/ada', { first_name: 'x' }],
        ['DELETE', '/v1/people/ada', undefined],
        ['POST', '/v1/people', { external_id: 'new' }],
        ['POST', '/v1/people/ada/merge', { from: 'ada' }],
        ['POST', '/v1/people/ada/erase', { reason: 'a request' }],
        ['POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' }],
      ] as const) {
        const { status, body: answer } = await shop.send(method, `${path}?${query}`, body)
        expect([status, answer.error, answer.details?.[0]?.path]).toEqual([400, 'invalid_parameter', '/dry_run'])
      }
      expect(await readDigest(service, shop.id)).toBe(before)
    },
  )

  it('with an Idempotency-Key, which then is free', async () => {
    await create({ external_id: 'ada' })
    const headers = { 'Idempotency-Key': 'once' }
    for (const [method, path, body] of [
      ['POST', '/v1/people', { external_id: 'new' }],
      ['PATCH', '/v1/people/ada', { first_name: 'x' }],
      ['DELETE', '/v1/people/ada', undefined],
      ['POST', '/v1/people/ada/merge', { from: 'ada' }],
      ['POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' }],
    ] as const) {
      const { status, body: answer } = await rehearse({ method, path, body, headers })
      expect([status, answer.details?.[0]?.path]).toEqual([400, '/dry_run'])
    }
    // Some endpoints take dry_run in the body instead.
    await create({ external_id: 'other', first_name: 'Other' })
    const declaration = { owner: 'people', key: 'age', type: 'number', dry_run: true }
    for (const [method, path, body] of [
      ['POST', '/v1/people/ada/merge', { from: 'other', dry_run: true }],
      ['POST', '/v1/people/ada/unmerge', { from: 'other', dry_run: true }],
      ['POST', '/v1/people/ada/erase', { reason: 'r', dry_run: true }],
      ['PUT', '/v1/schema/observed/declare', declaration],
    ] as const) {
      const { status, body: answer } = await shop.send(method, path, body, headers)
      expect([path, status, answer.error, answer.details?.[0]?.path]).toEqual([
        path,
        400,
        'invalid_parameter',
        '/dry_run',
      ])
    }
    const merging = { from: 'other', dry_run: false }
    expect((await shop.send('POST', '/v1/people/ada/merge', merging, headers)).body.data.person.first_name).toBe(
      'Other',
    )
    expect((await shop.send('POST', '/v1/people', { external_id: 'new' }, headers)).status).toBe(201)
  })

  it('by an endpoint that has none, and nothing is written', async () => {
    await create({ external_id: 'ada' })
    for (const [path, body] of [
      ['/v1/people/ada/consent-links', {}],
      ['/v1/webhooks/1/test', undefined],
      ['/v1/webhooks/1/replay', { after: 0 }],
    ] as const) {
      const { status, body: answer } = await rehearse({ method: 'POST', path, body })
      expect([status, answer.details?.[0]?.path]).toEqual([400, '/dry_run'])
    }
  })

  it('of another organization finds nothing', async () => {
    const { id } = await create({ external_id: 'ada' })
    const other = await createShop(service)
    for (const [method, path, body] of [
      ['PUT', '/v1/people/ada', { first_name: 'x' }],
      ['DELETE', `/v1/people/internal/${id}`, undefined],
      ['POST', `/v1/people/internal/${id}/restore`, undefined],
    ] as const)
      expect((await other.send(method, dryRunOf(path), body)).status).toBe(404)
  })
})

describe('a dry run for a token that may only write', () => {
  it('returns the result and the identifiers', async () => {
    const { id } = await create({ external_id: 'ada', first_name: 'Ada' })
    const writer = service.sender(await service.tokenFor(shop.key, 'people:write'))
    const patched = await writer('PATCH', '/v1/people/ada?dry_run=true', { first_name: 'x' })
    const identifiers = { dry_run: true, result: 'updated', id, external_id: 'ada' }
    expect(patched.body.data).toEqual(identifiers)
    const operations = [{ op: 'patch', external_id: 'ada', body: { first_name: 'x' } }]
    const batched = await writer('POST', '/v1/people/batch?dry_run=true', { operations })
    expect(batched.body.data.items).toEqual([{ index: 0, status: 200, id, external_id: 'ada', dry_run: identifiers }])
    const reader = service.sender(await service.tokenFor(shop.key, 'people:read'))
    expect((await reader('PATCH', '/v1/people/ada?dry_run=true', { first_name: 'x' })).status).toBe(403)
  })
})

describe('a dry run of a batch', () => {
  const operations = [
    { op: 'create', body: { external_id: 'a', attribute_values: { referrer: 'b' } } },
    { op: 'patch', external_id: 'a', body: { first_name: 'A' } },
    { op: 'patch', external_id: 'b', body: { first_name: 'B' } },
    { op: 'create', body: { external_id: 'c', attribute_values: { friends: ['a', 'b', 'd'] } } },
    { op: 'delete', external_id: 'a' },
    { op: 'create', body: { external_id: 'a' } },
    { op: 'put', external_id: 'ada', body: { last_name: 'L' } },
  ]

  it.each([false, true])('shows what each operation would do after the ones before it (atomic: %s)', async atomic => {
    const { id } = await create({ external_id: 'ada', first_name: 'Ada' })
    const body = { operations, atomic }
    const { dry, logged, real } = await rehearseAndSend({ method: 'POST', path: '/v1/people/batch', body })
    const { items, failed } = dry as unknown as { items: (object & { dry_run: WireDryRun })[]; failed: number }
    expect([dry.dry_run, failed]).toEqual([true, 0])
    const statusesOf = (of: object[]) => of.map(item => (item as { status: number }).status)
    expect(statusesOf(items)).toEqual(statusesOf(real.body.data.items))
    expect(items.map(item => item.dry_run.id)).toEqual([null, null, null, null, null, null, id])
    const changes = items.map(item => item.dry_run)
    expect(changes.map(({ version }) => version)).toEqual([1, 2, 2, 1, 3, 4, 2])
    expect(changes.map(({ placeholders }) => placeholders.length)).toEqual([1, 0, 0, 1, 0, 0, 0])
    expect(findDryRunMismatch('people', changes, logged)).toBeUndefined()
  })

  it('refuses the operations that the batch refuses', async () => {
    const wrong = [...operations.slice(0, 3), { op: 'delete', external_id: 'nobody' }, { op: 'create', body: { x: 1 } }]
    const dry = await rehearse({ method: 'POST', path: '/v1/people/batch', body: { operations: wrong } })
    expect(dry.body.data.failed).toBe(2)
    const real = await ok('POST', '/v1/people/batch', { operations: wrong })
    expect(dry.body.data.items.slice(3)).toEqual(real.items.slice(3))
  })

  it('of more than one set of independent operations shows all of them', async () => {
    const many = Array.from({ length: 600 }, (_, n) => ({ op: 'create', body: { external_id: `p${n}` } }))
    const body = { operations: many }
    const { dry, logged } = await rehearseAndSend({ method: 'POST', path: '/v1/people/batch', body })
    const { items } = dry as unknown as { items: { dry_run: WireDryRun }[] }
    expect(items).toHaveLength(600)
    expect(
      findDryRunMismatch(
        'people',
        items.map(item => item.dry_run),
        logged,
      ),
    ).toBeUndefined()
  })

  it('is refused if its values would take too much memory', async () => {
    const note = 'x'.repeat(60_000)
    const attribute_values = Object.fromEntries(Array.from({ length: 8 }, (_, n) => [`note${n}`, note]))
    const names = Array.from({ length: 36 }, (_, n) => `p${n}`)
    for (const external_id of names) await create({ external_id, attribute_values })
    const deletions = names.map(external_id => ({ op: 'delete', external_id }))
    const path = '/v1/people/batch'
    const tooMany = await rehearse({ method: 'POST', path, body: { operations: deletions } })
    expect([tooMany.status, tooMany.body.message]).toEqual([400, expect.stringContaining('16 MiB')])
    const fewer = await rehearse({ method: 'POST', path, body: { operations: deletions.slice(0, 30) } })
    expect([fewer.status, fewer.body.data.failed]).toEqual([200, 0])
  })
})

describe('a dry run leaves no trace', () => {
  it('announces no commit, counts no growth and stores nothing that another request sees', async () => {
    const committed: number[] = []
    const stop = onCommit(service.db, id => committed.push(id))
    const statements = vi.spyOn(service.db.observer!, 'statement')
    const analyzed = () => statements.mock.calls.filter(([name]) => name === 'analyze_growth').length
    try {
      const operations = (prefix: string) =>
        Array.from({ length: 80 }, (_, n) => ({ op: 'create', body: { external_id: `${prefix}${n}` } }))
      for (const atomic of [false, true])
        await rehearse({ method: 'POST', path: '/v1/people/batch', body: { operations: operations('dry'), atomic } })
      await rehearse({ method: 'POST', path: '/v1/people', body: { external_id: 'dry' } })
      await rehearse({ method: 'POST', path: '/v1/schema/stacks', body: { key: 'orders', kind: 'item' } })
      expect([committed.filter(id => id === shop.id), analyzed()]).toEqual([[], 0])
      await ok('POST', '/v1/people/batch', { operations: operations('real') })
      expect(committed.includes(shop.id)).toBe(true)
      await expect.poll(analyzed).toBe(1)
    } finally {
      stop()
      statements.mockRestore()
    }
  })

  it('runs beside writes of the same person, which all take effect', async () => {
    await create({ external_id: 'ada' })
    const writes = Array.from({ length: 20 }, (_, n) => [
      shop.send('PATCH', '/v1/people/ada', { first_name: `real ${n}` }),
      shop.send('PATCH', '/v1/people/ada?dry_run=true', { first_name: `dry ${n}` }),
    ]).flat()
    const replies = await Promise.all(writes)
    expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 200))
    const { version, first_name } = await ok('GET', '/v1/people/ada')
    expect([version, first_name.slice(0, 4)]).toEqual([21, 'real'])
  })
})

describe('the parameter in the query of a merge and an erasure', () => {
  it('stands for the member of the body', async () => {
    await create({ external_id: 'ada' })
    await create({ external_id: 'bob', email: 'bob@example.com' })
    const merge = { method: 'POST', path: '/v1/people/ada/merge', body: { from: 'bob' } }
    const dry = await rehearse(merge)
    expect(dry.body.data).toMatchObject({ dry_run: true, merge_id: null })
    const real = await send(merge)
    expect(real.body.data).toMatchObject({ dry_run: false, changes: dry.body.data.changes })
    const unmerge = { ...merge, path: '/v1/people/ada/unmerge' }
    const dryUnmerge = await rehearse(unmerge)
    expect(dryUnmerge.body.data).toMatchObject({ dry_run: true, merge_id: null })
    expect((await send(unmerge)).body.data.changes).toEqual(dryUnmerge.body.data.changes)
    const erase = { method: 'POST', path: '/v1/people/bob/erase', body: { reason: 'a request', dry_run: false } }
    const dryErase = await rehearse(erase)
    expect(dryErase.body.data).toMatchObject({ dry_run: true, certificate: null })
    expect((await send(erase)).body.data.erasure.removed).toEqual(dryErase.body.data.erasure.removed)
  })
})

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { importLines, linesFrom } from '../../test/support/lines.ts'
import { type Organization, type Service, startService } from '../../test/support/service.ts'
import { makeShop, resultOf, runAfterFirst, type Shop, write, writeAll } from '../../test/support/writes.ts'
import type { Write } from './write-request.ts'

let service: Service
let organization: Organization
let send: Organization['send']
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())
beforeEach(async () => {
  organization = await service.organization()
  send = organization.send
  await send('POST', '/v1/schema/attributes', { owner: 'people', key: 'friend', type: 'person' })
})

const read = async (external_id: string) => (await send('GET', `/v1/people/${external_id}`)).body.data
const batch = (operations: object[], atomic = false) => send('POST', '/v1/people/batch', { operations, atomic })

const leaving: [string, () => Promise<unknown>][] = [
  ['deleted', () => send('DELETE', '/v1/people/ada')],
  ['deleted by its id', async () => send('DELETE', `/v1/people/internal/${(await read('ada')).id}`)],
  ['deleted in a batch', () => batch([{ op: 'delete', external_id: 'ada' }])],
  ['renamed', () => send('PATCH', '/v1/people/ada', { external_id: 'other' })],
  ['left without a name', () => send('PATCH', '/v1/people/ada', { external_id: null })],
]

const making: [string, () => Promise<unknown>][] = [
  ['POST', () => send('POST', '/v1/people', { external_id: 'ada' })],
  ['an upsert', () => send('POST', '/v1/people/upsert', { external_id: 'ada' })],
  ['a batch', () => batch([{ op: 'create', external_id: 'ada', body: {} }])],
  ['an import', () => importLines(organization, '/v1/people/import', linesFrom([{ external_id: 'ada' }]))],
  ['a relationship', () => send('POST', '/v1/people', { external_id: 'bob', attribute_values: { friend: 'ada' } })],
]

describe('an entity that takes a name which was left', () => {
  describe.each(leaving)('by one that was %s', (_, leave) => {
    test.each(making)('matches no If-Match of that one, made by %s', async (_way, make) => {
      await send('POST', '/v1/people', { external_id: 'ada' })
      await send('PATCH', '/v1/people/ada', { first_name: 'Ada' })
      await leave()
      await make()
      const made = await read('ada')
      expect(made.version).toBe(4)
      for (const tag of ['"1"', '"2"', '"3"'])
        for (const [method, path, body] of [
          ['PATCH', '/v1/people/ada', { first_name: 'X' }],
          ['PUT', '/v1/people/ada', {}],
          ['DELETE', '/v1/people/ada', undefined],
          ['POST', '/v1/people/upsert', { external_id: 'ada', first_name: 'X' }],
        ] as const)
          expect((await send(method, path, body, { 'If-Match': tag })).status).toBe(412)
      expect(await read('ada')).toEqual(made)
      expect((await send('PATCH', '/v1/people/ada', { first_name: 'X' }, { 'If-Match': '"4"' })).status).toBe(200)
    })
  })

  test('goes on from the last of many, and within one batch', async () => {
    const again = [
      { op: 'delete', external_id: 'ada' },
      { op: 'create', external_id: 'ada', body: {} },
    ]
    await send('POST', '/v1/people', { external_id: 'ada' })
    for (const atomic of [true, false, true])
      expect((await batch([...again, ...again], atomic)).body.data.failed).toBe(0)
    expect((await read('ada')).version).toBe(13)
  })

  test('begins at 1 where another stack or another organization has left the name', async () => {
    await send('POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' })
    await send('POST', '/v1/people', { external_id: 'ada' })
    await send('DELETE', '/v1/people/ada')
    expect((await send('POST', '/v1/stacks/orders', { external_id: 'ada' })).body.data.version).toBe(1)
    const other = await service.organization()
    expect((await other.send('POST', '/v1/people', { external_id: 'ada' })).body.data.version).toBe(1)
    expect((await send('POST', '/v1/people', {})).body.data.version).toBe(1)
  })

  test('waits for the deletion that is under way, and goes on from it', async () => {
    await send('POST', '/v1/people', { external_id: 'ada' })
    for (let round = 0; round < 20; round += 1) {
      const before = (await read('ada')).version
      const [, created] = await Promise.all([
        send('DELETE', '/v1/people/ada'),
        send('POST', '/v1/people', { external_id: 'ada' }),
      ])
      if (created.status === 409) await send('POST', '/v1/people', { external_id: 'ada' })
      expect((await read('ada')).version).toBe(before + 2)
    }
  })

  describe('goes on from what others do between two statements', () => {
    const versionOfAda = async (shop: Shop) => {
      const rows = await service.sql<{ version: number }>(
        `select version from entities where organization_id = $1 and external_id = 'ada'`,
        [shop.id],
      )
      return rows[0]!.version
    }
    const writesOf = (shop: Shop, writes: Write[]) =>
      runAfterFirst('read_names_left', service.db, async () => {
        for (const one of writes) await writeAll(service.db, shop, [one])
      })

    test('of a link to the name', async () => {
      const shop = await makeShop(service)
      await writeAll(service.db, shop, [write('create', 'ada'), write('create', 'bob')])
      const db = writesOf(shop, [write('patch', 'ada', { first_name: 'Ada' }), write('delete', 'ada')])
      const link = write('patch', 'bob', { attribute_values: { referrer: 'ada' } })
      expect((await writeAll(db, shop, [link])).map(resultOf)).toEqual(['updated'])
      expect(await versionOfAda(shop)).toBe(4)
    })

    test('of a creation', async () => {
      const shop = await makeShop(service)
      const db = writesOf(shop, [write('create', 'ada'), write('delete', 'ada')])
      expect((await writeAll(db, shop, [write('create', 'ada')])).map(resultOf)).toEqual(['created'])
      expect(await versionOfAda(shop)).toBe(3)
    })
  })
})

import { describe, expect, it } from 'vitest'
import { importLines, linesFrom } from '../../../test/support/lines.ts'
import { useService } from '../../../test/support/service.ts'
import { createShop, type Shop, useShop } from '../../../test/support/shop.ts'
import { resultOf, runBeforeTransaction, write, writeAll } from '../../../test/support/writes.ts'
import type { Write } from '../write-request.ts'

const service = useService()
const organization = useShop(service, 'referrer')
const { send } = organization

const read = async (external_id: string) => (await send('GET', `/v1/people/${external_id}`)).body.data
const batch = (operations: object[], atomic = false) => send('POST', '/v1/people/batch', { operations, atomic })

const releases: [string, () => Promise<unknown>][] = [
  ['deleted', () => send('DELETE', '/v1/people/ada')],
  ['deleted by its id', async () => send('DELETE', `/v1/people/internal/${(await read('ada')).id}`)],
  ['deleted in a batch', () => batch([{ op: 'delete', external_id: 'ada' }])],
  ['renamed', () => send('PATCH', '/v1/people/ada', { external_id: 'other' })],
  ['cleared of its name', () => send('PATCH', '/v1/people/ada', { external_id: null })],
]

const creations: [string, () => Promise<unknown>][] = [
  ['POST', () => send('POST', '/v1/people', { external_id: 'ada' })],
  ['an upsert', () => send('POST', '/v1/people/upsert', { external_id: 'ada' })],
  ['a batch', () => batch([{ op: 'create', external_id: 'ada', body: {} }])],
  ['an import', () => importLines(organization, '/v1/people/import', linesFrom([{ external_id: 'ada' }]))],
  ['a relationship', () => send('POST', '/v1/people', { external_id: 'bob', attribute_values: { referrer: 'ada' } })],
]

describe('a new entity with a released name', () => {
  describe.each(releases)('whose last entity was %s', (_, release) => {
    it.each(creations)('matches no If-Match of that last entity if created by %s', async (_way, create) => {
      await send('POST', '/v1/people', { external_id: 'ada' })
      await send('PATCH', '/v1/people/ada', { first_name: 'Ada' })
      await release()
      await create()
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

  it('continues the versions of the last of several entities, also within a batch', async () => {
    const replaceAda = [
      { op: 'delete', external_id: 'ada' },
      { op: 'create', external_id: 'ada', body: {} },
    ]
    await send('POST', '/v1/people', { external_id: 'ada' })
    for (const atomic of [true, false, true])
      expect((await batch([...replaceAda, ...replaceAda], atomic)).body.data.failed).toBe(0)
    expect((await read('ada')).version).toBe(13)
  })

  it.each(releases)(
    'continues the versions of the last entity of a name, which was %s, if it takes the name by a rename',
    async (_, release) => {
      await send('POST', '/v1/people', { external_id: 'ada' })
      await send('PATCH', '/v1/people/ada', { first_name: 'Ada' })
      await release()
      await send('POST', '/v1/people', { external_id: 'bob' })
      expect((await send('PATCH', '/v1/people/bob', { external_id: 'ada' })).status).toBe(200)
      const renamed = await read('ada')
      expect(renamed.version).toBe(4)
      expect((await send('PATCH', '/v1/people/ada', { first_name: 'X' }, { 'If-Match': '"2"' })).status).toBe(412)
      expect(await read('ada')).toEqual(renamed)
    },
  )

  it.each(creations)(
    'continues the versions under the names of an erased person if created by %s',
    async (_way, create) => {
      await send('POST', '/v1/people', { external_id: 'bob' })
      await send('POST', '/v1/people', { external_id: 'ada' })
      await send('POST', '/v1/people/bob/merge', { from: 'ada' })
      await send('PATCH', '/v1/people/ada', { first_name: 'Ada' })
      const { version } = await read('ada')
      await send('POST', '/v1/people/bob/erase', { reason: 'Request of the person' })
      // The tombstone of the name refuses it.
      await service.sql('delete from tombstones where organization_id = $1', [organization.id])
      await create()
      expect((await read('ada')).version).toBeGreaterThan(version)
      const stored = await service.sql('select n::text as row from name_versions n where organization_id = $1', [
        organization.id,
      ])
      expect(stored).toHaveLength(2)
      expect(JSON.stringify(stored)).not.toMatch(/bob/)
    },
  )

  it('starts at version 1 if another stack or another organization released the name', async () => {
    await send('POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' })
    await send('POST', '/v1/people', { external_id: 'ada' })
    await send('DELETE', '/v1/people/ada')
    expect((await send('POST', '/v1/stacks/orders', { external_id: 'ada' })).body.data.version).toBe(1)
    const other = await service.organization()
    expect((await other.send('POST', '/v1/people', { external_id: 'ada' })).body.data.version).toBe(1)
    expect((await send('POST', '/v1/people', {})).body.data.version).toBe(1)
  })

  it('waits for a concurrent deletion and continues its version', async () => {
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

  describe('whose name is released before its creation locks the head', () => {
    const versionOfAda = async (shop: Shop) => {
      const rows = await service.sql<{ version: number }>(
        `select version from entities where organization_id = $1 and external_id = 'ada'`,
        [shop.id],
      )
      return rows[0]!.version
    }
    const writesOf = (shop: Shop, writes: Write[]) =>
      runBeforeTransaction(service.db, async () => {
        for (const write of writes) await writeAll(service.db, shop, [write])
      })

    it('continues the versions if it is created by a link', async () => {
      const shop = await createShop(service, 'referrer')
      await writeAll(service.db, shop, [write('create', 'ada'), write('create', 'bob')])
      const db = writesOf(shop, [write('patch', 'ada', { first_name: 'Ada' }), write('delete', 'ada')])
      const link = write('patch', 'bob', { attribute_values: { referrer: 'ada' } })
      expect((await writeAll(db, shop, [link])).map(resultOf)).toEqual(['updated'])
      expect(await versionOfAda(shop)).toBe(4)
    })

    it('continues the versions if another entity takes it by a rename', async () => {
      const shop = await createShop(service)
      await writeAll(service.db, shop, [write('create', 'ada'), write('create', 'bob')])
      const db = writesOf(shop, [write('patch', 'ada', { first_name: 'Ada' }), write('delete', 'ada')])
      const rename = write('patch', 'bob', { external_id: 'ada' })
      expect((await writeAll(db, shop, [rename])).map(resultOf)).toEqual(['updated'])
      expect(await versionOfAda(shop)).toBe(4)
    })

    it('continues the versions if it is created by a create', async () => {
      const shop = await createShop(service)
      const db = writesOf(shop, [write('create', 'ada'), write('delete', 'ada')])
      expect((await writeAll(db, shop, [write('create', 'ada')])).map(resultOf)).toEqual(['created'])
      expect(await versionOfAda(shop)).toBe(3)
    })
  })
})

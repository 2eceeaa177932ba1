import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Service, startService } from '../../test/support/service.ts'
import { makeShop, names, write, writeAll } from '../../test/support/writes.ts'

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())

type Row = {
  sequence: number
  subject: string
  entity_id: string | null
  operation: string
  version: number | null
  before: Record<string, unknown>
  after: Record<string, unknown>
  actor: string
  request_id: string
}

const changesOf = (organization_id: number, after = 0) =>
  service.sql<Row>('select * from changes where organization_id = $1 and sequence > $2 order by sequence', [
    organization_id,
    after,
  ])

describe('the change log', () => {
  test('has one row for each effective write, births included, with what changed before and after', async () => {
    const shop = await makeShop(service)
    const [first] = await service.sql<{ sequence: number }>(
      'select sequence from change_heads where organization_id = $1',
      [shop.id],
    )
    const id = { 'X-Request-Id': 'r-1' }
    await shop.send('POST', '/v1/people', { external_id: 'ada', first_name: 'Ada' }, id)
    await shop.send('PATCH', '/v1/people/ada', { first_name: 'Ada' }, id)
    await shop.send('PATCH', '/v1/people/ada', { email: 'wrong' }, id)
    await shop.send(
      'PATCH',
      '/v1/people/ada',
      { first_name: null, email_consent: true, attribute_values: { referrer: 'bob' } },
      id,
    )
    await shop.send('POST', '/v1/people', { external_id: 'bob' }, id)
    await shop.send('DELETE', '/v1/people/ada', undefined, id)
    const rows = await changesOf(shop.id, first!.sequence)
    expect(rows.map(row => [row.operation, row.version, row.actor, row.request_id])).toEqual([
      ['create', 1, 'tests', 'r-1'],
      ['create', 1, 'tests', 'r-1'],
      ['update', 2, 'tests', 'r-1'],
      ['update', 2, 'tests', 'r-1'],
      ['delete', 3, 'tests', 'r-1'],
    ])
    expect(rows[0]!.after).toEqual({ state: 'active', external_id: 'ada', first_name: 'Ada' })
    expect(rows[1]!.after).toEqual({ state: 'placeholder', external_id: 'bob' })
    expect(rows[2]).toMatchObject({
      before: { first_name: 'Ada', email_consent: null, attribute_values: { referrer: null } },
      after: {
        first_name: null,
        email_consent: true,
        attribute_values: { referrer: 'bob' },
        consents: [{ consent_type_id: 1, channel: 'email', state: true }],
      },
    })
    expect([rows[3]!.before, rows[3]!.after]).toEqual([{ state: 'placeholder' }, { state: 'active' }])
    expect(rows[4]!.before).toMatchObject({
      state: 'active',
      external_id: 'ada',
      attribute_values: { referrer: 'bob' },
    })
  })

  test('tells of definitions, too', async () => {
    const organization = await service.organization()
    await organization.send('POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' })
    await organization.send('PATCH', '/v1/schema/stacks/orders', { name: 'Orders' })
    await organization.send('PATCH', '/v1/schema/stacks/orders', { name: 'Orders' })
    const rows = await changesOf(organization.id)
    expect(rows.map(row => [row.sequence, row.subject, row.operation, row.before.name, row.after.name])).toEqual([
      [1, 'stack', 'create', undefined, 'orders'],
      [2, 'stack', 'update', 'orders', 'Orders'],
    ])
  })

  test('is followed by number without missing a change, while several processes write', async () => {
    const shop = await makeShop(service)
    await writeAll(
      service.db,
      shop,
      names('p', 20).map(name => write('create', name)),
    )
    const writers = names('w', 8).map(async writer => {
      for (let turn = 0; turn < 25; turn += 1) {
        const body = { attribute_values: { [writer]: turn, referrer: `born-${writer}-${turn % 5}` } }
        await shop.send('PATCH', `/v1/people/p${(turn * 7) % 20}`, body)
      }
    })
    let writing = true
    const written = Promise.all(writers).finally(() => {
      writing = false
    })
    const seen: number[] = []
    const follow = async () => {
      const rows = await changesOf(shop.id, seen.at(-1) ?? 0)
      seen.push(...rows.map(row => row.sequence))
      return rows.length
    }
    while (writing) await follow()
    await written
    while ((await follow()) > 0);
    // Each number once, in order, from the first to the last: nothing that was committed late slipped behind.
    const [head] = await service.sql<{ sequence: number }>(
      'select sequence from change_heads where organization_id = $1',
      [shop.id],
    )
    expect(seen).toEqual(Array.from({ length: head!.sequence }, (_, index) => index + 1))
    const [versions] = await service.sql<{ sum: number }>(
      'select sum(version)::integer as sum from entities where organization_id = $1',
      [shop.id],
    )
    const [entries] = await service.sql<{ count: number }>(
      `select count(*)::integer as count from changes where organization_id = $1 and subject = 'entity'`,
      [shop.id],
    )
    expect(entries!.count).toBe(versions!.sum)
  })
})

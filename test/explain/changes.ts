import { expect, it } from 'vitest'
import { everything, filterValuesOf } from '../../src/changes/selection.ts'
import {
  findEntitiesSql,
  readChangesOfSql,
  readChangesSql,
  readDefinitionChangesSql,
  readEntityChangesSql,
  readHeadsSql,
  readHistorySql,
  readRareOperationsSql,
} from '../../src/changes/sql.ts'
import type { Statement } from '../../src/db/db.ts'
import { findUnsealedSql } from '../../src/ledger/sql.ts'
import {
  demoteDeliveriesSql,
  promoteDeliveriesSql,
  readBacklogsSql,
  readDueSql,
  recordAttemptsSql,
} from '../../src/webhooks/sql.ts'
import { expectReads, explain } from './explain.ts'
import { base, busyPeople, people, personId, type World } from './world.ts'

/** A part of the log. */
const range = [base + people, base + 2 * people]

/** The change log, and the deliveries of webhooks. */
export function testChanges(world: World): void {
  const read = async (sent: Statement, values: unknown[]) => {
    const reads = await world.service.db.transaction(tx => explain(tx, sent, [world.shop.id, ...values]))
    expect(reads.scanned, sent.name).toEqual([])
    return reads
  }

  it('a page of the feed reads a range of the primary key, and no more changes than it has', async () => {
    const { rows, indexes } = await read(readChangesSql, [
      30_000,
      50_000,
      100,
      1_048_576,
      ...filterValuesOf(everything),
    ])
    expect(indexes).toContain('changes_pkey')
    expect(rows).toBeLessThanOrEqual(101)
  })

  it('the changes of deliveries are read by their numbers, and no others', async () => {
    const sequences = Array.from({ length: 64 }, (_, n) => base + 2 * people - 300 * n)
    const { rows, indexes } = await read(readChangesOfSql, [sequences, 4_194_304])
    expect(indexes).toContain('changes_pkey')
    expect(rows).toBeLessThanOrEqual(64)
  })

  it.each([200, 20_000])(
    'the statements of a webhook with %i waiting deliveries read only their batch, also without statistics',
    async waiting => {
      const { service, shop } = world
      const webhook = waiting
      const now = new Date().toISOString()
      await service.sql(
        `insert into webhook_deliveries (organization_id, webhook_id, sequence, entity, type, status, created_at, next_attempt_at)
         select $1, $2, n, 'entity ' || n % 10000, 'person.updated', case when n > 20000 - $2 then 'waiting' else 'delivered' end, $3,
           case when n > 19900 then $3::timestamptz end
         from generate_series(1, 20000) n`,
        [shop.id, webhook, now],
      )
      const numbers = Array.from({ length: 64 }, (_, n) => 19_801 + n)
      const names = numbers.map(number => `entity ${number % 10_000}`)
      const result = { status: 'delivered', attempts: 1, duration_ms: 5 }
      const results = JSON.stringify(Object.fromEntries(numbers.map(sequence => [sequence, result])))
      await service.sql('insert into webhooks select * from jsonb_populate_record(null::webhooks, $1)', [
        {
          organization_id: shop.id,
          id: webhook,
          url: '',
          events: [],
          payload: 'full',
          active: true,
          secrets: [],
          links: false,
          tests: [],
          headers: {},
          created_at: now,
          updated_at: now,
        },
      ])
      for (const [sent, values, max] of [
        [promoteDeliveriesSql, [webhook, names, now], 64],
        [recordAttemptsSql, [webhook, results, now, numbers], 64],
        [readDueSql, [webhook, now, ['entity 19999'], 64, 2], 2 * 64],
        [demoteDeliveriesSql, [webhook, names], 64],
        [readBacklogsSql, [[webhook], now], waiting],
      ] as const)
        await expectReads(service.db, sent, [shop.id, ...values], max)
    },
  )

  it('the changes that may have answers to seal are read by their numbers, and no others', async () => {
    const { service, shop, merged } = world
    const organizations = Array.from({ length: 100 }, (_, n) => (n < 90 ? shop.id : merged.id))
    const sequences = organizations.map((_, n) => (n < 90 ? base + 2 * people - n : n - 89))
    for (const generic of [false, true])
      await expectReads(service.db, findUnsealedSql, [organizations, sequences], 100, { generic })
  })

  it('a page with a filter that nothing matches reads its range once', async () => {
    const selection = { ...everything, operations: ['delete' as const] }
    const { rows } = await read(readChangesSql, [...range, 100, 1_048_576, ...filterValuesOf(selection)])
    expect(rows).toBeLessThanOrEqual(people)
  })

  it.each([
    [readDefinitionChangesSql, 'changes_definitions', { ...everything, subjects: ['webhook' as const] }],
    [readRareOperationsSql, 'changes_rare_operations', { ...everything, operations: ['merge' as const] }],
  ])('a page of what is rare reads its index from the position to the head: $name', async (sent, index, selection) => {
    const values = [0, Number.MAX_SAFE_INTEGER, 100, 1_048_576, ...filterValuesOf(selection)]
    const { indexes } = await read(sent, values)
    expect(indexes).toContain(index)
    expect(indexes).not.toContain('changes_pkey')
    for (const generic of [false, true])
      await expectReads(world.service.db, sent, [world.shop.id, ...values], 5_000, { generic })
  })

  it('the changes of one entity are read by its index, and its identifier is found by those of the names', async () => {
    const id = personId(busyPeople)
    const values = [0, Number.MAX_SAFE_INTEGER, 100, 1_048_576, ...filterValuesOf({ ...everything, entity_ids: [id] })]
    const { indexes } = await read(readEntityChangesSql, values)
    expect(indexes).toContain('changes_entity')
    expect(indexes).not.toContain('changes_pkey')
    for (const generic of [false, true]) {
      await expectReads(world.service.db, readEntityChangesSql, [world.shop.id, ...values], 1_000, { generic })
      await expectReads(world.service.db, findEntitiesSql, [world.shop.id, 'nobody', [id]], 20, { generic })
    }
  })

  it('a history reads no more changes than its page has', async () => {
    const { rows, indexes } = await read(readHistorySql, [personId(busyPeople), 0, 90, 11, 1_048_576])
    expect(indexes).toContain('changes_entity')
    expect(rows).toBeLessThanOrEqual(12)
  })

  it('the heads of the organizations that are followed are looked up by their keys', async () => {
    const { shop, merged, service } = world
    const { indexes } = await service.db.transaction(tx => explain(tx, readHeadsSql, [[shop.id, merged.id]]))
    expect(indexes).toEqual(new Set(['change_heads_pkey', 'erasures_pkey', 'followers_pkey']))
  })
}

import { it } from 'vitest'
import type { Statement } from '../../src/db/db.ts'
import { findHoldersSql } from '../../src/entities/write/load/load-sql.ts'
import { scanValuesSql } from '../../src/schema/sql.ts'
import { expectReads } from './explain.ts'
import { personId, type World } from './world.ts'

const maxRows = 40

/** Unique values, and stored values that break a rule. */
export function testRules(world: World): void {
  it('a unique value is looked up by its term, and a page of violations reads the rows of its scan', async () => {
    const { service, shop, attributes } = world
    const [attribute] = await service.sql<{ index_id: number }>(
      `select index_id from attributes where organization_id = $1 and key = 'code'`,
      [shop.id],
    )
    const claim = (value: string, n?: number) => ({
      number: 0,
      stack_id: 0,
      index_id: attribute!.index_id,
      term: `s${value}`,
      key: 'code',
      value,
      ...(n && { id: personId(n) }),
    })
    const claims = JSON.stringify([claim('c7', 7), claim('c77', 77), claim('free', 9)])
    const reads: [Statement, unknown[]][] = [
      [findHoldersSql, [claims]],
      [scanValuesSql, [0, personId(5_000), 20, 'code', []]],
      [scanValuesSql, [0, personId(5_000), 20, 'code', [attributes.referrer]]],
    ]
    for (const [sent, values] of reads) await expectReads(service.db, sent, [shop.id, ...values], maxRows)
  })
}

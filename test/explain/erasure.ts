import { it } from 'vitest'
import { deleteLinkSetSql, deleteLinksToSql, measureSql } from '../../src/rights/erasure/erased-tables-sql.ts'
import { blankFilledDeliveriesSql, blankFilledSql } from '../../src/rights/erasure/filled-log-sql.ts'
import { expectReads } from './explain.ts'
import { personId, type World } from './world.ts'

const maxRows = 100

/** The erasure of a person to whom others link, in an organization with a long log. */
export function testErasure(world: World): void {
  it.each([
    ['before the first analyze', ['changes', 'links', 'merges']],
    ['after it', []],
  ])(
    'an erasure reads only the changes of the person and the links to it, %s, also under a generic plan',
    async (_, unknownTables) => {
      const { service, merged } = world
      const erased = personId(1)
      for (const [sent, values] of [
        [blankFilledSql, [erased]],
        [blankFilledDeliveriesSql, [erased]],
        [measureSql, [[erased], 20, 20]],
        [deleteLinksToSql, [[erased]]],
        [deleteLinkSetSql, [[erased], 20]],
      ] as const)
        await expectReads(service.db, sent, [merged.id, ...values], maxRows, { unknownTables, generic: true })
    },
  )
}

import { it } from 'vitest'
import {
  blankFilledSql,
  blankQuotesInSql,
  blankQuotesSql,
  countQuotersChangesSql,
  deleteLinksBetweenSql,
  readQuotersSql,
} from '../../src/entities/erase/erase-sql.ts'
import { expectReads } from './explain.ts'
import { changesPerPerson, linkingPerson, linksPerPerson, personId, type World } from './world.ts'

const maxRows = 100

/** The erasure of a person to whom others link, in an organization with a long log. */
export function testErasure(world: World): void {
  it.each([
    ['before the first analyze', ['changes', 'links', 'past_links', 'merges']],
    ['after it', []],
  ])(
    'an erasure reads only the changes that quote the person, %s, also under a generic plan',
    async (_, unknownTables) => {
      const { service, merged, head } = world
      const erased = personId(1)
      const names = '{"0": {"friend": ["p1"]}}'
      const sources = Array.from({ length: linksPerPerson }, (_, k) => personId(linkingPerson(1, k + 1)))
      const ranges = JSON.stringify(sources.map(id => ({ id, after: 0, until: changesPerPerson })))
      for (const [sent, values] of [
        [blankQuotesSql, [[erased], names]],
        [blankFilledSql, [erased]],
        [countQuotersChangesSql, [[erased], 20]],
        [readQuotersSql, [[erased], 20, null, 0]],
        [blankQuotesInSql, [ranges, names, head]],
        [deleteLinksBetweenSql, [[erased], sources]],
      ] as const)
        await expectReads(service.db, sent, [merged.id, ...values], maxRows, { unknownTables, generic: true })
    },
  )
}

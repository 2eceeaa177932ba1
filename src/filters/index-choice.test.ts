import { expect, it } from 'vitest'
import { useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'
import { backfillIndexes } from '../entities/indexes/index-backfill.ts'
import { reloadDefinitions } from '../organizations/definitions.ts'
import { parseFilter } from './parse.ts'
import { matchingStatements } from './select.ts'

const service = useService()
const shop = useShop(
  service,
  { key: 'city', owner: 'people', type: 'text', indexed: true },
  { key: 'score', owner: 'people', type: 'number', indexed: true },
)
const filter = { 'attribute_values.city': 'Rome', 'attribute_values.score': { $gte: 20, $lt: 23 } }

it('a filter goes on with the candidates of the index that gives the fewest, and has complete pages', async () => {
  const operations = Array.from({ length: 60 }, (_, score) => ({
    op: 'create',
    body: { external_id: `p${score}`, attribute_values: { city: 'Rome', score } },
  }))
  await shop.ok('POST', '/v1/people/batch', { operations })
  await backfillIndexes(service.db)
  const definitions = await reloadDefinitions(service.db, shop.id)
  for (const sort_direction of ['asc', 'desc']) {
    const names: string[] = []
    for (
      let page: { items?: { id: string; external_id: string }[]; has_more: boolean } = { has_more: true };
      page.has_more;
    ) {
      const cursor_configuration = { size: 1, ...(page.items && { after_id: page.items[0]!.id }) }
      page = await shop.ok('POST', '/v1/people/filter', { filter, sort_direction, cursor_configuration })
      names.push(...page.items!.map(({ external_id }) => external_id))
    }
    expect(names).toEqual(sort_direction === 'asc' ? ['p20', 'p21', 'p22'] : ['p22', 'p21', 'p20'])
  }
  const { condition } = parseFilter(filter, definitions, 0)
  const { choice } = matchingStatements(condition, definitions, 0, { direction: 'asc', size: 1 })
  const valuesFor = (counts: number[]) => choice!.choose(counts).rows('', 2, 1).values
  expect(valuesFor([60, 3])).not.toEqual(valuesFor([3, 60]))
})

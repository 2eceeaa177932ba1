import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { orderFilters, personFilters } from '../../test/support/filter-generators.ts'
import { createDataset } from '../../test/support/filter-world.ts'
import { useService } from '../../test/support/service.ts'
import { fieldTypesOf } from '../src/filters/field-types.ts'
import type { Filter } from '../src/filters/filter-tree.ts'
import { readFilter } from '../src/filters/read-filter.ts'
import { writeFilter } from '../src/filters/write-filter.ts'

const service = useService()

describe('the filter builder', () => {
  test('writes a filter that finds exactly what the filter before finds', async () => {
    const organization = await service.organization()
    await createDataset(organization, 7)
    const definitions = await organization.client.schema.get()
    const find = async (path: string, filter: unknown) => {
      const reply = await organization.send('POST', `${path}/filter`, { filter, fields: ['external_id', 'version'] })
      return reply.status === 200 ? reply.body.data.items : reply.status
    }
    for (const [owner, path, filters] of [
      ['people', '/v1/people', personFilters({ levels: 3, hops: 2 })],
      ['orders', '/v1/stacks/orders', orderFilters({ levels: 3, hops: 2 })],
    ] as const) {
      const types = fieldTypesOf(owner, definitions)
      const rewrite = (filter: unknown) => writeFilter(readFilter(filter as Filter, types), types)
      await fc.assert(
        fc.asyncProperty(filters, async filter => {
          const rewritten = rewrite(filter)
          expect(rewrite(rewritten)).toEqual(rewritten)
          expect(await find(path, rewritten)).toEqual(await find(path, filter))
        }),
        { numRuns: 60 },
      )
    }
  })

  test('keeps a part that it has no controls for', () => {
    const types = fieldTypesOf('people', undefined)
    const filter = {
      email: { $in: ['a@example.org', null] },
      consents: { $some: { consent_type_id: 1, method: 'web_form' } },
      'attribute_values.city': { $eq: { nested: true } },
    }
    expect(writeFilter(readFilter(filter, types), types)).toEqual(filter)
  })
})

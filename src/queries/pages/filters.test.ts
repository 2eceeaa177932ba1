import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Dataset, matches } from '../../../test/support/filter-evaluator.ts'
import { mistypedFilters, orderFilters, personFilters, typedFilters } from '../../../test/support/filter-generators.ts'
import { findMistypedOperands } from '../../../test/support/filter-operands.ts'
import { createDataset, readDataset } from '../../../test/support/filter-world.ts'
import { readPageIds } from '../../../test/support/filtered-pages.ts'
import { someRuns } from '../../../test/support/runs.ts'
import { useOwnService } from '../../../test/support/service.ts'
import { useSharedShop } from '../../../test/support/shop.ts'
import { backfillIndexes } from '../../entities/indexes/index-backfill.ts'

const service = useOwnService()
let world: Dataset
const organization = useSharedShop(service)
beforeAll(async () => {
  await createDataset(organization, 7)
  world = await readDataset(service, organization.id)
})

const stackOf = (key: string) => world.definitions.stacks.find(stack => stack.key === key)!.id

async function found(filter: unknown, stack_id: number): Promise<string[]> {
  const position = { direction: 'asc', size: 500 } as const
  const page = await readPageIds(service.db, organization.id, { stack_id, filter, position, isCounted: true })
  // A separate statement counts, and it joins the links of the whole stack.
  expect(page.counted?.count).toBe(page.ids.length)
  return page.ids
}

const entitiesOf = (stack_id: number) => [...world.entities.values()].filter(read => read.stack_id === stack_id)

async function expectModelResult(filter: unknown, stack_id: number) {
  const expected = entitiesOf(stack_id).filter(read => matches(filter, read, world))
  expect(await found(filter, stack_id)).toEqual(expected.map(({ id }) => id))
}

async function expectSplit(filter: unknown, stack_id: number) {
  const [matching, others] = await Promise.all([found(filter, stack_id), found({ $not: filter }, stack_id)])
  expect([...matching, ...others].sort()).toEqual(entitiesOf(stack_id).map(({ id }) => id))
}

const runs = someRuns(250)

describe.each(['being filled', 'filled'])('while indexes are %s', state => {
  beforeAll(async () => {
    if (state === 'filled') await backfillIndexes(service.db)
    world = await readDataset(service, organization.id)
    const indexes = world.definitions.attributes.flatMap(({ index }) => index ?? [])
    expect(indexes.length).toBeGreaterThan(8)
    expect(indexes.every(({ ready }) => ready)).toBe(state === 'filled')
  })

  it('a filter on people finds exactly the people that the model finds', async () => {
    await fc.assert(
      fc.asyncProperty(personFilters(), filter => expectModelResult(filter, 0)),
      runs,
    )
  })

  it('a comparison with an operand of the right type finds exactly the people that the model finds', async () => {
    await fc.assert(
      fc.asyncProperty(typedFilters, filter => expectModelResult(filter, 0)),
      someRuns(600),
    )
  })

  it('a filter on records finds exactly the records that the model finds', async () => {
    await fc.assert(
      fc.asyncProperty(orderFilters(), filter => expectModelResult(filter, stackOf('orders'))),
      someRuns(80),
    )
  })

  it('an operand is refused with its path exactly if its field can never equal it', async () => {
    await fc.assert(
      fc.asyncProperty(mistypedFilters, async filter => {
        const [path] = findMistypedOperands(filter, 0, world.definitions)
        if (path === undefined) return expectModelResult(filter, 0)
        await expect(found(filter, 0)).rejects.toMatchObject({ refusal: { status: 400, details: [{ path }] } })
        await expect(found({ $or: [{ $not: filter }] }, 0)).rejects.toMatchObject({
          refusal: { details: [{ path: path.replace('/filter', '/filter/$or/0/$not') }] },
        })
      }),
      someRuns(150),
    )
  })

  it('a filter and its $not together find every entity once', async () => {
    await fc.assert(
      fc.asyncProperty(personFilters({ levels: 3, hops: 2 }), filter => expectSplit(filter, 0)),
      someRuns(100),
    )
  })
})

import { expect, it } from 'vitest'
import { type Attribute, buildDefinitions, peopleStackId } from '../../organizations/definitions.ts'
import type { Write } from '../write-request.ts'
import { planItems } from './plan.ts'

const definitions = buildDefinitions(1, {
  version: 1,
  stacks: [],
  attributes: [
    {
      id: 1,
      key: 'code',
      owner_stack_id: peopleStackId,
      type: 'text',
      cardinality: 'one',
      state: 'active',
      pattern: '^[ab]*a[ab]{20}$',
    } as Attribute,
  ],
  consent_types: [],
})

const write = (n: number) =>
  ({
    operation: 'create',
    stack_id: peopleStackId,
    address: null,
    body: { attribute_values: { code: `${'ab'.repeat(500)}${n}` } },
    boundFrom: 'body',
    request_id: 'r',
  }) as unknown as Write

it('lets other events through while the patterns of a long batch are compared', async () => {
  const writes = Array.from({ length: 2_000 }, (_, index) => ({ write: write(index), index }))
  let turns = 0
  let isPlanned = false
  const countTurns = () => {
    turns += 1
    if (!isPlanned) setImmediate(countTurns)
  }
  setImmediate(countTurns)
  const items = await planItems(writes, definitions, 1_000)
  isPlanned = true
  expect(items.map(({ index, plan }) => [index, plan.faults.length])).toEqual(writes.map(({ index }) => [index, 1]))
  expect(turns).toBeGreaterThan(0)
})

import type { PersonBody, RecordBody } from '../../client/index.ts'
import { customerOf, earlierAnswersOf, ordersOf, visitsOf } from './customers.ts'
import { companyCount, companyOf, type Dataset, productCount, productOf } from './dataset.ts'

/** The files of a shop, in the order in which they are sent: what is named mostly stands already. */
export const files = ['companies', 'products', 'orders', 'visits', 'people'] as const
export type FileName = (typeof files)[number]

/** The bodies of one file, made one at a time. */
export function* bodiesOf(world: Dataset, file: FileName): Generator<PersonBody | RecordBody> {
  if (file === 'companies') for (const index of upTo(companyCount(world))) yield companyOf(world, index)
  if (file === 'products') for (const index of upTo(productCount(world))) yield productOf(index)
  if (file === 'orders') for (const index of upTo(world.people)) yield* ordersOf(world, index)
  if (file === 'visits') for (const index of upTo(world.people)) yield* visitsOf(world, index)
  if (file === 'people') for (const index of upTo(world.people)) yield customerOf(world, index)
}

/** About how many lines all files have together: the average customer has so many orders and visits. */
export const linesIn = (world: Dataset): number =>
  companyCount(world) + productCount(world) + world.people * (1 + 9 / 7 + 2)

/** Those who have changed their minds, as they were before. */
export function* earlierVersions(world: Dataset): Generator<PersonBody> {
  for (const index of upTo(world.people)) {
    const consents = earlierAnswersOf(world, index)
    if (consents) yield { external_id: `customer-${index}`, consents }
  }
}

function* upTo(count: number): Generator<number> {
  for (let index = 0; index < count; index++) yield index
}

import type { PersonBody, RecordBody } from '../../client/index.ts'
import { customerOf, earlierAnswersOf, ordersOf, visitsOf } from './customers.ts'
import { companyCount, companyOf, type Dataset, productCount, productOf } from './dataset.ts'

/** The files of a shop in the order in which they are sent, so that most links find an existing target. */
export const files = ['companies', 'products', 'orders', 'visits', 'people'] as const
export type FileName = (typeof files)[number]

/** Generates the bodies of one file, one at a time. */
export function* bodiesOf(dataset: Dataset, file: FileName): Generator<PersonBody | RecordBody> {
  if (file === 'companies') for (const index of upTo(companyCount(dataset))) yield companyOf(dataset, index)
  if (file === 'products') for (const index of upTo(productCount(dataset))) yield productOf(index)
  if (file === 'orders') for (const index of upTo(dataset.people)) yield* ordersOf(dataset, index)
  if (file === 'visits') for (const index of upTo(dataset.people)) yield* visitsOf(dataset, index)
  if (file === 'people') for (const index of upTo(dataset.people)) yield customerOf(dataset, index)
}

/** The approximate number of lines of all files. An average customer has 9/7 orders and 2 visits. */
export const linesIn = (dataset: Dataset): number =>
  companyCount(dataset) + productCount(dataset) + dataset.people * (1 + 9 / 7 + 2)

/** Generates the earlier versions of the customers who have changed their consent answers. */
export function* earlierVersions(dataset: Dataset): Generator<PersonBody> {
  for (const index of upTo(dataset.people)) {
    const consents = earlierAnswersOf(dataset, index)
    if (consents) yield { external_id: `customer-${index}`, consents }
  }
}

function* upTo(count: number): Generator<number> {
  for (let index = 0; index < count; index++) yield index
}

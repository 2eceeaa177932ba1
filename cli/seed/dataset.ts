import type { RecordBody } from '../../client/index.ts'
import { companyNames, countries, materials, products } from './name-lists.ts'
import { createSeededRandom, type SeededRandom } from './seeded-random.ts'

/** The parameters of a shop. All data is computed from them, so a shop of any size needs no memory. */
export type Dataset = { seed: number; people: number; consentTypeIds: { marketing: number; surveys: number } }

/** The random numbers for one name in this shop. */
export const randomFor = ({ seed }: Dataset, name: string): SeededRandom => createSeededRandom(`${seed}/${name}`)

export const companyCount = ({ people }: Dataset): number => 1 + Math.floor(people / 25)
export const productCount = ({ people }: Dataset): number =>
  Math.min(products.length * materials.length, 12 + Math.floor(people / 10))

export function companyOf(dataset: Dataset, index: number): RecordBody {
  const external_id = `company-${index}`
  const { pick } = randomFor(dataset, external_id)
  const { lastNames, cities } = pick(countries)
  const [trade, industry] = pick(companyNames)
  return { external_id, attribute_values: { name: `${pick(lastNames)} ${trade}`, industry, city: pick(cities) } }
}

export function productOf(index: number): RecordBody {
  const [thing, category, material] = partsOf(index)
  const name = `${material[0]!.toUpperCase()}${material.slice(1)} ${thing}`
  return { external_id: `product-${index}`, attribute_values: { name, category, price: centsOf(index) / 100 } }
}

/** The price of a product, in cents. */
export function centsOf(index: number): number {
  const [, , , cents] = partsOf(index)
  return cents
}

/** The parts of a product. Any two products differ, because thing and material cycle at different speeds. */
function partsOf(index: number): [thing: string, category: string, material: string, cents: number] {
  const [thing, category, cents] = products[index % products.length]!
  const [material, percent] = materials[(index + Math.floor(index / products.length)) % materials.length]!
  // Prices are multiples of 10 cents.
  return [thing, category, material, Math.round((cents * (100 + percent)) / 1_000) * 10]
}

const openingMs = Date.UTC(2026, 0, 1)
const minutesOpen = (Date.UTC(2026, 10, 1) - openingMs) / 60_000

/** Random times in the shop's first ten months, earliest first, in RFC 3339. */
export function timesOf({ below }: SeededRandom, count: number): string[] {
  const minutes = Array.from({ length: count }, () => below(minutesOpen)).sort((a, b) => a - b)
  return minutes.map(minute => new Date(openingMs + minute * 60_000).toISOString())
}

import type { RecordBody } from '../../client/index.ts'
import { type Dice, diceOf } from './dice.ts'
import { countries, materials, things, trades } from './words.ts'

/** Which of all shops it is. Everything in it follows from these: nothing is remembered, so a shop of any size fits. */
export type World = { seed: number; people: number; consentTypeIds: { marketing: number; surveys: number } }

/** The dice of one thing of this world. */
export const diceIn = ({ seed }: World, name: string): Dice => diceOf(`${seed}/${name}`)

export const companyCount = ({ people }: World): number => 1 + Math.floor(people / 25)
export const productCount = ({ people }: World): number =>
  Math.min(things.length * materials.length, 12 + Math.floor(people / 10))

export function companyOf(world: World, index: number): RecordBody {
  const external_id = `company-${index}`
  const { one } = diceIn(world, external_id)
  const { lastNames, cities } = one(countries)
  const [trade, industry] = one(trades)
  return { external_id, attribute_values: { name: `${one(lastNames)} ${trade}`, industry, city: one(cities) } }
}

export function productOf(index: number): RecordBody {
  const [thing, category, material] = madeOf(index)
  const name = `${material[0]!.toUpperCase()}${material.slice(1)} ${thing}`
  return { external_id: `product-${index}`, attribute_values: { name, category, price: centsOf(index) / 100 } }
}

/** The price of a product, in cents. */
export function centsOf(index: number): number {
  const [, , , cents] = madeOf(index)
  return cents
}

/** Any two products differ: the numbers of things and materials go round at different speeds. */
function madeOf(index: number): [thing: string, category: string, material: string, cents: number] {
  const [thing, category, cents] = things[index % things.length]!
  const [material, percent] = materials[(index + Math.floor(index / things.length)) % materials.length]!
  // Whole tens of cents, as prices are.
  return [thing, category, material, Math.round((cents * (100 + percent)) / 1_000) * 10]
}

const openingMs = Date.UTC(2026, 0, 1)
const minutesOpen = (Date.UTC(2026, 10, 1) - openingMs) / 60_000

/** Moments of the shop's first ten months, earliest first: RFC 3339. */
export function momentsOf({ below }: Dice, count: number): string[] {
  const minutes = Array.from({ length: count }, () => below(minutesOpen)).sort((a, b) => a - b)
  return minutes.map(minute => new Date(openingMs + minute * 60_000).toISOString())
}

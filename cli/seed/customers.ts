import type { ConsentAssignment, PersonBody, RecordBody } from '../../client/index.ts'
import { centsOf, companyCount, type Dataset, productCount, randomFor, timesOf } from './dataset.ts'
import { type Country, countries, orderStates, pages } from './name-lists.ts'
import type { SeededRandom } from './seeded-random.ts'

/** The orders of one customer, in order of time. */
export function ordersOf(dataset: Dataset, index: number): RecordBody[] {
  return purchasesOf(dataset, index).map(({ products, cents, placed_at, status }, number) => ({
    external_id: `order-${index}-${number}`,
    attribute_values: {
      buyer: `customer-${index}`,
      products: products.map(product => `product-${product}`),
      total: cents / 100,
      status,
      placed_at,
    },
  }))
}

type Purchase = { products: number[]; cents: number; placed_at: string; status: string }

function purchasesOf(dataset: Dataset, index: number): Purchase[] {
  const random = randomFor(dataset, `orders of ${index}`)
  const times = timesOf(random, random.pick([0, 0, 1, 1, 1, 2, 4]))
  return times.map(placed_at => {
    const products = [...new Set(Array.from({ length: 1 + random.below(4) }, () => popularProduct(dataset, random)))]
    const cents = products.reduce((sum, product) => sum + centsOf(product), 0)
    return { products, cents, placed_at, status: random.pick(orderStates) }
  })
}

/** The lower of two draws, so that products with low numbers are bought most. */
const popularProduct = (dataset: Dataset, { below }: SeededRandom): number => {
  const count = productCount(dataset)
  return Math.min(below(count), below(count))
}

/** The visits of one customer, in order of time. */
export function visitsOf(dataset: Dataset, index: number): RecordBody[] {
  const random = randomFor(dataset, `visits of ${index}`)
  return timesOf(random, random.pick([0, 1, 1, 2, 2, 3, 5])).map((at, number) => {
    const product = popularProduct(dataset, random)
    const seen = random.chance(60)
      ? { page: `/products/product-${product}`, viewed: `product-${product}` }
      : { page: random.pick(pages) }
    return { external_id: `visit-${index}-${number}`, attribute_values: { visitor: `customer-${index}`, at, ...seen } }
  })
}

/** One customer, with links to their orders and visits. */
export function customerOf(dataset: Dataset, index: number): PersonBody {
  const random = randomFor(dataset, `customer-${index}`)
  const country = random.pick(countries)
  const consents = answersOf(dataset, random)
  return {
    external_id: `customer-${index}`,
    ...nameOf(random, country, index),
    ...mobileOf(random, country),
    date_of_birth: new Date(Date.UTC(1940 + random.below(68), random.below(12), 1 + random.below(28)))
      .toISOString()
      .slice(0, 10),
    language: country.language,
    ...(consents.length > 0 && { consents }),
    attribute_values: { city: random.pick(country.cities), ...linksOf(dataset, random, index) },
  }
}

function nameOf({ pick }: SeededRandom, { firstNames, lastNames }: Country, index: number) {
  const [first_name, last_name] = [pick(firstNames), pick(lastNames)]
  const email = `${plain(first_name)}.${plain(last_name)}.${index}@${pick(['example.com', 'example.net', 'example.org'])}`
  return { first_name, last_name, email }
}

const transliterations: Record<string, string> = { ß: 'ss', ø: 'o', å: 'a', ı: 'i' }

/** The name for an email address: lower case, a to z only. */
function plain(name: string): string {
  const letters = name.toLowerCase().replace(/[ßøåı]/g, letter => transliterations[letter]!)
  return letters.normalize('NFD').replace(/[^a-z]/g, '')
}

function mobileOf({ below, chance }: SeededRandom, { mobile }: Country) {
  if (!mobile || !chance(80)) return {}
  return { mobile_prefix: mobile.prefix, mobile_number: String(mobile.first + below(mobile.count)) }
}

function linksOf(dataset: Dataset, random: SeededRandom, index: number) {
  const orders = ordersOf(dataset, index).map(order => order.external_id)
  const visits = visitsOf(dataset, index).map(visit => visit.external_id)
  const referrer = referrerOf(random, index, dataset.people)
  const cents = purchasesOf(dataset, index).reduce((sum, purchase) => sum + purchase.cents, 0)
  return {
    loyalty: Math.floor(cents / 1_000),
    ...(referrer && { referrer }),
    ...(random.chance(40) && { employer: `company-${random.below(companyCount(dataset))}` }),
    ...(random.chance(50) && { favourite: `product-${popularProduct(dataset, random)}` }),
    ...(orders.length > 0 && { orders }),
    ...(visits.length > 0 && { visits }),
  }
}

/**
 * The referrer of a customer. Most referrers are earlier customers. Some have no other data and become placeholders.
 * The first two customers refer each other, and the next three form a cycle.
 */
function referrerOf({ below, chance }: SeededRandom, index: number, people: number): string | undefined {
  if (index < 2 && people >= 2) return `customer-${1 - index}`
  if (index < 5 && people >= 5) return `customer-${index === 4 ? 2 : index + 1}`
  if (chance(3)) return `friend-of-customer-${index}`
  return index > 0 && chance(60) ? `customer-${below(index)}` : undefined
}

/** The consent answers of a customer. Some grant, some refuse, many do not answer. */
function answersOf({ consentTypeIds: { marketing, surveys } }: Dataset, { below }: SeededRandom): ConsentAssignment[] {
  const questions = [
    { consent_type_id: marketing, channel: 'email', granted: 55, refused: 20 },
    { consent_type_id: marketing, channel: 'sms', granted: 20, refused: 25 },
    { consent_type_id: surveys, channel: 'email', granted: 15, refused: 10 },
  ] as const
  return questions.flatMap(({ consent_type_id, channel, granted, refused }) => {
    const percent = below(100)
    if (percent >= granted + refused) return []
    return [{ consent_type_id, channel, state: percent < granted }]
  })
}

/** The earlier answers of a customer who has changed them, about one in twelve; undefined for the others. */
export function earlierAnswersOf(dataset: Dataset, index: number): ConsentAssignment[] | undefined {
  if (!randomFor(dataset, `mind of ${index}`).chance(8)) return undefined
  return customerOf(dataset, index).consents?.map(answer => ({ ...answer, state: !answer.state }))
}

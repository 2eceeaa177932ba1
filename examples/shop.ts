// Creates a small shop with the client: products, orders and visits, linked with people in both directions. The entities are
// created in shuffled order, so that half of them are linked to before they exist. Then it answers questions of a marketer with
// filters, and compares the answers with the generated data.
//
//   npm run example:shop                              with a temporary service
//   KITH_URL=… KITH_TOKEN=… node examples/shop.ts       with a running service; use a new organization

import { faker } from '@faker-js/faker'
import { createClient, type Filter } from '../client/index.ts'

const client = createClient({
  url: process.env.KITH_URL ?? 'http://127.0.0.1:8080',
  token: process.env.KITH_TOKEN ?? '',
})
const seed = Number(process.env.SEED ?? 11)
const concurrency = 8
const campaign = '2026-06-01T00:00:00Z'
const newsletter = { consent_type_id: 1, channel: 'email' } as const

type Customer = {
  external_id: string
  city: string
  referrer: string
  favourite: string
  newsletter: boolean | undefined
  orders: string[]
  visits: string[]
}
type Order = { external_id: string; buyer: string; products: string[]; total: number; placed_at: string }
type Visit = { external_id: string; visitor: string; at: string }

async function declare() {
  for (const key of ['products', 'orders']) await client.schema.stacks.create({ key, kind: 'item' })
  await client.schema.stacks.create({ key: 'visits', kind: 'event' })
  const attributes = client.schema.attributes
  await attributes.create({ key: 'city', owner: 'people', type: 'text', indexed: true })
  await attributes.create({ key: 'referrer', owner: 'people', type: 'person' })
  await attributes.create({ key: 'favourite', owner: 'people', type: 'stack', target_stack: 'products' })
  await attributes.create({
    key: 'orders',
    owner: 'people',
    type: 'stack',
    target_stack: 'orders',
    cardinality: 'many',
  })
  await attributes.create({
    key: 'visits',
    owner: 'people',
    type: 'stack',
    target_stack: 'visits',
    cardinality: 'many',
  })
  await attributes.create({ key: 'buyer', owner: 'orders', type: 'person' })
  await attributes.create({
    key: 'products',
    owner: 'orders',
    type: 'stack',
    target_stack: 'products',
    cardinality: 'many',
  })
  await attributes.create({ key: 'total', owner: 'orders', type: 'number', indexed: true })
  await attributes.create({ key: 'placed_at', owner: 'orders', type: 'datetime' })
  await attributes.create({ key: 'visitor', owner: 'visits', type: 'person' })
  await attributes.create({ key: 'at', owner: 'visits', type: 'datetime' })
}

const names = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => `${prefix}-${index}`)
const pickOne = <T>(from: readonly T[]): T => faker.helpers.arrayElement(from)
const randomTime = () => faker.date.between({ from: '2026-01-01', to: '2026-11-01' }).toISOString()

function generateShop() {
  const products = names('product', 30)
  const people = names('customer', 120)
  const orders = names('order', 200).map(
    (external_id): Order => ({
      external_id,
      buyer: pickOne(people),
      products: faker.helpers.arrayElements(products, { min: 1, max: 4 }),
      total: faker.number.int({ min: 5, max: 300 }),
      placed_at: randomTime(),
    }),
  )
  const visits = names('visit', 250).map(
    (external_id): Visit => ({ external_id, visitor: pickOne(people), at: randomTime() }),
  )
  const customers = people.map(
    (external_id): Customer => ({
      external_id,
      city: pickOne(['Rome', 'Oslo', 'Lima']),
      referrer: pickOne(people),
      favourite: pickOne(products),
      newsletter: pickOne([true, true, false, undefined]),
      orders: orders.filter(order => order.buyer === external_id).map(order => order.external_id),
      visits: visits.filter(visit => visit.visitor === external_id).map(visit => visit.external_id),
    }),
  )
  return { products, customers, orders, visits }
}

type Shop = ReturnType<typeof generateShop>

/** The creates of all entities, in shuffled order. */
function creations({ products, customers, orders, visits }: Shop): (() => Promise<unknown>)[] {
  return faker.helpers.shuffle([
    ...products.map(external_id => () => client.stack('products').create({ external_id })),
    ...orders.map(
      ({ external_id, ...values }) =>
        () =>
          client.stack('orders').create({ external_id, attribute_values: values }),
    ),
    ...visits.map(
      ({ external_id, ...values }) =>
        () =>
          client.stack('visits').create({ external_id, attribute_values: values }),
    ),
    ...customers.map(
      ({ external_id, newsletter: state, ...values }) =>
        () =>
          client.people.create({
            external_id,
            email: `${external_id}@example.org`,
            attribute_values: values,
            ...(state !== undefined && { consents: [{ ...newsletter, state }] }),
          }),
    ),
  ])
}

/** Runs the tasks in order, with a limited concurrency. */
async function runConcurrently(tasks: (() => Promise<unknown>)[]) {
  const remaining = tasks.values()
  const worker = async () => {
    for (const task of remaining) await task()
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
}

type Entity = { external_id: string | null }

async function namesOf(entities: AsyncIterable<Entity>): Promise<string[]> {
  const found: string[] = []
  for await (const { external_id } of entities) found.push(external_id ?? '')
  return found.sort()
}

let wrongCount = 0

function compare(question: string, found: string[], expected: string[]) {
  const isRight = JSON.stringify(found) === JSON.stringify([...expected].sort())
  if (!isRight) wrongCount += 1
  console.log(`${isRight ? 'right' : 'WRONG'}: ${question} ${found.length} found, ${expected.length} expected`)
}

const peopleWhere = (filter: Filter) => namesOf(client.people.filter(filter, { size: 20 }))
const idsOf = (entities: Entity[]) => entities.map(({ external_id }) => external_id ?? '')

/** Finds people who bought a product before the campaign, have not visited since, and consent to the newsletter. */
async function checkCampaignAudience({ customers, orders, visits }: Shop, product: string) {
  const found = await peopleWhere({
    'attribute_values.orders': {
      $some: {
        'attribute_values.products': { $some: { external_id: product } },
        'attribute_values.placed_at': { $lt: campaign },
      },
    },
    'attribute_values.visits': { $none: { 'attribute_values.at': { $gte: campaign } } },
    consents: { $some: { ...newsletter, state: true } },
  })
  const since = Date.parse(campaign)
  const bought = (name: string) =>
    orders.some(
      order => order.buyer === name && order.products.includes(product) && Date.parse(order.placed_at) < since,
    )
  const visited = (name: string) => visits.some(visit => visit.visitor === name && Date.parse(visit.at) >= since)
  const expected = customers.filter(
    ({ external_id, newsletter }) => newsletter === true && bought(external_id) && !visited(external_id),
  )
  compare(`bought ${product} before the campaign, no visit since, newsletter granted:`, found, idsOf(expected))
}

/** Finds the large orders of a city. Both conditions use an index. */
async function checkLargeOrders({ customers, orders }: Shop, city: string) {
  const filter: Filter = {
    'attribute_values.total': { $gte: 200 },
    'attribute_values.buyer': { $some: { 'attribute_values.city': city } },
  }
  const found = await namesOf(client.stack('orders').filter(filter))
  const fromCity = new Set(idsOf(customers.filter(customer => customer.city === city)))
  const expected = orders.filter(order => order.total >= 200 && fromCity.has(order.buyer))
  compare(`orders of 200 or more from ${city}:`, found, idsOf(expected))
}

/** Follows three links: visits of people whose referrer's favourite is a product. */
async function checkThreeHops({ customers, visits }: Shop, product: string) {
  const filter: Filter = {
    'attribute_values.visitor': {
      $some: {
        'attribute_values.referrer': { $some: { 'attribute_values.favourite': { $some: { external_id: product } } } },
      },
    },
  }
  const found = await namesOf(client.stack('visits').filter(filter))
  const favourites = new Map(customers.map(customer => [customer.external_id, customer.favourite]))
  const referrers = new Map(customers.map(customer => [customer.external_id, customer.referrer]))
  const expected = visits.filter(visit => favourites.get(referrers.get(visit.visitor)!) === product)
  compare(`visits of people referred by a fan of ${product}:`, found, idsOf(expected))
}

/** A filter and its negation together find each person once. People who never answered match the negation. */
async function checkNegation({ customers }: Shop) {
  const granted: Filter = { consents: { $some: { ...newsletter, state: true } } }
  compare('newsletter granted:', await peopleWhere(granted), idsOf(customers.filter(customer => customer.newsletter)))
  compare(
    'not granted:',
    await peopleWhere({ $not: granted }),
    idsOf(customers.filter(customer => !customer.newsletter)),
  )
}

async function checkRelated({ customers }: Shop) {
  const busiest = customers.reduce((a, b) => (b.orders.length > a.orders.length ? b : a))
  const orders = client.people.related(busiest.external_id, { target: 'orders', direction: 'incoming', size: 2 })
  compare(`orders that link to ${busiest.external_id}:`, await namesOf(orders), busiest.orders)
}

async function checkPlaceholders() {
  compare('people left as placeholders:', await peopleWhere({ state: 'placeholder' }), [])
  for (const stack of ['products', 'orders', 'visits'])
    compare(`${stack} left as placeholders:`, await namesOf(client.stack(stack).filter({ state: 'placeholder' })), [])
}

faker.seed(seed)
const shop = generateShop()
await declare()
const tasks = creations(shop)
await runConcurrently(tasks)
console.log(`${tasks.length} entities created in shuffled order, seed ${seed}`)
for (const product of faker.helpers.arrayElements(shop.products, 5)) {
  await checkCampaignAudience(shop, product)
  await checkThreeHops(shop, product)
}
for (const city of ['Rome', 'Oslo', 'Lima']) await checkLargeOrders(shop, city)
await checkNegation(shop)
await checkRelated(shop)
await checkPlaceholders()
if (wrongCount > 0) process.exitCode = 1

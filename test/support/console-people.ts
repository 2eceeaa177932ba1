import type { Locator, Page } from 'playwright-core'
import { searchFollower } from '../../src/entities/indexes/search-index.ts'
import { follow } from './followers.ts'
import type { Organization, Service } from './service.ts'
import { createShop } from './shop.ts'

/** Elements of the list of people, which its tests share. */
export const namesOn = (page: Page): Promise<string[]> => page.getByRole('table').getByRole('link').allTextContents()
export const nameIn = (page: Page, name: string): Locator =>
  page.getByRole('table').getByRole('link', { name, exact: true })
export const searchField = (page: Page): Locator => page.getByRole('searchbox', { name: 'Search people' })
export const countIs = (page: Page, text: string): Promise<void> =>
  page.getByRole('status').filter({ hasText: text }).first().waitFor()

/** The browser reports each response that is a refusal. */
export const refusals = { expectedErrors: /Failed to load resource/ }

export const indexWords = (service: Service): Promise<void> => follow(service.db, [searchFollower()])
export const createPeople = ({ client }: Organization, bodies: object[]): Promise<unknown> =>
  client.people.batch(bodies.map(body => ({ op: 'create', body })))

export const customers = [
  { external_id: 'ada', first_name: 'Ada', last_name: 'Lovelace', email: 'ada@example.org', language: 'en' },
  { external_id: 'grace', first_name: 'Grace', last_name: 'Hopper', email: 'grace@example.org', language: 'en' },
  { external_id: 'alan', first_name: 'Alan', last_name: 'Turing', language: 'en' },
  { external_id: 'rosa', first_name: 'Rosa', last_name: 'Luxemburg', email: 'rosa@example.org', language: 'de' },
]

/** An organization with the customers, who have cities, points of loyalty, referrers and consents. */
export async function createCustomers(service: Service): Promise<Organization> {
  const shop = await createShop(service, 'city', { key: 'loyalty', owner: 'people', type: 'number' }, 'referrer')
  const { people } = shop.client
  await createPeople(shop, customers)
  await people.patch('ada', { attribute_values: { city: 'London', loyalty: 3, referrer: 'grace' } })
  await people.patch('rosa', { attribute_values: { city: 'Berlin', loyalty: 20, referrer: 'ada' } })
  await people.patch('grace', { email_consent: true, attribute_values: { city: 'London', loyalty: 100 } })
  await people.patch('rosa', { email_consent: true })
  await indexWords(service)
  return shop
}

/** The bodies of 1,234 people, in the order of their creation. */
export const manyPeople = Array.from({ length: 1_234 }, (_, number) => ({
  external_id: `p${number}`,
  first_name: `Quote "${number}"`,
  language: number % 2 ? 'en' : 'de',
}))

/** An organization whose people fill several pages of the list. */
export async function createManyPeople(service: Service): Promise<Organization> {
  const organization = await service.organization()
  await createPeople(organization, manyPeople.slice(0, 1_000))
  await createPeople(organization, manyPeople.slice(1_000))
  return organization
}

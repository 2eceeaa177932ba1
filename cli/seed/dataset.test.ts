import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { PersonBody, RecordBody } from '../../client/index.ts'
import { formats } from '../../src/values/formats.ts'
import type { Dataset } from './dataset.ts'
import { bodiesOf, earlierVersions, type FileName, files } from './lines.ts'

const dataset = fc
  .record({ seed: fc.nat(), people: fc.nat({ max: 60 }) })
  .map(({ seed, people }): Dataset => ({ seed, people, consentTypeIds: { marketing: 1, surveys: 2 } }))

const linesOf = (dataset: Dataset, file: FileName) =>
  [...bodiesOf(dataset, file)].map(body => `${JSON.stringify(body)}\n`)
const digestOf = (dataset: Dataset) =>
  createHash('sha256')
    .update(files.flatMap(file => linesOf(dataset, file)).join(''))
    .digest('hex')

it('generates the same bytes for the same numbers in every version', () => {
  const shop: Dataset = { seed: 1, people: 1_000, consentTypeIds: { marketing: 1, surveys: 2 } }
  expect(digestOf(shop)).toBe('da7514202b92059526ae20f3f025e50516b157d5bfb703570346e6ada10f9d9d')
})

it('generates another shop for another seed, and the same shop for the same seed', () =>
  fc.assert(
    fc.property(dataset, fc.nat(), (shop, seed) => {
      fc.pre(shop.people > 0)
      expect(digestOf(shop)).toBe(digestOf({ ...shop }))
      if (seed !== shop.seed) expect(digestOf({ ...shop, seed })).not.toBe(digestOf(shop))
    }),
  ))

type Values = Record<string, unknown>
const valuesOf = ({ attribute_values }: PersonBody | RecordBody) => attribute_values as Values
const namesOf = (bodies: (PersonBody | RecordBody)[]) => bodies.map(({ external_id }) => external_id as string)

it('links only to entities of the shop and to friends of customers, and both sides of a link agree', () =>
  fc.assert(
    fc.property(dataset, shop => {
      const all = Object.fromEntries(files.map(file => [file, [...bodiesOf(shop, file)]])) as Record<
        FileName,
        (PersonBody | RecordBody)[]
      >
      const names = Object.fromEntries(files.map(file => [file, new Set(namesOf(all[file]))]))
      for (const file of files) expect(names[file]!.size).toBe(all[file].length)
      const named = (file: FileName, key: string) => all[file].flatMap(body => valuesOf(body)[key] ?? [])
      const missing = (file: FileName, key: string, target: FileName) =>
        named(file, key).filter(name => !names[target]!.has(name as string))
      expect(missing('people', 'employer', 'companies')).toEqual([])
      expect(missing('people', 'favourite', 'products')).toEqual([])
      expect(missing('orders', 'products', 'products')).toEqual([])
      expect(missing('visits', 'viewed', 'products')).toEqual([])
      for (const name of missing('people', 'referrer', 'people')) expect(name).toMatch(/^friend-of-customer-\d+$/)
      const pairs = (file: FileName, key: string) =>
        all[file].map(body => [valuesOf(body)[key], body.external_id]).sort()
      const inverse = (key: string) =>
        all.people
          .flatMap(body => ((valuesOf(body)[key] ?? []) as string[]).map(name => [body.external_id, name]))
          .sort()
      expect(pairs('orders', 'buyer')).toEqual(inverse('orders'))
      expect(pairs('visits', 'visitor')).toEqual(inverse('visits'))
    }),
  ))

it('gives people valid reserved email addresses, and orders the total price of their products', () =>
  fc.assert(
    fc.property(dataset, shop => {
      const people = [...bodiesOf(shop, 'people')] as PersonBody[]
      for (const { email, language, date_of_birth } of people) {
        expect(email).toMatch(/^[a-z]+\.[a-z]+\.\d+@example\.(com|net|org)$/)
        expect(formats.email!.holds(email!)).toBe(true)
        expect(formats.language!.holds(language!)).toBe(true)
        expect(formats['date-of-birth']!.holds(date_of_birth!)).toBe(true)
      }
      const prices = new Map([...bodiesOf(shop, 'products')].map(body => [body.external_id, valuesOf(body).price]))
      for (const { products, total, placed_at: placedAt } of [...bodiesOf(shop, 'orders')].map(valuesOf)) {
        const sum = (products as string[]).reduce(
          (cents, name) => cents + Math.round(Number(prices.get(name)) * 100),
          0,
        )
        expect(total).toBe(sum / 100)
        expect(formats['date-time']!.holds(placedAt as string)).toBe(true)
      }
    }),
  ))

it('generates circular referrers, and earlier versions with the opposite consent answers', () =>
  fc.assert(
    fc.property(dataset, shop => {
      fc.pre(shop.people >= 5)
      const people = new Map(([...bodiesOf(shop, 'people')] as PersonBody[]).map(body => [body.external_id!, body]))
      const referrerOf = (name: string) => valuesOf(people.get(name)!).referrer as string
      expect(referrerOf(referrerOf('customer-0'))).toBe('customer-0')
      expect(referrerOf(referrerOf(referrerOf('customer-2')))).toBe('customer-2')
      for (const { external_id, consents } of earlierVersions(shop))
        expect(people.get(external_id!)!.consents).toEqual(
          consents!.map(answer => ({ ...answer, state: !answer.state })),
        )
    }),
  ))

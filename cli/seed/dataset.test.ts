import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { PersonBody, RecordBody } from '../../client/index.ts'
import { formats } from '../../src/formats.ts'
import type { Dataset } from './dataset.ts'
import { bodiesOf, earlierVersions, type FileName, files } from './lines.ts'

const world = fc
  .record({ seed: fc.nat(), people: fc.nat({ max: 60 }) })
  .map(({ seed, people }): Dataset => ({ seed, people, consentTypeIds: { marketing: 1, surveys: 2 } }))

const linesOf = (world: Dataset, file: FileName) => [...bodiesOf(world, file)].map(body => `${JSON.stringify(body)}\n`)
const digestOf = (world: Dataset) =>
  createHash('sha256')
    .update(files.flatMap(file => linesOf(world, file)).join(''))
    .digest('hex')

it('the same numbers make the same shop to the byte, in this version and the next', () => {
  const shop: Dataset = { seed: 1, people: 1_000, consentTypeIds: { marketing: 1, surveys: 2 } }
  expect(digestOf(shop)).toBe('da7514202b92059526ae20f3f025e50516b157d5bfb703570346e6ada10f9d9d')
})

it('another seed makes another shop, and the same one the same again', () =>
  fc.assert(
    fc.property(world, fc.nat(), (shop, seed) => {
      fc.pre(shop.people > 0)
      expect(digestOf(shop)).toBe(digestOf({ ...shop }))
      if (seed !== shop.seed) expect(digestOf({ ...shop, seed })).not.toBe(digestOf(shop))
    }),
  ))

type Values = Record<string, unknown>
const valuesOf = ({ attribute_values }: PersonBody | RecordBody) => attribute_values as Values
const namesOf = (bodies: (PersonBody | RecordBody)[]) => bodies.map(({ external_id }) => external_id as string)

it('everything that is named is in the shop, but for friends of customers, and links agree both ways', () =>
  fc.assert(
    fc.property(world, shop => {
      const all = Object.fromEntries(files.map(file => [file, [...bodiesOf(shop, file)]])) as Record<
        FileName,
        (PersonBody | RecordBody)[]
      >
      const names = Object.fromEntries(files.map(file => [file, new Set(namesOf(all[file]))]))
      for (const file of files) expect(names[file]!.size).toBe(all[file].length)
      const named = (file: FileName, key: string) => all[file].flatMap(body => valuesOf(body)[key] ?? [])
      const strangers = (file: FileName, key: string, target: FileName) =>
        named(file, key).filter(name => !names[target]!.has(name as string))
      expect(strangers('people', 'employer', 'companies')).toEqual([])
      expect(strangers('people', 'favourite', 'products')).toEqual([])
      expect(strangers('orders', 'products', 'products')).toEqual([])
      expect(strangers('visits', 'viewed', 'products')).toEqual([])
      for (const name of strangers('people', 'referrer', 'people')) expect(name).toMatch(/^friend-of-customer-\d+$/)
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

it('people have addresses that nobody has and that are well-formed, and orders cost what their products cost', () =>
  fc.assert(
    fc.property(world, shop => {
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

it('people refer each other in circles, and some have changed their minds about all that they answered', () =>
  fc.assert(
    fc.property(world, shop => {
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

import fc from 'fast-check'
import { expect, it } from 'vitest'
import { isActorName, looksLikeClient } from './actor-names.ts'

it('no name that a reader takes for kith itself can be an actor', () => {
  const own = fc.constantFrom('kith', 'link', 'retention', 'kith erasures apply', 'kith\u00a0console')
  const disguise = fc.constantFrom<(name: string) => string>(
    name => name,
    name => name.toUpperCase(),
    name => ` ${name} `,
    name => name.replace('i', '\u00ec'),
    name => name.replace('k', '\uff4b'),
    name => name.replace('t', 't\u0301'),
  )
  fc.assert(fc.property(own, disguise, disguise, (name, one, two) => !isActorName(two(one(name)))))
  for (const name of ['kithly', 'linked', 'Ada Kith', 'kith-sync', 'default.0123456789abcdef'])
    expect([name, isActorName(name)]).toEqual([name, true])
})

it('a name has the form of a client of its own organization only', () => {
  expect(looksLikeClient('shop.0123456789abcdef', 'shop')).toBe(true)
  expect(looksLikeClient('anna.0123456789abcdef', 'shop')).toBe(false)
})

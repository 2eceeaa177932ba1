import fc from 'fast-check'
import { expect, it } from 'vitest'
import { isActorName, lookAlikeOf, looksLikeClient } from './actor-names.ts'

it('no name that a reader takes for kith itself can be an actor', () => {
  const own = fc.constantFrom('kith', 'link', 'retention', 'kith erasures apply', 'kith\u00a0console')
  const disguise = fc.constantFrom<(name: string) => string>(
    name => name,
    name => name.toUpperCase(),
    name => ` ${name} `,
    name => name.replace('i', '\u00ec'),
    name => name.replace('k', '\uff4b'),
    name => name.replace('t', 't\u0301'),
    name => name.replace('k', '\u043a').replace('i', '1').replace('e', '\u0435'),
  )
  fc.assert(fc.property(own, disguise, disguise, (name, one, two) => !isActorName(two(one(name)))))
  for (const name of ['kithly', 'linked', 'Ada Kith', 'kith-sync', 'default.0123456789abcdef'])
    expect([name, isActorName(name)]).toEqual([name, true])
})

it('names that differ in case, accents, separators or letters that look alike are taken for one', () => {
  for (const other of ['SHOP sync', 'sh\u00f2p_sync', '\u0455hop-syn\u0441', 'sh0p sync', '\uff53hop.sync'])
    expect([other, lookAlikeOf(other)]).toEqual([other, lookAlikeOf('shop-sync')])
  for (const other of ['shopsync', 'shop sync 2', 'shop sing'])
    expect(lookAlikeOf(other)).not.toBe(lookAlikeOf('shop-sync'))
})

it('a name has the form of a client of its own organization only', () => {
  expect(looksLikeClient('shop.0123456789abcdef', 'shop')).toBe(true)
  expect(looksLikeClient('anna.0123456789abcdef', 'shop')).toBe(false)
})

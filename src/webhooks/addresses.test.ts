import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isReachable, parseRanges, urlProblem } from './addresses.ts'

/** A range of IPv6 addresses: its first eight hextets and its length in bits. */
type Range = readonly [first: string, bits: number]

const globalUnicast: Range = ['2000:0:0:0:0:0:0:0', 3]

/** The special ranges of IPv6 inside of 2000::/3, by the registry of special-purpose addresses (RFC 6890). */
const special: Range[] = [
  ['2001:0:0:0:0:0:0:0', 23], // IETF protocol assignments: Teredo, benchmarking, AMT, AS112, ORCHID
  ['2001:db8:0:0:0:0:0:0', 32], // documentation
  ['2002:0:0:0:0:0:0:0', 16], // 6to4
  ['2620:4f:8000:0:0:0:0:0', 48], // AS112
  ['3fff:0:0:0:0:0:0:0', 20], // documentation
]

const size = (bits: number) => 1n << BigInt(128 - bits)
const numberOf = (address: string) =>
  address.split(':').reduce((value, part) => (value << 16n) | BigInt(`0x${part}`), 0n)
const textOf = (value: bigint) =>
  Array.from({ length: 8 }, (_, index) => ((value >> BigInt(112 - 16 * index)) & 0xffffn).toString(16)).join(':')
const isWithin = (value: bigint, [first, bits]: Range) =>
  value >= numberOf(first) && value < numberOf(first) + size(bits)

/** Generates addresses of a range, often the first or the last one. */
const within = ([first, bits]: Range) => {
  const last = size(bits) - 1n
  return fc.oneof(fc.bigInt({ min: 0n, max: last }), fc.constantFrom(0n, last)).map(offset => numberOf(first) + offset)
}
const anyAddress = fc.bigInt({ min: 0n, max: size(0) - 1n })
const anyIPv4 = fc.bigInt({ min: 0n, max: 0xffff_ffffn })

describe('without KITH_WEBHOOK_ALLOW', () => {
  it('a webhook reaches an IPv6 address only if it is global unicast and in no special range', () => {
    const neighbor = fc
      .constantFrom(globalUnicast, ...special)
      .chain(([first, bits]) => fc.constantFrom(numberOf(first) - 1n, numberOf(first) + size(bits)))
    const address = fc.oneof(anyAddress, within(globalUnicast), fc.constantFrom(...special).chain(within), neighbor)
    fc.assert(
      fc.property(address, value => {
        const isPublic = isWithin(value, globalUnicast) && !special.some(range => isWithin(value, range))
        expect([textOf(value), isReachable(textOf(value), [])]).toEqual([textOf(value), isPublic])
        expect(urlProblem(`https://[${textOf(value)}]/`, []) === undefined).toBe(isPublic)
      }),
      { numRuns: 2_000 },
    )
  })

  it('an IPv6 address that carries an IPv4 address does not reach it', () => {
    const carriers: ((value: bigint) => bigint)[] = [
      value => value, // IPv4-compatible
      value => numberOf('0:0:0:0:ffff:0:0:0') | value, // IPv4-translated
      value => numberOf('64:ff9b:0:0:0:0:0:0') | value, // NAT64
      value => numberOf('64:ff9b:1:0:0:0:0:0') | value, // NAT64 of a local network
      value => numberOf('2002:0:0:0:0:0:0:0') | (value << 80n), // 6to4
      value => numberOf('2001:0:0:0:0:0:0:0') | (value ^ 0xffff_ffffn), // Teredo
    ]
    fc.assert(
      fc.property(fc.constantFrom(...carriers), anyIPv4, (carry, value) => {
        expect(isReachable(textOf(carry(value)), [])).toBe(false)
      }),
    )
  })

  it('an IPv4-mapped address counts as the IPv4 address', () => {
    fc.assert(
      fc.property(anyIPv4, value => {
        const dotted = [24n, 16n, 8n, 0n].map(shift => (value >> shift) & 0xffn).join('.')
        const mapped = textOf(numberOf('0:0:0:0:0:ffff:0:0') | value)
        expect(isReachable(mapped, [])).toBe(isReachable(dotted, []))
      }),
    )
  })
})

it('KITH_WEBHOOK_ALLOW permits exactly its ranges of the addresses that are not public', () => {
  const allowed: Range = ['fd12:3456:0:0:0:0:0:0', 32]
  const ranges = parseRanges(['fd12:3456::/32'])
  const uniqueLocal: Range = ['fc00:0:0:0:0:0:0:0', 7]
  fc.assert(
    fc.property(fc.oneof(within(allowed), within(uniqueLocal)), value => {
      expect(isReachable(textOf(value), ranges)).toBe(isWithin(value, allowed))
    }),
  )
})

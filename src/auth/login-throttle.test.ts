import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLoginThrottle } from './login-throttle.ts'

function open() {
  const clock = { nowMs: 1_000_000 }
  return { clock, ...createLoginThrottle(() => clock.nowMs) }
}

const repeat = (count: number, attempt: (index: number) => number | undefined) =>
  Array.from({ length: count }, (_, index) => attempt(index))

const none = (count: number) => Array<undefined>(count).fill(undefined)

describe('the login throttle', () => {
  it('allows ten failures a minute per client and address, then returns the rest of the minute', () => {
    const { clock, countAttempt } = open()
    expect(repeat(10, () => countAttempt('a', '192.0.2.1'))).toEqual(none(10))
    clock.nowMs += 1_500
    expect(countAttempt('a', '192.0.2.1')).toBe(59)
    clock.nowMs += 58_499
    expect(countAttempt('a', '192.0.2.1')).toBe(1)
    clock.nowMs += 1
    expect(countAttempt('a', '192.0.2.1')).toBeUndefined()
  })

  it('blocks neither the client at other addresses nor other clients at the same address', () => {
    const { countAttempt } = open()
    repeat(11, () => countAttempt('a', '192.0.2.1'))
    expect([countAttempt('a', '192.0.2.1'), countAttempt('a', '192.0.2.2'), countAttempt('b', '192.0.2.1')]).toEqual([
      60,
      undefined,
      undefined,
    ])
  })

  it('allows a hundred failures a minute per address, whatever the client ids', () => {
    const { countAttempt } = open()
    expect(repeat(100, index => countAttempt(`client ${index}`, '192.0.2.1'))).toEqual(none(100))
    expect(countAttempt('another', '192.0.2.1')).toBe(60)
    expect(countAttempt('another', '192.0.2.2')).toBeUndefined()
  })

  it('does not count successful attempts', () => {
    const { countAttempt, uncountAttempt } = open()
    for (let index = 0; index < 1_000; index++) {
      expect(countAttempt('a', '192.0.2.1')).toBeUndefined()
      uncountAttempt('a', '192.0.2.1')
    }
  })

  it('does not extend the wait for attempts made during it', () => {
    const { clock, countAttempt } = open()
    repeat(10, () => countAttempt('a', '192.0.2.1'))
    for (let second = 60; second > 0; second--) {
      expect(countAttempt('a', '192.0.2.1')).toBe(second)
      clock.nowMs += 1_000
    }
    expect(countAttempt('a', '192.0.2.1')).toBeUndefined()
  })

  it.each([
    ['2001:db8:1:2::1', '2001:db8:1:2:3:4:5:6'],
    ['2001:db8::1', '2001:db8:0:0:ffff::'],
    ['::1', '0:0:0:0:1:2:3:4'],
    ['fe80::1%eth0', 'fe80::2%eth0'],
  ])('counts %s and %s as one network', (one, other) => {
    const { countAttempt } = open()
    repeat(10, () => countAttempt('a', one))
    expect(countAttempt('a', other)).toBe(60)
    expect(countAttempt('a', '2001:db8:1:3::1')).toBeUndefined()
    expect(countAttempt('a', '::ffff:192.0.2.1')).toBeUndefined()
  })

  it('never throws and always blocks the eleventh failure, whatever the input', () => {
    const text = fc.string({ unit: 'binary', maxLength: 300 })
    fc.assert(
      fc.property(text, fc.oneof(text, fc.ipV4(), fc.ipV6()), (client_id, address) => {
        const { countAttempt } = open()
        repeat(10, () => countAttempt(client_id, address))
        expect(countAttempt(client_id, address)).toBe(60)
      }),
    )
  })
})

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLoginThrottle } from './login-throttle.ts'

function open() {
  const clock = { nowMs: 1_000_000 }
  return { clock, ...createLoginThrottle(() => clock.nowMs) }
}

const times = (count: number, attempt: (index: number) => number | undefined) =>
  Array.from({ length: count }, (_, index) => attempt(index))

const none = (count: number) => Array<undefined>(count).fill(undefined)

describe('failed attempts', () => {
  it('of one client from one address may be ten in a minute, and the next waits for its rest', () => {
    const { clock, begin } = open()
    expect(times(10, () => begin('a', '192.0.2.1'))).toEqual(none(10))
    clock.nowMs += 1_500
    expect(begin('a', '192.0.2.1')).toBe(59)
    clock.nowMs += 58_499
    expect(begin('a', '192.0.2.1')).toBe(1)
    clock.nowMs += 1
    expect(begin('a', '192.0.2.1')).toBeUndefined()
  })

  it('shut out neither the client elsewhere nor others there', () => {
    const { begin } = open()
    times(11, () => begin('a', '192.0.2.1'))
    expect([begin('a', '192.0.2.1'), begin('a', '192.0.2.2'), begin('b', '192.0.2.1')]).toEqual([
      60,
      undefined,
      undefined,
    ])
  })

  it('of one address may be a hundred in a minute, whatever they call themselves', () => {
    const { begin } = open()
    expect(times(100, index => begin(`client ${index}`, '192.0.2.1'))).toEqual(none(100))
    expect(begin('another', '192.0.2.1')).toBe(60)
    expect(begin('another', '192.0.2.2')).toBeUndefined()
  })

  it('do not count those that succeeded', () => {
    const { begin, takeBack } = open()
    for (let index = 0; index < 1_000; index++) {
      expect(begin('a', '192.0.2.1')).toBeUndefined()
      takeBack('a', '192.0.2.1')
    }
  })

  it('that waited do not make it longer', () => {
    const { clock, begin } = open()
    times(10, () => begin('a', '192.0.2.1'))
    for (let second = 60; second > 0; second--) {
      expect(begin('a', '192.0.2.1')).toBe(second)
      clock.nowMs += 1_000
    }
    expect(begin('a', '192.0.2.1')).toBeUndefined()
  })

  it.each([
    ['2001:db8:1:2::1', '2001:db8:1:2:3:4:5:6'],
    ['2001:db8::1', '2001:db8:0:0:ffff::'],
    ['::1', '0:0:0:0:1:2:3:4'],
    ['fe80::1%eth0', 'fe80::2%eth0'],
  ])('of %s and of %s are those of one network', (one, other) => {
    const { begin } = open()
    times(10, () => begin('a', one))
    expect(begin('a', other)).toBe(60)
    expect(begin('a', '2001:db8:1:3::1')).toBeUndefined()
    expect(begin('a', '::ffff:192.0.2.1')).toBeUndefined()
  })

  it('never throw, and never let the eleventh in, whatever is sent', () => {
    const text = fc.string({ unit: 'binary', maxLength: 300 })
    fc.assert(
      fc.property(text, fc.oneof(text, fc.ipV4(), fc.ipV6()), (client_id, address) => {
        const { begin } = open()
        times(10, () => begin(client_id, address))
        expect(begin(client_id, address)).toBe(60)
      }),
    )
  })
})

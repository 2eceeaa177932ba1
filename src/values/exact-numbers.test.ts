import fc from 'fast-check'
import { expect, it } from 'vitest'
import { parseWithAllDigits } from './parse-json.ts'

const digits = fc.stringMatching(/^(0|-?[1-9][0-9]{0,40})(\.[0-9]{1,40})?$/)

it('prints every number with the digits that it had', () => {
  fc.assert(
    fc.property(fc.array(digits), numbers => {
      const text = `{"measures":[${numbers.join(',')}]}`
      expect(JSON.stringify(parseWithAllDigits(text))).toBe(text)
    }),
  )
})

it('leaves numbers that lose nothing as they are', () => {
  expect(parseWithAllDigits('[1,-0.5,9007199254740991,"1.0",null,true]')).toEqual([
    1,
    -0.5,
    2 ** 53 - 1,
    '1.0',
    null,
    true,
  ])
})

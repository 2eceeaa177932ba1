import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { didYouMean, editsBetween } from './did-you-mean.ts'

describe('didYouMean', () => {
  const names = ['first_name', 'last_name', 'email', 'email_consent', 'sms_consent', '$gte', '$gt', '$exists']
  it.each([
    ['frist_name', 'first_name'],
    ['firstname', 'first_name'],
    ['firstName', 'first_name'],
    ['emial', 'email'],
    ['emails', 'email'],
    ['mail', 'email'],
    ['email_concent', 'email_consent'],
    ['$exist', '$exists'],
    // Two edits are more than a third of five characters.
    ['eamli', undefined],
    ['xxxxx', undefined],
    ['', undefined],
    ['e', undefined],
    ['name', undefined],
    // Two names are equally near.
    ['$gtx', undefined],
    ['x'.repeat(100_000), undefined],
  ])('%.20s means %s', (name, meant) => {
    expect(didYouMean(name, names)).toBe(meant === undefined ? '' : `: did you mean "${meant}"?`)
  })

  it('counts edits as the definition does, up to two and a third of the name', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 9 })
    fc.assert(
      fc.property(text, text, (one, other) => {
        const edits = distance(one, other)
        expect(editsBetween(one, other)).toBe(edits <= Math.min(2, Math.floor(one.length / 3)) ? edits : undefined)
      }),
      { numRuns: 500 },
    )
  })
})

/** The distance by its recursive definition. */
function distance(one: string, other: string): number {
  if (one === '' || other === '') return one.length + other.length
  const [a, b] = [one.at(-1), other.at(-1)]
  const [x, y] = [one.slice(0, -1), other.slice(0, -1)]
  if (a === b) return distance(x, y)
  const swap = a === y.at(-1) && b === x.at(-1) ? distance(x.slice(0, -1), y.slice(0, -1)) : Number.POSITIVE_INFINITY
  return 1 + Math.min(distance(x, other), distance(one, y), distance(x, y), swap)
}

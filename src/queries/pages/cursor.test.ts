import fc from 'fast-check'
import { expect, it } from 'vitest'
import { decodeCursor, encodeCursor, maxCursorCharacters } from './cursor.ts'

const order = fc.record(
  { field: fc.string({ maxLength: 270 }), direction: fc.constantFrom('asc' as const, 'desc' as const) },
  { requiredKeys: ['direction'] },
)

it('a cursor leads back to its place in the same order, and to none in another', () => {
  fc.assert(
    fc.property(
      order,
      order,
      fc.uuid(),
      fc.string({ unit: 'binary', maxLength: 130 }),
      (own, other, after_id, term) => {
        const after_term = own.field === undefined ? undefined : term.replaceAll('\0', '')
        const cursor = encodeCursor(own, { after_id, after_term })
        expect(cursor.length).toBeLessThanOrEqual(maxCursorCharacters)
        expect(cursor).toMatch(/^[\w-]+$/)
        expect(decodeCursor(cursor, own)).toEqual({ after_id, ...(after_term !== undefined && { after_term }) })
        if (own.field !== other.field || own.direction !== other.direction)
          expect(decodeCursor(cursor, other)).toBe('other order')
      },
    ),
  )
})

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const id = '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f'

it.each([
  ['nothing', ''],
  ['a word', 'next'],
  ['other characters', '=?%'],
  ['a number', encode(1)],
  ['an object', encode({ 0: 'email' })],
  ['too few parts', encode(['email', 'asc', 'x'])],
  ['an identifier that is none', encode(['email', 'asc', 'x', '1'])],
  ['a term that is a number', encode(['email', 'asc', 1, id])],
  ['no term', encode(['email', 'asc', null, id])],
  ['a term with a null character', encode(['email', 'asc', 'a\0', id])],
  ['a term with half of a character', encode(['email', 'asc', '\ud800', id])],
  ['bits that base64 does not have', `${encode(['email', 'asc', 'x', id]).slice(0, -1)}_`],
])('%s is no cursor', (_, cursor) => {
  expect(decodeCursor(cursor, { field: 'email', direction: 'asc' })).toBe('invalid')
})

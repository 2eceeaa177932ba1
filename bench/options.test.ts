import { expect, it } from 'vitest'
import { readOptions } from './options.ts'
import { rows } from './rows.ts'

it('measures every row with a million people in three rounds of ten seconds by default', () => {
  expect(readOptions([])).toMatchObject({ people: 1_000_000, rounds: 3, seconds: 10, workers: 1, rows })
})

it('takes fewer people and shorter rounds with --quick, unless other options set them', () => {
  expect(readOptions(['--quick'])).toMatchObject({ people: 100_000, seconds: 5 })
  expect(readOptions(['--quick', '--seconds', '3', '--people', '5000'])).toMatchObject({ people: 5_000, seconds: 3 })
})

it('selects rows by name with --only, in the order of the table', () => {
  expect(readOptions(['--only', 'get,patch']).rows.map(({ name }) => name)).toEqual(['patch', 'get'])
})

it.each([
  [['--only', 'patch,gte'], '--only takes row names: patch, get'],
  [['--people', 'many'], '--people takes an integer of at least 1000'],
  [['--seconds', '0'], '--seconds takes an integer of at least 1'],
  [['--rounds', '1.5'], '--rounds takes an integer of at least 1'],
  [['--sideways'], '--sideways'],
])('rejects %j with a message', (words, sentence) => {
  expect(() => readOptions(words)).toThrow(sentence)
})

import { expect, it } from 'vitest'
import { readOptions } from './options.ts'
import { rows } from './rows.ts'

it('without words a million people are asked for every row, three rounds of ten seconds', () => {
  expect(readOptions([])).toMatchObject({ people: 1_000_000, rounds: 3, seconds: 10, workers: 1, rows })
})

it('--quick takes fewer people and shorter rounds, and what is named besides goes before it', () => {
  expect(readOptions(['--quick'])).toMatchObject({ people: 100_000, seconds: 5 })
  expect(readOptions(['--quick', '--seconds', '3', '--people', '5000'])).toMatchObject({ people: 5_000, seconds: 3 })
})

it('--only takes rows by name, in the order of the table', () => {
  expect(readOptions(['--only', 'get,patch']).rows.map(({ name }) => name)).toEqual(['patch', 'get'])
})

it.each([
  [['--only', 'patch,gte'], '--only takes names of rows: patch, get'],
  [['--people', 'many'], '--people takes a number from 1000 on'],
  [['--seconds', '0'], '--seconds takes a number from 1 on'],
  [['--rounds', '1.5'], '--rounds takes a number from 1 on'],
  [['--sideways'], '--sideways'],
])('%j is refused with a sentence', (words, sentence) => {
  expect(() => readOptions(words)).toThrow(sentence)
})

import { expect, it } from 'vitest'
import { limitOf } from './baseline.ts'
import { readOptions } from './options.ts'
import { rows } from './rows.ts'

const namesOf = (words: string[]) => readOptions(words).rows.map(({ name }) => name)

it('measures the core rows in three rounds of five seconds by default, and in one with --quick', () => {
  expect(readOptions([])).toMatchObject({ people: 100_000, rounds: 3, seconds: 5, workers: 1, hasStatements: true })
  expect(readOptions(['--quick'])).toMatchObject({ people: 10_000, rounds: 1, seconds: 2 })
  expect(namesOf([])).toEqual(rows.filter(({ group }) => group === 'core').map(({ name }) => name))
})

it('selects rows by their names and groups, in the order of the table', () => {
  expect(namesOf(['--only', 'get,patch'])).toEqual(['patch', 'get'])
  expect(namesOf(['--only', 'questions,get'])[0]).toBe('get')
})

it('gives each row a name of its own', () => {
  expect(new Set(rows.map(({ name }) => name)).size).toBe(rows.length)
})

it.each([
  [['--only', 'patch,gte'], '--only takes names of rows and groups: patch, core'],
  [['--people', 'many'], '--people takes an integer of at least 1000'],
  [['--seconds', '0'], '--seconds takes an integer of at least 1'],
  [['--rounds', '1.5'], '--rounds takes an integer of at least 1'],
  [['--baseline'], '--baseline needs --against'],
  [['--sideways'], '--sideways'],
])('rejects %j with a message', (words, sentence) => {
  expect(() => readOptions(words)).toThrow(sentence)
})

it('compares a row with a baseline in proportion to the speed of the machine', () => {
  const baseline = { revision: 'a', speed: 200, rows: { patch: 100 } }
  expect(limitOf(baseline, 'patch', 400)).toBe(200)
  expect(limitOf(baseline, 'get', 400)).toBeUndefined()
})

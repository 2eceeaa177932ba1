import { parseArgs } from 'node:util'
import type { BenchOptions } from './figures.ts'
import { rows } from './rows.ts'

/** The options of the command line. `compare`: a git revision. `json`: a file for the figures. */
export type ComparisonOptions = BenchOptions & { compare: string | undefined; json: string | undefined }

/** With fewer people, a random page could begin after the last person. */
export const minPeople = 1_000

/** Parses the words of the command line. Throws an Error whose message is for the user. */
export function readOptions(words: readonly string[]): ComparisonOptions {
  const { values } = parseArgs({
    args: [...words],
    options: {
      quick: { type: 'boolean', default: false },
      people: { type: 'string' },
      rounds: { type: 'string', default: '3' },
      seconds: { type: 'string' },
      only: { type: 'string' },
      workers: { type: 'string', default: '1' },
      compare: { type: 'string' },
      json: { type: 'string' },
    },
  })
  return {
    people: parseCount('people', values.people ?? (values.quick ? '100000' : '1000000'), minPeople),
    rounds: parseCount('rounds', values.rounds, 1),
    seconds: parseCount('seconds', values.seconds ?? (values.quick ? '5' : '10'), 1),
    workers: parseCount('workers', values.workers, 1),
    rows: values.only === undefined ? rows : chosenRows(values.only.split(',')),
    compare: values.compare,
    json: values.json,
  }
}

function parseCount(name: string, word: string, min: number): number {
  if (!/^\d{1,9}$/.test(word) || Number(word) < min) throw new Error(`--${name} takes an integer of at least ${min}.`)
  return Number(word)
}

function chosenRows(names: readonly string[]) {
  const known = rows.map(({ name }) => name)
  if (!names.every(name => known.includes(name))) throw new Error(`--only takes row names: ${known.join(', ')}.`)
  return rows.filter(({ name }) => names.includes(name))
}

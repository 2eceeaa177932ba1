import { parseArgs } from 'node:util'
import type { BenchOptions } from './figures.ts'
import { rows } from './rows.ts'

/** What the command line asks for. */
export type ComparisonOptions = BenchOptions & { compare: string | undefined; json: string | undefined }

/** Below that, a random page could begin after the last person. */
const leastPeople = 1_000

/** Reads the words of the command line. Throws with a sentence for whoever typed them. */
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
    people: count('people', values.people ?? (values.quick ? '100000' : '1000000'), leastPeople),
    rounds: count('rounds', values.rounds, 1),
    seconds: count('seconds', values.seconds ?? (values.quick ? '5' : '10'), 1),
    workers: count('workers', values.workers, 1),
    rows: values.only === undefined ? rows : chosenRows(values.only.split(',')),
    compare: values.compare,
    json: values.json,
  }
}

function count(name: string, word: string, least: number): number {
  if (!/^\d{1,9}$/.test(word) || Number(word) < least) throw new Error(`--${name} takes a number from ${least} on.`)
  return Number(word)
}

function chosenRows(names: readonly string[]) {
  const known = rows.map(({ name }) => name)
  if (!names.every(name => known.includes(name))) throw new Error(`--only takes names of rows: ${known.join(', ')}.`)
  return rows.filter(({ name }) => names.includes(name))
}

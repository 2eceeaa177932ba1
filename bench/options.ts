import { parseArgs } from 'node:util'
import { type Row, rows } from './rows.ts'

/** The rows that a run measures, the size of its data, and the times of its phases. */
export type Options = {
  people: number
  rounds: number
  seconds: number
  warmUpSeconds: number
  aloneSeconds: number
  pauseMs: number
  workers: number
  rows: readonly Row[]
  /** A git revision to compare with. */
  against: string | undefined
  hasStatements: boolean
  /** A file for the figures. */
  json: string | undefined
  /** Whether the figures of `against` become those of bench/baseline.json. */
  isBaseline: boolean
}

/** Parses the words of the command line. Throws an Error whose message is for the user. */
export function readOptions(words: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...words],
    options: {
      quick: { type: 'boolean', default: false },
      people: { type: 'string' },
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      only: { type: 'string', default: 'core' },
      workers: { type: 'string', default: '1' },
      against: { type: 'string' },
      json: { type: 'string' },
      baseline: { type: 'boolean', default: false },
    },
  })
  const { quick } = values
  if (values.baseline && values.against === undefined) throw new Error('--baseline needs --against.')
  return {
    // With fewer people, a page at a random place could begin after the last person.
    people: parseCount('people', values.people ?? (quick ? '10000' : '100000'), 1_000),
    rounds: parseCount('rounds', values.rounds ?? (quick ? '1' : '3'), 1),
    seconds: parseCount('seconds', values.seconds ?? (quick ? '2' : '5'), 1),
    warmUpSeconds: quick ? 1 : 2,
    aloneSeconds: quick ? 1 : 3,
    pauseMs: 300,
    workers: parseCount('workers', values.workers, 1),
    rows: chooseRows(values.only.split(',')),
    against: values.against,
    hasStatements: values.against === undefined,
    json: values.json,
    isBaseline: values.baseline,
  }
}

function parseCount(name: string, word: string, min: number): number {
  if (!/^\d{1,9}$/.test(word) || Number(word) < min) throw new Error(`--${name} takes an integer of at least ${min}.`)
  return Number(word)
}

/** Chooses rows by their names and the names of their groups. */
function chooseRows(names: readonly string[]): Row[] {
  const known = new Set(rows.flatMap(({ name, group }) => [name, group]))
  if (!names.every(name => known.has(name)))
    throw new Error(`--only takes names of rows and groups: ${[...known].join(', ')}.`)
  return rows.filter(({ name, group }) => names.includes(name) || names.includes(group))
}

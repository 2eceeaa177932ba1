import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import type { Load } from './load.ts'

export const scenarioNames = ['storm', 'neighbour', 'filters', 'soak'] as const
export type ScenarioName = (typeof scenarioNames)[number]

/** Options of the load tests. `seconds` are the durations of the closed loop, of each storm and of the soak. */
export type LoadOptions = {
  seconds: { maximum: number; storm: number; soak: number }
  seed: number
  work: Load['work']
  scenarios: readonly ScenarioName[]
}

/** Parses the command line. Throws an Error with a message for the user. */
export function readOptions(args: readonly string[]): LoadOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seconds: { type: 'string', default: '60' },
      'soak-seconds': { type: 'string', default: '600' },
      seed: { type: 'string', default: `${randomInt(1, 2 ** 31)}` },
      work: { type: 'string', default: 'mixed' },
      only: { type: 'string', default: scenarioNames.join(',') },
    },
  })
  const storm = count('seconds', values.seconds, 5)
  return {
    seconds: { maximum: Math.min(storm, 10), storm, soak: count('soak-seconds', values['soak-seconds'], 5) },
    seed: count('seed', values.seed, 1),
    work: oneOf('work', values.work, ['mixed', 'patch']),
    scenarios: values.only.split(',').map(name => oneOf('only', name, scenarioNames)),
  }
}

function count(name: string, value: string, min: number): number {
  if (!/^\d{1,10}$/.test(value) || Number(value) < min)
    throw new Error(`--${name} must be a whole number of at least ${min}.`)
  return Number(value)
}

function oneOf<T extends string>(name: string, value: string, known: readonly T[]): T {
  const found = known.find(one => one === value)
  if (found === undefined) throw new Error(`--${name} must be ${known.join(' or ')}.`)
  return found
}

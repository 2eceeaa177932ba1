import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import type { Load } from './load.ts'

export const sceneNames = ['storm', 'neighbour', 'filters', 'soak'] as const
export type SceneName = (typeof sceneNames)[number]

/** Seconds of the closed-loop maximum, of each storm, and of the soak. */
export type LoadOptions = {
  seconds: { maximum: number; storm: number; soak: number }
  seed: number
  work: Load['work']
  scenes: readonly SceneName[]
}

/** Reads the words of the command line. Throws with a sentence for whoever typed them. */
export function readOptions(words: readonly string[]): LoadOptions {
  const { values } = parseArgs({
    args: [...words],
    options: {
      seconds: { type: 'string', default: '60' },
      'soak-seconds': { type: 'string', default: '600' },
      seed: { type: 'string', default: `${randomInt(1, 2 ** 31)}` },
      work: { type: 'string', default: 'mixed' },
      only: { type: 'string', default: sceneNames.join(',') },
    },
  })
  const storm = count('seconds', values.seconds, 5)
  return {
    seconds: { maximum: Math.min(storm, 10), storm, soak: count('soak-seconds', values['soak-seconds'], 5) },
    seed: count('seed', values.seed, 1),
    work: oneOf('work', values.work, ['mixed', 'patch']),
    scenes: values.only.split(',').map(name => oneOf('only', name, sceneNames)),
  }
}

function count(name: string, word: string, least: number): number {
  if (!/^\d{1,10}$/.test(word) || Number(word) < least) throw new Error(`--${name} takes a number from ${least} on.`)
  return Number(word)
}

function oneOf<T extends string>(name: string, word: string, known: readonly T[]): T {
  const found = known.find(one => one === word)
  if (found === undefined) throw new Error(`--${name} takes ${known.join(' or ')}.`)
  return found
}

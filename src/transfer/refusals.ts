import type { Refusal } from '../errors.ts'

/** A refused line, counted from 1. */
export type RefusedLine = { number: number; refusal: Refusal }

/** Refusals are told in full up to so many of an import, */
const mostLines = 10_000
/** or so many characters: lines of two bytes are answered in 150, and 400 kB of them in 30 MB. */
const mostCharacters = 1_048_576

/** An import's refusals as lines of its answer: the first in full, the others by the numbers of their lines. */
export function createRefusals(): (refused: readonly RefusedLine[]) => string {
  let [lines, characters] = [0, 0]
  return refused => {
    let told = ''
    let next = 0
    for (; next < refused.length && lines < mostLines && characters < mostCharacters; next += 1) {
      const { number, refusal } = refused[next]!
      const { word, message, details } = refusal
      const text = `${JSON.stringify({ line: number, error: word, message, details })}\n`
      lines += 1
      characters += text.length
      told += text
    }
    if (next === refused.length) return told
    return `${told}${JSON.stringify({ refused_lines: rangesOf(refused.slice(next)) })}\n`
  }
}

/** The first and the last line of each run of lines that follow each other. */
function rangesOf(refused: readonly RefusedLine[]): [first: number, last: number][] {
  const ranges: [first: number, last: number][] = []
  for (const { number } of refused) {
    const range = ranges.at(-1)
    if (range && number === range[1] + 1) range[1] = number
    else ranges.push([number, number])
  }
  return ranges
}

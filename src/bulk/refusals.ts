import type { Refusal } from '../values/errors.ts'

/** A refused line, counted from 1. */
export type RefusedLine = { number: number; refusal: Refusal }

/**
 * An import ends after this many refused lines in a row, unless its query sets another number, because the client
 * probably sent the wrong file.
 */
export const defaultMaxRefused = 1_000

/** The maximum number of refusals that an import reports in full. */
const maxLines = 10_000
/**
 * The maximum size of the full refusals. The refusal of a line of two bytes has 150, so 400 kB of such lines would
 * produce 30 MB.
 */
const maxCharacters = 1_048_576

/**
 * Formats the refusals of an import as lines of its response: the first ones in full, the others as ranges of line
 * numbers.
 */
export function createRefusals(): (refused: readonly RefusedLine[]) => string {
  let [lines, characters] = [0, 0]
  return refused => {
    let output = ''
    let next = 0
    for (; next < refused.length && lines < maxLines && characters < maxCharacters; next += 1) {
      const { number, refusal } = refused[next]!
      const { code, message, details, reason } = refusal
      const text = `${JSON.stringify({ line: number, error: code, message, details, reason })}\n`
      lines += 1
      characters += text.length
      output += text
    }
    if (next === refused.length) return output
    return `${output}${JSON.stringify({ refused_lines: rangesOf(refused.slice(next)) })}\n`
  }
}

/** The first and last line number of each run of consecutive lines. */
function rangesOf(refused: readonly RefusedLine[]): [first: number, last: number][] {
  const ranges: [first: number, last: number][] = []
  for (const { number } of refused) {
    const range = ranges.at(-1)
    if (range && number === range[1] + 1) range[1] = number
    else ranges.push([number, number])
  }
  return ranges
}

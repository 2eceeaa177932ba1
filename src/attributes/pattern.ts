import { createRequire } from 'node:module'
import type { RE2JS } from 're2js'

// The first pattern loads the library. It takes 20 ms, which a start without patterns saves.
const require = createRequire(import.meta.url)
const load = (): typeof import('re2js') => require('re2js')

/**
 * The maximum size of a compiled pattern, in instructions. re2js compares in linear time: at worst 50 ns for each
 * character and instruction, if the program has too many states to cache. `[abc]*a[abc]{450}[de]` took 0.9 s for 64
 * KiB.
 */
const maxInstructions = 500
/**
 * The maximum steps of a comparison, so that it takes less than 0.1 s at worst. 500 instructions allow 4,000
 * characters.
 */
const maxSteps = 2_000_000
/**
 * The maximum time of all patterns of one request. Only patterns with very many states take longer than 5 ns per
 * character.
 */
const maxRequestMs = 500

/** The time that the patterns of a request have taken. */
export type PatternTime = { spentMs: number }

/**
 * The number of compiled patterns in the cache. Each caches states in up to 8 MB. The oldest pattern is evicted first.
 */
const maxKept = 32
const kept = new Map<string, RE2JS>()

function compile(pattern: string): RE2JS {
  const compiled = kept.get(pattern) ?? load().RE2JS.compile(pattern)
  kept.delete(pattern)
  kept.set(pattern, compiled)
  if (kept.size > maxKept) kept.delete(kept.keys().next().value!)
  return compiled
}

/** Returns the reason why a pattern cannot be used, or undefined if it can. Completes "pattern …". */
export function patternFault(pattern: string): string | undefined {
  const { RE2JS, RE2JSException } = load()
  try {
    const size = RE2JS.compile(pattern).programSize()
    return size > maxInstructions
      ? 'is too complex: write it shorter, or with smaller numbers of repetitions'
      : undefined
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error
    return `is no regular expression in the syntax of RE2: ${error.message.replace(/^error parsing regexp: /, '')}`
  }
}

/**
 * Returns the reason why a text breaks a pattern, or undefined if a part of the text matches. Completes "the value …".
 */
export function patternMismatch(pattern: string, text: string, time: PatternTime): string | undefined {
  const compiled = compile(pattern)
  const maxLength = Math.floor(maxSteps / compiled.programSize())
  if (text.length > maxLength) return `must have at most ${maxLength} characters to be compared with ${pattern}`
  if (time.spentMs > maxRequestMs)
    return `cannot be compared with ${pattern}: the patterns of the request take too long. Send fewer values at a time.`
  const startMs = performance.now()
  const isMatch = compiled.test(text)
  time.spentMs += performance.now() - startMs
  return isMatch ? undefined : `must match ${pattern}`
}

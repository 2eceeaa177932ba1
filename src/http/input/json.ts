import { yieldIfDue } from '../../process/event-loop.ts'
import { parseExactly } from '../../values/parse-json.ts'
import { readsBackEqual } from '../../values/scalars.ts'
import { decodeBody, decodeLargeBody } from './decode-body.ts'
import { type ArrayOptions, type PieceLimits, parseArrays } from './json-arrays.ts'
import {
  backslash,
  closeBrace,
  closeBracket,
  colon,
  dot,
  firstVisible,
  lowerU,
  openBrace,
  openBracket,
  quote,
} from './json-characters.ts'
import { checkThoroughly } from './json-faults.ts'

type JsonLimits = { jsonDepth: number }

/**
 * Parses a body as JSON and accepts only what can be stored exactly as sent. Skips one leading byte order mark. Throws
 * a Fault of 400: `failed_binding_json` if it is not JSON in UTF-8 (the message names the position); `invalid_json` for
 * a duplicate key or a top level that is not an object; `invalid_parameter` for nesting deeper than `jsonDepth` (the
 * top level is 1), a number that does not read back equal, NUL, a lone surrogate, or the key `__proto__`. If a body has
 * several faults, those of the first kind in this order are reported, at most 100.
 *
 * A quick check beside JSON.parse accepts nearly every body. {@link checkThoroughly} decides on the others and names
 * their faults.
 */
export function parseJson(bytes: Buffer, { jsonDepth }: JsonLimits): unknown {
  const text = decodeBody(bytes)
  const value = parseQuickly(text, jsonDepth)
  if (value && !Array.isArray(value)) return value
  const steps = checkThoroughly(text, jsonDepth)
  while (!steps.next().done);
  return parseExactly(text)
}

/**
 * As {@link parseJson}, for a large body: yields to the event loop between pieces. The first piece with too many
 * elements of an array at the top level ends in a Fault of 400. So does one with too many members or characters in one
 * element or beside the elements.
 */
export async function parseLargeJson(
  bytes: Buffer,
  limits: JsonLimits & PieceLimits,
  options: ArrayOptions = {},
): Promise<unknown> {
  const { jsonDepth } = limits
  const text = await decodeLargeBody(bytes)
  const quick = await parseArrays(text, piece => parseQuickly(piece, jsonDepth - 1), limits, options)
  const value = quick && (await parseQuicklyInSteps(quick.rest, jsonDepth))
  if (value) return withArrays(value, quick.arrays)
  for (const _ of checkThoroughly(text, jsonDepth)) await yieldIfDue()
  const { rest, arrays } = (await parseArrays(text, parseExactly, limits, options))!
  await yieldIfDue()
  return withArrays(parseExactly(rest) as object, arrays)
}

const withArrays = (value: object, arrays: ReadonlyMap<string, unknown[]>) =>
  Object.assign(value, Object.fromEntries(arrays))

/**
 * Parses a text whose value can be stored exactly as sent. Returns undefined if that is uncertain, or if the value is
 * neither an object nor an array.
 */
function parseQuickly(text: string, jsonDepth: number): object | undefined {
  const members = countMembers(text, jsonDepth)
  const value = members === undefined ? undefined : parse(text)
  return value instanceof Object && countKeys(value) === members ? value : undefined
}

/** As {@link parseQuickly}, for a large text. Returns undefined for an array, too. */
async function parseQuicklyInSteps(text: string, jsonDepth: number): Promise<object | undefined> {
  if (text.charCodeAt(firstVisible(text, 0)) !== openBrace) return undefined
  await yieldIfDue()
  const members = countMembers(text, jsonDepth)
  if (members === undefined) return undefined
  await yieldIfDue()
  const value = parse(text) as object | undefined
  await yieldIfDue()
  return value && countKeys(value) === members ? value : undefined
}

function parse(text: string): unknown {
  try {
    return parseExactly(text)
  } catch {
    return undefined
  }
}

const isDigit = (code: number) => code >= 0x30 && code <= 0x39
const isExponent = (code: number) => code === 0x65 || code === 0x45

// A number of up to 15 digits reads back equal from a double.
const safeDigits = 15

/**
 * Counts the `key: value` members of a text, which need not be JSON. Returns undefined if the text needs the thorough
 * check. If the parsed value has as many keys, no key is duplicate. This is cheaper than a set of keys for each object.
 */
function countMembers(text: string, jsonDepth: number): number | undefined {
  let members = 0
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === quote) {
      for (at++; at < text.length; at++) {
        const inner = text.charCodeAt(at)
        if (inner === quote) break
        if (inner === backslash && text.charCodeAt(++at) === lowerU && isSuspect(text, at + 1)) return undefined
      }
    } else if (code === colon) members++
    else if (isDigit(code)) {
      const start = at
      while (isDigit(text.charCodeAt(at + 1)) || text.charCodeAt(at + 1) === dot) at++
      if (isExponent(text.charCodeAt(at + 1))) return undefined
      if (at - start >= safeDigits && !readsBackEqual(text.slice(start, at + 1))) return undefined
    } else if (code === openBrace || code === openBracket) {
      if (++depth > jsonDepth) return undefined
    } else if (code === closeBrace || code === closeBracket) depth--
  }
  return members
}

/**
 * Whether an escape is `\u0000` or half of a surrogate pair. In UTF-8 text, NUL and lone surrogates occur only as
 * escapes.
 */
function isSuspect(text: string, at: number): boolean {
  return (text.charCodeAt(at) | 0x20) === 0x64 || text.startsWith('0000', at)
}

/** Counts the keys of a value at every depth. Returns NaN, which equals no number, if a key is `__proto__`. */
function countKeys(value: object): number {
  let count = 0
  if (Array.isArray(value)) {
    for (const element of value) if (typeof element === 'object' && element !== null) count += countKeys(element)
    return count
  }
  for (const key in value) {
    const member = (value as Record<string, unknown>)[key]
    count += key === '__proto__' ? Number.NaN : 1
    if (typeof member === 'object' && member !== null) count += countKeys(member)
  }
  return count
}

import { yieldIfDue } from '../../process/event-loop.ts'
import { Fault, pointer, refuseValues } from '../../values/errors.ts'
import { endOfString, parseJson } from '../../values/parse-json.ts'
import {
  closeBrace,
  closeBracket,
  colon,
  comma,
  firstVisible,
  openBrace,
  openBracket,
  quote,
  space,
} from './json-characters.ts'
import { unstorableRefusal } from './json-faults.ts'

/** `jsonMembers` bounds the time of one call of JSON.parse, and `bodyBytes` its characters. */
export type PieceLimits = { jsonMembers: number; bodyBytes: number }

export type ArrayOptions = {
  /** The maximum number of elements of an array at the top level. */
  maxElements?: (key: string) => number | undefined
  /** The length of the pieces of a large array. A piece of the default length takes up to 4 ms to parse. */
  pieceCharacters?: number
}

/**
 * Parses the elements of the large arrays at the top level. `rest` is the text without them. Returns undefined if a
 * piece has no value. The text is not JSON then, or needs the thorough check.
 */
export async function parseArrays(
  text: string,
  parsePiece: (piece: string) => unknown,
  limits: PieceLimits,
  { maxElements, pieceCharacters = 16_384 }: ArrayOptions,
): Promise<{ rest: string; arrays: ReadonlyMap<string, unknown[]> } | undefined> {
  const arrays = new Map<string, unknown[]>()
  const split = splitArrays(text, pieceCharacters, limits)
  for (let step = split.next(); ; step = split.next()) {
    await yieldIfDue()
    if (step.done) return { rest: step.value, arrays }
    if (!step.value) continue
    const key = parseJson(step.value.key)
    const elements = parsePiece(`[${step.value.piece}]`) as unknown[] | undefined
    // A piece without an element follows a trailing comma.
    if (typeof key !== 'string' || !elements || elements.length === 0) return undefined
    const all = arrays.get(key) ?? []
    arrays.set(key, all)
    for (const element of elements) all.push(element)
    const max = maxElements?.(key)
    // This is the refusal of the schema.
    if (max !== undefined && all.length > max)
      refuseValues({ path: pointer(key), message: `must have at most ${max} elements` })
  }
}

/** Consecutive elements of an array, with the JSON text of its key. */
type Piece = { key: string; piece: string }

/** Scanning this many characters takes less than a millisecond. */
const scannedInAStep = 65_536

/**
 * Yields the pieces of each array at the top level that is longer than one piece, and undefined for a pause. Returns
 * the text without them. The text need not be JSON, but it is JSON if the pieces and the rest are. Throws a Fault if an
 * element, or the text beside the elements, exceeds the limits.
 */
function* splitArrays(
  text: string,
  pieceCharacters: number,
  limits: PieceLimits,
): Generator<Piece | undefined, string> {
  let [depth, key, members, pauseAt] = [0, '', 0, scannedInAStep]
  let [rest, copiedUntil] = ['', 0]
  const checkLength = (at: number) => {
    if (rest.length + at - copiedUntil > limits.bodyBytes) throwTooLarge('', 'characters', limits.bodyBytes)
  }
  const countMembers = (count: number) => {
    members += count
    if (members > limits.jsonMembers) throwTooLarge('', 'keys, objects and arrays', limits.jsonMembers)
  }
  for (let at = 0; at < text.length; at++) {
    if (at >= pauseAt) {
      pauseAt = at + scannedInAStep
      checkLength(at)
      yield undefined
    }
    const code = text.charCodeAt(at)
    if (code === quote) {
      const end = endOfString(text, at)
      if (depth === 1) key = text.slice(at, end)
      at = end - 1
    } else if (code === openBracket && depth === 1) {
      const start = at + 1
      const array = yield* splitArray(text, { key, start }, pieceCharacters, limits)
      if (!array) return rest + text.slice(copiedUntil)
      if (array.isSplit) {
        rest += text.slice(copiedUntil, start)
        copiedUntil = array.end
      }
      at = array.end
      countMembers(1 + array.restMembers)
    } else if (code === colon) countMembers(1)
    else if (code === openBrace || code === openBracket) {
      depth++
      countMembers(1)
    } else if (code === closeBrace || code === closeBracket) depth--
    else if (code <= space) {
      const end = firstVisible(text, at, at + scannedInAStep)
      if (end <= at + 1) continue
      // White space may fill a body up to its limit. The rest keeps one character of it.
      rest += text.slice(copiedUntil, at + 1)
      copiedUntil = end
      at = end - 1
    }
  }
  checkLength(text.length)
  return rest + text.slice(copiedUntil)
}

/**
 * Yields the pieces of an array that is longer than one piece, and undefined for a pause. Returns the offset of its
 * end, and the number of keys, objects and arrays in its rest. Returns undefined if the array has no end.
 */
function* splitArray(
  text: string,
  { key, start }: { key: string; start: number },
  pieceCharacters: number,
  { jsonMembers, bodyBytes }: PieceLimits,
): Generator<Piece | undefined, { end: number; isSplit: boolean; restMembers: number } | undefined> {
  let [depth, pauseAt] = [0, start + scannedInAStep]
  // The elements without a piece begin at `pieceStart`. The last of them is the current one.
  let [pieceStart, earlierMembers] = [start, 0]
  let [index, elementStart, elementMembers] = [0, start, 0]
  const pathOfElement = () => {
    const name = parseJson(key)
    return typeof name === 'string' ? pointer(name, index) : ''
  }
  const checkLength = (at: number) => {
    if (at - elementStart > bodyBytes) throwTooLarge(pathOfElement(), 'characters', bodyBytes)
  }
  for (let at = start; at < text.length; at++) {
    if (at >= pauseAt) {
      pauseAt = at + scannedInAStep
      checkLength(at)
      yield undefined
    }
    const code = text.charCodeAt(at)
    if (code === quote) at = endOfString(text, at) - 1
    else if (code === colon || code === openBrace || code === openBracket) {
      if (code !== colon) depth++
      if (++elementMembers > jsonMembers) throwTooLarge(pathOfElement(), 'keys, objects and arrays', jsonMembers)
    } else if (code === comma && depth === 0) {
      checkLength(at)
      earlierMembers += elementMembers
      ;[index, elementStart, elementMembers] = [index + 1, at + 1, 0]
      if (at - pieceStart < pieceCharacters) continue
      yield { key, piece: text.slice(pieceStart, at) }
      ;[pieceStart, earlierMembers] = [at + 1, 0]
    } else if ((code === closeBrace || code === closeBracket) && depth-- === 0) {
      checkLength(at)
      const isLarge = at - pieceStart >= pieceCharacters && firstVisible(text, pieceStart) < at
      if (!isLarge && pieceStart === start)
        return { end: at, isSplit: false, restMembers: earlierMembers + elementMembers }
      yield { key, piece: text.slice(pieceStart, at) }
      return { end: at, isSplit: true, restMembers: 0 }
    }
  }
  checkLength(text.length)
  return undefined
}

function throwTooLarge(path: string, unit: string, max: number): never {
  throw new Fault(unstorableRefusal('invalid_parameter', { path, message: `must have at most ${max} ${unit}` }))
}

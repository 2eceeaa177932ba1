import { yieldIfDue } from '../../process/event-loop.ts'
import {
  createRefusal,
  type Detail,
  type ErrorCode,
  Fault,
  pointer,
  type Refusal,
  refuse,
  refuseValues,
} from '../../values/errors.ts'
import { findUnseen } from '../../values/invisible-characters.ts'
import { parseExactly } from '../../values/parse-json.ts'
import { readsBackEqual } from '../../values/scalars.ts'
import { keyFault, textFault } from './trim.ts'

type JsonLimits = { jsonDepth: number }

/** `jsonMembers` bounds the time that one call of JSON.parse takes, and `bodyBytes` the characters that it gets. */
type LargeJsonLimits = JsonLimits & { jsonMembers: number; bodyBytes: number }

/**
 * Parses a body as JSON and accepts only what can be stored exactly as sent. Skips one leading byte order mark. Throws a Fault of 400:
 * `failed_binding_json` if it is not JSON in UTF-8 (the message names the position); `invalid_json` for a duplicate key
 * or a top level that is not an object; `invalid_parameter` for nesting deeper than `jsonDepth` (the top level is 1), a
 * number that does not read back equal, NUL, a lone surrogate, or the key `__proto__`. If a body has several faults,
 * those of the first kind in this order are reported, at most 100. The check ends {@link maxStepsAfterFault} after a fault.
 */
export function parseJson(bytes: Buffer, { jsonDepth }: JsonLimits): unknown {
  const text = decode(bytes)
  const value = parseQuickly(text, jsonDepth)
  if (value && !Array.isArray(value)) return value
  const search = findFault(text, jsonDepth)
  let step = search.next()
  while (!step.done) step = search.next()
  if (step.value) throw new Fault(step.value)
  return parseExactly(text)
}

type LargeJsonOptions = {
  /** How many elements an array of the top level may have. */
  maxElements?: (key: string) => number | undefined
  /** The length of the pieces of a large array. One of the default takes up to 4 ms to parse. */
  pieceCharacters?: number
}

/**
 * As {@link parseJson}, for a body that takes long: yields to the event loop between pieces of it. It is refused at the first piece with
 * too many elements of an array of the top level, or with too many members or characters in one element or beside the elements, by a
 * Fault of 400.
 */
export async function parseLargeJson(
  bytes: Buffer,
  limits: LargeJsonLimits,
  options: LargeJsonOptions = {},
): Promise<unknown> {
  const { jsonDepth } = limits
  const text = await decodeLarge(bytes)
  const found = await parseArrays(text, piece => parseQuickly(piece, jsonDepth - 1), limits, options)
  const value = found && (await parseQuicklyInSteps(found.rest, jsonDepth))
  if (value) return withArrays(value, found.arrays)
  const search = findFault(text, jsonDepth)
  let step = search.next()
  for (; !step.done; step = search.next()) await yieldIfDue()
  if (step.value) throw new Fault(step.value)
  const { rest, arrays } = (await parseArrays(text, parseExactly, limits, options))!
  await yieldIfDue()
  return withArrays(parseExactly(rest) as object, arrays)
}

type Arrays = ReadonlyMap<string, unknown[]>

const withArrays = (value: object, arrays: Arrays) => Object.assign(value, Object.fromEntries(arrays))

/**
 * Parses the elements of the large arrays of the top level. `rest` is the text without them. Undefined if a piece has no value; then the
 * text is not JSON, or needs the thorough check.
 */
async function parseArrays(
  text: string,
  parsePiece: (piece: string) => unknown,
  limits: LargeJsonLimits,
  { maxElements, pieceCharacters = 16_384 }: LargeJsonOptions,
): Promise<{ rest: string; arrays: Arrays } | undefined> {
  const arrays = new Map<string, unknown[]>()
  const split = splitArrays(text, pieceCharacters, limits)
  for (let step = split.next(); ; step = split.next()) {
    await yieldIfDue()
    if (step.done) return { rest: step.value, arrays }
    if (!step.value) continue
    const key = parse(step.value.key)
    const elements = parsePiece(`[${step.value.piece}]`) as unknown[] | undefined
    // A piece without an element follows a comma that has no element behind it.
    if (typeof key !== 'string' || !elements || elements.length === 0) return undefined
    const all = arrays.get(key) ?? []
    arrays.set(key, all)
    for (const element of elements) all.push(element)
    const max = maxElements?.(key)
    // As the schema refuses it.
    if (max !== undefined && all.length > max)
      refuseValues({ path: pointer(key), message: `must have at most ${max} elements` })
  }
}

/** Scanning so many characters takes less than a millisecond. */
const scannedInAStep = 65_536

/**
 * Yields the elements of each array of the top level that is longer than a piece, some consecutive ones at a time, with the JSON text of
 * the array's key, and undefined for a pause. Returns the text without them. The text need not be JSON. If the pieces and the rest are, the
 * text is. Throws a Fault if an element, or the text beside the elements, exceeds the limits.
 */
function* splitArrays(
  text: string,
  pieceCharacters: number,
  limits: LargeJsonLimits,
): Generator<{ key: string; piece: string } | undefined, string> {
  let [depth, key, rest, copiedUntil] = [0, '', '', 0]
  // Offsets of the first element of the current array, and of the first one that no piece has. -1 outside of such an array.
  let [arrayStart, pieceStart] = [-1, -1]
  // Offset and index of the current element, and its keys, objects and arrays, those of the piece before it, and those of the rest.
  let [elementStart, index, elementMembers, pieceMembers, restMembers] = [0, 0, 0, 0, 0]
  let [isString, stringStart, pauseAt] = [false, 0, scannedInAStep]
  const checkLengths = (at: number) => {
    const { bodyBytes } = limits
    if (pieceStart === -1) {
      if (rest.length + at - copiedUntil > bodyBytes) throwTooLarge(undefined, 'characters', bodyBytes)
    } else if (at - elementStart > bodyBytes) throwTooLarge([key, index], 'characters', bodyBytes)
  }
  const countMember = () => {
    if (pieceStart === -1) restMembers += 1
    else elementMembers += 1
    if (elementMembers > limits.jsonMembers) throwTooLarge([key, index], 'keys, objects and arrays', limits.jsonMembers)
    if (restMembers > limits.jsonMembers) throwTooLarge(undefined, 'keys, objects and arrays', limits.jsonMembers)
  }
  for (let at = 0; at < text.length; at++) {
    if (at >= pauseAt) {
      pauseAt = at + scannedInAStep
      checkLengths(at)
      yield undefined
    }
    const code = text.charCodeAt(at)
    if (isString) {
      if (code === backslash) at++
      else if (code === quote) {
        isString = false
        if (depth === 1) key = text.slice(stringStart, at + 1)
      }
    } else if (code === quote) {
      isString = true
      stringStart = at
    } else if (code === colon) {
      countMember()
    } else if (code === comma) {
      if (depth !== 2 || pieceStart === -1) continue
      checkLengths(at)
      pieceMembers += elementMembers
      ;[elementStart, index, elementMembers] = [at + 1, index + 1, 0]
      if (at - pieceStart < pieceCharacters) continue
      yield { key, piece: text.slice(pieceStart, at) }
      pieceStart = at + 1
      pieceMembers = 0
    } else if (code === openBrace || code === openBracket) {
      if (++depth === 2 && code === openBracket) {
        arrayStart = pieceStart = elementStart = at + 1
        index = elementMembers = pieceMembers = 0
      } else countMember()
    } else if (code === closeBrace || code === closeBracket) {
      if (depth-- !== 2 || pieceStart === -1) continue
      checkLengths(at)
      const isLarge = at - pieceStart >= pieceCharacters && firstVisible(text, pieceStart) < at
      if (isLarge || pieceStart > arrayStart) {
        yield { key, piece: text.slice(pieceStart, at) }
        rest += text.slice(copiedUntil, arrayStart)
        copiedUntil = at
      } else restMembers += pieceMembers + elementMembers
      pieceStart = -1
      elementMembers = 0
      countMember()
    }
  }
  checkLengths(text.length)
  return rest + text.slice(copiedUntil)
}

/** `at` is a key as JSON text and an index; absent for the body without the elements of its arrays. */
function throwTooLarge(at: [string, number] | undefined, unit: string, max: number): never {
  const parsed = at && parse(at[0])
  const path = at && typeof parsed === 'string' ? pointer(parsed, at[1]) : ''
  throw new Fault(refusalOf('invalid_parameter', { path, message: `must have at most ${max} ${unit}` }))
}

const refusalOf = (code: ErrorCode, ...details: Detail[]) =>
  createRefusal(code, 'The body has a value that cannot be stored as sent. See details.', { details })

/** Parses a text whose value can be stored exactly as sent. Returns undefined if it may not be, or is no object and no array. */
function parseQuickly(text: string, jsonDepth: number): object | undefined {
  const members = countMembers(text, jsonDepth)
  const value = members === undefined ? undefined : parse(text)
  return value instanceof Object && countKeys(value) === members ? value : undefined
}

/** As {@link parseQuickly}, for a text that takes long. Returns undefined for an array, too. */
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

// It skips one byte order mark at the beginning. A second one is refused as invalid JSON.
const decoder = new TextDecoder('utf-8', { fatal: true })

function decode(bytes: Buffer): string {
  try {
    return decoder.decode(bytes)
  } catch (cause) {
    throwUndecodable(offsetOfInvalid(bytes), cause)
  }
}

/** Decoding so many bytes takes up to 5 ms. */
const decodedInAStep = 1_048_576

/** As {@link decode}, in steps. */
async function decodeLarge(bytes: Buffer): Promise<string> {
  if (bytes.length <= decodedInAStep) return decode(bytes)
  const stepwise = new TextDecoder('utf-8', { fatal: true })
  let text = ''
  for (let start = 0; start < bytes.length; start += decodedInAStep) {
    await yieldIfDue()
    const end = start + decodedInAStep
    try {
      text += stepwise.decode(bytes.subarray(start, end), { stream: end < bytes.length })
    } catch (cause) {
      let from = start
      while (from > 0 && start - from < 3 && (bytes[from]! & 0xc0) === 0x80) from--
      throwUndecodable(from + offsetOfInvalid(bytes.subarray(from, end)), cause)
    }
  }
  return text
}

function throwUndecodable(offset: number, cause: unknown): never {
  refuse('failed_binding_json', `The body is not UTF-8: byte ${offset} cannot be decoded.`, { cause })
}

/** The first byte that differs when the decoded text is encoded again. */
function offsetOfInvalid(bytes: Buffer): number {
  const encoded = Buffer.from(bytes.toString())
  let offset = 0
  while (bytes[offset] === encoded[offset]) offset++
  return offset
}

function parse(text: string): unknown {
  try {
    return parseExactly(text)
  } catch {
    return undefined
  }
}

const [quote, comma, dot, colon, backslash, lowerU] = [0x22, 0x2c, 0x2e, 0x3a, 0x5c, 0x75] as const
const [openBracket, closeBracket, openBrace, closeBrace] = [0x5b, 0x5d, 0x7b, 0x7d] as const

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
 * Whether an escape is `\u0000` or half of a surrogate pair. NUL and lone surrogates occur in UTF-8 text only as
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

/** An open object or array. `segment` is the path segment of the current member. */
type Frame = { isObject: boolean; keys: Set<string> | undefined; segment: string | number }

type Reader = { text: string; at: number; jsonDepth: number; frames: Frame[]; refused: Refusal | undefined }

// Below the permitted depth, only the pairing of brackets is tracked.
const deepObject: Frame = { isObject: true, keys: undefined, segment: '' }
const deepArray: Frame = { isObject: false, keys: undefined, segment: 0 }

/** The thorough check of so many values and separators takes less than a millisecond. */
const checkedInAStep = 1_024
/** After a fault, so many values and separators are checked for one that comes first in the order of {@link parseJson}. */
const maxStepsAfterFault = 65_536

/**
 * Checks a text thoroughly, without recursion, in steps. Throws if it is not JSON; returns the refusal of any other fault.
 */
function* findFault(text: string, jsonDepth: number): Generator<void, Refusal | undefined> {
  const reader: Reader = { text, at: 0, jsonDepth, frames: [], refused: undefined }
  skipSpace(reader)
  if (text[reader.at] !== '{') noteRefusal(reader, 'must be an object', 'invalid_json')
  let complete = readValue(reader)
  let stepsLeft = maxStepsAfterFault / checkedInAStep
  for (let count = 1; !complete || reader.frames.length > 0; count++) {
    complete = complete ? readSeparator(reader) : readValue(reader)
    if (count % checkedInAStep !== 0) continue
    if (reader.refused && --stepsLeft === 0) return reader.refused
    yield
  }
  skipSpace(reader)
  if (reader.at < text.length) throwSyntaxFault(reader)
  return reader.refused
}

/** More faults than these are not named. */
const maxDetails = 100

/** Adds a fault to the refusal, one for each path. The first `invalid_json` replaces a refusal as `invalid_parameter`. */
function noteRefusal(reader: Reader, message: string, code: ErrorCode = 'invalid_parameter') {
  const { refused } = reader
  if (refused && refused.code !== code && code !== 'invalid_json') return
  const details = refused?.code === code ? refused.details! : []
  if (details.length === maxDetails) return
  const path = pointer(...reader.frames.map(({ segment }) => segment))
  if (details.at(-1)?.path === path) return
  reader.refused = refusalOf(code, ...details, { path, message })
}

/** Returns whether the value is complete. False means that it is a container and its first member follows. */
function readValue(reader: Reader): boolean {
  skipSpace(reader)
  const first = reader.text[reader.at] ?? ''
  if (first === '{' || first === '[') return openContainer(reader, first === '{')
  if (first === '"') {
    const message = textFault(readString(reader))
    if (message) noteRefusal(reader, message)
  } else if (/[-\d]/.test(first)) {
    const source = match(reader, /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y)
    if (!readsBackEqual(source))
      noteRefusal(reader, 'must be a number that can be stored exactly: send one with more digits as a text')
  } else match(reader, /true|false|null/y)
  return true
}

function openContainer(reader: Reader, isObject: boolean): boolean {
  if (reader.frames.length < reader.jsonDepth) {
    reader.frames.push({ isObject, keys: isObject ? new Set() : undefined, segment: isObject ? '' : 0 })
  } else {
    noteRefusal(reader, `must not be nested deeper than ${reader.jsonDepth} levels`)
    reader.frames.push(isObject ? deepObject : deepArray)
  }
  reader.at++
  skipSpace(reader)
  if (isClosed(reader)) return true
  if (isObject) readKey(reader)
  return false
}

/** Reads what follows a complete value: a comma and the next key, or the end of the container. */
function readSeparator(reader: Reader): boolean {
  skipSpace(reader)
  if (isClosed(reader)) return true
  match(reader, /,/y)
  const frame = reader.frames.at(-1)!
  if (frame.isObject) readKey(reader)
  else frame.segment = Number(frame.segment) + 1
  return false
}

function isClosed(reader: Reader): boolean {
  if (reader.text[reader.at] !== (reader.frames.at(-1)!.isObject ? '}' : ']')) return false
  reader.at++
  reader.frames.pop()
  return true
}

function readKey(reader: Reader) {
  skipSpace(reader)
  const key = readString(reader)
  const frame = reader.frames.at(-1)!
  frame.segment = key
  if (frame.keys?.has(key)) noteRefusal(reader, 'the key occurs twice', 'invalid_json')
  frame.keys?.add(key)
  const message = keyFault(key)
  if (message) noteRefusal(reader, message)
  skipSpace(reader)
  match(reader, /:/y)
}

function readString(reader: Reader): string {
  const { text } = reader
  const start = reader.at
  match(reader, /"/y)
  let isEscaped = false
  for (let code = text.charCodeAt(reader.at); code !== quote; code = text.charCodeAt(reader.at)) {
    // At the end of the text the code is NaN, and any comparison with it is false.
    if (!(code >= 0x20)) throwSyntaxFault(reader)
    if (code !== backslash) reader.at++
    else {
      isEscaped = true
      if (text.charCodeAt(reader.at + 1) === backslash) reader.at += 2
      else match(reader, /\\(?:["/bfnrt]|u[\da-fA-F]{4})/y)
    }
  }
  reader.at++
  return isEscaped ? (JSON.parse(text.slice(start, reader.at)) as string) : text.slice(start + 1, reader.at - 1)
}

/** Matches a sticky expression at the current position and moves behind it. Throws if nothing matches. */
function match(reader: Reader, expression: RegExp): string {
  expression.lastIndex = reader.at
  const found = expression.exec(reader.text)
  if (!found) throwSyntaxFault(reader)
  reader.at = expression.lastIndex
  return found[0]
}

function skipSpace(reader: Reader) {
  reader.at = firstVisible(reader.text, reader.at)
}

/** The offset of the first character that is no white space of JSON. */
function firstVisible(text: string, from: number): number {
  for (let at = from; ; at++) {
    const code = text.charCodeAt(at)
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return at
  }
}

/** The message names the position, without the text there, but for a character that nobody sees. */
function throwSyntaxFault({ text, at }: Reader): never {
  let lines = 1
  let lineStart = 0
  for (let before = 0; before < at; before++) {
    if (text.charCodeAt(before) !== 0x0a) continue
    lines += 1
    lineStart = before + 1
  }
  const unseen = findUnseen(String.fromCodePoint(text.codePointAt(at) ?? 32))
  const problem = at < text.length ? `unexpected character${unseen ? ` ${unseen}` : ''}` : 'unexpected end'
  refuse('failed_binding_json', `The body is not JSON: ${problem} at line ${lines}, column ${at - lineStart + 1}.`)
}

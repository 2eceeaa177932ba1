import {
  createRefusal,
  type Detail,
  type ErrorCode,
  Fault,
  pointer,
  type Refusal,
  refuse,
} from '../../values/errors.ts'
import { findUnseen } from '../../values/invisible-characters.ts'
import { readsBackEqual } from '../../values/scalars.ts'
import { backslash, firstVisible, quote } from './json-characters.ts'
import { keyFault, textFault } from './trim.ts'

export const unstorableRefusal = (code: ErrorCode, ...details: Detail[]): Refusal =>
  createRefusal(code, 'The body has a value that cannot be stored as sent. See details.', { details })

/** An open object or array. `segment` is the path segment of the current member. */
type Frame = { isObject: boolean; keys: Set<string> | undefined; segment: string | number }

type Reader = { text: string; at: number; jsonDepth: number; frames: Frame[]; refused: Refusal | undefined }

// Below the permitted depth, only the pairing of brackets is tracked.
const deepObject: Frame = { isObject: true, keys: undefined, segment: '' }
const deepArray: Frame = { isObject: false, keys: undefined, segment: 0 }

/** Checking this many values and separators takes less than a millisecond. */
const checkedInAStep = 1_024
/**
 * After a fault, the check ends within this many values and separators. It searches for faults that come earlier in the
 * order of `parseJson`.
 */
const maxCheckedAfterFault = 65_536

/**
 * Checks a text thoroughly, without recursion, and yields between steps. Throws a Fault of 400 as `parseJson` does.
 */
export function* checkThoroughly(text: string, jsonDepth: number): Generator<void> {
  const reader: Reader = { text, at: 0, jsonDepth, frames: [], refused: undefined }
  skipSpace(reader)
  if (text[reader.at] !== '{') noteRefusal(reader, 'must be an object', 'invalid_json')
  let isComplete = readValue(reader)
  let stepsLeft = maxCheckedAfterFault / checkedInAStep
  for (let count = 1; !isComplete || reader.frames.length > 0; count++) {
    isComplete = isComplete ? readSeparator(reader) : readValue(reader)
    if (count % checkedInAStep !== 0) continue
    if (reader.refused && --stepsLeft === 0) throw new Fault(reader.refused)
    yield
  }
  skipSpace(reader)
  if (reader.at < text.length) throwSyntaxFault(reader)
  if (reader.refused) throw new Fault(reader.refused)
}

/** A refusal names at most this many faults. */
const maxDetails = 100

/** Adds a fault to the refusal, one for each path. The first `invalid_json` replaces an `invalid_parameter` refusal. */
function noteRefusal(reader: Reader, message: string, code: ErrorCode = 'invalid_parameter') {
  const { refused } = reader
  if (refused && refused.code !== code && code !== 'invalid_json') return
  const details = refused?.code === code ? refused.details! : []
  if (details.length === maxDetails) return
  const path = pointer(...reader.frames.map(({ segment }) => segment))
  if (details.at(-1)?.path === path) return
  reader.refused = unstorableRefusal(code, ...details, { path, message })
}

/** Returns whether the value is complete. False means that a container has begun and its first member follows. */
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

/** Reads the text after a complete value: a comma and the next key, or the end of the container. */
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
    // At the end of the text, the code is NaN, and any comparison with it is false.
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

/** The message names the position. It omits the text there, except for an invisible character. */
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

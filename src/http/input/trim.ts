import { yieldIfDue } from '../../process/event-loop.ts'
import { pointer, refuse } from '../../values/errors.ts'
import { trim } from '../../values/white-space.ts'

/** The reason why a text cannot be stored as sent, or undefined if it can. */
export function textFault(text: string): string | undefined {
  if (!text.isWellFormed()) return 'must not contain a lone surrogate'
  return text.includes('\0') ? 'must not contain NUL' : undefined
}

/** As {@link textFault}, for the key of an object. */
export function keyFault(key: string): string | undefined {
  return key === '__proto__' ? 'this key is not allowed' : textFault(key)
}

/** Decodes a percent-encoded text. Returns undefined if it is not percent-encoded UTF-8. */
export function decodePercent(text: string): string | undefined {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

// Node decodes non-ASCII bytes of a request target as Latin-1, whatever their encoding is.
export const isAscii = (text: string): boolean => /^[\x20-\x7e]*$/.test(text)

/** Throws a Fault of 400 with `path` if the text has a NUL or a lone surrogate. */
export function checkText(text: string, path: string): void {
  const message = textFault(text)
  if (message)
    refuse('invalid_parameter', 'A string of the request cannot be stored as sent.', { details: [{ path, message }] })
}

type TextLimits = { stringBytes: number; keyBytes: number }

/**
 * Trims every string at every depth, in place, and returns the value. Keys are not trimmed. Throws a Fault of 400 for a
 * string over `stringBytes` of UTF-8 after trimming, and for a key of `attribute_values` that is empty or over
 * `keyBytes`. The caller must have checked the depth.
 */
export function trimAndCheck(value: Record<string, unknown>, limits: TextLimits): Record<string, unknown> {
  checkAttributeKeys(value, limits)
  throwIfTooLong(trimWithin(value, limits.stringBytes), limits)
  return value
}

/** As {@link trimAndCheck}, for a large value: yields to the event loop between the elements of its lists. */
export async function trimAndCheckLarge(
  value: Record<string, unknown>,
  limits: TextLimits,
): Promise<Record<string, unknown>> {
  checkAttributeKeys(value, limits)
  for (const key in value) {
    const member = value[key]
    if (!Array.isArray(member)) throwIfTooLong(trimMember(value, key, limits.stringBytes), limits)
    else
      for (let index = 0; index < member.length; index++) {
        const tooLong = trimMember(member as unknown[] & Container, index, limits.stringBytes)
        if (tooLong) throwIfTooLong([...tooLong, key], limits)
        if (isContainer(member[index]) || index % 1_024 === 0) await yieldIfDue()
      }
  }
  return value
}

function checkAttributeKeys({ attribute_values }: Record<string, unknown>, { keyBytes }: TextLimits) {
  if (isContainer(attribute_values) && !Array.isArray(attribute_values)) checkKeys(attribute_values, keyBytes)
}

/** `reversedPath` leads to a string that is too long, if any. */
function throwIfTooLong(reversedPath: (string | number)[] | undefined, { stringBytes }: TextLimits) {
  if (reversedPath) throwTooLong(pointer(...reversedPath.reverse()), 'A string', stringBytes)
}

type Container = Record<string | number, unknown>

const isContainer = (value: unknown): value is Container => typeof value === 'object' && value !== null

function checkKeys(attribute_values: Container, keyBytes: number) {
  for (const key in attribute_values) {
    if (key === '') {
      const details = [{ path: pointer('attribute_values', key), message: 'the key must not be empty' }]
      refuse('invalid_parameter', 'An attribute key must not be empty.', { details })
    }
    if (isLonger(key, keyBytes)) throwTooLong(pointer('attribute_values', key), 'An attribute key', keyBytes)
  }
}

/** Returns the reversed path to the first string that is too long. If no string is, it builds no path. */
function trimWithin(container: Container, stringBytes: number): (string | number)[] | undefined {
  if (Array.isArray(container)) {
    for (let index = 0; index < container.length; index++) {
      const found = trimMember(container, index, stringBytes)
      if (found) return found
    }
    return undefined
  }
  for (const key in container) {
    const found = trimMember(container, key, stringBytes)
    if (found) return found
  }
  return undefined
}

function trimMember(container: Container, key: string | number, stringBytes: number) {
  const value = container[key]
  if (typeof value === 'string') {
    const trimmed = trim(value)
    if (trimmed !== value) container[key] = trimmed
    return isLonger(trimmed, stringBytes) ? [key] : undefined
  }
  if (!isContainer(value)) return undefined
  const found = trimWithin(value, stringBytes)
  found?.push(key)
  return found
}

/** A UTF-16 code unit has at most three bytes of UTF-8, so the bytes of most strings need no counting. */
function isLonger(text: string, bytes: number): boolean {
  if (text.length * 3 <= bytes) return false
  return text.length > bytes || Buffer.byteLength(text) > bytes
}

function throwTooLong(path: string, subject: string, bytes: number): never {
  refuse('invalid_parameter', `${subject} of the request is too long.`, {
    details: [{ path, message: `must be at most ${bytes} bytes of UTF-8` }],
  })
}

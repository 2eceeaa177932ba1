import { createCipheriv, createDecipheriv, hash, randomBytes } from 'node:crypto'
import { refuse } from '../values/errors.ts'

/**
 * A key of 256 bits. Its `id`, the beginning of a hash, is in everything that it wraps. The id reveals nothing about
 * the bytes.
 */
export type MasterKey = Readonly<{ id: string; bytes: Buffer }>

/**
 * The keys that wrap the secrets of a database. `row` names the row of a secret (see {@link rowOf}). Wrapped bytes that
 * were moved to another row do not unwrap.
 */
export type MasterKeys = Readonly<{
  /** The id of the key that wraps. Undefined without a key: secrets are then stored unwrapped. */
  wrappingId(): string | undefined
  /** Whether `unwrap` has the key of this text, or the text needs none. */
  hasKeyOf(stored: string): boolean
  wrap(text: string, row: string): string
  /**
   * Returns a text that is not wrapped unchanged. Throws an Error if its key is missing, or if the bytes were changed
   * or moved.
   */
  unwrap(stored: string, row: string): string
}>

/** The prefix of every wrapped text. The id of its key and a colon follow. */
export const wrappedPrefix = 'wrapped:'

const algorithm = 'aes-256-gcm'
const [keyBytes, nonceBytes, tagBytes] = [32, 12, 16]
/**
 * The size of the cache. Unwrapping takes 35 µs of processor time, a cache hit 1 µs. A process uses few secrets, but
 * often.
 */
const maxUnwrapped = 1_000

/** A master key of 32 bytes. Undefined for any other length. */
export function masterKeyOf(bytes: Buffer): MasterKey | undefined {
  if (bytes.length !== keyBytes) return undefined
  return { id: hash('sha256', Buffer.concat([Buffer.from('kith master key\n'), bytes]), 'hex').slice(0, 16), bytes }
}

/** The name of a row: its table and its key. */
export const rowOf = (table: string, ...key: (string | number)[]): string => JSON.stringify([table, ...key])

/**
 * The first of the keys wraps, and each unwraps. `read` returns the current keys, because another process may have
 * added one. It is called before each wrapping, and for each unknown key.
 */
export function createMasterKeys(read: () => readonly MasterKey[]): MasterKeys {
  const unwrapped = new Map<string, string>()
  const find = (id: string) => read().find(key => key.id === id)

  function wrap(text: string, row: string): string {
    const [key] = read()
    if (key) return seal(text, row, key)
    // Without a master key, a secret with this prefix would look like a wrapped one.
    return text.startsWith(wrappedPrefix)
      ? refuse('invalid_parameter', `A secret must not begin with "${wrappedPrefix}".`)
      : text
  }

  function unwrap(stored: string, row: string): string {
    if (!stored.startsWith(wrappedPrefix)) return stored
    const name = `${row} ${stored}`
    const known = unwrapped.get(name)
    if (known !== undefined) return known
    const id = keyIdOf(stored)
    const text = open(stored, row, find(id) ?? throwMissing(row, id))
    if (unwrapped.size >= maxUnwrapped) unwrapped.clear()
    unwrapped.set(name, text)
    return text
  }

  const hasKeyOf = (stored: string) => !stored.startsWith(wrappedPrefix) || find(keyIdOf(stored)) !== undefined
  return { wrappingId: () => read()[0]?.id, hasKeyOf, wrap, unwrap }
}

export const noMasterKeys: MasterKeys = createMasterKeys(() => [])

/** The id of the key that wrapped a text. */
export const keyIdOf = (stored: string): string => stored.split(':')[1] ?? ''

function throwMissing(row: string, id: string): never {
  throw new Error(`The secret of ${row} is wrapped by the master key ${id}, which this process does not have.`)
}

function seal(text: string, row: string, { id, bytes }: MasterKey): string {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv(algorithm, bytes, nonce).setAAD(Buffer.from(row))
  const sealed = Buffer.concat([nonce, cipher.update(text), cipher.final(), cipher.getAuthTag()])
  return `${wrappedPrefix}${id}:${sealed.toString('base64url')}`
}

function open(stored: string, row: string, { id, bytes }: MasterKey): string {
  const sealed = Buffer.from(stored.slice(wrappedPrefix.length + id.length + 1), 'base64url')
  try {
    const decipher = createDecipheriv(algorithm, bytes, sealed.subarray(0, nonceBytes), { authTagLength: tagBytes })
    decipher.setAAD(Buffer.from(row)).setAuthTag(sealed.subarray(-tagBytes))
    return decipher.update(sealed.subarray(nonceBytes, -tagBytes), undefined, 'utf8') + decipher.final('utf8')
  } catch (cause) {
    throw new Error(`The secret of ${row} does not open: it was changed, or belongs to another row.`, { cause })
  }
}

/** The JSON text to store for a value: a string if it is wrapped, or else the value itself. */
export const wrapJson = (keys: MasterKeys, value: unknown, row: string): string => {
  const text = JSON.stringify(value)
  const wrapped = keys.wrap(text, row)
  return wrapped === text ? text : JSON.stringify(wrapped)
}

/** The value that {@link wrapJson} wrapped, from the stored JSON after parsing. */
export const unwrapJson = (keys: MasterKeys, stored: unknown, row: string): unknown =>
  typeof stored === 'string' ? JSON.parse(keys.unwrap(stored, row)) : stored

/** The bytes to store for a secret of random bytes. */
export const wrapBytes = (keys: MasterKeys, bytes: Buffer, row: string): Buffer =>
  Buffer.from(keys.wrap(bytes.toString('latin1'), row), 'latin1')

/** The secret that {@link wrapBytes} wrapped. */
export const unwrapBytes = (keys: MasterKeys, stored: Buffer, row: string): Buffer =>
  Buffer.from(keys.unwrap(stored.toString('latin1'), row), 'latin1')

import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { FairPool } from '../process/fair-pool.ts'
import type { Signal } from '../process/signal.ts'
import { lookAlikeOf } from '../values/actor-names.ts'
import { refuse, retryInASecond } from '../values/errors.ts'

const minPasswordCharacters = 12
export const maxPasswordBytes = 1_024

/**
 * The parameters of new hashes, from OWASP's list, with 32 MiB. A hash takes 0.3 s of one processor. The list's first
 * entry takes 128 MiB and 0.4 s.
 */
const current = { ln: 15, r: 8, p: 3 }
type Cost = typeof current

const saltBytes = 16
const hashBytes = 32

/**
 * The maximum number of concurrent hashes, so that Node's thread pool has threads left and hashes take 64 MiB at most.
 */
const maxRunning = 2
/** With more waiting hashes than this, which take about two seconds, a sign-in is refused. */
const maxWaiting = 8
const running = new FairPool<string>({ max: maxRunning })

/** The request that waits for a hash. Addresses take turns. */
export type Turn = { address: string; signal?: Signal }

const derive = promisify<string, Buffer, number, ScryptOptions, Buffer>(scrypt)

async function hash(password: string, salt: Buffer, { ln, r, p }: Cost, { address, signal }: Turn): Promise<Buffer> {
  if (running.waiting >= maxWaiting)
    refuse('operation_failed', 'Too many people sign in at the moment. Retry after 1 second.', retryInASecond)
  // Keyboards produce some letters in two Unicode forms.
  const text = password.normalize('NFKC')
  const options = { N: 2 ** ln, r, p, maxmem: 256 * 2 ** ln * r }
  return running.run(address, signal, () => derive(text, salt, hashBytes, options))
}

const print = ({ ln, r, p }: Cost, salt: Buffer, hash: Buffer) =>
  `$scrypt$ln=${ln},r=${r},p=${p}$${salt.toString('base64url')}$${hash.toString('base64url')}`

const printed = /^\$scrypt\$ln=(\d+),r=(\d+),p=(\d+)\$([\w-]+)\$([\w-]+)$/

/** The text to store for a password: parameters, salt and hash, in the PHC format. */
export async function hashPassword(password: string, turn: Turn): Promise<string> {
  const salt = randomBytes(saltBytes)
  return print(current, salt, await hash(password, salt, current, turn))
}

/** A hash that no password has. */
const unknown = print(current, Buffer.alloc(saltBytes), Buffer.alloc(hashBytes))

/** Whether a password has the stored hash. Without a stored hash, it takes the same time and returns false. */
export async function verifyPassword(
  password: string,
  stored: string | null | undefined,
  turn: Turn,
): Promise<boolean> {
  const [, ln, r, p, salt = '', expected = ''] = printed.exec(stored ?? unknown)!
  const cost = { ln: Number(ln), r: Number(r), p: Number(p) }
  const found = await hash(password, Buffer.from(salt, 'base64url'), cost, turn)
  return timingSafeEqual(found, Buffer.from(expected, 'base64url')) && stored != null
}

/** Passwords of twelve and more characters that come first in every list of guesses. */
const obvious = new Set(
  (
    '123456789012 1234567890123 1234567890ab 111111111111 000000000000 password1234 password12345 passwordpassword administrator ' +
    'qwertyuiop12 qwertyuiop123 qwertyuiopasdf 1q2w3e4r5t6y iloveyou1234 letmein12345 welcome12345 changeme1234 abcdefghijkl ' +
    'abcdefghijklm correcthorsebatterystaple'
  ).split(' '),
)

/** The reason why a password is refused for an account with this name, or undefined if it is not. */
export function passwordProblem(password: string, name: string): string | undefined {
  if ([...password].length < minPasswordCharacters) return `must be at least ${minPasswordCharacters} characters`
  if (Buffer.byteLength(password) > maxPasswordBytes) return `must be at most ${maxPasswordBytes} bytes of UTF-8`
  const isObvious = obvious.has(password.toLowerCase()) || new Set(password).size === 1
  if (isObvious || lookAlikeOf(password) === lookAlikeOf(name)) return 'is one of the first passwords that are guessed'
  return undefined
}

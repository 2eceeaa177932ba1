import { createReadStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { PassThrough, type Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { UsageError } from '../command.ts'
import { beginsWith } from '../files.ts'

// The files have the format of age (age-encryption.org/v1), so the program age reads and writes them too. kith loads
// the library only when it needs it.

const firstLine = 'age-encryption.org/v1\n'

/** Whether the file begins like a file that age encrypted. */
export const isEncrypted = (path: string): Promise<boolean> => beginsWith(path, firstLine)

/**
 * `open` returns a stream that encrypts its bytes for the recipients and writes them to the target. `written` resolves
 * when the target has all bytes.
 */
export type Encryption = { open(target: Writable): Writable; written(): Promise<void> }

/** Prepares the encryption of one file. Throws a UsageError for a text that is no recipient. */
export async function encryptFor(recipients: readonly string[]): Promise<Encryption> {
  const { Encrypter } = await import('age-encryption')
  const encrypter = new Encrypter()
  for (const recipient of recipients)
    try {
      encrypter.addRecipient(recipient)
    } catch {
      throw new UsageError(
        `--recipient: ${recipient} is no recipient of age. Give one such as age1…, which age-keygen prints.`,
      )
    }
  let writing = Promise.resolve()
  return {
    open: target => {
      const plain = new PassThrough()
      const encrypted = async function* () {
        yield* (await encrypter.encrypt(ReadableStream.from(plain))) as AsyncIterable<Uint8Array>
      }
      writing = pipeline(encrypted, target)
      // The caller's stream fails when the target fails. `written` reports the error.
      writing.catch(error => plain.destroy(error))
      return plain
    },
    written: () => writing,
  }
}

/**
 * Writes the plain bytes of an encrypted file to a stream. `file` is the name in messages. Throws an Error if no identity opens the file, or the file is
 * damaged.
 */
export async function decryptFile(
  { file, path }: { file: string; path: string },
  identities: readonly string[],
  { target, signal }: { target: Writable; signal: AbortSignal },
): Promise<void> {
  const { Decrypter } = await import('age-encryption')
  const decrypter = new Decrypter()
  for (const identity of identities)
    try {
      decrypter.addIdentity(identity)
    } catch (error) {
      throw new UsageError(`--identity: the file has an identity that cannot be used (${(error as Error).message}).`)
    }
  const source = createReadStream(path)
  try {
    const plain = await decrypter.decrypt(ReadableStream.from(source)).catch(cause => {
      throw new Error(`${file} cannot be decrypted: no identity of the file of --identity opens it.`, { cause })
    })
    await pipeline(plain as AsyncIterable<Uint8Array>, target, { signal })
  } catch (error) {
    target.destroy()
    if (signal.aborted || (error as NodeJS.ErrnoException).code || (error as Error).cause) throw error
    throw new Error(`${file} is damaged or incomplete: its encryption does not fit.`, { cause: error })
  } finally {
    source.destroy()
  }
}

/** The identities of a file that age-keygen wrote. Throws a UsageError if it has none. */
export async function readIdentities(path: string): Promise<string[]> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`--identity: ${path} cannot be read (${error.code}).`)
  })
  const identities = text
    .split('\n')
    .map(line => line.trim())
    .filter(line => /^AGE-SECRET-KEY-/.test(line))
  if (identities.length > 0) return identities
  throw new UsageError(
    `--identity: ${path} has no line with AGE-SECRET-KEY-…, as age-keygen writes it. A file with a passphrase has to be decrypted first.`,
  )
}

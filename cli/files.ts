import { once } from 'node:events'
import { type FileHandle, open, readFile, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Writable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { UsageError } from './command.ts'

/** The path of a file that the command line names. npm changes to the package's folder before it runs a script. */
export function pathOf(environment: NodeJS.ProcessEnv, file: string): string {
  return environment.npm_lifecycle_event === 'kith' ? resolve(environment.INIT_CWD ?? '', file) : file
}

/**
 * Reads a text file that the command line names, without the byte order mark that editors write; `-` is standard input.
 * Throws a UsageError if the file does not exist.
 */
export async function readInput(environment: NodeJS.ProcessEnv, file: string): Promise<Buffer> {
  const bytes = file === '-' ? await buffer(process.stdin) : await readOrNull(pathOf(environment, file))
  if (bytes === null) throw new UsageError(`The file ${file} does not exist.`)
  return bytes.subarray(0, 3).equals(byteOrderMark) ? bytes.subarray(3) : bytes
}

const byteOrderMark = Buffer.from('\ufeff')

/**
 * Reads the bytes of an argument: `@` and a name read a file, `-` reads standard input, and any other text is the
 * content.
 */
export async function readArgument(environment: NodeJS.ProcessEnv, text: string): Promise<Buffer> {
  if (text === '-') return readInput(environment, '-')
  return text.startsWith('@') ? readInput(environment, text.slice(1)) : Buffer.from(text)
}

/**
 * Reads the JSON of an argument like {@link readArgument}. Throws a UsageError that names the option if it is not JSON.
 */
export async function readJsonArgument(
  environment: NodeJS.ProcessEnv,
  option: string,
  argument: string,
): Promise<unknown> {
  const text = (await readArgument(environment, argument)).toString()
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new UsageError(`${option} is not JSON: ${(error as Error).message}`)
  }
}

/** The text of a file, or null if the file does not exist. */
export async function readFileOrNull(file: string): Promise<string | null> {
  return (await readOrNull(file))?.toString() ?? null
}

async function readOrNull(file: string): Promise<Buffer | null> {
  try {
    return await readFile(file)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return null
    throw code === 'EISDIR' ? new UsageError(isFolder(file)) : error
  }
}

const isFolder = (file: string) => `${file} is a folder. Give the name of a file.`

/** Whether a file begins with an ASCII text. False for a file that cannot be read. */
export async function beginsWith(path: string, text: string): Promise<boolean> {
  const handle = await open(path, 'r').catch(() => undefined)
  const found = await handle?.read(Buffer.alloc(text.length), 0, text.length, 0).catch(() => undefined)
  await handle?.close()
  return found?.buffer.toString('latin1') === text
}

/**
 * Opens a file for reading. Throws an Error with the file's name if it does not exist, is a folder or cannot be read.
 */
export async function openToRead(file: string, path: string): Promise<FileHandle> {
  const handle = await open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    throw new Error(error.code === 'ENOENT' ? `There is no file ${file}.` : `${file} cannot be read: ${error.message}`)
  })
  if (!(await handle.stat()).isDirectory()) return handle
  await handle.close()
  throw new Error(isFolder(file))
}

/** Whether a file exists. */
export const fileExists = (path: string): Promise<boolean> => stat(path).then(Boolean, () => false)

/** Writes the parts of a text with back-pressure. The output stays open. */
export async function writeAll(
  output: Writable,
  parts: AsyncIterable<string | Uint8Array> | Iterable<string>,
): Promise<void> {
  for await (const part of parts) if (!output.write(part)) await once(output, 'drain')
}

/** Whether a write failed because the disk, a quota or a limit of the file size is exhausted. */
export const isDiskFull = ({ code }: NodeJS.ErrnoException): boolean =>
  code === 'ENOSPC' || code === 'EFBIG' || code === 'EDQUOT'

import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { rename, stat, truncate } from 'node:fs/promises'
import type { Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import type { Format } from '../import/input.ts'
import { openPartialFile, type ResumePoint, readResumePoint } from './resume.ts'

/** The file or standard output that an export writes to. */
export type Output = {
  /** The content that a resumed export has found. */
  remains: ResumePoint
  /** The name of the incomplete file; null for standard output. */
  partName: string | null
  write(text: string): Promise<void>
  /** Ends a complete export. A file gets its final name only now. */
  complete(): Promise<void>
  /** Ends an incomplete export. The incomplete file stays, so that it can be resumed. */
  leave(): Promise<void>
}

export type OutputOptions = {
  /** The name as it was typed; undefined means standard output. */
  name: string | undefined
  path: string
  format: Format
  packed: boolean
  identifier: string
  resume: boolean
  force: boolean
}

const nothing: ResumePoint = { bytes: 0, lines: 0, after_id: undefined }

/**
 * Opens the output. A file is written as `<name>.part`, so that an incomplete export never has the final name. Throws if the
 * file exists without `force`, or if the incomplete file cannot be resumed.
 */
export async function openOutput(options: OutputOptions): Promise<Output> {
  const { name, path, packed, resume, force } = options
  if (name === undefined) return outputTo(process.stdout, packed, { remains: nothing, partName: null }, async () => {})
  const [part, partName] = [`${path}.part`, `${name}.part`]
  const hasPart = await isThere(part)
  if (!force && (await isThere(path))) throw new Error(`${name} exists already. Use --force to overwrite it.`)
  if (!force && !resume && hasPart)
    throw new Error(`${partName} is from an interrupted export. Use --resume to continue it or --force to start again.`)
  const remains = resume && hasPart ? await resumePart(part, options) : nothing
  const fresh = packed ? `${part}.new` : part
  const file = createWriteStream(fresh, { flags: remains.bytes > 0 && !packed ? 'a' : 'w' })
  await once(file, 'open')
  const output = outputTo(file, packed, { remains, partName }, () => rename(part, path))
  if (packed && remains.bytes > 0) await copy(part, remains.bytes, output)
  // The new file now contains the resumed content.
  if (packed) await rename(fresh, part)
  return output
}

const isThere = (path: string) => stat(path).then(Boolean, () => false)

async function resumePart(
  part: string,
  { name, packed, format, identifier }: OutputOptions,
): Promise<ResumePoint> {
  const remains = await readResumePoint(part, packed, format, identifier).catch(() => undefined)
  if (!remains || (remains.lines > 0 && !remains.after_id))
    throw new Error(`${name}.part is not an export of this kind. Use --force to start again.`)
  if (!packed) await truncate(part, remains.bytes)
  return remains
}

async function copy(part: string, bytes: number, output: Output) {
  let remainingBytes = bytes
  const decoder = new TextDecoder()
  for await (const piece of openPartialFile(part, true) as AsyncIterable<Buffer>) {
    const text = decoder.decode(piece.subarray(0, remainingBytes), { stream: true })
    remainingBytes -= Math.min(remainingBytes, piece.length)
    await output.write(text)
    if (remainingBytes === 0) return
  }
}

function outputTo(
  target: Writable,
  packed: boolean,
  about: Pick<Output, 'remains' | 'partName'>,
  finalize: () => Promise<void>,
): Output {
  const sink = packed ? createGzip() : target
  if (sink !== target) sink.pipe(target)
  const isFile = target !== process.stdout
  const failed = new Promise<never>((_, reject) => {
    for (const stream of new Set([sink, target])) stream.on('error', reject)
  })
  failed.catch(() => {})
  const leave = async () => {
    if (!isFile && !packed) return
    sink.end()
    await Promise.race([finished(isFile ? target : sink, { readable: false }), failed])
  }
  return {
    ...about,
    async write(text) {
      if (!sink.write(text)) await Promise.race([once(sink, 'drain'), failed])
    },
    async complete() {
      await leave()
      await finalize()
    },
    leave,
  }
}

import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { rename, stat, truncate } from 'node:fs/promises'
import type { Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import type { Format } from '../import/input.ts'
import { openPartialFile, type ResumePoint, readResumePoint } from './resume.ts'

/** Where an export goes. */
export type Output = {
  /** What stood there already, where an export goes on. */
  remains: ResumePoint
  /** Where what is not whole yet is kept; null for standard output. */
  partName: string | null
  write(text: string): Promise<void>
  /** All there is has been written: a file gets its name only now. */
  complete(): Promise<void>
  /** What has been written is kept, to be gone on with. */
  leave(): Promise<void>
}

export type Wanted = {
  /** Absent: standard output. */
  name: string | undefined
  path: string
  format: Format
  packed: boolean
  identifier: string
  resume: boolean
  force: boolean
}

const nothing: ResumePoint = { bytes: 0, lines: 0, after_id: undefined }

/** Opens it. A file is written as `<name>.part`, so that half of one is never taken for a whole one. */
export async function openOutput(wanted: Wanted): Promise<Output> {
  const { name, path, packed, resume, force } = wanted
  if (name === undefined) return outputTo(process.stdout, packed, { remains: nothing, partName: null }, async () => {})
  const [part, partName] = [`${path}.part`, `${name}.part`]
  const hasPart = await isThere(part)
  if (!force && (await isThere(path))) throw new Error(`${name} is there already: --force writes it anew.`)
  if (!force && !resume && hasPart)
    throw new Error(`${partName} is of an export that did not end: --resume goes on with it, --force begins anew.`)
  const remains = resume && hasPart ? await takeUp(part, wanted) : nothing
  const fresh = packed ? `${part}.new` : part
  const file = createWriteStream(fresh, { flags: remains.bytes > 0 && !packed ? 'a' : 'w' })
  await once(file, 'open')
  const output = outputTo(file, packed, { remains, partName }, () => rename(part, path))
  if (packed && remains.bytes > 0) await copy(part, remains.bytes, output)
  // Whatever was packed before is in the new file by now.
  if (packed) await rename(fresh, part)
  return output
}

const isThere = (path: string) => stat(path).then(Boolean, () => false)

async function takeUp(part: string, { name, packed, format, identifier }: Wanted): Promise<ResumePoint> {
  const remains = await readResumePoint(part, packed, format, identifier).catch(() => undefined)
  if (!remains || (remains.lines > 0 && !remains.after_id))
    throw new Error(`${name}.part is no export of this kind: --force begins anew.`)
  if (!packed) await truncate(part, remains.bytes)
  return remains
}

async function copy(part: string, bytes: number, output: Output) {
  let left = bytes
  const decoder = new TextDecoder()
  for await (const piece of openPartialFile(part, true) as AsyncIterable<Buffer>) {
    const text = decoder.decode(piece.subarray(0, left), { stream: true })
    left -= Math.min(left, piece.length)
    await output.write(text)
    if (left === 0) return
  }
}

function outputTo(
  target: Writable,
  packed: boolean,
  about: Pick<Output, 'remains' | 'partName'>,
  settle: () => Promise<void>,
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
      await settle()
    },
    leave,
  }
}

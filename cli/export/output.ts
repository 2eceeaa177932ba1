import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { rename, rm, truncate, writeFile } from 'node:fs/promises'
import type { Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import type { Format } from '../../transfer/file.ts'
import { fileExists, readFileOrNull } from '../files.ts'
import { openPartialFile, type ResumePoint, readResumePoint } from './resume.ts'

/** The file or standard output that an export writes to. */
export type Output = {
  /** The content that a resumed export has found. */
  resumePoint: ResumePoint
  /** The name of the incomplete file; null for standard output. */
  partName: string | null
  write(text: string): Promise<void>
  /** Ends a complete export. A file gets its final name only now. */
  complete(): Promise<void>
  /** Ends an incomplete export. The incomplete file stays, so that it can be resumed. */
  leave(): Promise<void>
}

/** What the rows of a file have in common: the words of the command line that decide it, and the columns of CSV. */
export type ExportForm = { words: string; columns: string }

export type OutputOptions = {
  /** The name as it was typed; undefined means standard output. */
  name: string | undefined
  path: string
  format: Format
  compressed: boolean
  identifier: string
  form: ExportForm
  resume: boolean
  force: boolean
}

const emptyResumePoint: ResumePoint = { bytes: 0, lines: 0, after_id: undefined }

/**
 * Opens the output. A file is written as `<name>.part`, so that an incomplete export never has the final name. Throws if the
 * file exists without `force`, or if the incomplete file cannot be resumed.
 */
export async function openOutput(options: OutputOptions): Promise<Output> {
  const { name, path, compressed, form, resume, force } = options
  if (name === undefined)
    return outputTo(process.stdout, compressed, { resumePoint: emptyResumePoint, partName: null }, async () => {})
  const [part, partName] = [`${path}.part`, `${name}.part`]
  const hasPart = await fileExists(part)
  if (!force && (await fileExists(path))) throw new Error(`${name} exists already. Use --force to overwrite it.`)
  if (!force && !resume && hasPart)
    throw new Error(`${partName} is from an interrupted export. Use --resume to continue it or --force to start again.`)
  const formPath = `${part}.form`
  const resumePoint = resume && hasPart ? await resumePart(part, formPath, options) : emptyResumePoint
  if (resumePoint.bytes === 0) await writeFile(formPath, JSON.stringify(form))
  const fresh = compressed ? `${part}.new` : part
  const file = createWriteStream(fresh, { flags: resumePoint.bytes > 0 && !compressed ? 'a' : 'w' })
  await once(file, 'open')
  const finalize = async () => {
    await rename(part, path)
    await rm(formPath, { force: true })
  }
  const output = outputTo(file, compressed, { resumePoint, partName }, finalize)
  if (compressed && resumePoint.bytes > 0) await copy(part, resumePoint.bytes, output)
  // The new file now contains the resumed content.
  if (compressed) await rename(fresh, part)
  return output
}

async function resumePart(
  part: string,
  formPath: string,
  { name, compressed, format, identifier, form }: OutputOptions,
): Promise<ResumePoint> {
  const text = await readFileOrNull(formPath)
  const { words, columns }: ExportForm = text === null ? form : JSON.parse(text)
  const startAgain = 'or start again with --force instead of --resume.'
  if (words !== form.words)
    throw new Error(`${name}.part is of kith export ${words}. Repeat these options, ${startAgain}`)
  if (columns !== form.columns)
    throw new Error(
      `The definitions have changed, and with them the columns of ${name}.part. Continue it under the earlier definitions, ${startAgain}`,
    )
  const resumePoint = await readResumePoint(part, compressed, format, identifier).catch(() => undefined)
  if (!resumePoint || (resumePoint.lines > 0 && !resumePoint.after_id))
    throw new Error(`${name}.part is not an export of this kind. Use --force to start again.`)
  if (!compressed) await truncate(part, resumePoint.bytes)
  return resumePoint
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
  compressed: boolean,
  about: Pick<Output, 'resumePoint' | 'partName'>,
  finalize: () => Promise<void>,
): Output {
  const sink = compressed ? createGzip() : target
  if (sink !== target) sink.pipe(target)
  const isFile = target !== process.stdout
  const failed = new Promise<never>((_, reject) => {
    for (const stream of new Set([sink, target])) stream.on('error', reject)
  })
  failed.catch(() => {})
  const leave = async () => {
    if (!isFile && !compressed) return
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

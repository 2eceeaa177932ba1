import { once } from 'node:events'
import { createReadStream, createWriteStream } from 'node:fs'
import { rename, rm, truncate, writeFile } from 'node:fs/promises'
import type { Readable, Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { constants, createGunzip, createGzip } from 'node:zlib'
import { parse } from 'csv-parse'
import type { Format } from '../../transfer/file.ts'
import { fileExists, readFileOrNull } from '../files.ts'

/** The file or standard output that an export writes to. */
export type Output = {
  /** The position up to which the incomplete file can be used. */
  resumePoint: ResumePoint
  /** The name of the incomplete file; null for standard output. */
  partName: string | null
  write(text: string): Promise<void>
  /** Ends a complete export. A file gets its final name only now. */
  complete(): Promise<void>
  /** Closes the incomplete file and keeps it, so that the export can be resumed. */
  leave(): Promise<void>
}

/** The format of a file's rows: the options that determine it, and the columns of CSV. */
export type ExportForm = { words: string; columns: string }

export type OutputOptions = {
  /** The name that the user typed; undefined means standard output. */
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
  const scan = format === 'ndjson' ? lastLine : lastRecord
  const resumePoint = await scan(openPartialFile(part, compressed), identifier).catch(() => undefined)
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

/** The usable part of an interrupted export: uncompressed bytes and number of whole lines, and the id of the last entity. */
type ResumePoint = { bytes: number; lines: number; after_id: string | undefined }

/** Reads the text of a file that may be truncated anywhere, even within its compressed data. */
function openPartialFile(path: string, compressed: boolean): Readable {
  const file = createReadStream(path)
  if (!compressed) return file
  const uncompressed = createGunzip({ finishFlush: constants.Z_SYNC_FLUSH })
  file.on('error', error => uncompressed.destroy(error)).pipe(uncompressed)
  return uncompressed
}

async function lastLine(text: Readable, identifier: string): Promise<ResumePoint> {
  let [bytes, lines] = [0, 0]
  let last: Buffer = Buffer.alloc(0)
  let unfinished: Buffer[] = []
  for await (const piece of text as AsyncIterable<Buffer>) {
    let start = 0
    for (let end = piece.indexOf(10); end !== -1; end = piece.indexOf(10, start)) {
      last = Buffer.concat([...unfinished, piece.subarray(start, end)])
      ;[unfinished, start, lines] = [[], end + 1, lines + 1]
      bytes += last.length + 1
    }
    if (start < piece.length) unfinished.push(piece.subarray(start))
  }
  const after_id = lines === 0 ? undefined : (JSON.parse(last.toString()) as Record<string, string>)[identifier]
  return { bytes, lines, after_id }
}

async function lastRecord(text: Readable, identifier: string): Promise<ResumePoint> {
  let column = -1
  // The last record may be truncated and still look complete. The record before it is certainly complete.
  let [last, before]: [ResumePoint, ResumePoint] = [emptyResumePoint, emptyResumePoint]
  let lastByte = 0
  const parser = parse({
    on_record: (cells: string[], { bytes, records }) => {
      if (records === 1) column = cells.indexOf(identifier)
      const after_id = records === 1 ? undefined : cells[column]
      ;[before, last] = [last, { bytes, lines: records - 1, after_id }]
      return null
    },
  }).resume()
  const ended = new Promise<boolean>(resolve => parser.on('end', () => resolve(true)).on('error', () => resolve(false)))
  for await (const piece of text as AsyncIterable<Buffer>) {
    lastByte = piece.at(-1) ?? lastByte
    if (!parser.write(piece)) await Promise.race([new Promise(resolve => parser.once('drain', resolve)), ended])
  }
  parser.end()
  const isWhole = !(await ended) || lastByte === 10
  return isWhole ? last : before
}

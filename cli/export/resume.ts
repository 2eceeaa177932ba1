import { createReadStream } from 'node:fs'
import type { Readable } from 'node:stream'
import { constants, createGunzip } from 'node:zlib'
import { parse } from 'csv-parse'
import type { Format } from '../../transfer/file.ts'

/** The usable part of an interrupted export: uncompressed bytes and number of whole lines, and the id of the last entity. */
export type ResumePoint = { bytes: number; lines: number; after_id: string | undefined }

/** Reads the text of a file that may be cut off anywhere, also within its compressed data. */
export function openPartialFile(path: string, compressed: boolean): Readable {
  const file = createReadStream(path)
  if (!compressed) return file
  const uncompressed = createGunzip({ finishFlush: constants.Z_SYNC_FLUSH })
  file.on('error', error => uncompressed.destroy(error)).pipe(uncompressed)
  return uncompressed
}

/** Reads an incomplete file to find where to continue. Throws if it is not an export of this format. */
export async function readResumePoint(
  path: string,
  compressed: boolean,
  format: Format,
  identifier: string,
): Promise<ResumePoint> {
  const scan = format === 'ndjson' ? lastLine : lastRecord
  return scan(openPartialFile(path, compressed), identifier)
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
  // The last record may be cut off and still look complete. The record before it is surely complete.
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

const emptyResumePoint: ResumePoint = { bytes: 0, lines: 0, after_id: undefined }

import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { constants, createZstdCompress, createZstdDecompress } from 'node:zlib'
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { Static } from 'typebox'
import { findRepeatedMember } from '../../client/src/distinct-members.ts'
import { Type } from '../../src/values/json-schema.ts'
import { parsedJson } from '../../transfer/parsed-json.ts'
import { beginsWith, openToRead } from '../files.ts'
import { type QuietOptions, startProgress } from '../progress.ts'
import { visible } from '../terminal.ts'
import { isSignedBy, type Signer, signatureBytes, signDigest } from './signature.ts'

const text = () => Type.String({ minLength: 1 })
/** Messages quote these texts, so the pattern refuses characters that move the cursor. */
const visibleText = () => Type.String({ pattern: '^[^\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}]+$' })
const shapes = {
  header: Type.Object({
    format: Type.Literal('kith-backup'),
    version: Type.Number(),
    /** The version of kith that made the backup. */
    kith: visibleText(),
    /** The time of the snapshot, by PostgreSQL's clock. */
    at: visibleText(),
    postgresql: visibleText(),
    compression: Type.Literal('zstd'),
    /** The verifier key of the signature. Absent in format 1, which is not signed. */
    signed_by: Type.Optional(visibleText()),
    /** The migrations that had run. */
    migrations: Type.Array(visibleText(), { minItems: 1 }),
    tables: Type.Array(Type.Object({ name: text(), columns: Type.Array(text()) }), { minItems: 1 }),
  }),
  end: Type.Object({
    rows: Type.Record(Type.String(), Type.Integer({ minimum: 0 })),
    sequences: Type.Array(
      Type.Object({ name: text(), last_value: Type.String({ pattern: '^-?[0-9]{1,19}$' }), is_called: Type.Boolean() }),
    ),
  }),
}

/**
 * The header of a backup file. The file is this header as one line of JSON, one zstd stream of frames, and the SHA-256 of
 * all bytes before it as 64 hexadecimal digits and a line feed. In format 2, the signature of the SHA-256 follows as 128 hexadecimal digits
 * and a line feed. docs/backups.md describes it.
 */
export type Header = Static<typeof shapes.header>

/** The last frame. `rows` counts the rows of each table; `sequences` are the positions of the sequences. */
export type End = Static<typeof shapes.end>
export type Sequence = End['sequences'][number]

/**
 * A frame. A `table` frame starts a table; any number of `rows` frames follow it, in COPY's text format. A reader gets the rows of a long
 * frame in pieces.
 */
export type Frame = { type: 'table'; name: string } | { type: 'rows'; bytes: Buffer } | { type: 'end'; end: End }

const formats = { unsigned: 1, signed: 2 } as const
const letters = { table: 'T', rows: 'R', end: 'E' } as const
const frameHeadBytes = 5
const digestLineBytes = 65
const signatureLineBytes = 2 * signatureBytes + 1
const maxHeaderBytes = 16_777_216
/** kith writes rows as they arrive from PostgreSQL, in frames of less than 1 MiB. */
const maxFrameBytes = 16_777_216

function encode(frame: Frame): Buffer[] {
  const payload =
    frame.type === 'rows' ? frame.bytes : Buffer.from(frame.type === 'table' ? frame.name : JSON.stringify(frame.end))
  const head = Buffer.alloc(frameHeadBytes)
  head.write(letters[frame.type])
  head.writeUInt32BE(payload.length, 1)
  return [head, payload]
}

/** Writes a backup to the stream and waits until the stream has ended. Returns its header. Without a signer it is not signed. */
export async function writeContainer(
  target: NodeJS.WritableStream,
  content: Omit<Header, 'format' | 'version' | 'signed_by'>,
  frames: AsyncIterable<Frame>,
  { signer, signal }: { signer: Signer | undefined; signal: AbortSignal },
): Promise<Header> {
  const version = signer ? formats.signed : formats.unsigned
  const header: Header = {
    format: 'kith-backup',
    version,
    ...(signer && { signed_by: signer.verifierKey }),
    ...content,
  }
  async function* encoded() {
    for await (const frame of frames) yield* encode(frame)
  }
  async function* sealed(body: AsyncIterable<Buffer>) {
    const hash = createHash('sha256')
    const hashed = (bytes: Buffer) => {
      hash.update(bytes)
      return bytes
    }
    yield hashed(Buffer.from(`${JSON.stringify(header)}\n`))
    for await (const piece of body) yield hashed(piece)
    const sha256 = hash.digest('hex')
    yield Buffer.from(`${sha256}\n${signer ? `${signDigest(signer, sha256)}\n` : ''}`)
  }
  const compress = createZstdCompress({ params: { [constants.ZSTD_c_checksumFlag]: 1 } })
  await pipeline(encoded, compress, sealed, target, { signal })
  return header
}

/** A backup file with a verified SHA-256, and a signature verified with the key that its header names. */
export type Backup = {
  header: Header
  bytes: number
  frames(progress: { bytes: number }, signal: AbortSignal): AsyncGenerator<Frame, undefined>
}

/**
 * Reads the whole file, compares its SHA-256 and verifies its signature. Throws an Error if it is not a backup, is damaged or incomplete, or has
 * another format version. `file` is the name in messages, `path` the file that is read.
 */
export async function verifyBackup(
  file: string,
  path: string,
  options: QuietOptions,
  signal?: AbortSignal,
): Promise<Backup> {
  const handle = await openToRead(file, path)
  let [readBytes, size] = [0, 1]
  const readProgress = () => ({ count: Math.round(readBytes / 1e6), fraction: readBytes / size })
  const progressLine = startProgress('MB checked', readProgress, options)
  try {
    size = (await handle.stat()).size
    const { header, bytes: headerBytes } = await readHeader(handle, file)
    const trailerBytes = digestLineBytes + (header.signed_by === undefined ? 0 : signatureLineBytes)
    const body = { start: headerBytes, end: size - trailerBytes - 1 }
    const hash = createHash('sha256')
    if (body.end > body.start)
      for await (const piece of createReadStream(path, { end: body.end, ...(signal && { signal }) })) {
        hash.update(piece)
        readBytes += piece.length
      }
    const trailer = await read(handle, Math.max(0, size - trailerBytes), trailerBytes)
    const sha256 = hash.digest('hex')
    const [, digest, signature] = /^([0-9a-f]{64})\n(?:([0-9a-f]{128})\n)?$/.exec(trailer.toString('latin1')) ?? []
    if (digest !== sha256)
      throw new Error(`${file} is damaged or incomplete: its SHA-256 differs from the one at its end.`)
    if (header.signed_by !== undefined && !(await isSignedBy(header.signed_by, sha256, signature ?? '')))
      throw new Error(`${file} is damaged or was changed: the key that its header names did not sign it.`)
    return {
      header,
      bytes: size,
      frames: (progress, signal) => framesOf(createReadStream(path, body), progress, signal),
    }
  } finally {
    progressLine.end()
    await handle.close()
  }
}

const firstBytes = `{"format":"kith-backup",`

/** Whether the file begins like a backup. */
export const isBackup = (path: string): Promise<boolean> => beginsWith(path, firstBytes)

async function readHeader(handle: FileHandle, file: string): Promise<{ header: Header; bytes: number }> {
  const noBackup = new Error(`${file} is not a backup of kith. Give a file written by kith backup.`)
  if ((await read(handle, 0, firstBytes.length)).toString('latin1') !== firstBytes) throw noBackup
  let start = Buffer.alloc(0)
  while (!start.includes(10)) {
    const more = await read(handle, start.length, 65_536)
    if (more.length === 0 || start.length > maxHeaderBytes) throw noBackup
    start = Buffer.concat([start, more])
  }
  const line = start.subarray(0, start.indexOf(10))
  const header = parsedJson(line.toString()) as Header | undefined
  if (typeof header?.version !== 'number') throw new Error(`${file} is damaged: its header cannot be read.`)
  if (header.version !== formats.unsigned && header.version !== formats.signed)
    throw new Error(
      `${file} has format ${header.version}, and this version of kith reads format ${formats.signed}. Restore it with ` +
        `${typeof header.kith === 'string' ? `kith ${visible(header.kith)} or newer` : 'a newer kith'}.`,
    )
  const fault = findFault('header', header)
  if (fault) throw new Error(`${file} is damaged: in its header, ${fault}.`)
  const twice = findRepeatedMember(line.toString()) ?? findRepeated(header.tables.map(({ name }) => name))
  if (twice !== undefined)
    throw new Error(`${file} is damaged: its header has ${visible(JSON.stringify(twice))} twice.`)
  if ((header.version === formats.signed) !== (typeof header.signed_by === 'string'))
    throw new Error(`${file} is damaged: its header does not name the key that signed it.`)
  return { header, bytes: line.length + 1 }
}

function findRepeated(names: string[]): string | undefined {
  const seen = new Set<string>()
  return names.find(name => seen.size === seen.add(name).size)
}

async function read(handle: FileHandle, position: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, position)
  return buffer.subarray(0, bytesRead)
}

/** Reads the frames of the body, with back-pressure. Throws an Error if it is damaged, and the reason of the signal. */
async function* framesOf(
  source: Readable,
  progress: { bytes: number },
  signal: AbortSignal,
): AsyncGenerator<Frame, undefined> {
  source.on('data', piece => {
    progress.bytes += piece.length
  })
  const plain = createZstdDecompress()
  const reading = pipeline(source, plain, { signal })
  // The loop below reads from the same stream and throws its error.
  reading.catch(() => {})
  try {
    yield* parseFrames(plain)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (!code || !/^Z(STD)?_/.test(code)) throw error
    throw damaged(`its rows cannot be decompressed (${(error as Error).message})`)
  }
}

async function* parseFrames(plain: AsyncIterable<Buffer>): AsyncGenerator<Frame, undefined> {
  let buffered: Buffer = Buffer.alloc(0)
  /** The bytes of the current `rows` frame that have not arrived yet. */
  let rowsLeft = 0
  let hasEnded = false
  for await (const piece of plain) {
    buffered = buffered.length === 0 ? piece : Buffer.concat([buffered, piece])
    for (;;) {
      if (rowsLeft > 0) {
        const bytes = buffered.subarray(0, rowsLeft)
        if (bytes.length > 0) yield { type: 'rows', bytes }
        rowsLeft -= bytes.length
        buffered = buffered.subarray(bytes.length)
      }
      if (rowsLeft > 0 || buffered.length < frameHeadBytes) break
      if (hasEnded) throw damaged('it goes on after its last frame')
      const letter = buffered.toString('latin1', 0, 1)
      const length = buffered.readUInt32BE(1)
      if (length > maxFrameBytes)
        throw damaged(`a frame claims ${length} bytes, and at most ${maxFrameBytes} are possible`)
      if (letter === letters.rows) {
        rowsLeft = length
        buffered = buffered.subarray(frameHeadBytes)
        continue
      }
      if (buffered.length < frameHeadBytes + length) break
      const frame = decode(letter, buffered.subarray(frameHeadBytes, frameHeadBytes + length))
      buffered = buffered.subarray(frameHeadBytes + length)
      hasEnded = frame.type === 'end'
      yield frame
    }
  }
  if (buffered.length > 0 || rowsLeft > 0) throw damaged('it ends within a frame')
}

function decode(letter: string, payload: Buffer): Frame {
  if (letter === letters.table) return { type: 'table', name: payload.toString() }
  if (letter !== letters.end) throw damaged(`it has a frame of the unknown type ${JSON.stringify(letter)}`)
  const end = parsedJson(payload.toString())
  const fault = findFault('end', end)
  if (fault) throw damaged(`in its last frame, ${fault}`)
  return { type: 'end', end: end as End }
}

/** The error of a file whose SHA-256 is correct. The fault may quote the file. */
export const damaged = (fault: string): Error =>
  new Error(visible(`The backup is damaged: ${fault}. No row was restored. Use another backup.`))

/** Describes the fault of a value's shape, as the end of a sentence. Undefined if the shape is right. */
function findFault(shape: keyof typeof shapes, value: unknown): string | undefined {
  const ajv = new Ajv2020({ strict: false })
  return ajv.validate(shapes[shape], value) ? undefined : ajv.errorsText(undefined, { dataVar: shape })
}

import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { chown, type FileHandle, mkdir, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout } from 'node:timers/promises'
import { createZstdCompress, createZstdDecompress } from 'node:zlib'
import * as tar from 'tar-stream'
import type { ServerUser } from '../embedded/processes.ts'
import { orMissing } from '../missing-files.ts'
import { withConnection } from '../servers/servers.ts'
import { type Base, parseSegmentName, partName, readPosition, removeBase, writeBase } from './archive.ts'
import type { Store } from './store.ts'

const partBytes = 16 * 2 ** 20
const readBytes = 2 ** 18
const pollMs = 500

type CopyOptions = {
  url: string
  path: string
  store: Store
  /** The maximum time in which the service archives the log of the copy. */
  patienceMs: number
  signal?: AbortSignal
}

/**
 * Copies the data of a running server to the archive, and waits until the service has archived the log of this time.
 * The files change meanwhile. The log since the start of the copy repairs them.
 */
export async function copyBase(options: CopyOptions): Promise<Base> {
  const id = `${Date.now()}-${randomBytes(4).toString('hex')}`
  try {
    return await writeCopy(id, options)
  } catch (error) {
    // On a full disk, the parts of a failed copy would leave no room for the log.
    await removeBase(options.store, id).catch(() => {})
    throw error
  }
}

async function writeCopy(id: string, { url, path, store, patienceMs, signal }: CopyOptions): Promise<Base> {
  return withConnection(url, async client => {
    const { rows: starts } = await client.query<{ name: string }>(
      `select pg_walfile_name(pg_backup_start('kith archive', true)) as name`,
    )
    const { timeline, segment: first } = parseSegmentName(starts[0]!.name)!
    const parts = await writeParts(store, id, join(path, 'data'), signal)
    const { rows: stops } = await client.query<{ labelfile: string; stopped_at: Date }>(
      `select labelfile, clock_timestamp() as stopped_at from pg_backup_stop(false)`,
    )
    const { labelfile: backup_label, stopped_at } = stops[0]!
    // The time is truncated to milliseconds, so the next millisecond is certainly after the copy.
    const stoppedMs = stopped_at.getTime() + 1
    const last = await archivedSegment(store, timeline, stoppedMs, { patienceMs, signal })
    const base = { id, timeline, first, last, stopped_at: new Date(stoppedMs).toISOString(), backup_label, parts }
    await writeBase(store, base)
    return base
  })
}

/** Waits until a time can be restored. Returns the number of the segment that ends after it. */
async function archivedSegment(
  store: Store,
  timeline: number,
  atMs: number,
  { patienceMs, signal }: { patienceMs: number; signal: AbortSignal | undefined },
): Promise<number> {
  const giveUpAtMs = performance.now() + patienceMs
  for (;;) {
    const position = await readPosition(store, timeline)
    if (position && Date.parse(position.until) >= atMs) return position.segment
    if (performance.now() > giveUpAtMs)
      throw new Error('The service did not archive the log of the copy. Does it run, with the same KITH_ARCHIVE?')
    await setTimeout(pollMs, undefined, { ...(signal && { signal }) })
  }
}

/** Stores the files as one stream of tar and zstd, in parts. */
async function writeParts(store: Store, id: string, data: string, signal?: AbortSignal): Promise<Base['parts']> {
  const pack = tar.pack()
  const parts: Base['parts'] = []
  const packing = packFiles(pack, data).catch(error => pack.destroy(error))
  await pipeline(
    pack,
    createZstdCompress(),
    async (source: AsyncIterable<Buffer>) => {
      for await (const bytes of inParts(source)) {
        signal?.throwIfAborted()
        await store.write(partName(id, parts.length), bytes)
        parts.push({ bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') })
      }
    },
    { ...(signal && { signal }) },
  )
  await packing
  return parts
}

async function* inParts(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let chunks: Buffer[] = []
  let length = 0
  for await (const chunk of source) {
    chunks.push(chunk)
    length += chunk.length
    if (length < partBytes) continue
    yield Buffer.concat(chunks)
    chunks = []
    length = 0
  }
  yield Buffer.concat(chunks)
}

// PostgreSQL's manual lists the files that a copy leaves out ("Backing Up the Data Directory"). The control file comes
// last, as in pg_basebackup.
const emptyFolders = new Set([
  'pg_wal',
  'pg_dynshmem',
  'pg_notify',
  'pg_replslot',
  'pg_serial',
  'pg_snapshots',
  'pg_stat_tmp',
  'pg_subtrans',
])
const leftOut = /^(postmaster\.(pid|opts)|pgsql_tmp.*|pg_internal\.init.*)$/
const controlFile = 'global/pg_control'

async function packFiles(pack: tar.Pack, data: string): Promise<void> {
  for await (const { name, isFolder } of walk(data, '')) {
    if (isFolder) pack.entry({ name, type: 'directory', mode: 0o700 })
    else if (name !== controlFile) await packFile(pack, data, name)
  }
  await packFile(pack, data, controlFile)
  pack.finalize()
}

/** Lists the files and folders. PostgreSQL may remove some meanwhile. */
async function* walk(data: string, below: string): AsyncGenerator<{ name: string; isFolder: boolean }> {
  for (const entry of (await orMissing(readdir(join(data, below), { withFileTypes: true }))) ?? []) {
    const name = join(below, entry.name)
    if (leftOut.test(entry.name)) continue
    if (entry.isFile()) yield { name, isFolder: false }
    if (!entry.isDirectory()) continue
    yield { name, isFolder: true }
    if (!emptyFolders.has(name)) yield* walk(data, name)
  }
}

/** If a file shrinks meanwhile, zeros fill it up to the size in its header. The log repairs the file. */
async function packFile(pack: tar.Pack, data: string, name: string): Promise<void> {
  const file = await orMissing(open(join(data, name)))
  if (!file) return
  try {
    const { size } = await file.stat()
    const written = Promise.withResolvers<void>()
    const entry = pack.entry({ name, size, mode: 0o600 }, error =>
      error ? written.reject(error) : written.resolve(undefined),
    )
    // If the archive fails or the service stops, the entry emits an error in the middle of the file, and no more drain
    // events.
    written.promise.catch(() => {})
    entry.on('error', written.reject)
    for await (const chunk of readExactly(file, size))
      if (!entry.write(chunk)) await Promise.race([once(entry, 'drain'), written.promise])
    entry.end(null)
    await written.promise
  } finally {
    await file.close()
  }
}

async function* readExactly(file: FileHandle, size: number): AsyncGenerator<Buffer> {
  for (let position = 0; position < size; ) {
    const buffer = Buffer.alloc(Math.min(readBytes, size - position))
    const { bytesRead } = await file.read(buffer, 0, buffer.length, position)
    const chunk = bytesRead === 0 ? buffer : buffer.subarray(0, bytesRead)
    position += chunk.length
    yield chunk
  }
}

/** Writes the files of a copy into a folder, as files of the server's user. */
export async function extractBase(store: Store, base: Base, data: string, user: ServerUser): Promise<void> {
  const extract = tar.extract()
  const writing = (async () => {
    for await (const entry of extract) await writeEntry(entry, data, user)
  })()
  await Promise.all([pipeline(Readable.from(readParts(store, base)), createZstdDecompress(), extract), writing])
}

async function* readParts(store: Store, { id, parts }: Base): AsyncGenerator<Buffer> {
  for (const [index, { sha256 }] of parts.entries()) {
    const bytes = await store.read(partName(id, index))
    if (!bytes || createHash('sha256').update(bytes).digest('hex') !== sha256)
      throw new Error(`The part ${partName(id, index)} in ${store.label} is ${bytes ? 'damaged' : 'missing'}.`)
    yield bytes
  }
}

type Entry = AsyncIterable<unknown> & { header: tar.Header; resume(): unknown }

async function writeEntry(entry: Entry, data: string, user: ServerUser): Promise<void> {
  const { name, type } = entry.header
  const path = join(data, name)
  if ((type !== 'file' && type !== 'directory') || !path.startsWith(join(data, '/')) || name.includes('\0'))
    throw new Error(`The copy has ${JSON.stringify(name)}, which is not a file of a data folder.`)
  if (type === 'directory') await mkdir(path, { mode: 0o700, recursive: true })
  else await pipeline(Readable.from(entry), createWriteStream(path, { flags: 'wx', mode: 0o600 }))
  entry.resume()
  if (user) await chown(path, user.uid, user.gid)
}

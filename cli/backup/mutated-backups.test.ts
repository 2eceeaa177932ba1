import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import fc from 'fast-check'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { migrate } from '../../src/db/migrate.ts'
import { contentsOf, useBackupFixture } from '../../test/support/backups.ts'
import { createTestDatabase } from '../../test/support/database.ts'
import { type Header, verifyBackup } from './container.ts'
import { loadBackup } from './load.ts'

const { kith, newFile, pathTo, newDatabase } = useBackupFixture()
const signal = new AbortController().signal
let header: Header
/** The frames of a valid backup, without compression. */
let plain: Buffer

beforeAll(async () => {
  const { url, drop } = await createTestDatabase()
  const file = newFile()
  expect((await kith(['backup', file], url)).code).toBe(0)
  await drop()
  const bytes = await readFile(pathTo(file))
  const body = bytes.indexOf(10) + 1
  // The mutated files are not signed.
  const { signed_by, ...unsigned } = JSON.parse(bytes.toString('utf8', 0, body))
  header = { ...unsigned, version: 1 }
  plain = zstdDecompressSync(bytes.subarray(body, bytes.length - (signed_by ? 194 : 65)))
})

/** Writes a file whose SHA-256 is correct, whatever is in it. */
async function writeSealed(file: string, head: unknown, body: Uint8Array) {
  const bytes = Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), body])
  const trailer = `${createHash('sha256').update(bytes).digest('hex')}\n`
  await writeFile(pathTo(file), Buffer.concat([bytes, Buffer.from(trailer)]))
}

const verify = (file: string) => verifyBackup(file, pathTo(file), () => {}, signal)

async function readAll(file: string) {
  const { frames } = await verify(file)
  let count = 0
  for await (const _ of frames(() => {}, signal)) count += 1
  return count
}

/** What kith says of a file that it cannot read. Errors of libraries do not begin so. */
const refusal = /^(mutated is (damaged|not a backup)|The backup is (damaged|incomplete))/
const isReadOrRefused = (file: string) =>
  readAll(file)
    .catch((error: Error) => expect(error.message).toMatch(refusal))
    .then(() => true)

const frame = (letter: string, length: number, payload: string | Uint8Array = '') => {
  const head = Buffer.alloc(5)
  head.write(letter)
  head.writeUInt32BE(length, 1)
  return Buffer.concat([head, Buffer.from(payload)])
}
const frameOf = (letter: string, payload: string) => frame(letter, Buffer.byteLength(payload), payload)

it('reads or refuses in its own words whatever bytes of a backup are changed, left out or repeated', async () => {
  const range = fc.tuple(fc.nat(), fc.nat({ max: 200 }), fc.uint8Array({ maxLength: 8 }))
  await fc.assert(
    fc.asyncProperty(fc.boolean(), range, async (isCompressed, [position, length, instead]) => {
      const bytes = isCompressed ? zstdCompressSync(plain) : plain
      const at = position % bytes.length
      const mutated = Buffer.concat([bytes.subarray(0, at), instead, bytes.subarray(at + length)])
      await writeSealed('mutated', header, isCompressed ? mutated : zstdCompressSync(mutated))
      return isReadOrRefused('mutated')
    }),
    { numRuns: 150 },
  )
})

it('refuses a header that lacks a member or has one of another type', async () => {
  const body = zstdCompressSync(plain)
  const members = Object.keys(header).filter(key => key !== 'format') as (keyof Header)[]
  for (const member of members)
    for (const value of [undefined, null, 7, 'text', [], [7], [{}], {}]) {
      if (typeof value === typeof header[member] && value !== null && !Array.isArray(header[member])) continue
      await writeSealed('mutated', { ...header, [member]: value }, body)
      await expect(verify('mutated'), `${member}: ${JSON.stringify(value)}`).rejects.toThrow(
        /^mutated (is damaged|has format)/,
      )
    }
  await writeSealed('mutated', { ...header, tables: [...header.tables, header.tables[0]] }, body)
  await expect(verify('mutated')).rejects.toThrow('twice')
})

it('passes the rows of a frame on as they arrive, however long the frame claims to be', async () => {
  const { name } = header.tables[0]!
  const rows = Buffer.alloc(1_000_000)
  const body = Buffer.concat([frameOf('T', name), frame('R', 1_600_000_000, rows)])
  await writeSealed('mutated', header, zstdCompressSync(body))
  const frames = (await verify('mutated')).frames(() => {}, signal)
  await frames.next()
  expect((await frames.next()).value).toMatchObject({ type: 'rows' })
  await expect(Readable.from(frames).toArray()).rejects.toThrow('it ends within a frame')
})

it('refuses a name or a last frame of more than 16 MiB before it is read', async () => {
  for (const letter of ['T', 'E', 'X']) {
    await writeSealed('mutated', header, zstdCompressSync(frame(letter, 1_600_000_000, Buffer.alloc(100_000))))
    await expect(readAll('mutated')).rejects.toThrow('a frame claims 1600000000 bytes')
  }
})

it('stops within a frame when the signal aborts', async () => {
  const controller = new AbortController()
  const body = frame('R', 1_600_000_000, Buffer.alloc(50_000_000))
  await writeSealed('mutated', header, zstdCompressSync(Buffer.concat([frameOf('T', 'x'), body])))
  const reading = async () => {
    for await (const { type } of (await verify('mutated')).frames(() => {}, controller.signal))
      if (type === 'rows') controller.abort()
  }
  await expect(reading()).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }))
})

describe('a restore', { timeout: 90_000 }, () => {
  let target: string
  beforeEach(async () => {
    target = await newDatabase()
    await migrate(target)
  })

  const restore = async () =>
    loadBackup({ url: target, backup: await verify('mutated'), signal, onBytes: () => {}, onRows: () => {} })

  it('stores nothing of a file whose tables, rows and counts do not fit together', async () => {
    const tables = header.tables.map(({ name }) => frameOf('T', name))
    const counts = Object.fromEntries(header.tables.map(({ name }) => [name, 0]))
    const end = (rows: object, sequences: object[] = []) => frameOf('E', JSON.stringify({ rows, sequences }))
    const { name, columns } = header.tables[0]!
    const others = header.tables.slice(1)
    const files: [unknown, Buffer[], RegExp][] = [
      [{ ...header, tables: others }, [...tables.slice(1), end({})], new RegExp(`lacks the table ${name}`)],
      [header, [end({})], /got no rows/],
      [header, [...tables.slice(1), end(counts)], /got no rows/],
      [header, [...tables, end({})], /the backup counts none/],
      [header, [...tables, end({ ...counts, [name]: 1 })], /got 0 rows, but the backup counts 1/],
      [header, [tables[0]!, ...tables, end(counts)], new RegExp(`has the table ${name} twice`)],
      [header, [frameOf('T', 'nowhere'), ...tables, end(counts)], /its header does not name/],
      [header, tables, /its last frame is missing/],
      [header, [...tables, end(counts), end(counts)], /goes on after its last frame/],
      [header, [...tables, frameOf('E', '{')], /in its last frame, /],
      [header, [...tables, end(counts, [{ name: 'x', last_value: '1e9', is_called: true }])], /in its last frame, /],
      [header, [frameOf('T', name), frameOf('R', 'a\tb\n'), end(counts)], /PostgreSQL refuses the rows of/],
      [
        { ...header, tables: [{ name, columns: [...columns, 'nowhere'] }, ...others] },
        [...tables, end(counts)],
        /PostgreSQL refuses the rows of/,
      ],
      [
        header,
        [
          ...tables,
          end(counts, [{ name: 'organizations_id_seq', last_value: '9999999999999999999', is_called: true }]),
        ],
        /PostgreSQL refuses the sequence/,
      ],
    ]
    const before = await contentsOf(target)
    for (const [head, frames, message] of files) {
      await writeSealed('mutated', head, zstdCompressSync(Buffer.concat(frames)))
      await expect(restore(), String(message)).rejects.toThrow(message)
    }
    expect(await contentsOf(target)).toEqual(before)
    await writeSealed('mutated', header, zstdCompressSync(Buffer.concat([...tables, end(counts)])))
    expect(await restore()).toMatchObject({ rows: 0, tables: header.tables.length })
  })
})

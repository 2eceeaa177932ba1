import { createHash } from 'node:crypto'
import { readFile, truncate, writeFile } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import fc from 'fast-check'
import pg from 'pg'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { migrate } from '../../src/db/migrate.ts'
import { contentsOf, useBackupFixture } from '../../test/support/backups.ts'
import { query, until } from '../../test/support/embedded-service.ts'
import { type End, type Header, verifyBackup } from './container.ts'
import { loadBackup } from './load.ts'

const { kith, newFile, pathTo, newDatabase, serveOn, start } = useBackupFixture()
const signal = new AbortController().signal
let header: Header
/** The frames of a valid backup, without compression. */
let plain: Buffer

beforeAll(async () => {
  const url = await newDatabase()
  const { client } = await (await serveOn(url)).organization()
  await client.people.create({ external_id: 'ada', email: 'ada@example.com', attribute_values: { city: 'a\tb\\c\nd' } })
  const file = newFile()
  expect((await kith(['backup', file], url)).code).toBe(0)
  const bytes = await readFile(pathTo(file))
  const body = bytes.indexOf(10) + 1
  // The mutated files are not signed.
  const { signed_by, ...unsigned } = JSON.parse(bytes.toString('utf8', 0, body))
  header = { ...unsigned, version: 1 }
  plain = zstdDecompressSync(bytes.subarray(body, bytes.length - (signed_by ? 194 : 65)))
})

/** Writes a file whose SHA-256 is correct, whatever is in it. */
async function writeSealed(file: string, head: object | string, body: Uint8Array) {
  const line = typeof head === 'string' || head instanceof Buffer ? head : JSON.stringify(head)
  const bytes = Buffer.concat([Buffer.from(line), Buffer.from('\n'), body])
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

/** One line in kith's words. Errors of libraries do not begin so. */
const refusal =
  /^(mutated (is|has) .*|The backup (is damaged: .* Use another backup|was made by .*)\.|The database has the migration .*)\n$/

const frame = (letter: string, length: number, payload: string | Uint8Array = '') => {
  const head = Buffer.alloc(5)
  head.write(letter)
  head.writeUInt32BE(length, 1)
  return Buffer.concat([head, Buffer.from(payload)])
}
const frameOf = (letter: string, payload: string) => frame(letter, Buffer.byteLength(payload), payload)

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
})

it('refuses a header that has a member or a table twice, however many tables it has', async () => {
  const tables = Array.from({ length: 400_000 }, (_, index) => ({ name: `t${index}`, columns: [] }))
  await writeSealed('mutated', { ...header, tables: [...tables, tables[0]] }, Buffer.alloc(0))
  await expect(verify('mutated')).rejects.toThrow('its header has "t0" twice')
  const text = JSON.stringify(header).replace('"migrations":', '"migrations":["0001_initial"],"migrations":')
  await writeSealed('mutated', text, Buffer.alloc(0))
  await expect(verify('mutated')).rejects.toThrow('its header has "migrations" twice')
})

it('shows names of a backup without the characters that move the cursor', async () => {
  const hidden = 'a\u001b[2J\n\u202eb'
  await writeSealed('mutated', { ...header, version: 99, kith: hidden }, Buffer.alloc(0))
  await expect(verify('mutated')).rejects.toThrow(/kith a\\u\{1b\}\[2J\\u\{a\}\\u\{202e\}b or newer/)
  await writeSealed('mutated', { ...header, kith: hidden }, Buffer.alloc(0))
  await expect(verify('mutated')).rejects.toThrow('in its header, header/kith must match pattern')
  await writeSealed('mutated', header, zstdCompressSync(frameOf('E', JSON.stringify({ rows: { [hidden]: -1 } }))))
  await expect(readAll('mutated')).rejects.toThrow(/^The backup is damaged: [^\p{Cc}\p{Cf}]+$/u)
})

it('passes the rows of a frame on as they arrive', async () => {
  const body = Buffer.concat([frameOf('T', 'x'), frame('R', 16_777_216, Buffer.alloc(1_000_000))])
  await writeSealed('mutated', header, zstdCompressSync(body))
  const frames = (await verify('mutated')).frames(() => {}, signal)
  await frames.next()
  expect((await frames.next()).value).toMatchObject({ type: 'rows' })
  await expect(Readable.from(frames).toArray()).rejects.toThrow('it ends within a frame')
})

it('refuses a frame that claims more than 16 MiB before it is read', async () => {
  for (const letter of ['T', 'R', 'E', 'X']) {
    await writeSealed('mutated', header, zstdCompressSync(frame(letter, 1_600_000_000, Buffer.alloc(100_000))))
    await expect(readAll('mutated')).rejects.toThrow(
      'a frame claims 1600000000 bytes, and at most 16777216 are possible',
    )
  }
})

it('writes a row of any length in frames that it reads', async () => {
  const url = await newDatabase()
  await query(url, 'create table long (text text)')
  await query(url, `insert into long select repeat('kith', 10000000)`)
  const file = newFile()
  expect((await kith(['backup', file], url)).code).toBe(0)
  await readAll(file)
})

it('stops within a frame when the signal aborts', async () => {
  const controller = new AbortController()
  const body = frame('R', 16_000_000, Buffer.alloc(16_000_000))
  await writeSealed('mutated', header, zstdCompressSync(Buffer.concat([frameOf('T', 'x'), body, body])))
  const reading = async () => {
    for await (const { type } of (await verify('mutated')).frames(() => {}, controller.signal))
      if (type === 'rows') controller.abort()
  }
  await expect(reading()).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }))
})

/** A block of zstd: the bytes themselves (type 0), or one byte that is repeated (type 1). */
function zstdBlock(type: 0 | 1, length: number, bytes: Buffer) {
  const head = Buffer.alloc(3)
  head.writeUIntLE(length * 8 + type * 2, 0, 3)
  return Buffer.concat([head, bytes])
}

describe('a restore', { timeout: 90_000 }, () => {
  let target: string
  beforeEach(async () => {
    target = await newDatabase()
    await migrate(target)
  })

  const restore = async () =>
    loadBackup({ url: target, backup: await verify('mutated'), signal, onBytes: () => {}, onRows: () => {} })

  it('restores a backup of which bytes were changed, left out or repeated, or refuses it in one sentence and stores nothing', async () => {
    const names = header.tables.map(({ name }) => `"${name}"`)
    const countRows = names.map(name => `select count(*)::integer as rows from ${name}`).join(' union all ')
    const storedRows = async () => (await query(target, countRows)).reduce((sum, { rows }) => sum + Number(rows), 0)
    const change = fc.tuple(fc.nat(), fc.nat({ max: 200 }), fc.uint8Array({ maxLength: 8 }))
    const part = fc.constantFrom('header', 'compressed', 'frames')
    await fc.assert(
      fc.asyncProperty(part, change, async (which, [position, length, instead]) => {
        const mutate = (bytes: Uint8Array) => {
          const at = position % bytes.length
          return Buffer.concat([bytes.subarray(0, at), instead, bytes.subarray(at + length)])
        }
        const line = Buffer.from(JSON.stringify(header))
        const body = zstdCompressSync(which === 'frames' ? mutate(plain) : plain)
        await writeSealed(
          'mutated',
          which === 'header' ? mutate(line) : line,
          which === 'compressed' ? mutate(body) : body,
        )
        const { code, stdout, stderr } = await kith(['restore', 'mutated', '--quiet', '--json'], target)
        const rows = await storedRows()
        if (code === 0) {
          expect(JSON.parse(stdout).rows).toBe(rows)
          await query(target, `truncate ${names} restart identity`)
        } else {
          expect({ code, stdout, rows }).toEqual({ code: 1, stdout: '', rows: 0 })
          expect(stderr).toMatch(refusal)
        }
      }),
      { numRuns: 50 },
    )
  })

  it('stores nothing of a file whose tables, rows and counts do not fit together', async () => {
    const tables = header.tables.map(({ name }) => frameOf('T', name))
    const counts = Object.fromEntries(header.tables.map(({ name }) => [name, 0]))
    const end = (rows: object, sequences: object[] = []) => frameOf('E', JSON.stringify({ rows, sequences }))
    const { sequences } = JSON.parse(plain.toString('latin1', plain.lastIndexOf('{"rows":'))) as End
    const { name, columns } = header.tables[0]!
    const columnsOfChanges = header.tables.find(table => table.name === 'changes')!.columns
    const deep = `${columnsOfChanges.map(column => (column === 'after' ? '['.repeat(1_000_000) : '\\N')).join('\t')}\n`
    const others = header.tables.slice(1)
    const files: [object, Buffer[], RegExp][] = [
      [{ ...header, tables: others }, [...tables.slice(1), end({})], new RegExp(`lacks the table ${name}`)],
      [header, [end({})], /got no rows/],
      [header, [...tables.slice(1), end(counts)], /got no rows/],
      [header, [...tables, end({})], /the last frame counts none/],
      [header, [...tables, end({ ...counts, [name]: 1 })], /got 0 rows, but the last frame counts 1/],
      [header, [tables[0]!, ...tables, end(counts)], new RegExp(`has the table ${name} twice`)],
      [header, [frameOf('T', 'nowhere'), ...tables, end(counts)], /its header does not name/],
      [header, tables, /its last frame is missing/],
      [header, [...tables, end(counts), end(counts)], /goes on after its last frame/],
      [header, [...tables, frameOf('E', '{')], /in its last frame, /],
      [header, [...tables, end(counts, [{ name: 'x', last_value: '1e9', is_called: true }])], /in its last frame, /],
      [header, [...tables, end(counts)], /it lacks the sequence /],
      [
        { ...header, tables: [{ name, columns: columns.slice(1) }, ...others] },
        [...tables, end(counts)],
        new RegExp(`lacks the column ${columns[0]} of ${name}`),
      ],
      [header, [frameOf('T', name), frameOf('R', 'a\tb\n'), end(counts)], /PostgreSQL refuses the rows of/],
      [
        header,
        [frameOf('T', 'changes'), frameOf('R', deep), end(counts)],
        /PostgreSQL refuses the rows of changes \(stack/,
      ],
      [
        { ...header, tables: [{ name, columns: [...columns, 'nowhere'] }, ...others] },
        [...tables, end(counts)],
        /PostgreSQL refuses the rows of/,
      ],
      [
        header,
        [
          ...tables,
          end(
            counts,
            sequences.map(sequence => ({ ...sequence, last_value: '9999999999999999999' })),
          ),
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
    await writeSealed('mutated', header, zstdCompressSync(Buffer.concat([...tables, end(counts, sequences)])))
    expect(await restore()).toMatchObject({ rows: 0, tables: header.tables.length })
  })

  /** Starts a restore, and sends the signal when it has shown this progress. */
  async function interrupt(file: string, progress: RegExp, signal: NodeJS.Signals) {
    const { child, ended } = start(['restore', file], { DATABASE_URL: target })
    child.stderr.on('data', line => progress.test(line) && child.kill(signal))
    const { code, stdout, stderr } = await ended
    expect({ code, stdout, last: stderr.split('\n').at(-2) }).toEqual({
      code: 1,
      stdout: '',
      last: 'Stopped. Nothing was restored.',
    })
  }

  it('ends at a signal while it verifies a large file, and while it reads rows, and stores nothing', async () => {
    const before = await contentsOf(target)
    // A sparse file takes no room on the disk.
    await writeFile(pathTo('sparse'), `${JSON.stringify(header)}\n`)
    await truncate(pathTo('sparse'), 100_000_000_000)
    // Rows of a table that kith does not have are skipped: 67 GB of them, in 2 MB.
    const tables = [...header.tables, { name: 'later', columns: [] }]
    const zeros = [
      zstdBlock(0, 5, frame('R', 16_777_216)),
      ...Array<Buffer>(128).fill(zstdBlock(1, 131_072, Buffer.alloc(1))),
    ]
    const table = frameOf('T', 'later')
    const begin = Buffer.from('28b52ffd0058', 'hex')
    const body = Buffer.concat([
      begin,
      zstdBlock(0, table.length, table),
      ...Array<Buffer>(4_000).fill(Buffer.concat(zeros)),
    ])
    await writeSealed('bomb', { ...header, tables }, body)
    await Promise.all([interrupt('sparse', / MB checked, /, 'SIGTERM'), interrupt('bomb', / rows, /, 'SIGINT')])
    expect(await contentsOf(target)).toEqual(before)
  })

  it.each(['SIGTERM', 'SIGINT'] as const)('ends at %s while another session holds a lock', async signal => {
    const holder = new pg.Client({ connectionString: target })
    await holder.connect()
    try {
      await holder.query('begin')
      await holder.query('lock table organizations in access share mode')
      await writeSealed('mutated', header, zstdCompressSync(plain))
      const { child, ended } = start(['restore', 'mutated'], { DATABASE_URL: target })
      const isWaiting = `select from pg_locks where not granted and relation = 'organizations'::regclass`
      await until(async () => (await query(target, isWaiting)).length === 1)
      child.kill(signal)
      expect(await ended).toEqual({ code: 1, stdout: '', stderr: 'Stopped. Nothing was restored.\n' })
    } finally {
      await holder.end()
    }
  })
})

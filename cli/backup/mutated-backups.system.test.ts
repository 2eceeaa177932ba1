import { truncate, writeFile } from 'node:fs/promises'
import { zstdCompressSync } from 'node:zlib'
import fc from 'fast-check'
import pg from 'pg'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { migrate } from '../../src/db/migrate.ts'
import { contentsOf, useBackupFixture } from '../../test/support/backups.ts'
import { query, until } from '../../test/support/embedded-service.ts'
import { frame, frameOf, makeValidBackup, writeSealed } from '../../test/support/mutated-backups.ts'
import { someRuns } from '../../test/support/runs.ts'
import { type End, type Header, verifyBackup } from './container.ts'
import { loadBackup } from './load.ts'

const fixture = useBackupFixture()
const { kith, newFile, pathTo, newDatabase, start } = fixture
const signal = new AbortController().signal
let header: Header
let plain: Buffer

beforeAll(async () => {
  ;({ header, plain } = await makeValidBackup(fixture))
})

const writeMutated = (head: object | string, body: Uint8Array) => writeSealed(pathTo('mutated'), head, body)

const verify = (file: string) => verifyBackup(file, pathTo(file), { quiet: true }, signal)

/** One line that kith wrote. Errors of libraries begin differently. */
const refusal =
  /^(mutated (is|has) .*|The backup (is damaged: .* Use another backup|was made by .*)\.|The database has the migration .*)\n$/

/** A block of zstd: the plain bytes (type 0), or one repeated byte (type 1). */
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
        await writeMutated(which === 'header' ? mutate(line) : line, which === 'compressed' ? mutate(body) : body)
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
      someRuns(50),
    )
  })

  /** Starts a restore, and sends the signal when its output matches `progress`. */
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
    // The restore skips rows of a table that kith does not have: 67 GB of them, in 2 MB.
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
    await writeSealed(pathTo('bomb'), { ...header, tables }, body)
    await Promise.all([interrupt('sparse', / MB checked, /, 'SIGTERM'), interrupt('bomb', / rows, /, 'SIGINT')])
    expect(await contentsOf(target)).toEqual(before)
  })

  it.each(['SIGTERM', 'SIGINT'] as const)('ends at %s while another session holds a lock', async signal => {
    const holder = new pg.Client({ connectionString: target })
    await holder.connect()
    try {
      await holder.query('begin')
      await holder.query('lock table organizations in access share mode')
      await writeMutated(header, zstdCompressSync(plain))
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

it('writes a row of any length in frames that it reads', async () => {
  const url = await newDatabase()
  await query(url, 'create table long (text text)')
  await query(url, `insert into long select repeat('kith', 10000000)`)
  const file = newFile()
  expect((await kith(['backup', file], url)).code).toBe(0)
  const { frames } = await verify(file)
  for await (const _ of frames({ bytes: 0 }, signal));
})

const restore = async (url: string) =>
  loadBackup({ url, backup: await verify('mutated'), signal, progress: { bytes: 0, rows: 0 } })

it('a restore stores nothing of a file whose tables, rows and counts do not fit together', async () => {
  const target = await newDatabase()
  await migrate(target)
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
    await writeMutated(head, zstdCompressSync(Buffer.concat(frames)))
    await expect(restore(target), String(message)).rejects.toThrow(message)
  }
  expect(await contentsOf(target)).toEqual(before)
  await writeMutated(header, zstdCompressSync(Buffer.concat([...tables, end(counts, sequences)])))
  expect(await restore(target)).toMatchObject({ rows: 0, tables: header.tables.length })
})

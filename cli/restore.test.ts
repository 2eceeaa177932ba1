import { readdir, readFile, writeFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { contentsOf, forgeBackup, useBackupFixture } from '../test/support/backups.ts'
import { runInProcess } from '../test/support/command.ts'
import { query } from '../test/support/embedded-service.ts'
import { verifyBackup } from './backup/container.ts'

const ground = useBackupFixture()
const { emptyDatabase, kith, newDatabase, newFile, pathTo, serveOn } = ground

const rowsIn = async (url: string) => Object.values(await contentsOf(url)).flat().length

describe('kith restore', { timeout: 90_000 }, () => {
  it('refuses a database with rows and a backup of a newer version, and changes nothing', async () => {
    const url = await newDatabase()
    await (await serveOn(url)).organization()
    const file = newFile()
    expect((await kith(['backup', file], url)).code).toBe(0)
    const before = await contentsOf(url)
    const filled = await kith(['restore', file], url)
    expect(filled).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/^The database is not empty: /) })
    expect(await contentsOf(url)).toEqual(before)

    await query(url, `insert into migrations (name, run_on) values ('9999_later', now())`)
    const later = newFile()
    expect((await kith(['backup', later], url)).code).toBe(0)
    const target = await emptyDatabase()
    const newer = await kith(['restore', later], target)
    expect(newer).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('the migration 9999_later') })
    expect(await contentsOf(target)).toEqual({})
  })

  it('refuses a backup of an earlier beta, and says how to carry its data over', async () => {
    const url = await newDatabase()
    const file = newFile()
    expect((await kith(['backup', file], url)).code).toBe(0)
    const migrations = ['0001_house', '0002_filters']
    const ofBeta = forgeBackup(await readFile(pathTo(file)), ({ header }) => ({ header: { ...header, migrations } }))
    await writeFile(pathTo('of-beta'), ofBeta)
    const target = await emptyDatabase()
    const refused = await kith(['restore', 'of-beta'], target)
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(refused.stderr).toMatch(
      /An earlier beta of kith made the backup, .* restore it with that beta, .* by export and import/,
    )
    expect(await contentsOf(target)).toEqual({})
  })

  it('refuses a file that is damaged, cut off, too long, of another format or not a backup, before it stores anything', async () => {
    const url = await newDatabase()
    await (await serveOn(url)).organization()
    const file = newFile()
    expect((await kith(['backup', file], url)).code).toBe(0)
    const bytes = await readFile(pathTo(file))
    const flipped = (at: number) => bytes.with(at, bytes[at]! ^ 1)
    const body = bytes.indexOf(10) + 1
    const newer = bytes.toString('latin1', 0, body - 1).replace('"version":2,', '"version":3,')
    const broken: [Uint8Array, RegExp][] = [
      ...[body + 20, bytes.length - 100, bytes.length - 10, 30].map(
        at => [flipped(at), /damaged/] as [Uint8Array, RegExp],
      ),
      ...[bytes.length - 1, bytes.length - 65, bytes.length - 300, body + 1, body].map(
        end => [bytes.subarray(0, end), /damaged or incomplete/] as [Uint8Array, RegExp],
      ),
      [Buffer.concat([bytes, bytes]), /damaged/],
      [Buffer.from(`${newer}\n`), /format 3/],
      [bytes.subarray(0, 100), /not a backup/],
      [Buffer.from('hello'), /not a backup/],
      [Buffer.alloc(0), /not a backup/],
    ]
    for (const [content, pattern] of broken) {
      await writeFile(pathTo('broken'), content)
      const verified = verifyBackup('broken', pathTo('broken'), { quiet: true })
      await expect(verified).rejects.toThrow(pattern)
    }
    await writeFile(pathTo('broken'), flipped(body + 20))
    const target = await emptyDatabase()
    const refused = await kith(['restore', 'broken'], target)
    expect(refused).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/^broken is damaged[^\n]*\n$/) })
    expect(await contentsOf(target)).toEqual({})
    expect(await kith(['restore', 'nothing'], target)).toMatchObject({ code: 1, stderr: 'There is no file nothing.\n' })
  })

  it('stores nothing if a file with a correct SHA-256 is incomplete', async () => {
    const url = await newDatabase()
    await (await serveOn(url)).organization()
    const file = newFile()
    expect((await kith(['backup', file], url)).code).toBe(0)
    const bytes = await readFile(pathTo(file))
    await writeFile(
      pathTo('short'),
      forgeBackup(bytes, ({ body }) => ({ body: body.subarray(0, -200) })),
    )
    const target = await emptyDatabase()
    const { code, stderr } = await kith(['restore', 'short'], target)
    expect(code).toBe(1)
    expect(stderr).not.toMatch(/^ {4}at /m)
    expect(await rowsIn(target)).toBe(0)
    expect((await kith(['restore', file], target)).code).toBe(0)
  })
})

it('a backup has the same times, whatever the database sets for the text of dates', async () => {
  const url = await newDatabase()
  const { client } = await (await serveOn(url)).organization()
  await client.people.create({ external_id: 'ada' })
  const database = new URL(url).pathname.slice(1)
  await query(url, `alter database ${database} set datestyle = 'German'`)
  await query(url, `alter database ${database} set timezone = 'Asia/Tokyo'`)
  const [file, target] = [newFile(), await emptyDatabase()]
  expect((await kith(['backup', file], url)).code).toBe(0)
  expect((await kith(['restore', file], target)).code).toBe(0)
  const times = 'select sequence, extract(epoch from at) as at from changes order by sequence'
  expect(await query(target, times)).toEqual(await query(url, times))
})

it('a backup refuses tables that are not in the schema public, and the doctor finds them', async () => {
  const url = await newDatabase()
  const [{ role }] = (await query(url, 'select current_user as role')) as [{ role: string }]
  await query(url, `alter schema public rename to "${role}"; create schema public`)
  await query(url, `alter table "${role}".migrations set schema public`)
  expect(await kith(['backup', newFile()], url)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^The tables of kith are not in the schema public/),
  })
  const { code, stdout } = await kith(['doctor'], url)
  expect([code, stdout]).toEqual([
    1,
    expect.stringMatching(/wrong {4}migrations +the tables of kith are not in the schema/),
  ])
  // The statements of docs/backups.md.
  await query(url, `alter schema public rename to public_before; alter schema "${role}" rename to public`)
  await query(url, 'alter table public_before.migrations set schema public')
  expect((await kith(['backup', newFile()], url)).code).toBe(0)
})

it('a backup file is not created if there is nothing to back up', async () => {
  const nothing = await kith(['backup', newFile()], await emptyDatabase())
  expect(nothing).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/^There is nothing to back up/),
  })
  const dataDir = pathTo('none')
  const none = await runInProcess(['backup', newFile()], { KITH_DATA_DIR: dataDir }, ground.folder)
  expect(none).toMatchObject({ code: 1, stderr: expect.stringMatching(/^There is nothing to back up/) })
  expect(await readdir(ground.folder)).not.toContain('none')
})

it('a folder, and an empty name, are refused before anything is read', async () => {
  const target = await emptyDatabase()
  for (const words of [
    ['backup', ground.folder],
    ['backup', ground.folder, '--force'],
    ['backup', ''],
  ])
    expect(await kith(words, target)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^Give the name of a file: ".*" is (a folder|empty)\.$/m),
    })
  for (const [word, code] of [
    ['restore', 1],
    ['verify', 2],
  ] as const)
    expect(await kith([word, ground.folder], target)).toMatchObject({
      code,
      stderr: expect.stringContaining(`${ground.folder} is a folder. Give the name of a file.`),
    })
})

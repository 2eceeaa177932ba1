import { Readable } from 'node:stream'
import { zstdCompressSync } from 'node:zlib'
import { beforeAll, expect, it } from 'vitest'
import { useBackupFixture } from '../../test/support/backups.ts'
import { frame, frameOf, makeValidBackup, writeSealed } from '../../test/support/mutated-backups.ts'
import { type Header, verifyBackup } from './container.ts'

const fixture = useBackupFixture()
const { pathTo } = fixture
const signal = new AbortController().signal
let header: Header
let plain: Buffer

beforeAll(async () => {
  ;({ header, plain } = await makeValidBackup(fixture))
})

const writeMutated = (head: object | string, body: Uint8Array) => writeSealed(pathTo('mutated'), head, body)

const verify = (file: string) => verifyBackup(file, pathTo(file), { quiet: true }, signal)

async function readAll(file: string) {
  const { frames } = await verify(file)
  let count = 0
  for await (const _ of frames({ bytes: 0 }, signal)) count += 1
  return count
}

it('refuses a header that lacks a member or has one of another type', async () => {
  const body = zstdCompressSync(plain)
  const members = Object.keys(header).filter(key => key !== 'format') as (keyof Header)[]
  for (const member of members)
    for (const value of [undefined, null, 7, 'text', [], [7], [{}], {}]) {
      if (typeof value === typeof header[member] && value !== null && !Array.isArray(header[member])) continue
      await writeMutated({ ...header, [member]: value }, body)
      await expect(verify('mutated'), `${member}: ${JSON.stringify(value)}`).rejects.toThrow(
        /^mutated (is damaged|has format)/,
      )
    }
})

it('refuses a header that has a member or a table twice, however many tables it has', async () => {
  const tables = Array.from({ length: 50_000 }, (_, index) => ({ name: `t${index}`, columns: [] }))
  await writeMutated({ ...header, tables: [...tables, tables[0]] }, Buffer.alloc(0))
  await expect(verify('mutated')).rejects.toThrow('its header has "t0" twice')
  const text = JSON.stringify(header).replace('"migrations":', '"migrations":["0001_organizations"],"migrations":')
  await writeMutated(text, Buffer.alloc(0))
  await expect(verify('mutated')).rejects.toThrow('its header has "migrations" twice')
})

it('shows names of a backup without the characters that move the cursor', async () => {
  const hidden = 'a\u001b[2J\n\u202eb'
  await writeMutated({ ...header, version: 99, kith: hidden }, Buffer.alloc(0))
  await expect(verify('mutated')).rejects.toThrow(/kith a\\u\{1b\}\[2J\\u\{a\}\\u\{202e\}b or newer/)
  await writeMutated({ ...header, kith: hidden }, Buffer.alloc(0))
  await expect(verify('mutated')).rejects.toThrow('in its header, header/kith must match pattern')
  await writeMutated(header, zstdCompressSync(frameOf('E', JSON.stringify({ rows: { [hidden]: -1 } }))))
  await expect(readAll('mutated')).rejects.toThrow(/^The backup is damaged: [^\p{Cc}\p{Cf}]+$/u)
})

it('passes the rows of a frame on as they arrive', async () => {
  const body = Buffer.concat([frameOf('T', 'x'), frame('R', 16_777_216, Buffer.alloc(1_000_000))])
  await writeMutated(header, zstdCompressSync(body))
  const frames = (await verify('mutated')).frames({ bytes: 0 }, signal)
  await frames.next()
  expect((await frames.next()).value).toMatchObject({ type: 'rows' })
  await expect(Readable.from(frames).toArray()).rejects.toThrow('it ends within a frame')
})

it('refuses a frame that claims more than 16 MiB before it is read', async () => {
  for (const letter of ['T', 'R', 'E', 'X']) {
    await writeMutated(header, zstdCompressSync(frame(letter, 1_600_000_000, Buffer.alloc(100_000))))
    await expect(readAll('mutated')).rejects.toThrow(
      'a frame claims 1600000000 bytes, and at most 16777216 are possible',
    )
  }
})

it('stops within a frame when the signal aborts', async () => {
  const controller = new AbortController()
  const body = frame('R', 16_000_000, Buffer.alloc(16_000_000))
  await writeMutated(header, zstdCompressSync(Buffer.concat([frameOf('T', 'x'), body, body])))
  const reading = async () => {
    for await (const { type } of (await verify('mutated')).frames({ bytes: 0 }, controller.signal))
      if (type === 'rows') controller.abort()
  }
  await expect(reading()).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }))
})

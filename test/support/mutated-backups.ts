import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { zstdDecompressSync } from 'node:zlib'
import { expect } from 'vitest'
import type { Header } from '../../cli/backup/container.ts'
import type { BackupFixture } from './backups.ts'

/** A valid backup: its header, and its frames without compression. */
export type ValidBackup = { header: Header; plain: Buffer }

/** Makes a backup of a small database. Its header is that of a file without a signature. */
export async function makeValidBackup(fixture: BackupFixture): Promise<ValidBackup> {
  const { kith, newDatabase, newFile, pathTo, serveOn } = fixture
  const url = await newDatabase()
  const { client } = await (await serveOn(url)).organization()
  const attribute_values = { city: 'a\tb\\c\nd' }
  await client.people.create({ external_id: 'ada', email: 'ada@example.com', attribute_values })
  const file = newFile()
  expect((await kith(['backup', file], url)).code).toBe(0)
  const bytes = await readFile(pathTo(file))
  const body = bytes.indexOf(10) + 1
  const { signed_by, ...unsigned } = JSON.parse(bytes.toString('utf8', 0, body))
  const plain = zstdDecompressSync(bytes.subarray(body, bytes.length - (signed_by ? 194 : 65)))
  return { header: { ...unsigned, version: 1 }, plain }
}

/** Writes a file whose SHA-256 is correct for any content. */
export async function writeSealed(path: string, head: object | string, body: Uint8Array): Promise<void> {
  const line = typeof head === 'string' || head instanceof Buffer ? head : JSON.stringify(head)
  const bytes = Buffer.concat([Buffer.from(line), Buffer.from('\n'), body])
  const trailer = `${createHash('sha256').update(bytes).digest('hex')}\n`
  await writeFile(path, Buffer.concat([bytes, Buffer.from(trailer)]))
}

/** A frame that claims a length. */
export function frame(letter: string, length: number, payload: string | Uint8Array = ''): Buffer {
  const head = Buffer.alloc(5)
  head.write(letter)
  head.writeUInt32BE(length, 1)
  return Buffer.concat([head, Buffer.from(payload)])
}

export const frameOf = (letter: string, payload: string) => frame(letter, Buffer.byteLength(payload), payload)

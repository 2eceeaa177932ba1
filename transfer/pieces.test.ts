import fc from 'fast-check'
import { expect, it } from 'vitest'
import { encodingOf, toUtf8 } from './pieces.ts'

/** Reads bytes as a CSV file, in pieces of this length. */
async function read(bytes: Uint8Array, { named, length = 7 }: { named?: string; length?: number } = {}) {
  async function* pieces() {
    for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length)
  }
  let encoding: string | undefined
  const parts: Uint8Array[] = []
  const found = (name: string) => {
    encoding = name
  }
  for await (const part of toUtf8('a.csv', pieces(), { named, isGuessed: true, found })) parts.push(part)
  return { text: Buffer.concat(parts).toString(), encoding }
}

const letters = fc.string({ unit: fc.constantFrom('a', 'ä', 'é', 'ß', ',', '\n', '"'), maxLength: 200 })

it('reads the same text from UTF-8 and from windows-1252, with and without a mark', async () => {
  await fc.assert(
    fc.asyncProperty(letters, fc.integer({ min: 1, max: 50 }), async (ending, length) => {
      const text = `name,city\n${ending}`
      const [utf8, latin1] = [Buffer.from(text), Buffer.from(text, 'latin1')]
      expect((await read(utf8, { length })).text).toBe(text)
      expect((await read(latin1, { length })).text).toBe(text)
      const marked = Buffer.from(`\ufeff${text}`)
      expect(await read(marked, { length, named: 'windows-1252' })).toEqual({ text, encoding: 'utf-8' })
      const utf16 = Buffer.from(`\ufeff${text}`, 'utf16le')
      expect(await read(utf16, { length, named: 'windows-1252' })).toEqual({ text, encoding: 'utf-16le' })
      expect((await read(utf16.subarray(2), { length })).text).toBe(text)
    }),
  )
})

it('never takes UTF-8 for another encoding, also not if its last character is cut off', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), fc.nat(3), (text, cut) => {
      const bytes = new TextEncoder().encode(text)
      expect(encodingOf(bytes.subarray(0, Math.max(1, bytes.length - cut)), cut === 0)).toBe('utf-8')
    }),
  )
})

it('takes a file in UTF-8 with a fault as UTF-8, so that the line of the fault is refused', () => {
  expect(encodingOf(Buffer.concat([Buffer.from('äöü'), Buffer.from([0xe4]), Buffer.from(',x')]), true)).toBe('utf-8')
})

it('throws if the bytes are letters of DOS, which windows-1252 does not have', async () => {
  await expect(read(Buffer.from('J\x81rgen', 'latin1'))).rejects.toThrow(/a\.csv cannot be found.*--encoding/)
})

import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type Line, linesOf } from './lines.ts'
import { batchStream } from './streams.ts'

async function* cut(bytes: Buffer, sizes: number[]): AsyncGenerator<Buffer> {
  let at = 0
  for (let n = 0; at < bytes.length; n += 1) {
    const size = sizes[n % sizes.length]!
    yield bytes.subarray(at, at + size)
    at += size
  }
}

async function arrayOf<T>(source: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const value of source) found.push(value)
  return found
}

async function all(bytes: Buffer, sizes: number[], lineBytes: number): Promise<Line[]> {
  return (await arrayOf(linesOf(cut(bytes, sizes), lineBytes))).flat()
}

const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 })
const text = fc.stringMatching(/^[ab \t]{0,12}$/)
const ending = fc.constantFrom('\n', '\r\n')

it('splits bytes into the same lines however they are chunked, without blank lines and the text of long ones', () =>
  fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(text, ending)), text, sizes, async (lines, last, sizes) => {
      const bytes = Buffer.from(lines.map(([line, ending]) => line + ending).join('') + last)
      const expected = [...lines.map(([line]) => line), last].flatMap((line, index) =>
        line.trim() === '' && line.length <= 8 ? [] : [{ number: index + 1, text: line.length > 8 ? undefined : line }],
      )
      const found = await all(bytes, sizes, 8)
      expect(found.map(({ number, text }) => ({ number, text: text?.toString() }))).toEqual(expected)
    }),
  ))

it('batches all items in order, within the limits', () =>
  fc.assert(
    fc.asyncProperty(fc.array(fc.array(fc.integer({ min: 0, max: 6 }))), async parts => {
      const source = async function* () {
        for (const part of parts) yield part.map(bytes => ({ bytes }))
      }
      const found = await arrayOf(batchStream(source(), { items: 3, bytes: 8 }))
      expect(found.flat()).toEqual(parts.flat().map(bytes => ({ bytes })))
      for (const part of found) {
        expect(part.length).toBeLessThanOrEqual(3)
        const bytes = part.reduce((sum, item) => sum + item.bytes, 0)
        expect(part.length === 1 || bytes <= 8).toBe(true)
      }
    }),
  ))

it('throws an error of the source', async () => {
  const source = async function* () {
    yield [{ bytes: 1 }]
    throw new Error('gone')
  }
  await expect(arrayOf(batchStream(source(), { items: 3, bytes: 8 }))).rejects.toThrow('gone')
})

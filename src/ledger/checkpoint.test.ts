import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isKeyName, parseCheckpoint, parseNote } from '../../client/src/ledger-proof.ts'
import { FormatError } from '../../client/src/ledger-text.ts'
import { formatCheckpoint } from './note.ts'

/** The example of https://c2sp.org/tlog-checkpoint. */
const text = 'example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n'
const example = `${text}
— example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=
`
const root = 'CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I='

describe('A checkpoint', () => {
  it('of the specification is parsed, and formatted to the same text', () => {
    const checkpoint = parseCheckpoint(parseNote(example).text)
    expect(checkpoint).toEqual({
      origin: 'example.com/behind-the-sofa',
      size: 20_852_163,
      rootHash: new Uint8Array(Buffer.from(root, 'base64')),
    })
    expect(formatCheckpoint(checkpoint)).toBe(text)
  })

  it('is parsed and formatted to the same text', () => {
    const checkpoints = fc.record({
      origin: fc.string({ unit: 'grapheme', minLength: 1 }).filter(isKeyName),
      size: fc.maxSafeNat(),
      rootHash: fc.uint8Array({ minLength: 32, maxLength: 32 }),
    })
    fc.assert(
      fc.property(checkpoints, checkpoint => {
        expect(parseCheckpoint(formatCheckpoint(checkpoint))).toEqual(checkpoint)
      }),
    )
  })

  it('of another log may have extension lines', () => {
    expect(parseCheckpoint(`${text}one\ntwo\n`)).toEqual(parseCheckpoint(text))
  })

  it.each([
    ['', 'three lines'],
    ['\n', 'three lines'],
    ['log\n1\n', 'three lines'],
    [`log\n1\n${root}`, 'does not end with a newline'],
    [`\n1\n${root}\n`, 'an empty line'],
    [`log\n1\n${root}\n\n`, 'an empty line'],
    [`log\n\n1\n${root}\n`, 'an empty line'],
    [`log\n01\n${root}\n`, 'The size'],
    [`log\n-1\n${root}\n`, 'The size'],
    [`log\n+1\n${root}\n`, 'The size'],
    [`log\n1.0\n${root}\n`, 'The size'],
    [`log\n1e3\n${root}\n`, 'The size'],
    [`log\n0x1\n${root}\n`, 'The size'],
    [`log\n 1\n${root}\n`, 'The size'],
    [`log\n١\n${root}\n`, 'The size'],
    [`log\n9007199254740992\n${root}\n`, 'up to 2^53 - 1'],
    [`log\n18446744073709551616\n${root}\n`, 'up to 2^53 - 1'],
    [`log\r\n1\r\n${root}\r\n`, 'The size'],
    ['log\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2J=\n', 'The root hash'],
    ['log\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I\n', 'The root hash'],
    ['log\n1\nCsUYapGGPo4dkMgIAUqom_Xajj7h2fB2MPA3j2jxq2I=\n', 'The root hash'],
    ['log\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jx\n', 'The root hash'],
    [`log\n1\n ${root}\n`, 'The root hash'],
  ])('is refused as %j', (malformed, message) => {
    expect(() => parseCheckpoint(malformed)).toThrow(FormatError)
    expect(() => parseCheckpoint(malformed)).toThrow(message)
  })

  it('is refused with a size of a million digits', () => {
    expect(() => parseCheckpoint(`log\n${'9'.repeat(1_000_000)}\n${root}\n`)).toThrow('up to 2^53 - 1')
  })

  it('is not formatted with an origin that cannot name a key, with a wrong size or a wrong root hash', () => {
    const rootHash = Buffer.alloc(32)
    expect(() => formatCheckpoint({ origin: 'a b', size: 1, rootHash })).toThrow(FormatError)
    expect(() => formatCheckpoint({ origin: 'log', size: -1, rootHash })).toThrow(RangeError)
    expect(() => formatCheckpoint({ origin: 'log', size: 2 ** 53, rootHash })).toThrow(RangeError)
    expect(() => formatCheckpoint({ origin: 'log', size: 1, rootHash: Buffer.alloc(31) })).toThrow(RangeError)
  })
})

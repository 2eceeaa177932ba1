import { sign } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatCheckpoint, formatProof, formatVerifierKey, signNote } from '../../src/ledger/note.ts'
import type { Receipt, UnsignedReceipt } from '../../src/ledger/receipts.ts'
import { signReceipt } from '../../src/ledger/receipts.ts'
import { entry, fixedKey, names, origin, receiptOf, text } from '../../test/support/receipts.ts'
import { type ReceiptError, type VerifyReceiptOptions as VerifyOptions, verifyReceipt } from '../index.ts'
import { findRepeatedMember } from '../src/distinct-members.ts'
import { parseProof } from '../src/ledger-proof.ts'

const bytesOf = (value: unknown) => Buffer.from(JSON.stringify(value))
const verify = (receipt: unknown, options?: VerifyOptions) => verifyReceipt(bytesOf(receipt), options)

/** The error of a receipt that must not verify. */
async function refusalOf(bytes: Uint8Array, options?: VerifyOptions): Promise<ReceiptError> {
  const outcome = await verifyReceipt(bytes, options).catch((error: ReceiptError) => error)
  if (!(outcome instanceof Error)) throw new Error(`verified: ${Buffer.from(bytes).toString()}`)
  expect(outcome).toMatchObject({ name: 'ReceiptError', part: expect.any(String) })
  return outcome
}

const refusalOfReceipt = (receipt: unknown, options?: VerifyOptions) => refusalOf(bytesOf(receipt), options)

/** A text with one bit of one of its characters inverted. */
function withOtherBit(value: string, position: number): string {
  const bytes = Buffer.from(value)
  const bit = position % (bytes.length * 8)
  bytes[bit >> 3]! ^= 1 << (bit & 7)
  return bytes.toString()
}

describe('A receipt', () => {
  it('proves its entry, the log and the key', async () => {
    const receipt = await receiptOf()
    expect(await verify(receipt)).toEqual({
      entry,
      key: receipt.verifier_key,
      origin,
      index: 4,
      size: 7,
      root_hash: parseProof(receipt.tlog_proof).checkpoint.split('\n')[2],
      text: 'stated',
    })
  })

  it('of every entry of logs of up to 20 entries verifies', async () => {
    for (let size = 1; size <= 20; size++)
      for (let index = 0; index < size; index++)
        expect(await verify(await receiptOf({ size, index }))).toMatchObject({ size, index })
  })

  it('verifies in any order of its members and with any spaces', async () => {
    const receipt = await receiptOf()
    const members = fc.shuffledSubarray(Object.entries(receipt), { minLength: Object.keys(receipt).length })
    await fc.assert(
      fc.asyncProperty(members, fc.nat({ max: 8 }), async (shuffled, spaces) => {
        const bytes = Buffer.from(JSON.stringify(Object.fromEntries(shuffled), undefined, spaces))
        expect(await verifyReceipt(bytes)).toMatchObject({ index: 4 })
      }),
      { numRuns: 20 },
    )
  })

  it('verifies within the envelope of the response that had it, and in no other', async () => {
    expect(await verify({ status: 'Success', data: await receiptOf() })).toMatchObject({ index: 4 })
    for (const foreign of [{ warnings: [] }, { entry: { state: false } }])
      await expect(verify({ status: 'Success', data: await receiptOf(), ...foreign })).rejects.toThrow(
        'which no signature covers',
      )
  })

  it('is refused with the name of the member of which any bit was changed', async () => {
    const receipt = await receiptOf()
    const texts = ['dct:identifier', 'dct:created', 'salt', 'tlog_proof', 'verifier_key', 'jws'] as const
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...texts), fc.nat(), async (member, position) => {
        const changed = { ...receipt, [member]: withOtherBit(receipt[member] as string, position) }
        expect((await refusalOfReceipt(changed)).part).toBe(member)
      }),
      { numRuns: 300 },
    )
  })

  it('is refused with the name of the entry if any of its members was changed, added or removed', async () => {
    const receipt = await receiptOf()
    const values = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null))
    const member = fc.oneof(fc.constantFrom(...Object.keys(entry)), fc.string())
    await fc.assert(
      fc.asyncProperty(member, values, async (name, value) => {
        fc.pre((entry as Record<string, unknown>)[name] !== value && name !== '__proto__')
        expect((await refusalOfReceipt({ ...receipt, entry: { ...entry, [name]: value } })).part).toBe('entry')
      }),
      { numRuns: 100 },
    )
    for (const removed of Object.keys(entry)) {
      const { [removed as 'at']: _, ...rest } = entry
      expect((await refusalOfReceipt({ ...receipt, entry: rest })).part).toBe('entry')
    }
  })

  it('is refused if any bit of its file is another', async () => {
    const receipt = await receiptOf()
    const bytes = bytesOf(receipt)
    await fc.assert(
      fc.asyncProperty(fc.nat({ max: bytes.length * 8 - 1 }), async bit => {
        const changed = Buffer.from(bytes)
        changed[bit >> 3]! ^= 1 << (bit & 7)
        await refusalOf(changed)
      }),
      { numRuns: 500 },
    )
  })

  it('is refused with a description that was changed, a member that was added and one that was removed', async () => {
    const receipt = await receiptOf()
    const record = receipt['dpv:hasRecordOfActivity'] as object
    const other = { ...receipt, 'dpv:hasRecordOfActivity': { ...record, 'dpv:hasLegalBasis': 'eu-gdpr:A6-1-f' } }
    expect(await refusalOfReceipt(other)).toMatchObject({
      part: 'dpv:hasRecordOfActivity',
      message: 'The member dpv:hasRecordOfActivity was changed after the receipt was signed.',
    })
    expect(await refusalOfReceipt({ ...receipt, note: 'paid' })).toMatchObject({
      part: 'note',
      message: expect.stringMatching(/was added/),
    })
    const { '@type': _, ...rest } = receipt
    expect(await refusalOfReceipt(rest)).toMatchObject({ part: '@type', message: expect.stringMatching(/was removed/) })
  })

  it.each(['entry', 'salt', 'tlog_proof', 'verifier_key', 'jws'])('is refused without its member %s', async member => {
    const { [member]: _, ...rest } = await receiptOf()
    expect(await refusalOfReceipt(rest)).toMatchObject({
      part: member,
      message: `The receipt has no member ${member}.`,
    })
    for (const value of [null, 7, [], { a: 1 }])
      if (member !== 'entry' || !isPlainObject(value))
        expect((await refusalOfReceipt({ ...rest, [member]: value })).part).toBe(member)
  })

  it.each([
    ['nothing', ''],
    ['other bytes than UTF-8', Buffer.of(0xff)],
    ['a list', '[]'],
    ['a text', '"receipt"'],
    ['null', 'null'],
    ['half an object', '{"entry":'],
    ['more than 1 MiB', ' '.repeat(1_048_577)],
  ])('is refused as %s', async (_, content) => {
    expect((await refusalOf(Buffer.from(content))).part).toBe('receipt')
  })

  it('is refused with a key other than the given one', async () => {
    const receipt = await receiptOf()
    const other = formatVerifierKey(origin, fixedKey('another key'))
    expect(await verify(receipt, { key: receipt.verifier_key })).toMatchObject({ index: 4 })
    expect(await refusalOfReceipt(receipt, { key: other })).toMatchObject({
      part: 'verifier_key',
      message: expect.stringMatching(/not by the key/),
    })
    expect(await refusalOfReceipt(receipt, { key: 'kith' })).toMatchObject({ part: 'key' })
    expect(await refusalOfReceipt({ ...receipt, verifier_key: other })).toMatchObject({ part: 'jws' })
  })

  it('is refused in another format', async () => {
    const receipt = await resigned(await receiptOf(), { 'dct:conformsTo': 'kith consent receipt 2' })
    expect((await refusalOfReceipt(receipt)).part).toBe('dct:conformsTo')
  })
})

/** All objects of a value, at every depth. */
function objectsOf(value: unknown): object[] {
  if (typeof value !== 'object' || value === null) return []
  const within = Object.values(value).flatMap(objectsOf)
  return Array.isArray(value) ? within : [value, ...within]
}

/** The value as JSON. The object `within` has the member a second time, first or last, with this value. */
function withSecondMember(value: unknown, within: object, name: string, other: unknown, isFirst: boolean): string {
  const mark = '<second>'
  const marked = JSON.stringify(value, (_, each) => {
    if (each !== within) return each
    return isFirst ? { [mark]: 0, ...each } : { ...each, [mark]: 0 }
  })
  const escaped = `"\\u${name.charCodeAt(0).toString(16).padStart(4, '0')}${JSON.stringify(name.slice(1)).slice(1)}`
  return marked.replace(`"${mark}":0`, () => `${isFirst ? JSON.stringify(name) : escaped}:${JSON.stringify(other)}`)
}

describe('A receipt with a member twice', () => {
  it('is refused at every depth, also if both are equal or one has an escape', async () => {
    const envelope = { status: 'Success', data: await receiptOf() }
    const places = objectsOf(envelope).flatMap(within => Object.keys(within).map(name => ({ within, name })))
    const values = fc.oneof(fc.constant(undefined), fc.jsonValue())
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...places), values, fc.boolean(), async ({ within, name }, other, isFirst) => {
        const own = (within as Record<string, unknown>)[name]
        const text = withSecondMember(envelope, within, name, other ?? own, isFirst)
        expect(await refusalOf(Buffer.from(text))).toMatchObject({
          part: 'receipt',
          message: `An object of the receipt has the member ${JSON.stringify(name)} twice. Programs differ in which of the two they read.`,
        })
      }),
      { numRuns: 300 },
    )
  })

  it('is refused if the header or the content of its signature has one', async () => {
    const receipt = await receiptOf()
    const signed = (header: string, payload: string) => {
      const parts = [header, payload].map(part => Buffer.from(part).toString('base64url')).join('.')
      return { ...receipt, jws: `${parts}.${sign(null, Buffer.from(parts), fixedKey('key')).toString('base64url')}` }
    }
    const [header, payload] = receipt.jws.split('.').map(part => Buffer.from(part, 'base64url').toString())
    expect(await verify(signed(header!, payload!))).toMatchObject({ index: 4 })
    for (const [wrong, message] of [
      [
        signed(header!, payload!.replace('{', '{"entry":"x",')),
        'An object of the content of the signature has the member "entry" twice',
      ],
      [
        signed(header!.replace('{', '{"alg":"none",'), payload!),
        'An object of the header of the signature has the member "alg" twice',
      ],
      [signed(header!, 'entry'), 'The content of the signature is not JSON in UTF-8.'],
      [signed(header!, 'null'), 'The content of the signature is not a JSON object.'],
      [signed('[]', payload!), 'The header of the signature is not a JSON object.'],
    ] as const)
      expect(await refusalOfReceipt(wrong)).toMatchObject({ part: 'jws', message: expect.stringContaining(message) })
  })

  it('is found in every JSON text', () => {
    fc.assert(fc.property(fc.json(), text => findRepeatedMember(text) === undefined))
    const twice = [
      '{"a":1,"a":1}',
      '[{"b":{"a":[{}, {"":0 , "a" :{"a":1},"\\u0061":2}]}}]',
      '{"x\\"":":","a":[],"a":{}}',
    ]
    for (const text of twice) expect(findRepeatedMember(text)).toBe('a')
    expect(findRepeatedMember('{"a":{"a":["a","a"]},"b":{"a":":"}}')).toBeUndefined()
  })
})

describe('A receipt that its signer made wrong', () => {
  it('with an entry that the log does not have is refused', async () => {
    const receipt = await receiptOf()
    for (const change of [{ entry: { ...entry, state: false } }, { salt: Buffer.alloc(32).toString('base64') }])
      expect(await refusalOfReceipt(await resigned(receipt, change))).toMatchObject({
        part: 'tlog_proof',
        message: expect.stringMatching(/the entry is not in the log/),
      })
    const proof = parseProof(receipt.tlog_proof)
    for (const wrong of [{ index: 3 }, { hashes: proof.hashes.slice(1) }, { hashes: proof.hashes.toReversed() }])
      expect(
        (await refusalOfReceipt(await resigned(receipt, { tlog_proof: formatProof({ ...proof, ...wrong }) }))).part,
      ).toBe('tlog_proof')
  })

  it('with a checkpoint of another log, or by another key, is refused', async () => {
    const receipt = await receiptOf()
    const proof = parseProof(receipt.tlog_proof)
    const [, size, root] = proof.checkpoint.split('\n')
    const note = (name: string) =>
      formatCheckpoint({ origin: name, size: Number(size), rootHash: Buffer.from(root!, 'base64') })
    const foreign = signNote(note('kith/other'), [{ name: origin, privateKey: fixedKey('key') }])
    const unknown = signNote(note(origin), [{ name: origin, privateKey: fixedKey('another key') }])
    for (const [checkpoint, message] of [
      [foreign, /is of the log kith\/other/],
      [unknown, /is not signed by the key/],
    ] as const)
      expect(
        await refusalOfReceipt(await resigned(receipt, { tlog_proof: formatProof({ ...proof, checkpoint }) })),
      ).toMatchObject({ part: 'tlog_proof', message })
  })

  it('with a text whose hash the log did not seal is refused', async () => {
    const other = { ...names, text: { ...names.text!, text: 'Yes, send me everything.' } }
    expect(await refusalOfReceipt(await receiptOf({ names: other }))).toMatchObject({
      part: 'dpv:hasRecordOfActivity',
      message: 'The text of the receipt is not the one whose hash the log sealed.',
    })
  })
})

describe('The text of a receipt', () => {
  const { text_version, text_sha256, ...withoutText } = entry

  it('is proved by its hash in the entry', async () => {
    const receipt = await receiptOf()
    expect(await verify(receipt, { text: Buffer.from(text) })).toMatchObject({ text: 'given' })
    expect(await refusalOfReceipt(receipt, { text: Buffer.from(`${text}\n`) })).toMatchObject({ part: 'text' })
  })

  it('is proved by the entry alone if the receipt does not state it', async () => {
    const receipt = await receiptOf({ names: { ...names, text: null } })
    expect(await verify(receipt)).toMatchObject({ text: 'none' })
    expect(await verify(receipt, { text: Buffer.from(text) })).toMatchObject({ text: 'given' })
  })

  it('is not proved if the entry names none', async () => {
    const receipt = await receiptOf({ entry: withoutText, names: { ...names, text: null } })
    expect(await verify(receipt)).toMatchObject({ text: 'none' })
    expect(await refusalOfReceipt(receipt, { text: Buffer.from(text) })).toMatchObject({
      part: 'text',
      message: expect.stringMatching(/names no text/),
    })
  })
})

const isPlainObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)

/** A receipt with other members, signed again by the same key. */
async function resigned(receipt: Receipt, changes: Partial<Receipt>): Promise<Receipt> {
  const { jws: _, ...members } = { ...receipt, ...changes }
  return signReceipt(members as UnsignedReceipt, { kid: 'example', privateKey: fixedKey('key') })
}

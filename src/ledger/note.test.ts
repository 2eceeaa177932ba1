import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isKeyName, parseNote, parseVerifierKey, verifyNote } from '../../client/src/ledger-proof.ts'
import { FormatError } from '../../client/src/ledger-text.ts'
import { formatVerifierKey, type SignerKey, signNote } from './note.ts'

/** The example of https://c2sp.org/signed-note. */
const example = {
  key: 'example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k',
  text: 'This is an example message.\n',
  signature:
    '— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n',
}

/** The example of golang.org/x/mod/sumdb/note. */
const peter = {
  name: 'PeterNeumann',
  key: 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW',
  text: "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n",
  signature:
    '— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n',
}
const enochSignature =
  '— EnochRoot rwz+eBzmZa0SO3NbfRGzPCpDckykFXSdeX+MNtCOXm2/5n2tiOHp+vAF1aGrQ5ovTG01oOTGwnWLox33WWd1RvMc+QQ=\n'
const enochKey = 'EnochRoot+af0cfe78+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop'

const noteOf = ({ text, signature }: { text: string; signature: string }) => `${text}\n${signature}`

function privateKeyOf(seed: Uint8Array): KeyObject {
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed])
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
}

const names = fc.string({ unit: 'grapheme', minLength: 1 }).filter(isKeyName)
const keys = fc.uint8Array({ minLength: 32, maxLength: 32 }).map(privateKeyOf)
const signers: fc.Arbitrary<SignerKey> = fc.record({ name: names, privateKey: keys })
const verifierOf = ({ name, privateKey }: SignerKey) => parseVerifierKey(formatVerifierKey(name, privateKey))
const texts = fc
  .array(fc.string({ unit: 'grapheme' }).filter(line => !/\p{Cc}/u.test(line)))
  .map(lines => lines.map(line => `${line}\n`).join('') || '\n')

describe('A signed note', () => {
  it('of the specification verifies with the key of the specification', async () => {
    expect(await verifyNote(noteOf(example), [await parseVerifierKey(example.key)])).toBe(example.text)
  })

  it('is signed as the Go library signs it', () => {
    const privateKey = privateKeyOf(Buffer.from('AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz', 'base64').subarray(1))
    expect(signNote(peter.text, [{ name: peter.name, privateKey }])).toBe(noteOf(peter))
    expect(formatVerifierKey(peter.name, privateKey)).toBe(peter.key)
  })

  it('verifies with the keys that signed it, and keeps its text', async () => {
    await fc.assert(
      fc.asyncProperty(texts, fc.array(signers, { minLength: 1, maxLength: 3 }), async (text, all) => {
        const note = signNote(text, all)
        for (const signer of all) expect(await verifyNote(note, [await verifierOf(signer)])).toBe(text)
      }),
    )
  })

  it('is refused if any of its bits is another', async () => {
    await fc.assert(
      fc.asyncProperty(texts, signers, fc.nat(), async (text, signer, position) => {
        const bytes = Buffer.from(signNote(text, [signer]))
        const bit = position % (bytes.length * 8)
        bytes[bit >> 3]! ^= 1 << (bit & 7)
        const verifying = verifyNote(new TextDecoder().decode(bytes), [await verifierOf(signer)])
        await expect(verifying).rejects.toThrow(FormatError)
      }),
    )
  })

  it('is accepted with signatures of unknown keys, among them keys with the name or the ID of a known one', async () => {
    const known = await parseVerifierKey(example.key)
    const line = example.signature.trimEnd()
    const withOtherName = `${line.replace('example.com/foo', 'example.com/bar')}\n`
    const withOtherId = `${line.replace(' Uw2Q', ' Uw2R')}\n`
    const note = noteOf({ ...example, signature: withOtherName + withOtherId + enochSignature + example.signature })
    expect(await verifyNote(note, [known])).toBe(example.text)
    const unsigned = noteOf({ ...example, signature: withOtherName + withOtherId })
    await expect(verifyNote(unsigned, [known])).rejects.toThrow(
      'The note is not signed by the key example.com/foo+530d903a.',
    )
  })

  it('is refused if one of the known keys signed it wrongly, even if another signed it well', async () => {
    const known = [await parseVerifierKey(peter.key), await parseVerifierKey(enochKey)]
    expect(await verifyNote(noteOf({ ...peter, signature: peter.signature + enochSignature }), known)).toBe(peter.text)
    const wrong = enochSignature.replace('WWd1RvMc', 'WWd1RvMd')
    await expect(verifyNote(noteOf({ ...peter, signature: peter.signature + wrong }), known)).rejects.toThrow(
      'The signature of the note by the key EnochRoot+af0cfe78 is wrong.',
    )
  })

  it('is refused if a key signed it twice and the second signature is wrong', async () => {
    const wrong = peter.signature.replace('RyyBwJnAM', 'RyyBwJnAN')
    const known = [await parseVerifierKey(peter.key)]
    expect(await verifyNote(noteOf({ ...peter, signature: peter.signature.repeat(2) }), known)).toBe(peter.text)
    await expect(verifyNote(noteOf({ ...peter, signature: peter.signature + wrong }), known)).rejects.toThrow(
      FormatError,
    )
  })

  it('separates the text from the signatures at the last blank line', () => {
    const [text, signer] = ['one\n\ntwo\n', { name: 'log', privateKey: generateKeyPairSync('ed25519').privateKey }]
    expect(parseNote(signNote(text, [signer])).text).toBe(text)
  })

  it.each([
    ['no blank line', peter.text + peter.signature, 'no blank line'],
    ['no signature', `${peter.text}\n`, 'no signature'],
    ['no newline at its end', noteOf(peter).trimEnd(), 'does not end with a newline'],
    ['carriage returns', noteOf(peter).replaceAll('\n', '\r\n'), 'control character'],
    ['a tab', noteOf({ ...peter, text: 'a\tb\n' }), 'control character'],
    ['a null character', noteOf({ ...peter, text: 'a\0b\n' }), 'control character'],
    ['half a surrogate pair', noteOf({ ...peter, text: 'a\ud800b\n' }), 'not well-formed Unicode'],
    ['a line after its signatures', `${noteOf(peter)}more\n`, 'has not the form'],
    ['a hyphen for the dash', noteOf(peter).replace('— ', '- '), 'has not the form'],
    ['two spaces before the signature', noteOf(peter).replace('PeterNeumann ', 'PeterNeumann  '), 'has not the form'],
    ['a space in the name', noteOf(peter).replace('PeterNeumann', 'Peter Neumann'), 'has not the form'],
    ['a no-break space in the name', noteOf(peter).replace('PeterNeumann', 'Peter\u00a0Neumann'), 'no spaces'],
    ['a plus sign in the name', noteOf(peter).replace('PeterNeumann', 'Peter+Neumann'), 'plus signs'],
    ['a signature without its padding', noteOf(peter).replace('=\n', '\n'), 'not base64'],
    ['a signature with unused bits', noteOf(peter).replace('nAM=\n', 'nAN=\n'), 'not base64'],
    ['a signature in the URL alphabet', noteOf(peter).replace('o/ZJ', 'o_ZJ'), 'not base64'],
    ['a signature that is only a key ID', noteOf({ ...peter, signature: '— PeterNeumann x08gow==\n' }), 'too short'],
    ['101 signatures', noteOf({ ...peter, signature: peter.signature.repeat(101) }), 'more than 100 signatures'],
    ['a million signatures', noteOf({ ...peter, signature: '— a b\n'.repeat(1_000_000) }), 'more than 100 signatures'],
  ])('is refused with %s', async (_, note, message) => {
    const error = await verifyNote(note, [await parseVerifierKey(peter.key)]).catch(error => error)
    expect(error).toBeInstanceOf(FormatError)
    expect(error.message).toContain(message)
  })

  it('is accepted with 16 signatures, as the specification demands', async () => {
    const note = noteOf({ ...peter, signature: enochSignature.repeat(15) + peter.signature })
    expect(await verifyNote(note, [await parseVerifierKey(peter.key)])).toBe(peter.text)
  })

  it.each(['', 'two words', 'a+b', 'a\nb', 'a\u2003b', 'a\u0085b', '\ud800'])(
    'is not signed with a key of the name %j',
    name => {
      const { privateKey } = generateKeyPairSync('ed25519')
      expect(() => signNote('text\n', [{ name, privateKey }])).toThrow(FormatError)
      expect(() => formatVerifierKey(name, privateKey)).toThrow(FormatError)
    },
  )

  it.each(['no newline', 'a tab\t\n', 'a return\r\n', '\ud800\n'])('is not signed with the text %j', text => {
    const { privateKey } = generateKeyPairSync('ed25519')
    expect(() => signNote(text, [{ name: 'log', privateKey }])).toThrow(FormatError)
  })
})

describe('A verifier key', () => {
  it('is parsed and formatted to the same text', async () => {
    await fc.assert(
      fc.asyncProperty(signers, async ({ name, privateKey }) => {
        const text = formatVerifierKey(name, privateKey)
        const { publicKey } = await parseVerifierKey(text)
        const jwk = { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(publicKey).toString('base64url') }
        expect(formatVerifierKey(name, createPublicKey({ format: 'jwk', key: jwk }))).toBe(text)
      }),
    )
  })

  it('is refused if any of its bits is another', async () => {
    await fc.assert(
      fc.asyncProperty(signers, fc.nat(), async ({ name, privateKey }, position) => {
        const bytes = Buffer.from(formatVerifierKey(name, privateKey))
        const bit = position % (bytes.length * 8)
        bytes[bit >> 3]! ^= 1 << (bit & 7)
        await expect(parseVerifierKey(new TextDecoder().decode(bytes))).rejects.toThrow(FormatError)
      }),
    )
  })

  it.each([
    ['', 'name+hash+base64'],
    ['PeterNeumann', 'name+hash+base64'],
    ['PeterNeumann+c74f20a+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW', 'name+hash+base64'],
    ['PeterNeumann+C74F20A3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW', 'name+hash+base64'],
    ['+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW', 'not empty'],
    ['PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq_LDE4izWy10TW', 'not base64'],
    [`${peter.key}\n`, 'not base64'],
    ['PeterNeumann+c74f20a3+', 'not an Ed25519 key'],
    ['PeterNeumann+c74f20a3+BBpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW', 'not an Ed25519 key'],
    ['PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TX', 'was changed'],
    ['PeterNeumanm+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW', 'was changed'],
  ])('is refused as %j', async (text, message) => {
    const error = await parseVerifierKey(text).catch(error => error)
    expect(error).toBeInstanceOf(FormatError)
    expect(error.message).toContain(message)
  })
})

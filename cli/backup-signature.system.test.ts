import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { beforeEach, describe, expect, it } from 'vitest'
import { formatVerifierKey } from '../src/ledger/note.ts'
import { contentsOf, forgeBackup, useBackupFixture } from '../test/support/backups.ts'
import { query } from '../test/support/embedded-service.ts'

const { emptyDatabase, kith, newDatabase, newFile, pathTo, serveOn } = useBackupFixture()

/** A key of an attacker. */
function makeSigner() {
  const { privateKey } = generateKeyPairSync('ed25519')
  return { privateKey, verifierKey: formatVerifierKey('kith', privateKey) }
}

let file: string
/** The key of the ledger as `kith ledger keys` prints it for an organization. */
let ledgerKey: string
let signedBy: string
let bytes: Buffer
beforeEach(async () => {
  const url = await newDatabase()
  await (await serveOn(url)).organization()
  file = newFile()
  const { stdout, code } = await kith(['backup', file, '--json'], url)
  expect(code).toBe(0)
  signedBy = JSON.parse(stdout).signed_by
  ledgerKey = JSON.parse((await kith(['ledger', 'keys', '--json'], url)).stdout)[0].key
  bytes = await readFile(pathTo(file))
})

/** Returns the header with another time, as an attacker would change it. */
const change = ({ header }: { header: Record<string, unknown> }) => ({
  header: { ...header, at: '2001-01-01T00:00:00.000Z' },
})

/** Writes a forged file. Returns its name. */
async function forge(signer?: Parameters<typeof forgeBackup>[2]) {
  const name = newFile()
  await writeFile(pathTo(name), forgeBackup(bytes, change, signer))
  return name
}

describe('the signature of a backup', { timeout: 60_000 }, () => {
  it('is that of the key of the ledger over the SHA-256, as docs/backups.md describes it', async () => {
    const [header] = bytes.toString('latin1').split('\n')
    expect(JSON.parse(header!)).toMatchObject({ version: 2, signed_by: signedBy })
    const [digest, signature] = bytes.toString('latin1', bytes.length - 194).split('\n')
    const x = Buffer.from(ledgerKey.split('+').slice(2).join('+'), 'base64').subarray(1).toString('base64url')
    const publicKey = createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x } })
    expect(verify(null, Buffer.from(`kith backup\n${digest}\n`), publicKey, Buffer.from(signature!, 'hex'))).toBe(true)
  })

  it('lets kith restore accept the key of the ledger, under the name of any organization, and say so', async () => {
    const target = await emptyDatabase()
    const { code, stderr } = await kith(['restore', file, '--key', ledgerKey], target)
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringContaining(
        'The key that you gave signed the backup, and nothing of it was changed since.\n',
      ),
    })
    const without = await kith(['restore', file], await emptyDatabase())
    expect(without).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(`The key ${signedBy} signed the backup.`),
    })
  })

  it('lets kith restore refuse a changed backup whose SHA-256 was computed anew, and store nothing', async () => {
    const attacker = makeSigner()
    const target = await emptyDatabase()
    const refusals: [string, string[], RegExp][] = [
      // The header names the true key, but the attacker does not have its private key.
      [
        await forge({ ...attacker, verifierKey: signedBy }),
        [],
        /damaged or was changed: the key that its header names/,
      ],
      [
        await forge(attacker),
        ['--key', ledgerKey],
        /^The backup is signed by the key .*, not by the key that you gave/,
      ],
      [await forge(), ['--key', ledgerKey], /^The backup is not signed/],
    ]
    for (const [name, words, message] of refusals) {
      const refused = await kith(['restore', name, ...words], target)
      expect(refused).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(message) })
    }
    expect(await kith(['restore', file, '--key', 'nonsense'], target)).toMatchObject({ code: 2 })
    expect(await contentsOf(target)).toEqual({})
  })

  it('is named by kith restore without --key, so that another key is seen', async () => {
    const attacker = makeSigner()
    const signed = await kith(['restore', await forge(attacker), '--json'], await emptyDatabase())
    expect(JSON.parse(signed.stdout).signed_by).toBe(attacker.verifierKey)
    expect(signed.stderr).toContain(`The key ${attacker.verifierKey} signed the backup. Compare it with the key`)
    const unsigned = await kith(['restore', await forge()], await emptyDatabase())
    expect(unsigned).toMatchObject({ code: 0, stderr: expect.stringContaining('The backup is not signed.') })
  })

  it('is verified by kith verify, without a database', async () => {
    const attacker = makeSigner()
    const verifyFile = async (name: string, ...words: string[]) => {
      const { code, stdout } = await kith(['verify', name, '--json', ...words], 'postgresql://nobody@127.0.0.1:1/none')
      return { code, ...JSON.parse(stdout) }
    }
    expect(await verifyFile(file, '--key', ledgerKey)).toMatchObject({ code: 0, valid: true, signed_by: signedBy })
    const unknown = await verifyFile(file)
    expect(unknown.not_proved[0]).toBe(
      `The key ${signedBy} is that of your service. Compare it with the key that you keep, or give --key.`,
    )
    expect(await verifyFile(await forge(attacker), '--key', ledgerKey)).toMatchObject({ code: 1, valid: false })
    expect(await verifyFile(await forge(), '--key', ledgerKey)).toMatchObject({ code: 1, valid: false })
    expect(await verifyFile(await forge())).toMatchObject({ code: 0, valid: true, signed_by: null })
    await writeFile(pathTo('cut'), bytes.subarray(0, -1))
    expect(await verifyFile('cut')).toMatchObject({ code: 1, valid: false, message: expect.stringMatching(/damaged/) })
  })

  it('is absent, and kith backup says so, if the database has no key of the ledgers', async () => {
    const url = await newDatabase()
    await query(url, 'delete from ledger_keys')
    const unsigned = newFile()
    const { code, stderr } = await kith(['backup', unsigned], url)
    expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining('The backup is not signed') })
    expect((await readFile(pathTo(unsigned))).toString('latin1')).toContain('"version":1,')
    expect((await kith(['restore', unsigned], await emptyDatabase())).code).toBe(0)
  })
})

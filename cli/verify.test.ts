import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CompactSign } from 'jose'
import { beforeAll, describe, expect, it } from 'vitest'
import { type ErasureFacts, signCertificate } from '../src/ledger/certificate.ts'
import { formatVerifierKey } from '../src/ledger/note.ts'
import { runInProcess } from '../test/support/command.ts'
import { makeFolder } from '../test/support/process.ts'
import { entry, fixedKey, names, origin, receiptOf, text } from '../test/support/receipts.ts'

const key = formatVerifierKey(origin, fixedKey('key'))
let folder: string
const inFolder = async (name: string, content: string) => {
  const file = join(folder, name)
  await writeFile(file, content)
  return file
}
let receipt: string
beforeAll(async () => {
  folder = await makeFolder()
  receipt = await inFolder('receipt.json', JSON.stringify(await receiptOf(), undefined, 2))
})

/** A certificate with changed content, signed again by the same key. */
const resign = (certificate: string, change: (content: string) => string) =>
  new CompactSign(Buffer.from(change(Buffer.from(certificate.split('.')[1]!, 'base64url').toString())))
    .setProtectedHeader({ alg: 'EdDSA' })
    .sign(fixedKey('key'))

const verify = (...args: string[]) => runInProcess(['verify', ...args], {})

describe('kith verify', () => {
  it('tells what a receipt proves and what it does not', async () => {
    const { code, stdout, stderr } = await verify(receipt)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const lines = stdout.split('\n')
    expect(lines[0]).toBe('The receipt is valid.')
    expect(lines).toContain('  person_id        "01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f"')
    const proved = lines.slice(lines.indexOf('Proved') + 1, lines.indexOf('Not proved') - 1)
    expect(proved).toEqual([
      `  The key ${key} signed the receipt, and no member of it was changed since.`,
      `  The same key signed the checkpoint of the log ${origin} with 7 entries.`,
      '  The entry 4 of that log is this entry with this salt: neither was changed since it was sealed.',
      '  The text of the receipt is the one whose hash is in the entry.',
    ])
    const notProved = lines.slice(lines.indexOf('Not proved') + 1).filter(Boolean)
    expect(notProved).toEqual([
      `  The key ${key} is the organization's own. Compare it with the key that the organization publishes, or give --key.`,
      `  Others are shown the same log ${origin}. Compare the checkpoint with one that was kept elsewhere.`,
      `  The person who answered is the person ${entry.person_id}, and the evidence and the times of the entry are true: the organization states them.`,
      '  The person has not answered again since.',
    ])
  })

  it('proves more with the key and the text', async () => {
    const file = await inFolder('text.txt', text)
    const { code, stdout } = await verify(receipt, '--key', key, '--text', file)
    expect(code).toBe(0)
    expect(stdout).toContain('\n  The text that you gave is the one whose hash is in the entry.\n')
    expect(stdout).not.toContain('--key')
  })

  it('prints one JSON value with --json', async () => {
    const { code, stdout } = await verify(receipt, '--json', '--key', key)
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ valid: true, entry, key, origin, index: 4, size: 7 })
    expect(JSON.parse(stdout)).toMatchObject({ proved: { length: 4 }, not_proved: { length: 3 } })
  })

  it('reads standard input, and a receipt in the envelope of its response', async () => {
    const envelope = JSON.stringify({ status: 'Success', data: await receiptOf() })
    const { code, stdout } = await runInProcess(['verify', '-'], {}, folder, envelope)
    expect(code).toBe(0)
    expect(stdout).toMatch(/^The receipt is valid\.\n/)
  })

  it('needs no setting, not even valid ones', async () => {
    const environment = { DATABASE_URL: 'nonsense', PORT: 'nonsense' }
    expect(await runInProcess(['verify', receipt], environment)).toMatchObject({ code: 0, stderr: '' })
  })

  it('names the part of a changed receipt in one sentence, and exits with 1', async () => {
    const { salt, ...rest } = await receiptOf()
    const changed = await inFolder('changed.json', JSON.stringify({ ...rest, salt: salt.replace(/^./, 'A') }))
    expect(await verify(changed)).toEqual({
      code: 1,
      stdout: 'The receipt is not valid: salt.\nThe member salt was changed after the receipt was signed.\n',
      stderr: '',
    })
    const { code, stdout } = await verify(changed, '--json')
    expect(code).toBe(1)
    expect(JSON.parse(stdout)).toEqual({
      valid: false,
      part: 'salt',
      message: 'The member salt was changed after the receipt was signed.',
    })
  })

  it('refuses a receipt and a certificate that have a member twice, because programs differ in which they read', async () => {
    const why = 'Programs differ in which of the two they read.\n'
    const twice = JSON.stringify(await receiptOf()).replace('"state":true', '"state":false,"state":true')
    expect(await verify(await inFolder('twice.json', twice))).toEqual({
      code: 1,
      stdout: `The receipt is not valid: receipt.\nAn object of the receipt has the member "state" twice. ${why}`,
      stderr: '',
    })
    const facts = { at: '2026-11-22T08:15:31.224Z', person_id: entry.person_id, removed: {}, not_removed: [] }
    const certificate = await signCertificate(origin, facts as unknown as ErasureFacts, {
      kid: 'example',
      privateKey: fixedKey('key'),
    })
    expect(await verify(await inFolder('certificate.json', JSON.stringify({ certificate })))).toMatchObject({ code: 0 })
    const files = {
      file: `{"certificate":"","certificate":"${certificate}"}`,
      certificate: await resign(certificate, content => content.replace('{', '{"organization":"other",')),
    }
    for (const [noun, content] of Object.entries(files)) {
      const { code, stdout } = await verify(await inFolder('twice.certificate', content))
      expect(code).toBe(1)
      expect(stdout).toMatch(/^The certificate is not valid: certificate\.\n/)
      expect(stdout).toMatch(
        new RegExp(`An object of the ${noun} has the member "(certificate|organization)" twice\\. ${why}$`),
      )
    }
  })

  it('refuses another key and another text', async () => {
    const other = formatVerifierKey(origin, fixedKey('another'))
    expect(await verify(receipt, '--key', other)).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^The receipt is not valid: verifier_key/),
    })
    expect(await verify(receipt, '--key', 'kith')).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^The receipt is not valid: key/),
    })
    const file = await inFolder('other.txt', `${text}\n`)
    expect(await verify(receipt, '--text', file)).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^The receipt is not valid: text/),
    })
  })

  it('says that it does not know the text if the entry names none', async () => {
    const { text_version, text_sha256, ...withoutText } = entry
    const content = await receiptOf({ entry: withoutText, names: { ...names, text: null } })
    const { stdout } = await verify(await inFolder('no-text.json', JSON.stringify(content)))
    expect(stdout).toContain('\n  The person saw a certain text: the entry names none.\n')
  })

  it('prints no control characters of a receipt', async () => {
    const hostile = { ...entry, source: '\u001b[2J\u0007', reference: 'a\nProved', person_id: '\u001b[2J' }
    const content = await receiptOf({ entry: hostile })
    const { stdout } = await verify(await inFolder('hostile.json', JSON.stringify(content)))
    expect(stdout).toContain('source           "\\u001b[2J\\u0007"')
    expect(stdout).toContain('"a\\nProved"')
    expect(stdout.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u)
    const added = { ...(await receiptOf()), '\u001b[2J\u202e': 'x' }
    const refused = await verify(await inFolder('added.json', JSON.stringify(added)))
    expect(refused.stdout).toContain('The receipt is not valid: \\u{1b}[2J\\u{202e}.\n')
    expect(refused.stdout.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u)
  })

  it('refuses a missing file as wrong usage', async () => {
    expect(await verify(join(folder, 'nothing.json'))).toMatchObject({ code: 2, stdout: '' })
    expect(await verify()).toMatchObject({ code: 2, stdout: '' })
  })
})

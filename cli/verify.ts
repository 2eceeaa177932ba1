import { ReceiptError, type VerifiedReceipt, verifyReceipt } from '../client/index.ts'
import {
  type CertificateContent,
  CertificateError,
  findCertificate,
  verifyCertificate,
} from '../src/ledger/certificate.ts'
import { type Header, isBackup, verifyBackup } from './backup/container.ts'
import { isEncrypted } from './backup/encryption.ts'
import { requireKey } from './backup/signature.ts'
import { type JsonOption, type Result, UsageError } from './command.ts'
import { pathOf, readInput } from './files.ts'
import { newCommand } from './kith-command.ts'
import { visible } from './terminal.ts'

type Options = { key?: string; text?: string; quiet?: true }

export const verifyCommand = (environment: NodeJS.ProcessEnv) =>
  newCommand(
    environment,
    'verify',
    'Verifies a consent receipt, the certificate of an erasure or a backup, without a server, a database or a network, and says what it ' +
      'proves and what it does not. Exits with 1 if it proves nothing.',
  )
    .examples(
      'verify receipt.json',
      'verify receipt.json --text newsletter.txt --json',
      'verify ada.certificate',
      'verify kith.backup --key kith.example.org+0a1b2c3d+AUr…',
    )
    .argument(
      '<receipt>',
      'The file of the receipt, certificate or backup; - reads a receipt or certificate from standard input.',
    )
    .option(
      '--key <key>',
      'The key of the ledger that must have signed, name+hash+base64, from a source that you trust.',
    )
    .option('--quiet', 'Show no progress while a backup is read.')
    .option('--text <file>', 'The text that the person answered to: a file that must be the same, byte for byte.')
    .action(async (file, options) => {
      if (file !== '-' && (await isBackup(pathOf(environment, file))))
        return verifySignedBackup(options, { file, path: pathOf(environment, file) })
      if (file !== '-' && (await isEncrypted(pathOf(environment, file))))
        throw new UsageError(`${file} is encrypted. Decrypt it first: age --decrypt --identity backup-key.txt ${file}`)
      const input = await readInput(environment, file)
      try {
        const certificate = findCertificate(input.toString())
        if (certificate !== undefined) return await verifyErasure(options, certificate)
        const text = options.text === undefined ? undefined : await readInput(environment, options.text)
        return describeReceipt(options, await verifyReceipt(input, { key: options.key, text }))
      } catch (error) {
        if (!(error instanceof ReceiptError || error instanceof CertificateError)) throw error
        const noun = error instanceof ReceiptError ? 'receipt' : 'certificate'
        return describeInvalid(`The ${noun} is not valid: ${error.part}.`, error)
      }
    })

/** The command reads the file in pieces, because it may be larger than the memory. */
async function verifySignedBackup(
  options: Options & JsonOption,
  { file, path }: { file: string; path: string },
): Promise<Result> {
  if (options.text !== undefined) throw new UsageError('A backup has no text. Give --text with a receipt.')
  try {
    const { header } = await verifyBackup(file, path, options)
    if (options.key !== undefined) await requireKey(header.signed_by, options.key)
    return describeBackup(options, header)
  } catch (error) {
    if (error instanceof UsageError) throw error
    return describeInvalid('The backup is not valid.', { part: 'backup', message: (error as Error).message })
  }
}

function describeBackup(options: Options, { at, kith, signed_by }: Header): Result {
  const proved = [
    'The file is complete and has no damage: its SHA-256 is the one at its end.',
    ...(signed_by === undefined
      ? []
      : [`The key ${signed_by} signed the backup, and nothing of it was changed since.`]),
  ]
  const not_proved = [
    ...(signed_by === undefined ? ['The backup is not signed: whoever changed it could write its SHA-256 anew.'] : []),
    ...(signed_by !== undefined && options.key === undefined
      ? [`The key ${signed_by} is that of your service. Compare it with the key that you keep, or give --key.`]
      : []),
    'A backup holds the key that signs. Whoever could read the database or an unencrypted backup can sign another one.',
    `The content is what the database had at ${at}: the service states it.`,
  ]
  const facts = { at, kith, signed_by: signed_by ?? null }
  return describeValid([`The backup of ${at}, made by kith ${kith}, is valid.`], facts, { proved, not_proved })
}

async function verifyErasure(options: Options, certificate: string): Promise<Result> {
  if (options.text !== undefined) throw new UsageError('A certificate has no text. Give --text with a receipt.')
  return describeCertificate(options, await verifyCertificate(certificate, { key: options.key }))
}

function describeCertificate(options: Options, { organization, verifier_key, erasure }: CertificateContent): Result {
  const { at, person_id, removed, not_removed } = erasure
  const proved = [
    `The key ${verifier_key} signed the certificate, and nothing of it was changed since.`,
    `The organization ${organization} states that it erased the person ${person_id} at ${at}.`,
  ]
  const not_proved = [
    ...(options.key === undefined ? [ownKeyText(verifier_key)] : []),
    `The person ${person_id} is the person whom you mean: the organization states it.`,
    ...not_removed.map(each => `Also erased: ${each}.`),
  ]
  const rows = Object.entries(removed).map(([table, count]) => `${table.padEnd(20)} ${count}`)
  const head = ['The certificate is valid.', ...section('Removed rows, by table', rows)]
  return describeValid(head, { organization, verifier_key, erasure }, { proved, not_proved })
}

function describeReceipt(options: Options, verified: VerifiedReceipt): Result {
  const proved = provedBy(verified)
  const not_proved = notProvedBy(verified, options.key !== undefined)
  const entry = Object.entries(verified.entry).map(([member, value]) => `${member.padEnd(16)} ${JSON.stringify(value)}`)
  const { text, ...facts } = verified
  return describeValid(['The receipt is valid.', ...section('The entry', entry)], facts, { proved, not_proved })
}

function describeValid(
  head: string[],
  facts: object,
  { proved, not_proved }: { proved: string[]; not_proved: string[] },
): Result {
  const lines = [...head, ...section('Proved', proved), ...section('Not proved', not_proved)]
  return { value: { valid: true, ...facts, proved, not_proved }, lines: lines.map(visible) }
}

function describeInvalid(head: string, { part, message }: { part: string; message: string }): Result {
  process.exitCode = 1
  return { value: { valid: false, part, message }, lines: [head, message].map(visible) }
}

const ownKeyText = (key: string) =>
  `The key ${key} is the organization's own. Compare it with the key that the organization publishes, or give --key.`

const section = (title: string, lines: string[]) => ['', title, ...lines.map(line => `  ${line}`)]

function provedBy({ key, origin, index, size, text }: VerifiedReceipt): string[] {
  return [
    `The key ${key} signed the receipt, and no member of it was changed since.`,
    `The same key signed the checkpoint of the log ${origin} with ${size} ${size === 1 ? 'entry' : 'entries'}.`,
    `The entry ${index} of that log is this entry with this salt: neither was changed since it was sealed.`,
    ...(text === 'none'
      ? []
      : [`The text ${text === 'given' ? 'that you gave' : 'of the receipt'} is the one whose hash is in the entry.`]),
  ]
}

function notProvedBy({ entry, key, origin, text }: VerifiedReceipt, isKeyGiven: boolean): string[] {
  return [
    ...(isKeyGiven ? [] : [ownKeyText(key)]),
    `Others are shown the same log ${origin}. Compare the checkpoint with one that was kept elsewhere.`,
    `The person who answered is the person ${entry.person_id}, and the evidence and the times of the entry are true: the organization states them.`,
    ...(text === 'none' ? ['The person saw a certain text: the entry names none.'] : []),
    'The person has not answered again since.',
  ]
}

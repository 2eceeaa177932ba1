import { contextOf } from '../src/db/context.ts'
import { type CertificateContent, CertificateError, verifyCertificate } from '../src/ledger/certificate.ts'
import { applyErasures } from '../src/rights/erasure/apply-erasures.ts'
import type { ErasureRow } from '../src/rights/erasure/erase-person.ts'
import { listErasuresSql } from '../src/rights/erasure/erasure-sql.ts'
import { printResult, UsageError } from './command.ts'
import { confirm } from './confirm.ts'
import { readInput } from './files.ts'
import { newPlainCommand } from './kith-command.ts'
import { formatOf, printRows, type Row } from './print-rows.ts'
import { requireOrganization } from './session.ts'
import { printStderr } from './terminal.ts'

const columns = ['id', 'at', 'completed_at', 'entity_id', 'actor', 'reason', 'records']

const pageSize = 500
const lastId = 2_147_483_647

export function erasuresCommand(environment: NodeJS.ProcessEnv) {
  const erasures = newPlainCommand(
    environment,
    'erasures',
    'Lists the erasures of an organization with their certificates, and erases again after a restore. Runs on the machine of the ' +
      'service, on its database.',
  ).examples('erasures list --org acme > certificates.txt', 'erasures apply --org acme certificates.txt --yes')
  erasures
    .addPlain(
      'list',
      'Lists every erasure, newest first: a table on a terminal, else the certificates, one per line. Keep these outside of the database: after a ' +
        'restore from a backup, they tell whom to erase again.',
    )
    .examples('erasures list --org acme > certificates.txt')
    .format()
    .org()
    .onDatabase(async ({ db }, options) => {
      const { id } = await requireOrganization(db, options.org)
      const rows: Omit<ErasureRow, 'removed'>[] = []
      for (let before = lastId; ; ) {
        const page = await db.query<ErasureRow>(listErasuresSql, [id, before, pageSize])
        rows.push(...page.map(({ removed: _, ...row }) => row))
        if (page.length < pageSize) break
        before = page.at(-1)!.id
      }
      const lines = certificatesIn(rows)
      const unfinished = rows.length - lines.length
      if (unfinished > 0) printStderr(`${unfinished} more are being erased, and have no certificate yet.`)
      const format = formatOf(options)
      if (options.format === undefined && !process.stdout.isTTY) printResult({}, { value: rows, lines })
      else await printRows(options, format === 'table' ? columns : [...columns, 'certificate'], rows)
    })
  erasures
    .add(
      'apply',
      'Erases again whoever is there although they were erased: those of the certificates, those whose erasure the database knows, and ' +
        'those with an identifier, an email or a phone number that was erased. Prints the new certificates.',
    )
    .examples('erasures apply', 'erasures apply --org acme certificates.txt --yes')
    .argument('[file]', 'Certificates, one per line, as erasures list prints them; - reads standard input.')
    .org()
    .yes()
    .onDatabase(async ({ config, db }, file, options) => {
      const organization = await requireOrganization(db, options.org)
      const text = file === undefined ? '' : (await readInput(environment, file)).toString()
      const certificates = await parseCertificates(text, organization.key)
      const people = `the people of ${certificates.length} certificates, and those whom ${organization.key} knows as erased`
      await confirm(options, `Erase again ${people}? It cannot be undone.`)
      const context = { ...contextOf(db, organization.id), originName: config.ledgerOrigin }
      const value = await applyErasures(context, certificates)
      const messages = [`Erased ${value.length} ${value.length === 1 ? 'person' : 'people'} again.`]
      return { value, lines: certificatesIn(value), messages }
    })
  return erasures
}

const certificatesIn = (rows: readonly { certificate: string | null }[]): string[] =>
  rows.flatMap(({ certificate }) => (certificate === null ? [] : [certificate]))

/**
 * Returns the certificates of a line of `erasures list` in any format except CSV: a certificate, or JSON of one erasure
 * or of all.
 */
function certificatesOf(line: string): string[] {
  if (!/^[[{]/.test(line)) return line === '' ? [] : [line]
  try {
    const rows = [JSON.parse(line) as Row | Row[]].flat()
    return rows.flatMap(({ certificate }) => (certificate === null ? [] : [String(certificate)]))
  } catch {
    return [line]
  }
}

/** Verifies the certificates of a file. Throws a UsageError that names the line of an invalid certificate. */
async function parseCertificates(text: string, organization: string): Promise<CertificateContent[]> {
  const certificates: CertificateContent[] = []
  const lines = text
    .split('\n')
    .flatMap((line, index) => certificatesOf(line.trim()).map(each => [each, index] as const))
  for (const [certificate, index] of lines) {
    const content = await verifyCertificate(certificate).catch((error: unknown) => {
      if (!(error instanceof CertificateError)) throw error
      throw new UsageError(`Line ${index + 1}: ${error.message}`)
    })
    if (content.organization !== organization)
      throw new UsageError(`Line ${index + 1}: the certificate belongs to the organization ${content.organization}.`)
    certificates.push(content)
  }
  return certificates
}

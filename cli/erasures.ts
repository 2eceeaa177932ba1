import type { Command } from 'commander'
import { type CertificateContent, CertificateError, verifyCertificate } from '../src/ledger/certificate.ts'
import { applyErasures } from '../src/rights/erasure/apply-erasures.ts'
import type { ErasureRow } from '../src/rights/erasure/erase-person.ts'
import { listErasuresSql } from '../src/rights/erasure/erasure-sql.ts'
import { newCommand, newPlainCommand, printResult, UsageError } from './command.ts'
import { addYesOption, confirm, type YesOption } from './confirm.ts'
import { readInput } from './files.ts'
import { requireOrganization, withSession } from './session.ts'

type Options = { org: string; json?: boolean }

export function erasuresCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Lists the erasures of an organization with their certificates, and erases again after a restore. Runs on the machine of the ' +
    'service, on its database.'
  return newPlainCommand('erasures', description, [
    'erasures list --org acme > certificates.txt',
    'erasures apply --org acme certificates.txt --yes',
  ])
    .addCommand(listCommand(environment))
    .addCommand(applyCommand(environment))
}

const addOrg = (command: Command) => command.option('--org <key>', 'The organization.', 'default')

const pageSize = 500
const lastId = 2_147_483_647

function listCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Prints the certificate of every erasure, newest first, one per line. Keep them outside of the database: after a restore from a ' +
    'backup, they tell whom to erase again.'
  const command = newCommand('list', description, ['erasures list --org acme > certificates.txt'])
  return addOrg(command).action((options: Options) =>
    withSession(environment, async ({ db }) => {
      const { id } = await requireOrganization(db, options.org)
      const value: Omit<ErasureRow, 'removed'>[] = []
      for (let before = lastId; ; ) {
        const page = await db.query<ErasureRow>(listErasuresSql, [id, before, pageSize])
        value.push(...page.map(({ removed: _, ...row }) => row))
        if (page.length < pageSize) break
        before = page.at(-1)!.id
      }
      const lines = value.flatMap(({ certificate }) => (certificate === null ? [] : [certificate]))
      const unfinished = value.length - lines.length
      const messages = unfinished > 0 ? [`${unfinished} more are being erased, and have no certificate yet.`] : []
      printResult(options, { value, lines, messages })
    }),
  )
}

function applyCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Erases again whoever is there although they were erased: those of the certificates, those whose erasure the database knows, and ' +
    'those with an identifier, an email or a phone number that was erased. Prints the new certificates.'
  const command = newCommand('apply', description, [
    'erasures apply',
    'erasures apply --org acme certificates.txt --yes',
  ]).argument('[file]', 'Certificates, one per line, as erasures list prints them; - reads standard input.')
  return addYesOption(addOrg(command)).action((file: string | undefined, options: Options & YesOption) =>
    withSession(environment, async ({ config, db }) => {
      const organization = await requireOrganization(db, options.org)
      const text = file === undefined ? '' : (await readInput(environment, file)).toString()
      const certificates = await parseCertificates(text, organization.key)
      const people = `the people of ${certificates.length} certificates, and those whom ${organization.key} knows as erased`
      await confirm(options, `Erase again ${people}? It cannot be undone.`)
      const context = { db, organization, originName: config.ledgerOrigin }
      const value = await applyErasures(context, certificates)
      const lines = value.flatMap(({ certificate }) => (certificate === null ? [] : [certificate]))
      const messages = [`Erased ${value.length} ${value.length === 1 ? 'person' : 'people'} again.`]
      printResult(options, { value, lines, messages })
    }),
  )
}

/** Verifies the certificates of a file. Throws a UsageError that names the line of a wrong one. */
async function parseCertificates(text: string, organization: string): Promise<CertificateContent[]> {
  const certificates: CertificateContent[] = []
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue
    const content = await verifyCertificate(line.trim()).catch((error: unknown) => {
      if (!(error instanceof CertificateError)) throw error
      throw new UsageError(`Line ${index + 1}: ${error.message}`)
    })
    if (content.organization !== organization)
      throw new UsageError(`Line ${index + 1}: the certificate belongs to the organization ${content.organization}.`)
    certificates.push(content)
  }
  return certificates
}

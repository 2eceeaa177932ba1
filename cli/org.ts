import type { Command } from 'commander'
import { contextOf } from '../src/db/context.ts'
import type { Database } from '../src/db/db.ts'
import { deleteOrganization, requireDeletable } from '../src/organizations/deletion.ts'
import {
  createOrganization,
  describeOrganization,
  findOrganization,
  listOrganizations,
} from '../src/organizations/organizations.ts'
import { defaultLimits } from '../src/process/config.ts'
import { dropAllViews } from '../src/sql-views/sql-views.ts'
import { type JsonOption, newCommand, newPlainCommand, printResult } from './command.ts'
import { addYesOption, confirm, type YesOption } from './confirm.ts'
import { addFormatOption, type FormatOption, printRows } from './print-rows.ts'
import { formatCount, startProgress } from './progress.ts'
import { withSession } from './session.ts'

export function orgCommand(environment: NodeJS.ProcessEnv): Command {
  return newPlainCommand('org', 'Creates, lists and deletes organizations, the tenants of the service.', [
    'org create acme',
    'org list',
  ]).addSubcommands(environment, [createCommand, listCommand, deleteCommand])
}

function createCommand(environment: NodeJS.ProcessEnv): Command {
  return newCommand('create', 'Creates an organization.', ['org create acme'])
    .argument('<key>', 'The key: 1 to 63 of a-z, 0-9, _ and -, starting with a letter.')
    .action((key: string, options: JsonOption) =>
      withSession(environment, async ({ db }) => {
        const { created_at } = await createOrganization(db, key)
        printResult(options, { value: { key, created_at }, messages: [`Created organization ${key}.`] })
      }),
    )
}

function listCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newPlainCommand('list', 'Lists the organizations.', ['org list'])
  return addFormatOption(command).action((options: FormatOption) =>
    withSession(environment, async ({ db }) => {
      const organizations = (await listOrganizations(db)).map(({ key, created_at }) => ({ key, created_at }))
      await printRows(options, ['key', 'created_at'], organizations)
    }),
  )
}

function deleteCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Deletes an organization with everything in it. Its tokens are rejected within ten seconds; then its rows are deleted. It cannot be ' +
    'undone, but by restoring a backup. Run the command again if it was interrupted. The key is not given again.'
  return addYesOption(newCommand('delete', description, ['org delete acme', 'org delete acme --yes']))
    .argument('<key>', 'The key, as shown by org list.')
    .action((key: string, options: JsonOption & YesOption) =>
      withSession(environment, async ({ db }) => {
        await requireDeletable(db, key)
        await confirm(options, `Delete the organization ${key}? It cannot be undone.`, () => contentsOf(db, key), key)
        const kept: string[] = []
        let count = 0
        const line = startProgress('rows', () => ({ count, fraction: null }), options)
        const removed = await deleteOrganization(db, key, {
          marked: async () => void kept.push(...(await dropAllViews(db, key))),
          waits: seconds => line.print(`Waiting ${seconds} s, until no request can use the organization any more.`),
          deleted: rows => {
            count = rows
          },
        }).finally(line.end)
        const messages = [`Deleted organization ${key}: ${formatCount(count)} rows.`, ...kept]
        printResult(options, { value: { key, removed }, messages })
      }),
    )
}

/** The contents of an organization, as lines. None if its deletion has begun. */
async function contentsOf(db: Database, key: string): Promise<string[]> {
  const organization = await findOrganization(db, key)
  if (!organization) return []
  const { counts } = await describeOrganization(contextOf(db, organization.id), defaultLimits)
  return [
    `The organization ${key} was created at ${organization.created_at}. It has:`,
    ...Object.entries(counts).map(([name, count]) => `  ${formatCount(count).padStart(12)} ${name.replace('_', ' ')}`),
  ]
}

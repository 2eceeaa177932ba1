import type { Command } from 'commander'
import { createOrganization, listOrganizations } from '../src/organizations/organizations.ts'
import { newCommand, newPlainCommand, printResult } from './command.ts'
import { addFormatOption, type FormatOption, formatOf, printRows } from './print-rows.ts'
import { withSession } from './session.ts'

type Json = { json?: boolean }

export function orgCommand(environment: NodeJS.ProcessEnv): Command {
  return newPlainCommand('org', 'Creates and lists organizations, the tenants of the service.', [
    'org create acme',
    'org list',
  ])
    .addCommand(createCommand(environment))
    .addCommand(listCommand(environment))
}

function createCommand(environment: NodeJS.ProcessEnv): Command {
  return newCommand('create', 'Creates an organization.', ['org create acme'])
    .argument('<key>', 'The key: 1 to 63 of a-z, 0-9, _ and -, starting with a letter.')
    .action((key: string, options: Json) =>
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
      await printRows(formatOf(options), ['key', 'created_at'], organizations)
    }),
  )
}

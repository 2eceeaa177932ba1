import type { Command } from 'commander'
import { createOrganization, firstCellName, listOrganizations } from '../src/organizations/organizations.ts'
import { newCommand, newPlainCommand, printResult } from './command.ts'
import { move } from './move.ts'
import { withSession } from './session.ts'
import { handleInterrupt } from './signal-handling.ts'
import { printStderr } from './stderr.ts'

type Json = { json?: boolean }

export function orgCommand(environment: NodeJS.ProcessEnv): Command {
  return newPlainCommand('org', 'Creates, lists and moves organizations, the tenants of the service.', [
    'org create acme',
    'org create acme --cell b',
    'org move acme --to main',
    'org list',
  ])
    .addCommand(createCommand(environment))
    .addCommand(listCommand(environment))
    .addCommand(moveCommand(environment))
}

function createCommand(environment: NodeJS.ProcessEnv): Command {
  return newCommand('create', 'Creates an organization.', ['org create acme'])
    .argument('<key>', 'The key: 1 to 63 of a-z, 0-9, _ and -, starting with a letter.')
    .option('--cell <name>', 'The database to create it in: main, or a name of KITH_CELLS.', firstCellName)
    .action((key: string, { cell: name, ...options }: Json & { cell: string }) =>
      withSession(environment, async ({ db, cells }) => {
        const home = name === firstCellName ? undefined : { name, db: await cells.open(name) }
        const { created_at, cell } = await createOrganization(db, key, home)
        const message = home ? `Created organization ${key} in the cell ${cell}.` : `Created organization ${key}.`
        printResult(options, { value: { key, created_at, cell }, messages: [message] })
      }),
    )
}

function listCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Lists the organizations, one per line: key, time of creation, and with several databases the cell, separated by tabs.'
  return newCommand('list', description, ['org list']).action((options: Json) =>
    withSession(environment, async ({ db, cells }) => {
      const value = (await listOrganizations(db)).map(({ key, created_at, cell }) => ({ key, created_at, cell }))
      const hasCells = cells.names.length > 1 || value.some(({ cell }) => cell !== firstCellName)
      const lines = value.map(({ key, created_at, cell }) => [key, created_at, ...(hasCells ? [cell] : [])].join('\t'))
      printResult(options, { value, lines })
    }),
  )
}

function moveCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Moves an organization to another cell while it is used. Ctrl-C undoes a move that has not happened yet. A command that was killed is ' +
    'completed or undone by the next one.'
  return newCommand('move', description, ['org move acme --to b'])
    .argument('<key>', 'The organization.')
    .requiredOption('--to <name>', 'The cell to move it to: main, or a name of KITH_CELLS.')
    .action(async (key: string, { to, ...options }: Json & { to: string }) => {
      const abortController = new AbortController()
      const interrupt = handleInterrupt(() => {
        printStderr('Stopping.')
        abortController.abort(new Error('The move was interrupted.'))
      })
      try {
        await withSession(environment, async session => {
          const outcome = await move(session, { key, to, signal: abortController.signal, report: printStderr })
          printResult(options, { value: { key, cell: to, ...outcome } })
        })
      } finally {
        interrupt.end()
      }
    })
}

import { text } from 'node:stream/consumers'
import { Argument, type Command, Option } from 'commander'
import type { Webhook, WebhookDelivery } from '../client/index.ts'
import {
  givenOf,
  type JsonOption,
  newCommand,
  newPlainCommand,
  printResult,
  UsageError,
  wholeNumber,
} from './command.ts'
import { addConnectionOptions, type ConnectionOptions, connect } from './connection.ts'
import { addFormatOption, type Column, type FormatOption, printRows } from './print-rows.ts'
import { atService, listAtService } from './service-commands.ts'
import { printStderr } from './terminal.ts'

type DeliveriesOptions = FormatOption & {
  status?: WebhookDelivery['status']
  state?: WebhookDelivery['state']
  before?: number
  limit?: number
}
type HeadersOptions = ConnectionOptions & { set?: string; remove?: string; json?: true }
type ReplayOptions = JsonOption & { after: number; until?: number }

export function webhooksCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Lists webhooks and their deliveries, sends changes again, and sets headers and links.'
  return newPlainCommand('webhooks', description, [
    'webhooks list',
    'webhooks deliveries 1 --status failed',
  ]).addSubcommands(environment, [listCommand, deliveriesCommand, replayCommand, headersCommand, linksCommand])
}

const readScope = 'webhooks:read'

function listCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newPlainCommand('list', 'Lists the webhooks.', ['webhooks list', 'webhooks list --json | jq .'])
  return listAtService(environment, command, readScope, webhookColumns, client => client.webhooks.list())
}

const webhookColumns: Column[] = [
  'id',
  { name: 'state', read: webhook => stateOf(webhook as Webhook) },
  'position',
  'last_success_at',
  { name: 'events', read: ({ events }) => (events as string[]).join() },
  'url',
  { name: 'waiting', read: ({ backlog }) => (backlog as Webhook['backlog']).deliveries },
  { name: 'headers', read: ({ headers }) => (headers as string[]).join() },
]

function stateOf({ state, disabled, failing_since }: Webhook): string {
  if (disabled) return `${state}: ${disabled.reason}`
  return state === 'failing' ? `${state} since ${failing_since}` : state
}

function deliveriesCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Lists the deliveries of a webhook, newest first, by the number of the change (sequence), with the status of the last response or its ' +
    'error.'
  const command = newPlainCommand('deliveries', description, [
    'webhooks deliveries 1',
    'webhooks deliveries 1 --status failed --limit 500',
  ])
    .argument('<id>', 'The id, as shown by webhooks list.', wholeNumber())
    .addOption(new Option('--status <status>', 'Only these.').choices(['waiting', 'delivered', 'failed']))
    .addOption(
      new Option(
        '--state <state>',
        'Only these. due, failing and blocked wait: now, after a failed attempt, and for an earlier change.',
      ).choices(['due', 'failing', 'blocked', 'delivered', 'failed']),
    )
    .option('--before <number>', 'Only deliveries of changes before this number.', wholeNumber())
    .option('--limit <count>', 'The most deliveries to list, up to 500. Default: 50.', wholeNumber())
  const listing = addFormatOption(command)
  return atService(environment, listing, readScope, async (client, id: number, options: DeliveriesOptions) => {
    const { before, limit, ...selection } = givenOf(options, 'status', 'state', 'before', 'limit')
    const page = {
      ...selection,
      ...(limit !== undefined && { size: limit }),
      ...(before !== undefined && { after: String(before) }),
    }
    const { items, next } = await client.webhooks.deliveries(id, page).page()
    await printRows(options, deliveryColumns, items)
    if (next !== null) printStderr(`There are more: --before ${next}`)
  })
}

const deliveryColumns: Column[] = [
  ...['sequence', 'type', 'status', 'attempts'],
  { name: 'response', read: ({ response_status, error }) => response_status ?? error },
  'next_attempt_at',
]

function replayCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Sends the changes of a range again, also those that were given up. They keep their webhook-id, so a receiver can ignore repeats.'
  const command = newCommand('replay', description, [
    'webhooks replay 1 --after 1200 --until 1300',
    'webhooks replay 1 --after 0',
  ])
    .argument('<id>', 'The id, as shown by webhooks list.', wholeNumber())
    .requiredOption('--after <number>', 'Begin after the change with this number.', wholeNumber())
    .option('--until <number>', 'End with this change. Default: the position of the webhook.', wholeNumber())
  return atService(environment, command, 'webhooks:write', async (client, id: number, options: ReplayOptions) => {
    const value = await client.webhooks.replay(id, givenOf(options, 'after', 'until'))
    const messages = [`kith sends the matching changes after ${value.after} up to ${value.until} again.`]
    printResult(options, { value, messages })
  })
}

function headersCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Sets or removes a header of each request of a webhook, such as Authorization. The value is read from stdin, so that no list of processes ' +
    'and no history of a shell has it. No command shows it.'
  const command = newCommand('headers', description, [
    'webhooks headers 1 --set Authorization < value.txt',
    'webhooks headers 1 --remove Authorization',
  ])
    .argument('<id>', 'The id, as shown by webhooks list.', wholeNumber())
    .addOption(new Option('--set <name>', 'The header to set, to the text on stdin.').conflicts('remove'))
    .option('--remove <name>', 'The header to remove.')
  return addConnectionOptions(command).action(async (id: number, options: HeadersOptions) => {
    const { set, remove } = options
    const name = set ?? remove
    if (name === undefined) throw new UsageError('Give --set or --remove with the name of a header.')
    const value = set === undefined ? null : (await text(process.stdin)).trim()
    const { client } = await connect(environment, options, { scope: 'webhooks:write' })
    const { headers } = await client.webhooks.update(id, { headers: { [name]: value } })
    const named = headers.length === 0 ? 'no headers of its own' : `the headers ${headers.join(', ')}`
    printResult(options, { value: { headers }, messages: [`The webhook has ${named}.`] })
  })
}

function linksCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Lets the events of a webhook carry the link that confirms a grant, and the address to send it to, or ends that. The token also needs ' +
    'people:write.'
  const command = newCommand('links', description, ['webhooks links 1 on', 'webhooks links 1 off'])
    .argument('<id>', 'The id, as shown by webhooks list.', wholeNumber())
    .addArgument(new Argument('<state>', 'Whether they carry links.').choices(['on', 'off']))
  const scope = 'webhooks:write people:write people:read'
  return atService(environment, command, scope, async (client, id: number, state: string, options: JsonOption) => {
    const { links } = await client.webhooks.update(id, { links: state === 'on' })
    const messages = [links ? 'The webhook sends confirmation links.' : 'The webhook sends no links.']
    printResult(options, { value: { links }, messages })
  })
}

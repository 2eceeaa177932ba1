import { text } from 'node:stream/consumers'
import type { Webhook } from '../client/index.ts'
import { givenOf, UsageError, wholeNumber } from './command.ts'
import { connect } from './connection.ts'
import { newPlainCommand } from './kith-command.ts'
import { type Column, printRows } from './print-rows.ts'
import { printStderr } from './terminal.ts'

const readScope = 'webhooks:read'
const idArgument = ['<id>', 'The id, as shown by webhooks list.', { parse: wholeNumber() }] as const

export function webhooksCommand(environment: NodeJS.ProcessEnv) {
  const webhooks = newPlainCommand(
    environment,
    'webhooks',
    'Lists webhooks and their deliveries, sends changes again, and sets headers and links.',
  ).examples('webhooks list', 'webhooks deliveries 1 --status failed')
  webhooks
    .addList(webhookColumns, 'list', 'Lists the webhooks.')
    .examples('webhooks list', 'webhooks list --json | jq .')
    .atService(readScope, client => client.webhooks.list())
  webhooks
    .addPlain(
      'deliveries',
      'Lists the deliveries of a webhook, newest first, by the number of the change (sequence), with the status of the last response or its ' +
        'error.',
    )
    .examples('webhooks deliveries 1', 'webhooks deliveries 1 --status failed --limit 500')
    .argument(...idArgument)
    .option('--status <status>', 'Only these.', { choices: ['waiting', 'delivered', 'failed'] })
    .option(
      '--state <state>',
      'Only these. due, failing and blocked wait: now, after a failed attempt, and for an earlier change.',
      { choices: ['due', 'failing', 'blocked', 'delivered', 'failed'] },
    )
    .option('--before <number>', 'Only deliveries of changes before this number.', { parse: wholeNumber() })
    .option('--limit <count>', 'The most deliveries to list, up to 500. Default: 50.', { parse: wholeNumber() })
    .format()
    .atService(readScope, async (client, id, options) => {
      const { before, limit } = options
      const page = {
        ...givenOf(options, 'status', 'state'),
        ...(limit !== undefined && { size: limit }),
        ...(before !== undefined && { after: String(before) }),
      }
      const { items, next } = await client.webhooks.deliveries(id, page).page()
      await printRows(options, deliveryColumns, items)
      if (next !== null) printStderr(`There are more: --before ${next}`)
    })
  webhooks
    .add(
      'replay',
      'Sends the changes of a range again, also those that were given up. They keep their webhook-id, so a receiver can ignore repeats.',
    )
    .examples('webhooks replay 1 --after 1200 --until 1300', 'webhooks replay 1 --after 0')
    .argument(...idArgument)
    .option('--after <number>', 'Begin after the change with this number.', { parse: wholeNumber(), required: true })
    .option('--until <number>', 'End with this change. Default: the position of the webhook.', { parse: wholeNumber() })
    .atService('webhooks:write', async (client, id, options) => {
      const value = await client.webhooks.replay(id, givenOf(options, 'after', 'until'))
      const messages = [`kith sends the matching changes after ${value.after} up to ${value.until} again.`]
      return { value, messages }
    })
  webhooks
    .add(
      'headers',
      'Sets or removes a header of each request of a webhook, such as Authorization. The value is read from stdin, so that no list of processes ' +
        'and no history of a shell has it. No command shows it.',
    )
    .examples('webhooks headers 1 --set Authorization < value.txt', 'webhooks headers 1 --remove Authorization')
    .argument(...idArgument)
    .option('--set <name>', 'The header to set, to the text on stdin.', { conflicts: 'remove' })
    .option('--remove <name>', 'The header to remove.')
    .connection()
    .action(async (id, options) => {
      const { set, remove } = options
      const name = set ?? remove
      if (name === undefined) throw new UsageError('Give --set or --remove with the name of a header.')
      const value = set === undefined ? null : (await text(process.stdin)).trim()
      const client = await connect(environment, options, { scope: 'webhooks:write' })
      const { headers } = await client.webhooks.update(id, { headers: { [name]: value } })
      const named = headers.length === 0 ? 'no headers of its own' : `the headers ${headers.join(', ')}`
      return { value: { headers }, messages: [`The webhook has ${named}.`] }
    })
  webhooks
    .add(
      'links',
      'Lets the events of a webhook carry the link that confirms a grant, and the address to send it to, or ends that. The token also needs ' +
        'people:write.',
    )
    .examples('webhooks links 1 on', 'webhooks links 1 off')
    .argument(...idArgument)
    .argument('<state>', 'Whether they carry links.', { choices: ['on', 'off'] })
    .atService('webhooks:write people:write people:read', async (client, id, state) => {
      const { links } = await client.webhooks.update(id, { links: state === 'on' })
      const messages = [links ? 'The webhook sends confirmation links.' : 'The webhook sends no links.']
      return { value: { links }, messages }
    })
  return webhooks
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

const deliveryColumns: Column[] = [
  ...['sequence', 'type', 'status', 'attempts'],
  { name: 'response', read: ({ response_status, error }) => response_status ?? error },
  'next_attempt_at',
]

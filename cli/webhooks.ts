import { type Command, Option } from 'commander'
import type { Webhook, WebhookDelivery } from '../client/index.ts'
import { newCommand, newPlainCommand, parseWholeNumber, printResult } from './command.ts'
import { addConnectionOptions, type ConnectionOptions, connect } from './connection.ts'

type Options = ConnectionOptions & { json?: true }
type DeliveriesOptions = Options & {
  status?: WebhookDelivery['status']
  state?: WebhookDelivery['state']
  before?: number
  limit?: number
}
type ReplayOptions = Options & { after: number; until?: number }

export function webhooksCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Lists webhooks and their deliveries, and sends changes again.'
  return newPlainCommand('webhooks', description, ['webhooks list', 'webhooks deliveries 1 --status failed'])
    .addCommand(listCommand(environment))
    .addCommand(deliveriesCommand(environment))
    .addCommand(replayCommand(environment))
}

const readScope = { scope: 'webhooks:read' }

function listCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Lists the webhooks, one per line: id, state, position, time of the last success, events, URL, number of ' +
    'deliveries that wait, separated by tabs.'
  const command = newCommand('list', description, ['webhooks list', 'webhooks list --json | jq .'])
  return addConnectionOptions(command).action(async (options: Options) => {
    const { client } = await connect(environment, options, readScope)
    const value = await client.webhooks.list().all()
    const lines = value.map(webhook =>
      [
        webhook.id,
        stateOf(webhook),
        webhook.position,
        webhook.last_success_at ?? '',
        webhook.events.join(),
        webhook.url,
        webhook.backlog.deliveries,
      ].join('\t'),
    )
    printResult(options, { value, lines })
  })
}

function stateOf({ state, disabled, failing_since }: Webhook): string {
  if (disabled) return `${state}: ${disabled.reason}`
  return state === 'failing' ? `${state} since ${failing_since}` : state
}

function deliveriesCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Lists the deliveries of a webhook, newest first, one per line: number of the change, event, status, attempts, status of ' +
    'the last response or error, time of the next attempt, separated by tabs.'
  const command = newCommand('deliveries', description, [
    'webhooks deliveries 1',
    'webhooks deliveries 1 --status failed --limit 500',
  ])
    .argument('<id>', 'The id, as shown by webhooks list.', parseWholeNumber)
    .addOption(new Option('--status <status>', 'Only these.').choices(['waiting', 'delivered', 'failed']))
    .addOption(
      new Option(
        '--state <state>',
        'Only these. due, failing and blocked wait: now, after a failed attempt, and for an earlier change.',
      ).choices(['due', 'failing', 'blocked', 'delivered', 'failed']),
    )
    .option('--before <number>', 'Only deliveries of changes before this number.', parseWholeNumber)
    .option('--limit <count>', 'The most deliveries to list, up to 500. Default: 50.', parseWholeNumber)
  return addConnectionOptions(command).action(async (id: number, options: DeliveriesOptions) => {
    const { status, state, before, limit } = options
    const { client } = await connect(environment, options, readScope)
    const selection = {
      ...(status && { status }),
      ...(state && { state }),
      ...(limit !== undefined && { size: limit }),
    }
    const after = before === undefined ? undefined : String(before)
    const { next, ...value } = await client.webhooks.deliveries(id, { ...selection, after }).page()
    const messages = next === null ? [] : [`There are more: --before ${next}`]
    printResult(options, { value, lines: value.items.map(lineOf), messages })
  })
}

const lineOf = (delivery: WebhookDelivery): string =>
  [
    delivery.sequence,
    delivery.type,
    delivery.status,
    delivery.attempts,
    delivery.response_status ?? delivery.error ?? '',
    delivery.next_attempt_at ?? '',
  ].join('\t')

function replayCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Sends the changes of a range again, also those that were given up. They keep their webhook-id, so a receiver can ignore repeats.'
  const command = newCommand('replay', description, [
    'webhooks replay 1 --after 1200 --until 1300',
    'webhooks replay 1 --after 0',
  ])
    .argument('<id>', 'The id, as shown by webhooks list.', parseWholeNumber)
    .requiredOption('--after <number>', 'Begin after the change with this number.', parseWholeNumber)
    .option('--until <number>', 'End with this change. Default: the position of the webhook.', parseWholeNumber)
  return addConnectionOptions(command).action(async (id: number, options: ReplayOptions) => {
    const { after, until } = options
    const { client } = await connect(environment, options, { scope: 'webhooks:write' })
    const value = await client.webhooks.replay(id, { after, ...(until !== undefined && { until }) })
    const messages = [`kith sends the matching changes after ${value.after} up to ${value.until} again.`]
    printResult(options, { value, messages })
  })
}

import {
  type DeliveryEvent,
  type DeliveryEventStatuses,
  type ImportAnswer,
  type ImportRefusal,
  KithError,
} from '../client/index.ts'
import type { ImportItem } from './item.ts'
import { parsedJson } from './parsed-json.ts'

/** The maximum number of events in a request. */
const maxEvents = 1_000

/** Splits events into requests. */
export function inRequests<T>(events: readonly T[]): T[][] {
  const count = Math.ceil(events.length / maxEvents)
  return Array.from({ length: count }, (_, index) => events.slice(index * maxEvents, (index + 1) * maxEvents))
}

/** The events that a profile read for the addresses of an accepted line. */
export function eventsOf({ body, answers, refusal }: ImportItem): DeliveryEvent[] {
  if (!answers || answers.events.length === 0 || refusal || body === null) return []
  type Contact = { email?: string; mobile_prefix?: string; mobile_number?: string }
  const { email, mobile_prefix = '', mobile_number } = JSON.parse(body) as Contact
  const addresses = { email, sms: mobile_number && mobile_prefix + mobile_number }
  return answers.events.flatMap(event => {
    const address = addresses[event.channel]
    return address ? [{ ...event, address }] : []
  })
}

type Record = (events: DeliveryEvent[]) => Promise<DeliveryEventStatuses>
type Status = DeliveryEventStatuses['items'][number]['status']
type LineRefusal = Omit<ImportRefusal, 'line'>

/**
 * Records lines of events, in requests of 1,000, and yields the answers of an import. An event with an effect counts as
 * updated.
 */
export async function* recordLines(lines: AsyncIterable<string>, record: Record): AsyncGenerator<ImportAnswer> {
  const counts = { received: 0, created: 0, updated: 0, unchanged: 0, failed: 0 }
  async function* answersOf(batch: string[]): AsyncGenerator<ImportAnswer> {
    for (const outcome of await outcomesOf(batch, record)) {
      counts.received++
      if (outcome === 'stored') counts.updated++
      else if (outcome === 'unchanged') counts.unchanged++
      else {
        counts.failed++
        yield { line: counts.received, ...outcome }
      }
    }
    yield { progress: { ...counts } }
  }
  let batch: string[] = []
  for await (const line of lines) {
    if (batch.push(line) < maxEvents) continue
    yield* answersOf(batch)
    batch = []
  }
  yield* answersOf(batch)
  yield counts
}

type Outcome = 'stored' | 'unchanged' | LineRefusal

/** The service refuses the whole request for one malformed event, so the other events are sent again without it. */
async function outcomesOf(lines: string[], record: Record): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  let left = lines.flatMap((line, index) => {
    const event = parse(line)
    if (event?.at !== undefined) return [{ index, event }]
    outcomes[index] = event
      ? refusalOf('/at', 'must be the time of the event, so that the same event changes nothing the second time')
      : { error: 'invalid_json', message: 'The line is not JSON.', details: [] }
    return []
  })
  while (left.length > 0) {
    try {
      const { items } = await record(left.map(({ event }) => event))
      for (const [place, { status }] of items.entries()) outcomes[left[place]!.index] = outcomeOf(status)
      return outcomes
    } catch (error) {
      const refused = refusedOf(error)
      if (refused.size === 0) throw error
      for (const [place, refusal] of refused) outcomes[left[place]!.index] = refusal
      left = left.filter((_, place) => !refused.has(place))
    }
  }
  return outcomes
}

function parse(line: string): DeliveryEvent | undefined {
  const event = parsedJson(line)
  return typeof event === 'object' && event !== null ? (event as DeliveryEvent) : undefined
}

const refusalOf = (path: string, message: string, error: LineRefusal['error'] = 'invalid_parameter'): LineRefusal => ({
  error,
  message: '',
  details: [{ path, message }],
})

function outcomeOf(status: Status): Outcome {
  switch (status) {
    case 'not_found':
      return refusalOf('/external_id', 'leads to no person', 'not_found')
    case 'no_address':
      return refusalOf('/external_id', 'is of a person without an address on the channel')
    case 'not_an_address':
      return refusalOf('/address', 'is no address of the channel')
    case 'no_purpose':
      return refusalOf('/consent_type_id', 'is no consent type that a person can answer on the channel')
    default:
      return status
  }
}

/** The refusals of events, by their index in the request. */
function refusedOf(error: unknown): Map<number, LineRefusal> {
  const refused = new Map<number, LineRefusal>()
  if (!(error instanceof KithError) || error.status !== 400) return refused
  for (const { path, message } of error.details) {
    const [, place, rest = ''] = /^\/events\/(\d+)(.*)$/.exec(path) ?? []
    if (place === undefined) continue
    const refusal = refused.get(Number(place)) ?? { error: error.code, message: error.sentence, details: [] }
    refusal.details.push({ path: rest, message })
    refused.set(Number(place), refusal)
  }
  return refused
}

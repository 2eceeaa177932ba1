import { expect } from 'vitest'
import { type Operation, operationFacts } from '../../src/organizations/logged-changes.ts'
import type { Organization, Service } from './service.ts'

/** A change as a response shows it. */
export type WireChange = {
  sequence: number
  at: string
  subject: string
  id: string | number
  external_id: string | null
  stack_key: string | null
  operation: string
  version: number | null
  before: Record<string, unknown> | null
  after: Record<string, unknown> | null
  actor: string
  request_id: string
}

export type WirePage = { items: WireChange[]; last: number; head: number; log_id: string }

/** Reads a page of the feed. Throws at any status but 200. */
export async function readFeed({ send }: Pick<Organization, 'send'>, query = ''): Promise<WirePage> {
  const { status, body } = await send('GET', `/v1/changes?${query}`)
  if (status !== 200) throw new Error(`${status}: ${JSON.stringify(body)}`)
  return body.data
}

/** Follows the feed by long polls until it has read the change with the number `until`. */
export async function followPages(
  organization: Pick<Organization, 'send'>,
  until: number,
  query = 'wait=5',
): Promise<WireChange[]> {
  const seen: WireChange[] = []
  for (let after = 0; after < until; ) {
    const { items, last } = await readFeed(organization, `${query}&after=${after}`)
    seen.push(...items)
    after = last
  }
  return seen
}

/** A block of an event stream: its fields by name. A comment has the name ''. */
export type Block = Record<string, string>

export type EventStream = {
  status: number
  headers: Headers
  /** The next event, without the blocks that are none. Undefined at the end of the stream. */
  next(): Promise<(Block & { id: string; event: string; data: string }) | undefined>
  /** The next block of any kind. Undefined at the end of the stream. */
  nextBlock(): Promise<Block | undefined>
  close(): void
}

/** Opens a stream of server-sent events. */
export async function openEvents(
  { address }: Pick<Service, 'address'>,
  token: string,
  query = '',
  headers: Record<string, string> = {},
): Promise<EventStream> {
  const closing = new AbortController()
  const response = await fetch(`${address}/v1/changes?${query}`, {
    headers: { Authorization: `Bearer ${token}`, Accept: 'text/event-stream', ...headers },
    signal: closing.signal,
  })
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  const nextBlock = async (): Promise<Block | undefined> => {
    while (!text.includes('\n\n')) {
      const { value, done } = await reader.read()
      if (done) return undefined
      text += value
    }
    const end = text.indexOf('\n\n')
    const lines = text.slice(0, end).split('\n')
    text = text.slice(end + 2)
    return Object.fromEntries(lines.map(line => line.split(/: ?(.*)/s, 2) as [string, string]))
  }
  return {
    status: response.status,
    headers: response.headers,
    nextBlock,
    next: async () => {
      for (;;) {
        const block = await nextBlock()
        if (!block || block.data !== undefined) return block as never
      }
    },
    close: () => closing.abort(),
  }
}

/** Reads events until the one with the number `until`. Returns their changes, and checks what repeats in each event. */
export async function takeEvents(stream: EventStream, until: number): Promise<WireChange[]> {
  const seen: WireChange[] = []
  while ((seen.at(-1)?.sequence ?? 0) < until) {
    const event = await stream.next()
    if (!event) throw new Error(`the stream ended after ${seen.length} events`)
    const change = JSON.parse(event.data) as WireChange
    expect([event.id, event.event]).toEqual([
      `${change.sequence}`,
      `${change.subject}.${operationFacts[change.operation as Operation].event}`,
    ])
    seen.push(change)
  }
  return seen
}

/** Returns the numbers from `first` to `last`. */
export const numbersTo = (last: number, first = 1) => Array.from({ length: last - first + 1 }, (_, n) => first + n)

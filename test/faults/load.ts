import { setTimeout } from 'node:timers/promises'
import { senderTo } from '../support/process.ts'
import type { Reply, Send } from '../support/service.ts'
import { type Entry, type Journal, newJournal, recordReply } from './journal.ts'
import { type DeletedIds, drawRequest } from './mix.ts'
import { createRandom, type Random } from './rounds.ts'
import type { World } from './world.ts'

export type Load = {
  journal: Journal
  /** Resolves after `count` further requests were acknowledged, or when all clients have ended. */
  waitForAcknowledged(count: number): Promise<void>
  /** Starts no further request. Resolves when all pending ones have a response or a broken connection. */
  stop(): Promise<void>
  /** Resolves when the last client has ended. */
  ended: Promise<unknown>
}

type LoadOptions = {
  world: World
  /** Each request goes to a random one. */
  addresses: string[]
  clients?: number
  /** Seeds the random numbers of this load, together with the seed of the run. */
  seedParts: (string | number)[]
  /** Whether a client ends after its connection broke. Otherwise it continues after a pause of 20 ms. */
  stopsOnDisconnect?: boolean
  /** Whether a client waits for Retry-After after a 503. */
  honorsRetryAfter?: boolean
  onAnswer?: (entry: Entry, reply: Reply | 'never sent' | undefined) => void
}

const pauseMs = 20

/** Starts clients that write without a pause, each one request at a time, and records a journal. */
export function startLoad({
  world,
  addresses,
  clients = 16,
  seedParts,
  stopsOnDisconnect,
  honorsRetryAfter,
  onAnswer,
}: LoadOptions): Load {
  const journal = newJournal()
  const senders = addresses.map(address => senderTo(address, world.token))
  const deleted: DeletedIds = { '/v1/people': [], '/v1/stacks/orders': [] }
  const idsByPath = new Map<string, string>()
  let isStopped = false
  let acknowledgedCount = 0
  let waiter: { count: number; resolve: () => void } | undefined
  const sendNext = async (random: Random) => {
    const entry = drawRequest(random, deleted)
    entry.started = performance.now()
    journal.entries.push(entry)
    const reply = await send(random.pick(senders), entry)
    recordReply(journal, entry, reply)
    if (typeof reply === 'object' && reply.status < 300) learnIds(entry, reply, idsByPath, deleted)
    onAnswer?.(entry, reply)
    if (entry.status >= 200 && entry.status < 300) acknowledgedCount += 1
    if (waiter && acknowledgedCount >= waiter.count) waiter.resolve()
    return reply
  }
  const run = async (client: number) => {
    const random = createRandom(...seedParts, client)
    while (!isStopped) {
      const reply = await sendNext(random)
      if (typeof reply === 'object' && reply.status < 503) continue
      if (stopsOnDisconnect && typeof reply !== 'object') return
      const retryAfterS = honorsRetryAfter && typeof reply === 'object' ? Number(reply.headers.get('Retry-After')) : 0
      await setTimeout(1_000 * retryAfterS || pauseMs)
    }
  }
  const clientsDone = Promise.all(Array.from({ length: clients }, (_, client) => run(client)))
  return {
    journal,
    waitForAcknowledged: async count => {
      const { promise, resolve } = Promise.withResolvers<void>()
      waiter = { count: acknowledgedCount + count, resolve }
      await Promise.race([promise, clientsDone])
      waiter = undefined
    },
    ended: clientsDone,
    stop: async () => {
      isStopped = true
      await clientsDone
    },
  }
}

/** Remembers the internal identifier that a response has, and at a deletion that of the name, so that later requests can restore it. */
function learnIds({ method, path }: Entry, { body }: Reply, idsByPath: Map<string, string>, deleted: DeletedIds) {
  const { id, record_id = id, external_id } = body.data
  for (const [collection, ids] of Object.entries(deleted)) {
    if (!path.startsWith(collection)) continue
    if (external_id) idsByPath.set(`${collection}/${external_id}`, record_id)
    const known = idsByPath.get(path)
    if (method === 'DELETE' && known !== undefined) ids.push(known)
  }
}

/** Sends a request. Returns `undefined` for a broken connection, and `never sent` for one that could not be opened. */
async function send(sender: Send, { method, path, body, headers }: Entry): Promise<Reply | 'never sent' | undefined> {
  try {
    return await sender(method, path, body, headers)
  } catch (error) {
    const { code } = ((error as Error).cause ?? {}) as { code?: string }
    return code === 'ECONNREFUSED' ? 'never sent' : undefined
  }
}

const resolveTimeoutMs = 30_000

/** Resolves the unknown outcomes of requests with an Idempotency-Key: repeats each until it has a response, for 30 s at most. */
export async function resolveUnknownOutcomes({
  journal,
  world,
  address,
}: {
  journal: Journal
  world: World
  address: string
}) {
  const sender = senderTo(address, world.token)
  const deadline = performance.now() + resolveTimeoutMs
  for (const entry of journal.entries.filter(isUnresolved)) {
    for (;;) {
      const reply = await send(sender, entry)
      const isSettled = typeof reply === 'object' && reply.status < 503 && !isStillRunning(reply)
      if (isSettled) {
        recordReply(journal, entry, reply)
        break
      }
      if (performance.now() > deadline) {
        journal.unexplained.push(`a repeated request with an Idempotency-Key has no response: ${JSON.stringify(reply)}`)
        break
      }
      await setTimeout(pauseMs)
    }
  }
}

const isUnresolved = ({ headers, writes }: Entry) =>
  'Idempotency-Key' in headers && writes.some(({ outcome }) => outcome === 'unknown')

const isStillRunning = ({ status, body }: Reply) => status === 409 && body.error === 'invalid_parameter'

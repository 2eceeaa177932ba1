import { setTimeout } from 'node:timers/promises'
import { senderTo } from '../support/process.ts'
import type { Reply, Send } from '../support/service.ts'
import { type Entry, type Journal, newJournal, note } from './journal.ts'
import { drawRequest } from './mix.ts'
import { type Chance, chanceOf } from './rounds.ts'
import type { World } from './world.ts'

export type Load = {
  journal: Journal
  /** Resolves once so many more requests have been acknowledged. */
  acknowledged(count: number): Promise<void>
  /** No request is begun any more; resolves when all are answered or broken. */
  stop(): Promise<void>
  /** Resolves when the last client is done. */
  ended: Promise<unknown>
}

type LoadOptions = {
  world: World
  /** One is drawn for each request. */
  addresses: string[]
  clients?: number
  /** Words that make the chance of this load its own. */
  words: (string | number)[]
  /** After a connection that broke, a client is done; else it goes on a moment later. */
  untilBroken?: boolean
  /** After a 503 a client waits as long as Retry-After says. */
  patient?: boolean
  onAnswer?: (entry: Entry, reply: Reply | 'never sent' | undefined) => void
}

const pauseMs = 20

/** Clients that write without a pause, each one request at a time, and keep the journal. */
export function startLoad({
  world,
  addresses,
  clients = 16,
  words,
  untilBroken,
  patient,
  onAnswer,
}: LoadOptions): Load {
  const journal = newJournal()
  const senders = addresses.map(address => senderTo(address, world.token))
  let stopped = false
  let answered = 0
  let waiting: { count: number; resolve: () => void } | undefined
  const ask = async (chance: Chance) => {
    const entry = drawRequest(chance)
    entry.started = performance.now()
    journal.entries.push(entry)
    const reply = await send(chance.pick(senders), entry)
    note(journal, entry, reply)
    onAnswer?.(entry, reply)
    if (entry.status >= 200 && entry.status < 300) answered += 1
    if (waiting && answered >= waiting.count) waiting.resolve()
    return reply
  }
  const run = async (client: number) => {
    const chance = chanceOf(...words, client)
    while (!stopped) {
      const reply = await ask(chance)
      if (typeof reply === 'object' && reply.status < 503) continue
      if (untilBroken && typeof reply !== 'object') return
      const askedS = patient && typeof reply === 'object' ? Number(reply.headers.get('Retry-After')) : 0
      await setTimeout(1_000 * askedS || pauseMs)
    }
  }
  const running = Promise.all(Array.from({ length: clients }, (_, client) => run(client)))
  return {
    journal,
    acknowledged: async count => {
      const { promise, resolve } = Promise.withResolvers<void>()
      waiting = { count: answered + count, resolve }
      await Promise.race([promise, running])
      waiting = undefined
    },
    ended: running,
    stop: async () => {
      stopped = true
      await running
    },
  }
}

/** A broken connection answers nothing; one that was never made has sent nothing. */
async function send(sender: Send, { method, path, body, headers }: Entry): Promise<Reply | 'never sent' | undefined> {
  try {
    return await sender(method, path, body, headers)
  } catch (error) {
    const { code } = ((error as Error).cause ?? {}) as { code?: string }
    return code === 'ECONNREFUSED' ? 'never sent' : undefined
  }
}

const settleMs = 30_000

/** What nobody could say of requests under an Idempotency-Key is found out: each is sent again under its key until it is answered. */
export async function settleKeyed({ journal, world, address }: { journal: Journal; world: World; address: string }) {
  const sender = senderTo(address, world.token)
  const giveUpAt = performance.now() + settleMs
  for (const entry of journal.entries.filter(isUnsettled)) {
    for (;;) {
      const reply = await send(sender, entry)
      const answered = typeof reply === 'object' && reply.status < 503 && !isRunning(reply)
      if (answered) {
        note(journal, entry, reply)
        break
      }
      if (performance.now() > giveUpAt) {
        journal.surprises.push(`a request under its Idempotency-Key is not answered: ${JSON.stringify(reply)}`)
        break
      }
      await setTimeout(pauseMs)
    }
  }
}

const isUnsettled = ({ headers, writes }: Entry) =>
  'Idempotency-Key' in headers && writes.some(({ outcome }) => outcome === 'unknown')

const isRunning = ({ status, body }: Reply) => status === 409 && body.error === 'invalid_parameter'

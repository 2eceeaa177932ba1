import cluster, { type Address, type Worker } from 'node:cluster'
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Shutdown } from './shutdown.ts'

/** A worker that ended is replaced, but no faster than this. */
const replaceIntervalMs = 1_000
/** What a worker is told by the process that started it. */
type Message = 'stop' | 'hurry'

/** `hangUp` hands SIGHUP on; `stop` resolves when all have ended. */
export type Workers = { address: Address; hangUp(): void; stop(hurried?: AbortSignal): Promise<void> }

/**
 * Runs this program again, `count` times, in processes that share one port. A worker that dies is replaced. Throws when
 * the first one cannot start; it says why by itself.
 */
export async function startWorkers(count: number, environment: NodeJS.ProcessEnv, logger: Logger): Promise<Workers> {
  const running = new Set<Worker>()
  let stopping = false

  async function fork(): Promise<Address> {
    const worker = cluster.fork(environment)
    running.add(worker)
    worker.once('exit', (code, signal) => {
      running.delete(worker)
      if (!stopping && worker.isListening) void replace({ pid: worker.process.pid, code, signal })
    })
    const [address] = await Promise.race([once(worker, 'listening'), failed(worker)])
    worker.isListening = true
    return address
  }

  async function replace(ended: object) {
    logger.error(ended, 'a worker has ended, and is replaced')
    await setTimeout(replaceIntervalMs, undefined, { ref: false })
    if (!stopping) await fork().catch(() => replace({}))
  }

  function hangUp() {
    for (const worker of running) worker.process.kill('SIGHUP')
  }

  function tell(message: Message) {
    for (const worker of running) if (worker.isConnected()) worker.send(message)
  }

  async function stop(hurried?: AbortSignal) {
    stopping = true
    const ending = [...running].map(worker => once(worker, 'exit'))
    tell('stop')
    hurried?.addEventListener('abort', () => tell('hurry'))
    await Promise.all(ending)
  }

  try {
    // One alone first, so that what keeps them all from starting is said once.
    const address = await fork()
    for (let index = 1; index < count; index += 1) await fork()
    return { address, hangUp, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

declare module 'node:cluster' {
  interface Worker {
    isListening?: boolean
  }
}

async function failed(worker: Worker): Promise<never> {
  await once(worker, 'exit')
  throw new Error('A worker could not start.')
}

/** Within a worker: has the process that started it begin the shutdown, and hurry it. */
export function followStarter({ begin, hurry }: Shutdown): void {
  process.on('message', (message: Message) => {
    if (message === 'stop') begin()
    if (message === 'hurry') hurry()
  })
}

import cluster, { type Address, type Worker } from 'node:cluster'
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Shutdown } from './shutdown.ts'

/** The delay before a worker that ended is replaced. */
const replaceIntervalMs = 1_000
/** A message to a worker from the process that started it. */
type Message = 'stop' | 'hurry'

export type Workers = Awaited<ReturnType<typeof startWorkers>>

/**
 * Runs this program in `count` worker processes that share one port, and replaces a worker that dies. Throws if a
 * worker cannot start. The worker itself reports the reason.
 */
export async function startWorkers(count: number, environment: NodeJS.ProcessEnv, logger: Logger) {
  const running = new Set<Worker>()
  let stopping = false

  async function fork(): Promise<Address> {
    const worker = cluster.fork(environment)
    running.add(worker)
    worker.once('exit', (code, signal) => {
      running.delete(worker)
      if (!stopping && worker.isListening) void replace({ pid: worker.process.pid, code, signal })
    })
    const [address] = await Promise.race([once(worker, 'listening'), throwOnExit(worker)])
    worker.isListening = true
    return address
  }

  async function replace(exit: object) {
    logger.error(exit, 'a worker ended and will be replaced')
    await setTimeout(replaceIntervalMs, undefined, { ref: false })
    if (!stopping) await fork().catch(() => replace({}))
  }

  /** Forwards SIGHUP to the workers. */
  function hangUp() {
    for (const worker of running) worker.process.kill('SIGHUP')
  }

  function sendToAll(message: Message) {
    for (const worker of running) if (worker.isConnected()) worker.send(message)
  }

  /** Resolves when all workers have ended. */
  async function stop(hurried?: AbortSignal): Promise<void> {
    stopping = true
    const exits = [...running].map(worker => once(worker, 'exit'))
    sendToAll('stop')
    hurried?.addEventListener('abort', () => sendToAll('hurry'))
    await Promise.all(exits)
  }

  try {
    // The first worker starts alone, so that a problem of all workers is reported once.
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

async function throwOnExit(worker: Worker): Promise<never> {
  await once(worker, 'exit')
  throw new Error('A worker could not start.')
}

/** In a worker, lets the starting process start and hurry the shutdown. */
export function followStarter({ begin, hurry }: Shutdown): void {
  process.on('message', (message: Message) => {
    if (message === 'stop') begin()
    if (message === 'hurry') hurry()
  })
}

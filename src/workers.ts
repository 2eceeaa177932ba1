import cluster, { type Address, type Worker } from 'node:cluster'
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import closeWithGrace from 'close-with-grace'
import type { Logger } from 'pino'

/** A worker that ended is replaced, but no faster than this. */
const replace_interval_ms = 1_000
const stop_message = 'stop'

/** `hangUp` hands SIGHUP on. */
export type Workers = { address: Address; hangUp(): void; stop(): Promise<void> }

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
    await setTimeout(replace_interval_ms, undefined, { ref: false })
    if (!stopping) await fork().catch(() => replace({}))
  }

  function hangUp() {
    for (const worker of running) worker.process.kill('SIGHUP')
  }

  async function stop() {
    stopping = true
    const ending = [...running].map(worker => once(worker, 'exit'))
    // No signal: a Ctrl-C at the terminal has reached them already, and a second one would cut them off.
    for (const worker of running) if (worker.isConnected()) worker.send(stop_message)
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

/** Within a worker: `stop` is called when the process that started it says so. */
export function heedStop(stop: () => void): void {
  const grace = closeWithGrace as unknown as { closing: boolean }
  process.on('message', message => {
    if (message === stop_message && !grace.closing) stop()
  })
}

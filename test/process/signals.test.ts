import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startEmbedded } from '../../src/db/embedded.ts'
import {
  endProcesses,
  hasServer,
  type Kith,
  type Lock,
  launch,
  launchByNpm,
  lockPerson,
  makeDataFolder,
  senderTo,
  tokenFrom,
} from '../support/process.ts'

let dataDir: string
let environment: Record<string, string>
let lock: Lock | undefined

beforeEach(async () => {
  dataDir = await makeDataFolder()
  environment = { KITH_DATA_DIR: dataDir }
})

afterEach(async () => {
  await lock?.release()
  lock = undefined
  await endProcesses()
})

const untilDraining = ({ output }: Kith) => expect.poll(() => output.stdout).toContain('draining')

/** Starts a service with an embedded PostgreSQL, and a PATCH that waits for a lock. */
async function startPatch(workers: number) {
  const kith = launchByNpm(environment, '--workers', `${workers}`)
  const send = senderTo(await kith.ready, await tokenFrom(environment))
  expect((await send('POST', '/v1/people', { external_id: 'ada' })).status).toBe(201)
  const { url, stop } = await startEmbedded({ dataDir, purpose: 'command', log: () => {} })
  await stop()
  lock = await lockPerson(url, 'ada')
  const patch = send('PATCH', '/v1/people/ada', { first_name: 'Ada' })
  patch.catch(() => {})
  await expect.poll(lock.waiting).toBe(1)
  return { kith, patch }
}

describe.each([1, 2])('npm start with %i workers', workers => {
  it('answers a request in flight when a second signal follows at once', async () => {
    const { kith, patch } = await startPatch(workers)
    process.kill(-kith.child.pid!, 'SIGINT')
    await setTimeout(10)
    process.kill(-kith.child.pid!, 'SIGTERM')
    await untilDraining(kith)
    await lock!.release()
    expect((await patch).status).toBe(200)
    expect(await kith.ended).toBe(0)
    expect(await hasServer(dataDir)).toBe(false)
  })

  it('aborts requests in flight and stops the embedded PostgreSQL at a later second signal', async () => {
    const { kith, patch } = await startPatch(workers)
    process.kill(-kith.child.pid!, 'SIGTERM')
    await untilDraining(kith)
    // kith ignores a second signal within 2 s of the first.
    await setTimeout(2_100)
    process.kill(-kith.child.pid!, 'SIGTERM')
    await expect(patch).rejects.toThrow()
    expect(await kith.ended).toBe(0)
    expect(kith.output.stdout).toContain('another signal')
    expect(await hasServer(dataDir)).toBe(false)
  })
})

it('exits with 1 after an uncaught error, also when another one follows during the shutdown', async () => {
  const fault = "process.on('SIGWINCH', () => setImmediate(() => { throw new RangeError('of a test') }))"
  const kith = launch({ ...environment, NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(fault)}` })
  await kith.ready
  kith.child.kill('SIGWINCH')
  await expect.poll(() => kith.output.stdout).toContain('"fault":"RangeError"')
  kith.child.kill('SIGWINCH')
  expect(await kith.ended).toBe(1)
  expect(await hasServer(dataDir)).toBe(false)
})

it('stops the embedded PostgreSQL and exits with 1 when its standard output is closed', async () => {
  const kith = launch(environment)
  const address = await kith.ready
  kith.child.stdout!.destroy()
  // The log lines of these requests go to the closed pipe.
  const answers = Array.from({ length: 20 }, () => fetch(`${address}/healthz`).then(({ status }) => status))
  await Promise.allSettled(answers)
  expect(await kith.ended).toBe(1)
  expect(await hasServer(dataDir)).toBe(false)
})

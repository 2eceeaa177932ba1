import { join } from 'node:path'
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
  makeFolder,
  senderTo,
  tokenFrom,
} from '../support/process.ts'

let dataDir: string
let environment: Record<string, string>
let lock: Lock | undefined

beforeEach(async () => {
  dataDir = join(await makeFolder(), '.kith')
  environment = { KITH_DATA_DIR: dataDir }
})

afterEach(async () => {
  await lock?.release()
  lock = undefined
  await endProcesses()
})

const untilDraining = ({ said }: Kith) => expect.poll(() => said.stdout).toContain('draining')

/** A service on a PostgreSQL of its own, with a PATCH under way that waits for a lock. */
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
  it('a second signal of the process group that follows at once is the same stop: what is under way is answered', async () => {
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

  it('a later signal gives up what is under way, and the embedded PostgreSQL is stopped all the same', async () => {
    const { kith, patch } = await startPatch(workers)
    process.kill(-kith.child.pid!, 'SIGTERM')
    await untilDraining(kith)
    // Up to here it is the same stop.
    await setTimeout(2_100)
    process.kill(-kith.child.pid!, 'SIGTERM')
    await expect(patch).rejects.toThrow()
    expect(await kith.ended).toBe(0)
    expect(kith.said.stdout).toContain('another signal')
    expect(await hasServer(dataDir)).toBe(false)
  })
})

it('an error that nobody caught ends the process with 1, and one more while it stops changes nothing', async () => {
  const fault = "process.on('SIGWINCH', () => setImmediate(() => { throw new RangeError('of a test') }))"
  const kith = launch({ ...environment, NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(fault)}` })
  await kith.ready
  kith.child.kill('SIGWINCH')
  await expect.poll(() => kith.said.stdout).toContain('"fault":"RangeError"')
  kith.child.kill('SIGWINCH')
  expect(await kith.ended).toBe(1)
  expect(await hasServer(dataDir)).toBe(false)
})

it('a standard output that was closed ends the process with 1, after the embedded PostgreSQL', async () => {
  const kith = launch(environment)
  const address = await kith.ready
  kith.child.stdout!.destroy()
  // What is logged finds nobody who reads it.
  const answers = Array.from({ length: 20 }, () => fetch(`${address}/healthz`).then(({ status }) => status))
  await Promise.allSettled(answers)
  expect(await kith.ended).toBe(1)
  expect(await hasServer(dataDir)).toBe(false)
})

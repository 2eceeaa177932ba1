import { chmod, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { killServer } from '../support/embedded-service.ts'
import { endProcesses, launch, makeFolder, senderTo, stopProcesses, terminate, tokenFrom } from '../support/process.ts'
import { fillDisk, fillerOf, mountDisk, unmountDisk } from './small-disk.ts'

let disk: string
let environment: { KITH_DATA_DIR: string }
beforeEach(async () => {
  disk = await makeFolder()
  environment = { KITH_DATA_DIR: join(disk, '.kith') }
})
afterEach(async () => {
  await rm(fillerOf(disk), { force: true })
  await stopProcesses()
  await unmountDisk(disk)
  await endProcesses()
})

async function mount(megabytes: number) {
  await mountDisk(disk, megabytes)
  await chmod(disk, 0o711)
}

/** Starts kith on a disk of 90 MB. Its data take about 48 MB. */
async function startWithRoom() {
  await mount(90)
  const kith = launch(environment)
  return { kith, address: await kith.ready }
}

/** Expects a start to fail with one line on stderr, which says that the disk is full. */
async function expectFullDisk() {
  const kith = launch(environment)
  expect({ code: await kith.ended, stderr: kith.output.stderr }).toEqual({
    code: 1,
    stderr: expect.stringMatching(
      new RegExp(
        `^The disk that holds ${environment.KITH_DATA_DIR} is full, so the embedded PostgreSQL cannot write\\. Free space on it, or [^\\n]*\\n$`,
      ),
    ),
  })
}

// The long timeout covers several starts and recoveries of a PostgreSQL server.
describe('a full disk', { timeout: 300_000 }, () => {
  it('is reported by a first start without space for its data', async () => {
    await mount(8)
    await expectFullDisk()
  })

  it('is reported by a start after a clean stop, which succeeds once there is space', async () => {
    const { kith } = await startWithRoom()
    expect(await terminate(kith)).toBe(0)
    await fillDisk(disk)
    await expectFullDisk()
    await rm(fillerOf(disk))
    const later = launch(environment)
    await later.ready
    expect(await terminate(later)).toBe(0)
  })

  it('is reported by a start after a crash, which cannot recover without space', async () => {
    const { kith } = await startWithRoom()
    kith.child.kill('SIGKILL')
    await kith.ended
    await killServer(join(environment.KITH_DATA_DIR, 'postgresql'))
    await fillDisk(disk)
    await expectFullDisk()
  })

  it('is reported in the log when a write fails', async () => {
    const { kith, address } = await startWithRoom()
    const send = senderTo(address, await tokenFrom(environment))
    await fillDisk(disk)
    const attribute_values = Object.fromEntries([1, 2, 3, 4].map(key => [key, `${Math.random()}`.repeat(3_000)]))
    // The first writes fit in the existing files of the database.
    const statuses = new Set<number>()
    for (let index = 0; index < 500 && !statuses.has(503); index += 1)
      statuses.add((await send('POST', '/v1/people', { external_id: `p${index}`, attribute_values })).status)
    expect(statuses).toContain(503)
    await expect.poll(() => kith.output.stdout).toContain('"msg":"The database has no disk space left."')
    await rm(fillerOf(disk))
    expect(await terminate(kith)).toBe(0)
  })
})

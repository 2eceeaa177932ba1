import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openEvents, readFeed, takeEvents } from '../support/changes.ts'
import { createTestDatabase } from '../support/database.ts'
import { endProcesses, launch, senderTo, terminate, tokenFrom } from '../support/process.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let environment: Record<string, string>

beforeEach(async () => {
  database = await createTestDatabase()
  environment = { DATABASE_URL: database.url }
})

afterEach(async () => {
  await endProcesses()
  await database.drop()
})

describe('SIGTERM', { timeout: 60_000 }, () => {
  it('ends streams of events completely, answers long polls, and exits with 0', async () => {
    const kith = launch(environment)
    const address = await kith.ready
    const token = await tokenFrom(environment)
    const send = senderTo(address, token)
    await send('POST', '/v1/people', { external_id: 'ada' })
    const streams = [await openEvents({ address }, token), await openEvents({ address }, token, 'after=1')]
    expect(await takeEvents(streams[0]!, 1)).toMatchObject([{ external_id: 'ada' }])
    const waiting = readFeed({ send }, 'after=1&wait=20')
    // The write is seen by the streams, so they wait for the next one.
    const startedMs = performance.now()
    const code = terminate(kith)
    for (const stream of streams) expect(await stream.next()).toBeUndefined()
    expect(await waiting).toMatchObject({ items: [], last: 1, head: 1 })
    expect(await code).toBe(0)
    // A stop waits up to 11 seconds for requests that are under way.
    expect(performance.now() - startedMs).toBeLessThan(8_000)
  })
})

describe('several workers', { timeout: 60_000 }, () => {
  it('show a follower of one worker what the others write', async () => {
    const kith = launch(environment, ['serve', '--workers', '2'])
    const address = await kith.ready
    const token = await tokenFrom(environment)
    const send = senderTo(address, token)
    const streams = [await openEvents({ address }, token), await openEvents({ address }, token)]
    for (let n = 1; n <= 20; n += 1) expect((await send('POST', '/v1/people', {})).status).toBe(201)
    for (const stream of streams)
      expect((await takeEvents(stream, 20)).map(({ sequence }) => sequence)).toEqual(
        Array.from({ length: 20 }, (_, n) => n + 1),
      )
    expect(await terminate(kith)).toBe(0)
  })
})

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { query } from '../support/embedded-service.ts'
import { readMetrics } from '../support/metrics.ts'
import { checkout, endProcesses, launch, senderTo, terminate, tokenFrom, workersOf } from '../support/process.ts'

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

const { version } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as { version: string }

/** Changes the tables as the start of a newer version would. */
async function migrateAsNewerVersion() {
  await query(database.url, `insert into migrations (name, run_on) values ('9999_of_a_newer_version', now())`)
  await query(database.url, 'alter table entities add column of_a_newer_version text')
}

describe('the version', () => {
  it.each([1, 2])('is in the first log line, in /healthz and in /metrics with %i workers', async workers => {
    const kith = launch(environment, ['serve', '--workers', `${workers}`])
    const address = await kith.ready
    const [first = ''] = kith.output.stdout.split('\n')
    expect(JSON.parse(first)).toMatchObject({ version, node: process.version, msg: 'kith is starting' })
    expect(await (await fetch(`${address}/healthz`)).json()).toEqual({
      status: 'Success',
      data: { healthy: true, version },
    })
    expect((await readMetrics(address)).value(`kith_build_info{version="${version}"}`)).toBe(1)
  })

  it('has a dated section in the changelog, and is the version of the client', () => {
    const changelog = readFileSync(join(checkout, 'CHANGELOG.md'), 'utf8')
    const [unreleased, newest] = [...changelog.matchAll(/^## (.*)$/gm)].map(match => match[1]!)
    expect(unreleased).toBe('[Unreleased]')
    expect(newest).toMatch(/^\[[^\]]+\] - \d{4}-\d{2}-\d{2}$/)
    expect(newest).toContain(`[${version}]`)
    expect(JSON.parse(readFileSync(join(checkout, 'client', 'package.json'), 'utf8')).version).toBe(version)
  })
})

// The timeout allows for several starts, one of them of a replaced worker.
describe('tables that a newer version has migrated', { timeout: 120_000 }, () => {
  it.each([1, 2])('do not stop a running server or its replaced workers, with %i workers', async workers => {
    const kith = launch(environment, ['serve', '--workers', `${workers}`])
    const send = senderTo(await kith.ready, await tokenFrom(environment))
    await migrateAsNewerVersion()
    if (workers > 1) {
      const [worker] = workersOf(kith)
      process.kill(worker!, 'SIGKILL')
      await expect.poll(() => workersOf(kith).filter(pid => pid !== worker).length, { timeout: 60_000 }).toBe(workers)
      await expect.poll(() => kith.output.stdout.match(/"msg":"listening at/g)?.length, { timeout: 60_000 }).toBe(3)
    }
    for (const external_id of ['ada', 'grace']) {
      expect((await send('POST', '/v1/people', { external_id })).status).toBe(201)
      expect((await send('GET', `/v1/people/${external_id}`)).body.data).not.toHaveProperty('of_a_newer_version')
    }
    expect(await terminate(kith)).toBe(0)
  })
})

import { statfs } from 'node:fs/promises'
import { afterEach, expect, it } from 'vitest'
import { createClient } from '../../client/index.ts'
import { version } from '../../src/process/version.ts'
import { runInProcess } from '../support/command.ts'
import { readMetrics } from '../support/metrics.ts'
import { endProcesses, launch, makeDataFolder, terminate } from '../support/process.ts'

afterEach(endProcesses)

it.each([
  ['one process', ['serve']],
  ['several workers', ['serve', '--workers', '2']],
])('reports the embedded server as up with %s, as text and as JSON', async (_, words) => {
  const environment = { KITH_DATA_DIR: await makeDataFolder() }
  const kith = launch(environment, words)
  const url = await kith.ready
  const { value } = await readMetrics(url)
  expect([value('kith_embedded_database_up'), value('kith_db_up')]).toEqual([1, 1])
  const { blocks, bsize } = await statfs(environment.KITH_DATA_DIR)
  expect(value('kith_disk_free_bytes')).toBeGreaterThan(0)
  expect(value('kith_disk_free_bytes')).toBeLessThan(blocks * bsize)
  const scope = 'operations:read people:read'
  const { stdout: token } = await runInProcess(['token', '--org', 'default', '--scope', scope], environment)
  const client = createClient({ url, token: token.trim() })
  for await (const _person of client.people.list()) throw new Error('there is a person')
  const { operations } = client
  const metrics = await operations.metrics()
  expect(metrics).toMatchObject({ version, database: { up: true, pools: [{ pool: 'main' }] } })
  expect(metrics.requests.routes.find(({ route }) => route === '/v1/people/list')?.count).toBe(1)
  expect((await operations.doctor()).findings.filter(({ verdict }) => verdict === 'wrong')).toEqual([])
  expect(await terminate(kith)).toBe(0)
})

import { afterEach, expect, it } from 'vitest'
import { readMetrics } from '../support/metrics.ts'
import { endProcesses, launch, makeDataFolder, terminate } from '../support/process.ts'

afterEach(endProcesses)

it.each([
  ['one process', ['serve']],
  ['several workers', ['serve', '--workers', '2']],
])('reports the embedded server as up with %s', async (_, words) => {
  const kith = launch({ KITH_DATA_DIR: await makeDataFolder() }, words)
  const { value } = await readMetrics(await kith.ready)
  expect([value('kith_embedded_database_up'), value('kith_db_up')]).toEqual([1, 1])
  expect(await terminate(kith)).toBe(0)
})

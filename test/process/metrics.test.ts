import { afterEach, expect, it } from 'vitest'
import { readMetrics } from '../support/metrics.ts'
import { endProcesses, launch, makeFolder, terminate } from '../support/process.ts'

afterEach(endProcesses)

it.each([
  ['one process', ['serve']],
  ['several workers', ['serve', '--workers', '2']],
])('%s on the embedded server say that it runs', async (_, words) => {
  const kith = launch({ KITH_DATA_DIR: await makeFolder() }, words)
  const { of } = await readMetrics(await kith.ready)
  expect([of('kith_embedded_database_up'), of('kith_db_up')]).toEqual([1, 1])
  expect(await terminate(kith)).toBe(0)
})

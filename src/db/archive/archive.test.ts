import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { listBases, listReach, listSegments, removeOld, writeBase, writePosition, writeSegment } from './archive.ts'
import { openStore, type Store } from './store.ts'

const dayMs = 86_400_000
let folder: string
let store: Store

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kith-archive-'))
  store = openStore({ folder })
})
afterEach(() => rm(folder, { recursive: true }))

const daysAgo = (days: number) => new Date(Date.now() - days * dayMs).toISOString()

/** Stores a copy that ended some days ago and needs the log from the segment `first` on. */
const storeBase = (id: string, days: number, first: number, timeline = 1) =>
  writeBase(store, { id, timeline, first, last: first + 1, stopped_at: daysAgo(days), backup_label: '', parts: [] })

async function storeLog(segments: number[], timeline = 1) {
  const bytes = Buffer.alloc(16 * 2 ** 20)
  for (const segment of segments) await writeSegment(store, timeline, segment, bytes)
  await writePosition(store, timeline, { until: daysAgo(0), segment: segments.at(-1)! })
}

const idsLeft = async () => (await listBases(store)).map(({ id }) => id)

describe('what an archive removes', () => {
  it('is what no second of the last days needs: the copy from before them stays, with its log', async () => {
    await storeBase('1-a', 9, 1)
    await storeBase('2-b', 8, 3)
    await storeBase('3-c', 6, 5)
    await storeLog([1, 2, 3, 4, 5, 6])
    await removeOld(store, { days: 7, current: '3-c' })
    expect(await idsLeft()).toEqual(['2-b', '3-c'])
    expect(await listSegments(store, 1)).toEqual([3, 4, 5, 6])
    expect((await listReach(store)).every(({ until }) => until !== undefined)).toBe(true)
  })

  it('is nothing while no copy is older than the days', async () => {
    await storeBase('1-a', 3, 1)
    await storeBase('2-b', 1, 3)
    await storeLog([1, 2, 3, 4])
    await removeOld(store, { days: 7, current: '2-b' })
    expect(await idsLeft()).toEqual(['1-a', '2-b'])
    expect(await listSegments(store, 1)).toEqual([1, 2, 3, 4])
  })

  it('is the log of a timeline without copies, unless it is newer than all copies', async () => {
    await storeBase('1-a', 9, 1, 1)
    await storeBase('2-b', 8, 3, 2)
    await storeLog([1, 2], 1)
    await storeLog([3, 4], 2)
    await storeLog([5], 3)
    await removeOld(store, { days: 7, current: '2-b' })
    expect(await idsLeft()).toEqual(['2-b'])
    expect(await Promise.all([1, 2, 3].map(timeline => listSegments(store, timeline)))).toEqual([[], [3, 4], [5]])
  })
})

it('a copy reaches no second if a segment that it needs is missing', async () => {
  await storeBase('1-a', 1, 1)
  await storeLog([1, 3])
  expect(await listReach(store)).toEqual([expect.objectContaining({ id: '1-a', until: undefined })])
})

it('a stored segment is never replaced by another one', async () => {
  await storeLog([1])
  const other = Buffer.alloc(16 * 2 ** 20, 1)
  await expect(writeSegment(store, 1, 1, other)).rejects.toThrow('two data folders write this archive')
})

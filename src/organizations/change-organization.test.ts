import { describe, expect, it } from 'vitest'
import { readFeed } from '../../test/support/changes.ts'
import { useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'
import { onCommit } from '../db/commit-events.ts'
import { contextOf } from '../db/context.ts'
import { statement } from '../db/db.ts'
import {
  type ChangeCall,
  type Changed,
  changeOrganization,
  type DefinitionDiff,
  type Locked,
} from './change-organization.ts'

const service = useService()
const shop = useShop(service)
const author = { actor: 'tester', request_id: 'a-request' }

const entry = (id: number): DefinitionDiff => ({
  subject: 'settings',
  id,
  operation: 'update',
  before: {},
  after: { n: id },
})
const rename = (tx: Locked['tx'], name: string) => {
  const text = 'update consent_types set name = $2 where organization_id = $1 and id = 1 returning name'
  return tx.query<{ name: string }>(statement('', text), [shop.id, name])
}
const name = async () => {
  const text = 'select name from consent_types where organization_id = $1 and id = 1'
  return (await service.sql<{ name: string }>(text, [shop.id]))[0]!.name
}
const feed = async () => (await readFeed(shop)).items.map(({ sequence, actor }) => [sequence, actor])

function change<Result>(work: (locked: Locked) => Promise<Changed<Result>>, call: Partial<ChangeCall> = {}) {
  return changeOrganization(contextOf(service.db, shop.id), { ...author, ...call }, work)
}

async function countingCommits<Result>(run: () => Promise<Result>): Promise<{ result: Result; commits: number }> {
  let commits = 0
  const stop = onCommit(service.db, id => {
    if (id === shop.id) commits += 1
  })
  const result = await run().finally(stop)
  return { result, commits }
}

describe('a change of an organization', () => {
  it('stores, logs and announces once, and reports the number of its last entry', async () => {
    const written = { sequence: 0 }
    const { result, commits } = await countingCommits(() =>
      change(
        async ({ tx }) => ({
          statements: [rename(tx, 'renamed')],
          changes: [entry(1), entry(2)],
          result: async () =>
            (
              await tx.query(statement('', 'select sequence from change_heads where organization_id = $1'), [shop.id])
            )[0],
        }),
        { written },
      ),
    )
    expect([result, written, commits]).toEqual([{ sequence: 2 }, { sequence: 2 }, 1])
    expect([await name(), await feed()]).toEqual([
      'renamed',
      [
        [1, 'tester'],
        [2, 'tester'],
      ],
    ])
  })

  it('takes numbers without gaps and in order among many at once, each of which sees what the others did', async () => {
    const seen = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        change(async ({ head }) => ({
          changes: Array.from({ length: n % 3 }, () => entry(n + 1)),
          result: [head.sequence, n % 3],
        })),
      ),
    )
    // Among changes that saw the same head, the one with entries in the log came last.
    seen.sort(([a, m], [b, n]) => a! - b! || m! - n!)
    for (const [index, [sequence]] of seen.entries())
      expect(sequence).toBe(seen.slice(0, index).reduce((sum, [, count]) => sum + count!, 0))
    expect((await feed()).map(([sequence]) => sequence)).toEqual(Array.from({ length: 19 }, (_, n) => n + 1))
  })

  it('returns the result of a dry run with the entries that it would log, and stores and announces nothing', async () => {
    const written: ChangeCall['written'] = { sequence: 0 }
    const before = await name()
    const { result, commits } = await countingCommits(() =>
      change(
        async ({ tx }) => ({
          statements: [rename(tx, 'another')],
          changes: [entry(1)],
          result: async () => (await rename(tx, 'a-third'))[0],
        }),
        { isDryRun: true, written },
      ),
    )
    expect([result, written, commits]).toEqual([{ name: 'a-third' }, { sequence: 0, changes: [entry(1)] }, 0])
    expect([await name(), await feed()]).toEqual([before, []])
  })

  it('runs all of its work again after a conflict, and is logged once', async () => {
    const conflict = statement('', `do $$ begin raise exception 'meanwhile' using errcode = '40001'; end $$`)
    let runs = 0
    await change(async ({ tx }) => {
      runs += 1
      return { statements: runs < 3 ? [tx.query(conflict, [])] : [], changes: [entry(runs)], result: undefined }
    })
    expect([runs, await feed()]).toEqual([3, [[1, 'tester']]])
  })

  it('leaves nothing behind when the work throws or a statement fails', async () => {
    const before = await name()
    const throwing = change(async ({ tx }) => {
      await rename(tx, 'another')
      throw new Error('no more')
    })
    await expect(throwing).rejects.toThrow('no more')
    const failing = change(async ({ tx }) => ({
      statements: [rename(tx, 'another'), tx.query(statement('', 'select 1/0'), [])],
      changes: [entry(1)],
      result: undefined,
    }))
    await expect(failing).rejects.toThrow('division by zero')
    expect([await name(), await feed()]).toEqual([before, []])
  })
})

import { describe, expect, it } from 'vitest'
import { parseCheckpoint, parseNote } from '../../client/src/ledger-proof.ts'
import { sealLedgers } from '../../test/support/ledger.ts'
import { type Organization, useOwnService } from '../../test/support/service.ts'
import { createShop } from '../../test/support/shop.ts'
import { contextOf } from '../db/context.ts'
import { type Database, openDatabase, statement, type Transaction } from '../db/db.ts'
import type { Follower } from '../followers/follower.ts'
import { createFollowers, listFailingFollowers } from '../followers/followers.ts'
import { auditLedger } from './audit.ts'
import { ledgerFollower } from './seal.ts'

const service = useOwnService()

let people = 0
async function answer({ send }: Organization, count: number, consents = ['email']) {
  const operations = Array.from({ length: count }, () => ({
    op: 'create',
    body: {
      external_id: `p${++people}`,
      consents: consents.map(channel => ({ consent_type_id: 1, channel, state: people % 2 === 0 })),
    },
  }))
  expect((await send('POST', '/v1/people/batch', { operations })).status).toBe(200)
}

const checkpointOf = async ({ send }: Organization) => {
  const note = (await send('GET', '/v1/ledger/checkpoint')).body.data.toString()
  return { note, ...parseCheckpoint(parseNote(note).text) }
}
type Entry = { index: number; sequence: number; consent_type_id: number; channel: string; salt: Buffer }
const entriesOf = ({ id }: Organization) =>
  service.sql<Entry>('select * from ledger_entries where organization_id = $1 order by index', [id])
const follower = (): Follower => ledgerFollower({ originName: 'kith' })

/** The row of the ledger's follower of an organization. */
const rowOf = async ({ id }: Organization) => {
  const text = `select sequence, failures, failure from followers where organization_id = $1 and name = 'ledger'`
  return (await service.sql<{ sequence: number; failures: number; failure: string }>(text, [id]))[0]
}

describe('sealing', () => {
  it('appends the answers in the order of the change log, then of type and channel, each with a salt of its own', async () => {
    const other = await createShop(service, {
      key: 'news',
      channels: [{ channel: 'email' }, { channel: 'sms' }],
    })
    const { send } = other
    const consents = [
      { consent_type_id: 2, channel: 'sms', state: true },
      { consent_type_id: 2, channel: 'email', state: true },
      { consent_type_id: 1, channel: 'sms', state: false },
      { consent_type_id: 1, channel: 'email', state: true },
    ]
    await send('POST', '/v1/people', { external_id: 'b', consents })
    await send('POST', '/v1/people', { external_id: 'silent' })
    await send('POST', '/v1/people', { external_id: 'a', email_consent: true })
    await send('PATCH', '/v1/people/b', { sms_consent: true })
    await sealLedgers(service)
    const entries = await entriesOf(other)
    const listed = entries.map(({ index, consent_type_id, channel }) => [index, consent_type_id, channel])
    expect(listed.slice(0, 4)).toEqual([
      [0, 1, 'email'],
      [1, 1, 'sms'],
      [2, 2, 'email'],
      [3, 2, 'sms'],
    ])
    const sequences = entries.map(({ sequence }) => sequence)
    expect(sequences).toEqual(sequences.toSorted((a, b) => a - b))
    expect(new Set(sequences)).toEqual(new Set([2, 4, 5]))
    expect(new Set(entries.map(({ salt }) => salt.toString('hex'))).size).toBe(entries.length)
    expect(await auditLedger(contextOf(service.db, other.id))).toMatchObject({ findings: [], waiting: 0 })
  })

  it('changes nothing without new answers', async () => {
    const other = await service.organization()
    await answer(other, 3)
    await sealLedgers(service)
    const { note } = await checkpointOf(other)
    await other.send('POST', '/v1/people', {})
    await sealLedgers(service)
    expect((await checkpointOf(other)).note).toBe(note)
    expect((await entriesOf(other)).length).toBe(3)
  })

  it('seals a long history in batches, each with its own checkpoint', async () => {
    const other = await service.organization()
    for (let batch = 0; batch < 25; batch++) await answer(other, 100, ['email', 'sms'])
    const sizes: number[] = []
    const db = watching(service.db, (name, values) => {
      if (name === 'store_ledger' && values[0] === other.id) sizes.push(values[2] as number)
    })
    await runOnce(db)
    expect(sizes.at(-1)).toBe(5_000)
    expect(sizes.length).toBeGreaterThan(2)
    expect(sizes.map((size, n) => size - (sizes[n - 1] ?? 0)).every(count => count > 0 && count <= 2_000)).toBe(true)
    expect(await auditLedger(contextOf(service.db, other.id))).toMatchObject({ size: 5_000, findings: [] })
  })

  it('seals an organization with nothing but silent people without a ledger', async () => {
    const other = await service.organization()
    await other.send('POST', '/v1/people', {})
    await sealLedgers(service)
    expect(await service.sql('select from ledgers where organization_id = $1', [other.id])).toEqual([])
    expect(await rowOf(other)).toMatchObject({ sequence: 1, failures: 0 })
  })
})

/** The database, whose statements `watch` sees before they are sent. If `watch` throws, the statement is not sent. */
function watching(db: Database, watch: (name: string, values: unknown[]) => unknown): Database {
  const seen = async (name: string, values: unknown[]) => watch(name, values)
  return {
    ...db,
    query: async (statement, values, signal) => {
      await seen(statement.name, values)
      return db.query(statement, values, signal) as never
    },
    transaction: (work, options) =>
      db.transaction(tx => {
        const watched: Transaction = {
          ...tx,
          query: async (statement, values) => {
            await seen(statement.name, values)
            return tx.query(statement, values) as never
          },
          commit: async () => {
            await seen('commit', [])
            await tx.commit()
            await seen('committed', [])
          },
        }
        return work(watched).then(async result => {
          await watched.commit()
          return result
        })
      }, options),
  }
}

/** Each run is one hour later, so that no pause or lease of an earlier run applies. */
let hours = 0
async function runOnce(db: Database, reported: unknown[] = []) {
  hours += 1
  const nowMs = () => Date.now() + hours * 3_600_000
  const following = createFollowers(db, [follower()], { report: error => reported.push(error), nowMs })
  await following.tick()
  await following.idle()
  await following.stop()
}

/** The statements of a run that seals, in order, and the events around its commit. */
const steps = [
  'claim_follower',
  'read_unsealed',
  'read_log_name',
  'read_ledger',
  'read_ledger_signer',
  'advance_follower',
  'insert_ledger_entries',
  'delete_erased_answers',
  'insert_ledger_tiles',
  'store_ledger',
  'commit',
  'committed',
  'release_follower',
]

describe('a process that dies while it seals', () => {
  /** A connection that another one can end. To PostgreSQL, its end looks like the death of the process. */
  async function openOwn() {
    const db = openDatabase(service.databaseUrl, { connections: 1, statementTimeoutMs: 20_000 })
    const [{ pid }] = (await db.query<{ pid: number }>(statement('', 'select pg_backend_pid() as pid'), [])) as [
      { pid: number },
    ]
    const kill = () => service.sql('select pg_terminate_backend($1, 5000)', [pid])
    return { db, kill }
  }

  it.each(steps)(
    'at %s leaves a ledger that the next one continues, without a second checkpoint of a size',
    async step => {
      const other = await service.organization()
      await answer(other, 100)
      await sealLedgers(service)
      const before = await checkpointOf(other)
      // The next batch completes a tile, and a tile of the level above.
      await answer(other, 100, ['email', 'sms'])
      const own = await openOwn()
      let killed = 0
      const dying = watching(own.db, async (name, values) => {
        if (killed === 0 && name === step && (values.length === 0 || values[0] === other.id)) {
          killed += 1
          await own.kill()
        }
      })
      await runOnce(dying)
      await own.db.close()
      expect(killed).toBe(1)
      const between = await checkpointOf(other)
      expect([100, 300]).toContain(between.size)
      if (between.size === 100) expect(between.note).toBe(before.note)
      // By PostgreSQL's clock, the lease of the dead process has not ended yet.
      await service.sql(`update followers set leased_until = null where organization_id = $1`, [other.id])
      await answer(other, 5)
      await runOnce(service.db)
      const after = await checkpointOf(other)
      expect(after.size).toBe(305)
      for (const { size, rootHash } of [before, between]) {
        const { old_root_hash } = (await other.send('GET', `/v1/ledger/consistency/${size}`)).body.data
        expect(old_root_hash).toBe(Buffer.from(rootHash).toString('base64'))
      }
      expect(await auditLedger(contextOf(service.db, other.id))).toMatchObject({ findings: [], size: 305, waiting: 0 })
      expect(await rowOf(other)).toMatchObject({ failures: 0 })
    },
  )
})

describe('two processes', () => {
  it('never seal the same answers twice, even if one has lost its lease without noticing', async () => {
    const other = await service.organization()
    await answer(other, 50)
    const reported: unknown[] = []
    let stolen = false
    const slow = watching(service.db, async (name, values) => {
      if (stolen || name !== 'read_ledger' || values[0] !== other.id) return
      stolen = true
      // Another process takes over and seals just before this one does.
      await service.sql(`update followers set leased_until = now() - interval '1 s' where organization_id = $1`, [
        other.id,
      ])
      await answer(other, 50)
      await runOnce(service.db)
    })
    await runOnce(slow, reported)
    expect(stolen).toBe(true)
    expect(reported).toEqual([])
    expect((await checkpointOf(other)).size).toBe(100)
    expect(await auditLedger(contextOf(service.db, other.id))).toMatchObject({ findings: [], size: 100, waiting: 0 })
  })

  it('seal together what many writers answer, each answer once', async () => {
    const others = [await service.organization(), await service.organization()]
    const followings = [1, 2, 3].map(() =>
      createFollowers(service.db, [follower()], {
        report: error => {
          throw error
        },
        tickMs: 20,
      }),
    )
    for (const following of followings) following.start()
    await Promise.all(others.flatMap(other => Array.from({ length: 6 }, () => answer(other, 20))))
    for (const other of others)
      await expect.poll(async () => (await checkpointOf(other)).size, { timeout: 20_000, interval: 100 }).toBe(120)
    for (const following of followings) await following.stop()
    for (const { id } of others)
      expect(await auditLedger(contextOf(service.db, id))).toMatchObject({ findings: [], size: 120, waiting: 0 })
  })

  it('never write a checkpoint over one of another size', async () => {
    const other = await service.organization()
    await answer(other, 3)
    await sealLedgers(service)
    const { note } = await checkpointOf(other)
    await answer(other, 1)
    const reported: unknown[] = []
    // The statements of the transaction are sent together. So the size changes before the transaction begins and locks
    // the row.
    const racing = watching(service.db, async name => {
      if (name === 'read_ledger_signer')
        await service.sql('update ledgers set size = 7 where organization_id = $1', [other.id])
    })
    await runOnce(racing, reported)
    expect(reported).toMatchObject([{ message: 'the ledger has not the size 3 any more' }])
    expect((await checkpointOf(other)).note).toBe(note)
    expect(await entriesOf(other)).toHaveLength(3)
    expect(await listFailingFollowers(service.db)).toContainEqual(
      expect.objectContaining({ organization: other.key, name: 'ledger', failures: 1 }),
    )
  })
})

import { expect, it } from 'vitest'
import { readSequenceAtSql } from '../../src/changes/sql.ts'
import type { Database } from '../../src/db/db.ts'
import {
  readPastChange,
  readPastState,
  readPastTargets,
  readStandingTargets,
} from '../../src/entities/past/past-state.ts'
import {
  basisInterval,
  readBasisSql,
  readLoggedStateSql,
  readPastChangeAtSql,
  readPastChangeSql,
  storeBasesSql,
} from '../../src/entities/past/past-state-sql.ts'
import type { Write } from '../../src/entities/write-request.ts'
import { readDefinitionChanges } from '../../src/organizations/past-definitions.ts'
import { write, writeAll } from '../support/writes.ts'
import { expectReads, explain } from './explain.ts'
import { personId, type World } from './world.ts'

// The limit for a set of one write, with a margin for other rows on a target's page.
const maxRows = 40

/** By statement name, the maximum number of rows that a step of its plan read. */
type RowsByStatement = Map<string, number>

/** Returns a database that runs EXPLAIN ANALYZE for every statement of a transaction before the statement itself. */
function withExplain(db: Database): { db: Database; rowsByStatement: RowsByStatement } {
  const rowsByStatement: RowsByStatement = new Map()
  const transaction: Database['transaction'] = (work, options) =>
    db.transaction(
      tx => {
        // The statements of a flush are sent concurrently, so this puts them in order.
        let last: Promise<unknown> = Promise.resolve()
        const inOrder = <T>(next: () => Promise<T>): Promise<T> => {
          const result = last.then(next)
          last = result.catch(() => {})
          return result
        }
        return work({
          query: (statement, values) =>
            inOrder(async () => {
              rowsByStatement.set(statement.name, (await explain(tx, statement, values)).rows)
              return tx.query(statement, values)
            }),
          // A COPY has no plan.
          append: (into, rows) =>
            inOrder(async () => {
              rowsByStatement.set(into.name, 0)
              return tx.append(into, rows)
            }),
          commit: () => inOrder(() => tx.commit()),
          rollback: () => inOrder(() => tx.rollback()),
        })
      },
      { ...options, lockTimeoutMs: undefined },
    )
  return { db: { ...db, transaction }, rowsByStatement }
}

const allFields = { city: 'Rome', referrer: 'p7', friends: ['p8', 'new friend'], employer: 'acme' }

/** Writes of a large organization, and its past states. */
export function testWrites(world: World): void {
  it.each<[string, Write, string[]]>([
    [
      'a patch of all kinds of values',
      write('patch', 'p500', { first_name: 'Ada', attribute_values: allFields }),
      [
        'lock_head',
        'read_named',
        'read_names_left',
        'read_bearers',
        'read_links',
        'insert_entities',
        'unlink',
        'link',
        'delete_index_keys',
        'insert_index_keys',
        'store_changes',
        'insert_changes',
      ],
    ],
    [
      'a rename',
      write('patch', 'p501', { external_id: 'renamed' }),
      ['lock_head', 'read_named', 'read_names_left', 'read_bearers', 'store_changes', 'insert_changes'],
    ],
    [
      'a deletion',
      write('delete', 'p502'),
      ['lock_head', 'read_named', 'read_links', 'unlink', 'delete_index_keys', 'store_changes', 'insert_changes'],
    ],
    [
      'a patch that returns the person',
      write('patch', 'p503', { first_name: 'Ada' }, { represent: true }),
      ['lock_head', 'read_named', 'store_changes', 'insert_changes', 'read_by_id'],
    ],
  ])('reads only a few rows of a large organization for %s', async (_, item, statements) => {
    expect(await statementsOf(item)).toEqual(statements)
  })

  it('reads only a few rows of a large organization for a patch by internal identifier', async () => {
    const item = write('patch', '', { first_name: 'Ada' }, { address: { id: personId(504) } })
    expect(await statementsOf(item)).toEqual(['lock_head', 'read_rows', 'store_changes', 'insert_changes'])
  })

  it('looks answers up in a large history only if an import may repeat them', async () => {
    const answer = { consent_type_id: 1, channel: 'email' as const, state: true }
    const [late, early] = ['2021-01-01T00:00:00Z', '2020-01-01T00:00:00Z'].map(collected_at => ({
      consents: [{ ...answer, collected_at, source: 'list.csv' }],
    }))
    const stored = ['append_consent_history', 'store_changes', 'insert_changes', 'store_address_answers']
    expect(await statementsOf(write('patch', 'p505', { consents: [answer, { ...answer, channel: 'sms' }] }))).toEqual([
      'lock_head',
      'read_named',
      ...stored,
    ])
    const importing = ['lock_head', 'read_named', 'read_names_left']
    expect(await statementsOf(write('import', 'p507', late))).toEqual([...importing, ...stored])
    expect(await statementsOf(write('import', 'p507', early))).toEqual([...importing, 'read_known_answers', ...stored])
    const repeated = await statementsOf(write('import', 'p507', early))
    expect(repeated.filter(name => stored.includes(name))).toEqual([])
  })

  it('reads only a few rows of a large log for a restore, and for a past state', async () => {
    const { service, shop } = world
    const allLinks = { ...allFields, friends: ['p8', 'p9'] }
    const [created] = await writeAll(service.db, shop, [write('create', 'rex', { attribute_values: allLinks })])
    const { id } = (created as { done: { id: string } }).done
    const [sequence] = await service.sql<{ sequence: number }>(
      'select sequence from change_heads where organization_id = $1',
      [shop.id],
    )
    await writeAll(service.db, shop, [write('patch', 'rex', { first_name: 'R' }), write('delete', 'rex')])
    expect(await statementsOf(write('restore', '', {}, { address: { id } }))).toEqual([
      'lock_head',
      'read_rows',
      'read_past_change',
      'read_logged_state',
      'read_past_answers',
      'read_bearers',
      'read_names_left',
      'read_targets',
      'insert_entities',
      'link',
      'insert_index_keys',
      'store_changes',
      'insert_changes',
    ])
    const { db, rowsByStatement } = withExplain(service.db)
    await db.transaction(async tx => {
      const entity = { stack_id: 0, id }
      const noon = new Date(Date.now() - 43_200_000).toISOString()
      await tx.query(readSequenceAtSql, [shop.id, noon])
      expect((await readPastChange({ db: tx, organization_id: shop.id }, entity, { version: 1 }))?.operation).toBe(
        'create',
      )
      await readDefinitionChanges({ db: tx, organization_id: shop.id }, sequence!.sequence)
      const state = await readPastState(tx, world.definitions, entity, 1)
      const links = await readPastTargets({ db: tx, organization_id: shop.id }, state!.links, sequence!.sequence)
      expect(links.flatMap(({ targets }) => targets.map(({ external_id }) => external_id))).toHaveLength(4)
      expect(await readStandingTargets({ db: tx, organization_id: shop.id }, state!.links)).toHaveLength(links.length)
    })
    // Each halving of the log reads 2 rows, and all of them together.
    const limits: Record<string, number> = { read_sequence_at: 100 }
    for (const [name, rows] of rowsByStatement) expect(rows, name).toBeLessThan(limits[name] ?? maxRows)
    expect(rowsByStatement.size).toBe(7)
  })

  it('reads the changes since the last basis for a state among very many versions, and for the next basis', async () => {
    const { service, shop } = world
    const patches = Array.from({ length: 7 * basisInterval }, (_, n) => write('patch', 'p606', { first_name: `F${n}` }))
    for (const outcome of await writeAll(service.db, shop, patches)) expect(outcome).toHaveProperty('done')
    const id = personId(606)
    const [last] = await service.sql<{ version: number; sequence: number }>(
      'select version, sequence from changes where organization_id = $1 and entity_id = $2 order by version desc limit 1',
      [shop.id, id],
    )
    const { version, sequence } = last!
    const basis = JSON.stringify([{ id, version: Math.floor(version / basisInterval) * basisInterval }])
    for (const [sent, values, max] of [
      [readLoggedStateSql, [id, version - 1], basisInterval],
      [readBasisSql, [id, Math.floor(version / basisInterval) * basisInterval], 10],
      [readPastChangeSql, [0, id, version - 1], 1],
      // Each halving of the versions reads one, and all of them together.
      [readPastChangeAtSql, [0, id, sequence - 10], 20],
      [storeBasesSql, [basis], 2 * basisInterval],
    ] as const)
      for (const generic of [false, true]) await expectReads(service.db, sent, [shop.id, ...values], max, { generic })
  })

  /** Runs a write and returns the names of its statements. Expects each to read fewer than `maxRows` rows. */
  async function statementsOf(item: Write): Promise<string[]> {
    const { db, rowsByStatement } = withExplain(world.service.db)
    const [outcome] = await writeAll(db, world.shop, [item])
    expect(outcome).toHaveProperty('done')
    for (const [name, rows] of rowsByStatement) expect(rows, name).toBeLessThan(maxRows)
    return [...rowsByStatement.keys()]
  }
}

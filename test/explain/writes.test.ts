import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Database, type Statement, statement, type Transaction } from '../../src/db/db.ts'
import type { Write } from '../../src/entities/write-request.ts'
import { type Service, startService } from '../support/service.ts'
import { makeShop, type Shop, write, writeAll } from '../support/writes.ts'

// One large organization beside many small ones: what an average organization needs is not what this one needs.
const people = 20_000
const smallOrganizations = 5_000
// Of a set of one, with a margin for a target's neighbours on the page.
const rowsLimit = 40

let service: Service
let shop: Shop
beforeAll(async () => {
  service = await startService()
  shop = await makeShop(service)
  await shop.client.schema.attributes.create({ key: 'city', owner: 'people', type: 'text', indexed: true })
  const insert = (organization: string, from: number, to: number) =>
    service.sql(
      `insert into entities (organization_id, stack_id, id, external_id, active, version, attributes, created_at, updated_at)
       select ${organization}, 0, ('01900000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, 'p' || i, true, 1,
         jsonb_build_object('city', 'city ' || i), now(), now() from generate_series($1::integer, $2::integer) i`,
      [from, to],
    )
  await insert(`${shop.id}`, 1, people)
  await insert(`1000 + i`, 1, smallOrganizations)
  await service.sql(
    `insert into links select $1, id, (select id from attributes where organization_id = $1 and key = 'friends'), 0, id, 0
     from entities where organization_id = $1`,
    [shop.id],
  )
  await service.sql(
    `insert into terms select $1, (select index_id from attributes where organization_id = $1 and key = 'city'),
       attributes->>'city', id from entities where organization_id = $1`,
    [shop.id],
  )
  await service.sql('analyze')
}, 120_000)
afterAll(() => service.stop())

type Node = {
  'Node Type': string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  Plans?: Node[]
}

/** Statement by name, to the most rows that any step of its plan looked at. */
type Looks = Map<string, number>

/** A database that explains every statement of a transaction before it runs it. */
function explaining(db: Database): { db: Database; looks: Looks } {
  const looks: Looks = new Map()
  const transaction: Database['transaction'] = (work, options) =>
    db.transaction(
      tx => {
        // One after the other, for the statements of a flush do not wait for each other.
        let last: Promise<unknown> = Promise.resolve()
        const inOrder = <T>(next: () => Promise<T>): Promise<T> => {
          const result = last.then(next)
          last = result.catch(() => {})
          return result
        }
        return work({
          query: (statement, values) =>
            inOrder(async () => {
              looks.set(statement.name, await explain(tx, statement, values))
              return tx.query(statement, values)
            }),
          copy: (statement, rows) =>
            inOrder(() => {
              // It looks at nothing but the indexes that it adds to.
              looks.set(statement.name, 0)
              return tx.copy(statement, rows)
            }),
          commit: () => inOrder(() => tx.commit()),
        })
      },
      { ...options, lockTimeoutMs: undefined },
    )
  return { db: { ...db, transaction }, looks }
}

async function explain(tx: Transaction, { text }: Statement, values: unknown[]): Promise<number> {
  const run = (sql: string) => tx.query<{ 'QUERY PLAN': [{ Plan: Node }] }>(statement('', sql), [])
  const literals = values.map(value => (Array.isArray(value) ? `'{${value}}'` : pg.escapeLiteral(String(value))))
  await run('savepoint explained')
  await run(`prepare explained as ${text}`)
  const [row] = await run(`explain (analyze, format json) execute explained(${literals})`)
  await run('deallocate explained')
  await run('rollback to savepoint explained')
  return mostRows(row!['QUERY PLAN'][0].Plan)
}

function mostRows(node: Node): number {
  const own = (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops']
  return Math.max(own, ...(node.Plans ?? []).map(mostRows))
}

const everything = { city: 'Rome', referrer: 'p7', friends: ['p8', 'new friend'], employer: 'acme' }

test.each<[string, Write, string[]]>([
  [
    'a patch of everything',
    write('patch', 'p500', { first_name: 'Ada', attribute_values: everything }),
    [
      'lock_named',
      'read_names_left',
      'read_bearers',
      'read_links',
      'make_entities',
      'check_versions_made',
      'unlink',
      'link',
      'index_terms',
      'apply_changes',
    ],
  ],
  ['a rename', write('patch', 'p501', { external_id: 'renamed' }), ['lock_named', 'read_bearers', 'apply_changes']],
  ['a deletion', write('delete', 'p502'), ['lock_named', 'read_links', 'unlink', 'index_terms', 'apply_changes']],
  [
    'a patch that answers the person',
    write('patch', 'p503', { first_name: 'Ada' }, { represent: true }),
    ['lock_named', 'apply_changes', 'read_by_id'],
  ],
])('%s in a large organization looks at a few rows', async (_, item, statements) => {
  expect(await looksOf(item)).toEqual(statements)
})

test('a patch by internal identifier in a large organization looks at a few rows', async () => {
  const [found] = await service.sql<{ id: string }>(
    `select id from entities where organization_id = $1 and stack_id = 0 and external_id = 'p504'`,
    [shop.id],
  )
  const item = write('patch', '', { first_name: 'Ada' }, { address: { id: found!.id } })
  expect(await looksOf(item)).toEqual(['lock_entities', 'apply_changes'])
})

/** The statements that a write takes, none of which looks at many rows. */
async function looksOf(item: Write): Promise<string[]> {
  const { db, looks } = explaining(service.db)
  const [outcome] = await writeAll(db, shop, [item])
  expect(outcome).toHaveProperty('done')
  for (const [name, rows] of looks) expect(rows, name).toBeLessThan(rowsLimit)
  return [...looks.keys()]
}

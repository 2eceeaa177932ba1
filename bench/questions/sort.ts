import { openDatabase } from '../../src/db/db.ts'
import { readySortIndex } from '../../src/entities/indexes/sort-index.ts'
import { parseFilter } from '../../src/filters/parse.ts'
import { type SortKey, sortedStatements } from '../../src/filters/select.ts'
import { parseSort } from '../../src/filters/sort.ts'
import { reloadDefinitions } from '../../src/organizations/definitions.ts'
import { inDatabase } from '../database.ts'
import { median, percentile } from '../measure.ts'
import { formatTimes, type QuestionsContext, timeEach } from './questions-part.ts'

const maxPageMs = 2
const size = 50

type Page = { items: { id: string }[]; next_cursor: string | null }

/** Measures sorted pages in the database and by HTTP, at random places of each order, and how long an index takes to build. */
export async function measure(context: QuestionsContext): Promise<void> {
  const { ask, print, requests } = context
  for (const field of ['last_name', 'created_at', 'attribute_values.score']) {
    const began = performance.now()
    await ask('POST', '/v1/people/list', { sort: { field } })
    print(`  the index of ${field} took ${((performance.now() - began) / 1_000).toFixed(1)} s`)
  }
  await inDatabase(context.service.url, client => client.query('vacuum (analyze) terms'))
  for (const direction of ['asc', 'desc'] as const) {
    const times = await timePages(context, { field: 'last_name', direction })
    const isMet = percentile(times, 0.99) <= maxPageMs
    print(
      `  a page by last_name ${direction} in the database: p50 ${median(times).toFixed(2)} ms, p99 ${percentile(times, 0.99).toFixed(2)} ms (p99 at most ${maxPageMs} ms): ${isMet ? 'met' : 'NOT MET'}`,
    )
  }
  const list = (body: object) => ask('POST', '/v1/people/list', { cursor_configuration: { size }, ...body })
  print(`  the first page by identifier by HTTP: ${formatTimes(await timeEach(requests, () => list({})))}`)
  for (const direction of ['asc', 'desc']) {
    const sort = { field: 'last_name', direction }
    print(
      `  the first page by last_name ${direction} by HTTP: ${formatTimes(await timeEach(requests, () => list({ sort })))}`,
    )
    let cursor: string | null = null
    const next = async () => {
      const page: Page = await list({ sort, cursor_configuration: { size, cursor: cursor ?? undefined } })
      cursor = page.next_cursor
    }
    print(`  each next page by last_name ${direction} by HTTP: ${formatTimes(await timeEach(requests, next))}`)
  }
  const sort = { field: 'last_name' }
  for (const [what, filter] of [
    ['with about 7,000 candidates', { 'attribute_values.city': 'city 100' }],
    ['with more than 10,000 candidates', { 'attribute_values.country': 'country 1' }],
    [
      'without an index, of which one in 30 matches',
      { 'attribute_values.employer': { $some: { external_id: { $ends_with: '7' } } } },
    ],
  ] as const) {
    const filtered = () => ask('POST', '/v1/people/filter', { filter, sort, cursor_configuration: { size } })
    print(
      `  the first page of a filter ${what} by HTTP: ${formatTimes(await timeEach(Math.min(requests, 50), filtered))}`,
    )
  }
}

/** The times of pages after random places in the order, on one connection that has planned the statement, in milliseconds. */
async function timePages(
  { service, organization_id, requests }: QuestionsContext,
  body: { field: string; direction: 'asc' | 'desc' },
): Promise<number[]> {
  const db = openDatabase(service.url, { connections: 1, statementTimeoutMs: 60_000 })
  try {
    const definitions = await reloadDefinitions(db, organization_id)
    const { condition } = parseFilter({}, definitions, 0)
    const sort = parseSort(body, definitions, 0)
    const index = readySortIndex(definitions, 0, body.field)!
    const position = { direction: body.direction, size }
    const { walk } = sortedStatements({ condition, definitions, stack_id: 0, sort, index, position })
    return await inDatabase(service.url, async client => {
      const { rows: places } = await client.query<SortKey>(
        `select t.value as term, t.entity_id as id from terms t tablesample system (1)
         where t.organization_id = $1 and t.index_id = $2 order by random() limit $3`,
        [organization_id, index.id, requests],
      )
      const times: number[] = []
      await client.query('set plan_cache_mode = force_generic_plan; set enable_sort = off; set enable_bitmapscan = off')
      for (const after of [undefined, ...places]) {
        const began = performance.now()
        await client.query(walk(after, size + 1, 0))
        times.push(performance.now() - began)
      }
      return times.slice(1)
    })
  } finally {
    await db.close()
  }
}

import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { query, until } from '../support/embedded-service.ts'
import { endProcesses, launch, senderTo } from '../support/process.ts'
import type { Send } from '../support/service.ts'
import { createRandom, rounds } from './rounds.ts'
import { makeWorld } from './world.ts'

const records = 1_500
const recordsPerBatch = 500

let database: Awaited<ReturnType<typeof createTestDatabase>>
let environment: Record<string, string>
beforeAll(async () => {
  database = await createTestDatabase()
  environment = { DATABASE_URL: database.url, LOG_LEVEL: 'warn', KITH_LOG_RETENTION_DAYS: '30' }
})
afterAll(async () => {
  await endProcesses()
  await database.drop()
})

const run = (text: string) => query(database.url, text)

/** Holds the retention of an organization back, or lets it work at once. */
const pauseRetention = (organization_id: number, isPaused: boolean) =>
  run(`insert into followers (organization_id, name, paused) values (${organization_id}, 'retention', ${isPaused})
    on conflict (organization_id, name, id) do update set paused = ${isPaused}, not_before = null`)

/** Stores events, and makes them and the log two years old. A record's identifier begins with the time of its creation. */
async function storeOldEvents(send: Send, organization_id: number) {
  for (let first = 0; first < records; first += recordsPerBatch) {
    const operations = Array.from({ length: recordsPerBatch }, (_, n) => {
      const number = first + n
      return {
        op: 'create',
        body: { external_id: `v${number}`, attribute_values: { visitor: `p${number % 50}`, page: '/' } },
      }
    })
    expect((await send('POST', '/v1/stacks/visits/batch', { operations })).body.data.failed).toBe(0)
  }
  const visits = `organization_id = ${organization_id} and stack_id = 2`
  const aged = (column: string) => `('5f' || substr(${column}::text, 3))::uuid`
  await run(`update links l set source_id = ${aged('l.source_id')} where l.organization_id = ${organization_id}
    and exists (select from entities e where e.${visits} and e.id = l.source_id)`)
  await run(`update changes set entity_id = ${aged('entity_id')} where ${visits}`)
  await run(`update changes set at = now() - interval '2 years' where organization_id = ${organization_id}`)
  await run(`update entities set id = ${aged('id')}, created_at = now() - interval '2 years' where ${visits}`)
  const reply = await send('PATCH', '/v1/schema/stacks/visits', { retention_days: 30 })
  expect(reply.body.data.retention_days).toBe(30)
}

type State = Record<'rows' | 'links' | 'whole' | 'erased' | 'filled' | 'torn' | 'changes' | 'head', number>

/** Counts records that exist and that were erased. `torn` are those of which only a part was erased. */
async function readState(organization_id: number): Promise<State> {
  const [state] = await run(`
    with record as (
      select c.entity_id as id, bool_or(c.operation = 'erase') as is_erased,
        bool_or(c.operation = 'create' and c.after <> '{}') as has_values, count(*) filter (where c.operation = 'erase') as erasures
      from changes c where c.organization_id = ${organization_id} and c.stack_id = 2 group by c.entity_id
    ), seen as (
      select r.*, e.id is not null as has_row, exists (
        select from links l where l.organization_id = ${organization_id} and l.source_id = r.id
      ) as has_links
      from record r left join entities e on e.organization_id = ${organization_id} and e.stack_id = 2 and e.id = r.id
    )
    select (select count(*)::integer from entities where organization_id = ${organization_id} and stack_id = 2) as rows,
      (select count(*)::integer from links where organization_id = ${organization_id}) as links,
      count(*) filter (where has_row and has_links and not is_erased)::integer as whole,
      count(*) filter (where not has_row and not has_links and is_erased and erasures = 1 and not has_values)::integer as erased,
      (select count(*)::integer from changes where organization_id = ${organization_id} and subject = 'entity'
        and (after <> '{}' or before is not null)) as filled,
      count(*) filter (where has_row <> has_links or has_row = is_erased)::integer as torn,
      (select count(*)::integer from changes where organization_id = ${organization_id}) as changes,
      (select sequence::integer from change_heads where organization_id = ${organization_id}) as head
    from seen`)
  return state as State
}

describe('kith killed while the retention erases records and empties the log', () => {
  it.each(rounds(20))(
    'has erased each record wholly or not at all, and goes on after a restart: round %i',
    async round => {
      const random = createRandom('retention', round)
      const kith = launch(environment)
      const address = await kith.ready
      const world = await makeWorld(database.url, address)
      const { organization_id } = world
      await pauseRetention(organization_id, true)
      await storeOldEvents(senderTo(address, world.token), organization_id)
      await pauseRetention(organization_id, false)
      // Now and then the first set has not begun, and sometimes all of them have ended.
      const delayMs = random.below(2_500)
      await setTimeout(delayMs)
      kith.child.kill('SIGKILL')
      await kith.ended
      const killed = await readState(organization_id)
      console.log(
        `kill -9 of the retention, round ${round}: after ${delayMs} ms ${killed.erased} of ${records} were erased`,
      )
      expect(killed).toMatchObject({ torn: 0, rows: killed.whole, links: killed.whole, changes: killed.head })
      expect(killed.whole + killed.erased).toBe(records)

      const restarted = launch(environment)
      await restarted.ready
      const left = `select from changes where organization_id = ${organization_id} and subject = 'entity' and after <> '{}' limit 1`
      await until(async () => (await run(left)).length === 0)
      const ended = await readState(organization_id)
      expect(ended).toMatchObject({ torn: 0, filled: 0, rows: 0, links: 0, erased: records, changes: ended.head })
      restarted.child.kill('SIGKILL')
      await restarted.ended
    },
    120_000,
  )
})

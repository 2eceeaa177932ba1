// What docs/scale.md says in numbers: bytes a person, the ceiling of one organization, what cells cost, and how a large organization moves.
//   node bench/scale.ts --only storage,head,cells,move --people 1000000

import { loadavg } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Pool } from 'undici'
import { urlOfDatabase } from '../src/db/embedded.ts'
import { inDatabase, serverVersion } from './database.ts'
import { startService } from './environment.ts'
import { loadService } from './load.ts'
import { coolDown, median, percentile, runProgram } from './measure.ts'
import { insertPeople, type Populated, readOrganizationId, smallPeople } from './populate.ts'
import { printPlatform } from './report.ts'
import { type BenchRow, rows } from './rows.ts'
import { type BenchTarget, withPostgres } from './run.ts'
import { createToken } from './tokens.ts'

const checkout = fileURLToPath(new URL('..', import.meta.url))
const print = (line = '') => process.stdout.write(`${line}\n`)
const parts = { storage, head: measureHead, cells: measureCells, move: measureMove }
const patchRow = rows.find(({ name }) => name === 'patch')!
const scope = 'people:read people:write changes:read'
const tables = ['entities', 'terms', 'links', 'changes'] as const

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: Object.keys(parts).join(',') },
    people: { type: 'string', default: '1000000' },
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '3' },
  },
})
const [people, seconds, rounds] = [values.people, values.seconds, values.rounds].map(Number) as [number, number, number]

/** A target whose large organization has the people, and a way to start more services beside it. */
type Context = BenchTarget & { acquire: Parameters<Parameters<typeof withPostgres>[1]>[0]['acquire'] }

const withConnections = (connections: number): BenchRow => ({ ...patchRow, connections })

/** Bytes of each table and its indexes, by the name of the table. */
async function sizesOf(url: string): Promise<Record<(typeof tables)[number], number>> {
  return inDatabase(url, async client => {
    const sizes = await client.query<{ name: string; bytes: number }>(
      `select t.name, pg_total_relation_size(t.name)::float8 as bytes from unnest($1::text[]) t(name)`,
      [tables],
    )
    return Object.fromEntries(sizes.rows.map(({ name, bytes }) => [name, bytes])) as never
  })
}

const countCommits = (url: string) =>
  inDatabase(url, async client => {
    const { rows } = await client.query<{ commits: number; changes: number }>(
      `select (select xact_commit::float8 from pg_stat_database where datname = current_database()) as commits,
         (select sum(sequence)::float8 from change_heads) as changes`,
    )
    return rows[0]!
  })

async function storage({ service, large }: Context) {
  const before = await sizesOf(service.url)
  print(
    `  a person of 370 bytes takes ${(before.entities / (large.people + smallPeople)).toFixed(0)} bytes with its indexes`,
  )
  const { changes: first } = await countCommits(service.url)
  await loadService(service, patchRow, large, seconds)
  const { changes: last } = await countCommits(service.url)
  const { changes } = await sizesOf(service.url)
  print(
    `  a change takes ${((changes - before.changes) / (last - first)).toFixed(0)} bytes in the log with its indexes`,
  )
}

/** Changes of one organization and the transactions that carry them, by the number of connections. */
async function measureHead({ service, large }: Context) {
  for (const connections of [1, 8, 64, 256]) {
    await loadService(service, withConnections(connections), large, 1)
    // The statistics of PostgreSQL are a second behind.
    await new Promise(resolve => setTimeout(resolve, 1_500))
    const before = await countCommits(service.url)
    const { rate, p50Ms, p99Ms } = await loadService(service, withConnections(connections), large, seconds)
    await new Promise(resolve => setTimeout(resolve, 1_500))
    const after = await countCommits(service.url)
    const sets = after.commits - before.commits
    print(
      `  ${connections} connections: ${rate.toFixed(0)} PATCH/s, at most ${(sets / seconds).toFixed(0)} sets/s, ` +
        `${((after.changes - before.changes) / sets).toFixed(1)} rows a set, p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms!.toFixed(1)} ms`,
    )
  }
}

/** Two organizations under load at once, in one database and in two cells, in alternation. */
async function measureCells({ postgres, acquire }: Context) {
  const whole = await startOrganizations(acquire, postgres, { name: 'whole', people: smallPeople, isSplit: false })
  const split = await startOrganizations(acquire, postgres, { name: 'split', people: smallPeople, isSplit: true })
  const sides = { whole, split }
  const together: Record<keyof typeof sides, number[]> = { whole: [], split: [] }
  const alone: Record<keyof typeof sides, number[]> = { whole: [], split: [] }
  for (const { service, first, other } of Object.values(sides)) await loadBoth(service, [first, other])
  for (let round = 0; round < rounds; round += 1)
    for (const name of round % 2 === 0 ? (['whole', 'split'] as const) : (['split', 'whole'] as const)) {
      const { service, first, other } = sides[name]
      await coolDown()
      together[name].push(await loadBoth(service, [first, other]))
      alone[name].push((await loadService(service, patchRow, first, seconds)).rate)
    }
  const formatRatio = ({ whole, split }: typeof together) =>
    `${median(whole).toFixed(0)} PATCH/s in one database, ${median(split).toFixed(0)} with two cells: ${(median(split) / median(whole)).toFixed(2)} (at least 0.95)`
  print(`  two organizations at once: ${formatRatio(together)}`)
  print(`  one of them, in the first cell: ${formatRatio(alone)}`)
}

async function loadBoth(service: Parameters<typeof loadService>[0], organizations: readonly Populated[]) {
  const half = withConnections(patchRow.connections / 2)
  const runs = await Promise.all(organizations.map(each => loadService(service, half, each, seconds)))
  return runs.reduce((sum, { rate }) => sum + rate, 0)
}

type Organizations = { name: string; people: number; isSplit: boolean }

/** Starts a service with two organizations: the first one with so many people, another in the same database or in a cell of its own. */
async function startOrganizations(
  acquire: Context['acquire'],
  postgres: Context['postgres'],
  { name, people, isSplit }: Organizations,
) {
  const further = urlOfDatabase(postgres.url, `${name}_b`)
  for (const database of [name, `${name}_b`]) await postgres.createDatabase(database)
  const settings: Record<string, string> = isSplit ? { KITH_CELLS: `b=${further}` } : {}
  const service = await acquire(
    () => startService(postgres, checkout, name, 1, settings),
    started => started.stop(),
  )
  const kith = (...words: string[]) =>
    runProgram(process.execPath, [join(checkout, 'cli', 'main.ts'), ...words], {
      PATH: process.env.PATH,
      DATABASE_URL: service.url,
      ...settings,
    })
  await kith('org', 'create', 'first')
  await kith('org', 'create', 'other', ...(isSplit ? ['--cell', 'b'] : []))
  const populated = async (key: string, url: string, people: number): Promise<Populated> => {
    const id = await inDatabase(url, async client => {
      const id = await readOrganizationId(client, key)
      await insertPeople(client, id, people)
      await client.query('vacuum (analyze) entities')
      await client.query('checkpoint')
      return id
    })
    return { id, people, token: await createToken(checkout, service, scope, key), consentTypeIds: [] }
  }
  return {
    service,
    kith,
    first: await populated('first', service.url, people),
    other: await populated('other', isSplit ? further : service.url, smallPeople),
  }
}

const patchesPerSecond = 200

/** Moves an organization with all people under PATCHes. Counts acknowledged ones that are missing afterwards. */
async function measureMove({ postgres, acquire }: Context) {
  const { service, kith, first } = await startOrganizations(acquire, postgres, {
    name: 'moving',
    people,
    isSplit: true,
  })
  const pool = new Pool(service.address, { connections: 32 })
  const headers = { Authorization: `Bearer ${first.token}`, 'Content-Type': 'application/json' }
  const times: number[] = []
  const acknowledged: { person: string; word: string }[] = []
  let refused = 0
  let isMoving = true
  /** Repeats a refused PATCH, as a client does. Each PATCH sets an attribute of its own. */
  const patch = async (number: number, dueMs: number) => {
    const person = `p${1 + ((number * 7_919) % people)}`
    const word = `k${number}`
    const body = JSON.stringify({ attribute_values: { [word]: number } })
    for (;;) {
      const answer = await pool.request({ method: 'PATCH', path: `/v1/people/${person}`, headers, body })
      await answer.body.dump()
      if (answer.statusCode === 200) break
      if (answer.statusCode !== 503) throw new Error(`A PATCH was answered with ${answer.statusCode}.`)
      refused += 1
      await new Promise(resolve => setTimeout(resolve, 20))
    }
    times.push(performance.now() - dueMs)
    acknowledged.push({ person, word })
  }
  const load = async () => {
    const startedMs = performance.now()
    const sent: Promise<void>[] = []
    while (isMoving) {
      while (sent.length < ((performance.now() - startedMs) / 1_000) * patchesPerSecond)
        sent.push(patch(sent.length, startedMs + (sent.length / patchesPerSecond) * 1_000))
      await new Promise(resolve => setTimeout(resolve, 2))
    }
    await Promise.all(sent)
  }
  const loading = load()
  const startedMs = performance.now()
  await kith('org', 'move', 'first', '--to', 'b').finally(() => {
    isMoving = false
  })
  const movedSeconds = (performance.now() - startedMs) / 1_000
  await loading
  let missing = 0
  for (const { person, word } of acknowledged) {
    const answer = await pool.request({ method: 'GET', path: `/v1/people/${person}`, headers })
    const { data } = (await answer.body.json()) as { data: { attribute_values: Record<string, unknown> } }
    if (!(word in data.attribute_values)) missing += 1
  }
  await pool.destroy()
  print(
    `  ${people.toLocaleString('en')} people moved in ${movedSeconds.toFixed(0)} s under ${patchesPerSecond} PATCH/s: ` +
      `${acknowledged.length} acknowledged, ${missing} missing, ${refused} repeated after 503`,
  )
  print(
    `  a PATCH took p50 ${percentile(times, 0.5).toFixed(1)} ms, p99 ${percentile(times, 0.99).toFixed(0)} ms, at most ${Math.max(...times).toFixed(0)} ms with its repetitions (at most 2,000)`,
  )
}

const names = values.only.split(',')
const unknown = names.filter(name => !(name in parts))
if (unknown.length > 0) throw new Error(`--only takes ${Object.keys(parts).join(', ')}, not ${unknown.join(', ')}.`)
await withPostgres({ people, rounds, seconds, workers: 1, rows: [] }, async ({ addTarget, acquire }) => {
  const target = await addTarget(checkout, 'bench')
  printPlatform(await serverVersion(target.service))
  print(`${people.toLocaleString('en')} people, ${seconds} s each; load average ${loadavg()[0]!.toFixed(1)}`)
  for (const name of names) {
    print()
    print(name)
    await parts[name as keyof typeof parts]({ ...target, acquire })
  }
})

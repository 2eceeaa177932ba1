import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { prepareCleanup } from './cleanup.ts'
import { countLines, curl, psql } from './clients.ts'
import { inDatabase, serverVersion } from './database.ts'
import { type BenchPostgres, type Service, startPostgres, startService } from './environment.ts'
import { median } from './measure.ts'
import { indexesOf } from './populate.ts'
import { organizationTokens } from './tokens.ts'
import { measureTime, type Timed } from './usage.ts'

/** The comparisons, and the bounds of their ratios of rows per second. */
const bounds = {
  'import-new': { title: 'import of new people, to COPY of them', atLeast: 0.3, aim: 0.66 },
  'import-merge': { title: 'import of existing people, all of them changed, to COPY', atLeast: 0.2, aim: 0.43 },
  'match-new': { title: 'import of new people with match, to one without', atLeast: 0.7, aim: 0.7 },
  'match-merge': { title: 'import of existing people with match, to one without', atLeast: 0.7, aim: 0.7 },
  export: { title: 'export of people, to COPY TO', atLeast: 0.5, aim: 0.5 },
} as const
type RowName = keyof typeof bounds

/** An export and a COPY TO take one or two seconds each, so each round alternates three times. */
const exportTurns = 3

/** The people of the warm-up. A process that has just started takes 9 µs more for each of its first 60,000 lines. */
const warmUpPeople = 60_000

type TransferTarget = {
  postgres: BenchPostgres
  service: Service
  tokens: (key: string) => Promise<string>
  people: number
}

const checkout = fileURLToPath(new URL('..', import.meta.url))
const print = (line = '') => process.stdout.write(`${line}\n`)

const columns =
  'organization_id, stack_id, id, external_id, active, version, first_name, last_name, email, mobile_prefix, ' +
  'mobile_number, language, attributes, created_at, updated_at, email_key, mobile_key, has_keys'

/** A person as a line to import. `word` makes the values of two rounds differ. */
const formatLine = (n: number, word: string) =>
  `{"external_id":"p${n}","first_name":"${word} ${n}","last_name":"Last ${n}","email":"p${n}@example.org",` +
  `"mobile_prefix":"+39","mobile_number":"${3_000_000_000 + n}","language":"en",` +
  `"attribute_values":{"city":"${word} ${n % 1000}","score":${n},"note":"${'n'.repeat(60)}"}}\n`

/** The same person as a line of COPY. */
const formatCopyRow = (n: number, organization_id: number) =>
  `${[
    organization_id,
    0,
    `01900000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`,
    `p${n}`,
    't',
    1,
    `First ${n}`,
    `Last ${n}`,
    `p${n}@example.org`,
    '+39',
    3_000_000_000 + n,
    'en',
    JSON.stringify({ city: `First ${n % 1000}`, score: n, note: 'n'.repeat(60) }),
    '2026-01-01T00:00:00Z',
    '2026-01-01T00:00:00Z',
    `p${n}@example.org`,
    `+39${3_000_000_000 + n}`,
    't',
  ].join('\t')}\n`

async function writeLines(path: string, people: number, line: (n: number) => string) {
  const file = createWriteStream(path)
  for (let n = 1; n <= people; n += 1) if (!file.write(line(n))) await once(file, 'drain')
  file.end()
  await once(file, 'close')
}

/** Imports a file. Throws unless the result of every person is `result`. */
async function importFile(
  { service, people }: TransferTarget,
  token: string,
  path: string,
  result: string,
  query = '',
): Promise<void> {
  const type = 'Content-Type: application/x-ndjson'
  const output = await curl(token, '-H', type, '-X', 'POST', '-T', path, `${service.address}/v1/people/import${query}`)
  const last = JSON.parse(output.trim().split('\n').at(-1)!) as Record<string, number>
  if (last[result] !== people) throw new Error(`Not all people were ${result}: ${JSON.stringify(last)}`)
}

async function exportAll({ service }: TransferTarget, token: string, path: string): Promise<void> {
  await curl(token, '-X', 'POST', '-o', path, `${service.address}/v1/people/export`)
}

async function expectLines(path: string, people: number): Promise<void> {
  const lines = await countLines(path)
  if (lines !== people) throw new Error(`The export has ${lines} of ${people} people.`)
}

async function readOrganizationId({ url }: Service, key: string): Promise<number> {
  return inDatabase(url, async client => {
    const { rows } = await client.query<{ id: number }>('select id from organizations where key = $1', [key])
    return rows[0]!.id
  })
}

/** Copies all people into a new organization. */
async function copyIn(target: TransferTarget, key: string): Promise<Timed> {
  const { postgres, service, people, tokens } = target
  await tokens(key)
  const organization_id = await readOrganizationId(service, key)
  const path = join(postgres.folder, 'rows')
  await writeLines(path, people, n => formatCopyRow(n, organization_id))
  await psql(service, 'checkpoint')
  return measureTime(target, () => psql(service, `\\copy entities (${columns}) from '${path}'`))
}

async function importIn(
  target: TransferTarget,
  token: string,
  word: string,
  result: string,
  query?: string,
): Promise<Timed> {
  const path = join(target.postgres.folder, 'lines-in')
  await writeLines(path, target.people, n => formatLine(n, word))
  await psql(target.service, 'checkpoint')
  return measureTime(target, () => importFile(target, token, path, result, query))
}

async function warmUp(measuredTarget: TransferTarget) {
  const target = { ...measuredTarget, people: Math.min(measuredTarget.people, warmUpPeople) }
  await copyIn(target, 'warming-copied')
  await importIn(target, await target.tokens('warming-imported'), 'First', 'created')
}

async function runRound(target: TransferTarget, round: number): Promise<Record<string, Timed>> {
  const { postgres, service, people, tokens } = target
  const path = (name: string) => join(postgres.folder, name)
  const token = await tokens(`imported${round}`)
  const imported = await readOrganizationId(service, `imported${round}`)
  // COPY runs before, between and after the imports, since the machine may lose a third of its speed within a minute.
  const copies = [await copyIn(target, `copied${round}-1`)]
  const importNew = await importIn(target, token, 'First', 'created')
  copies.push(await copyIn(target, `copied${round}-2`))
  const matchToken = await tokens(`matched${round}`)
  const matchNew = await importIn(target, matchToken, 'First', 'created', '?match=email')
  const importMerge = await importIn(target, token, 'Second', 'updated')
  const matchMerge = await importIn(target, matchToken, 'Second', 'updated', '?match=email')
  copies.push(await copyIn(target, `copied${round}-3`))
  await psql(service, 'vacuum entities', 'checkpoint')
  const selectSql = `select * from entities where organization_id = ${imported} and stack_id = 0`
  const exportRounds: { copyTo: Timed; export: Timed }[] = []
  for (let turn = 0; turn < exportTurns; turn += 1) {
    const copyTo = await measureTime(target, () => psql(service, `\\copy (${selectSql}) to '${path('out')}'`))
    exportRounds.push({ copyTo, export: await measureTime(target, () => exportAll(target, token, path('lines'))) })
    await expectLines(path('lines'), people)
  }
  const [copyTo, exported] = [
    medianTimed(exportRounds.map(out => out.copyTo)),
    medianTimed(exportRounds.map(out => out.export)),
  ]
  return {
    copy: medianTimed(copies),
    'import-new': importNew,
    'import-merge': importMerge,
    'match-new': matchNew,
    'match-merge': matchMerge,
    copy_to: copyTo,
    export: exported,
  }
}

const medianTimed = (all: Timed[]) => all.toSorted((one, other) => one.seconds - other.seconds)[all.length >> 1]!

function printRow(
  name: string,
  people: number,
  rounds: Timed[],
  bound?: { ratio: number; atLeast: number; aim: number },
) {
  const of = (value: (one: Timed) => number) => median(rounds.map(value))
  const rate = Math.round(people / of(({ seconds }) => seconds))
  const cpu = `kith ${Math.round(of(({ usage }) => usage.service))} %, PostgreSQL ${Math.round(of(({ usage }) => usage.postgres))} %`
  const memory = `kith at most ${Math.round(Math.max(...rounds.map(({ usage }) => usage.servicePeakMb)))} MB`
  const boundText = bound ? `  ratio ${bound.ratio.toFixed(2)} (at least ${bound.atLeast}, aim ${bound.aim})` : ''
  print(`${name.padEnd(14)} ${rate.toLocaleString('en').padStart(9)} rows/s  CPU: ${cpu}; ${memory}${boundText}`)
}

/** Measures imports and COPY FROM of the same rows into the same table, and exports and COPY TO, in alternation. */
async function main() {
  const { values } = parseArgs({
    options: { people: { type: 'string', default: '200000' }, rounds: { type: 'string', default: '3' } },
  })
  const [people, rounds] = [Number(values.people), Number(values.rounds)]
  const cleanup = prepareCleanup()
  try {
    const postgres = await cleanup.acquire(startPostgres, started => started.stop())
    await postgres.createDatabase('bench')
    const service = await cleanup.acquire(
      () => startService(postgres, checkout, 'bench', 1),
      started => started.stop(),
    )
    const target: TransferTarget = { postgres, service, tokens: organizationTokens(checkout, service), people }
    print(
      `${new Date().toISOString()}; Node ${process.version}, PostgreSQL ${await serverVersion(service)}; ${people} people, medians of ${rounds} rounds`,
    )
    for (const index of await indexesOf(service)) print(`  ${index}`)
    await warmUp(target)
    const measured: Record<string, Timed>[] = []
    for (let round = 1; round <= rounds; round += 1) measured.push(await runRound(target, round))
    const of = (name: string) => measured.map(round => round[name]!)
    const seconds = (name: string) => median(of(name).map(one => one.seconds))
    for (const [against, names] of [
      ['copy', ['import-new', 'import-merge']],
      ['import-new', ['match-new']],
      ['import-merge', ['match-merge']],
      ['copy_to', ['export']],
    ] as const) {
      if (!(against in bounds)) printRow(against, people, of(against))
      for (const name of names as readonly RowName[])
        printRow(name, people, of(name), { ratio: seconds(against) / seconds(name), ...bounds[name] })
    }
  } finally {
    await cleanup.close()
  }
}

await main()

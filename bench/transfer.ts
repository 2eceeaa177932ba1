import { once } from 'node:events'
import { createReadStream, createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { prepareEnding } from './cleanup.ts'
import { inDatabase, serverVersion } from './database.ts'
import { type Ground, prepareGround, type Service, startService } from './environment.ts'
import { median, runProgram } from './measure.ts'
import { indexesOf } from './populate.ts'
import { organizationTokens } from './tokens.ts'
import { type Usage, withUsage } from './usage.ts'

/** What is compared with what, and how near the two should be: of rows a second. */
const bounds = {
  'import-new': { title: 'import people who are new, to COPY of them', atLeast: 0.3, aim: 0.66 },
  'import-merge': { title: 'import people who are there, all of them changed, to COPY', atLeast: 0.2, aim: 0.43 },
  export: { title: 'export people, to COPY TO', atLeast: 0.5, aim: 0.5 },
} as const
type RowName = keyof typeof bounds

/** Either way out takes a second or two: in each round they take turns so often. */
const turnsOut = 3

/** Of both, before the first round: a process that has just started takes 9 µs more for each of its first 60,000 lines. */
const warmingPeople = 60_000

type Measured = { seconds: number; usage: Usage }
type Stage = { ground: Ground; service: Service; tokens: (key: string) => Promise<string>; people: number }

const checkout = fileURLToPath(new URL('..', import.meta.url))
const print = (line = '') => process.stdout.write(`${line}\n`)

const columns =
  'organization_id, stack_id, id, external_id, active, version, first_name, last_name, email, mobile_prefix, ' +
  'mobile_number, language, attributes, created_at, updated_at'

/** One person, as a line to import; `word` tells those of one round from those of another. */
const lineOf = (n: number, word: string) =>
  `{"external_id":"p${n}","first_name":"${word} ${n}","last_name":"Last ${n}","email":"p${n}@example.org",` +
  `"mobile_prefix":"+39","mobile_number":"${3_000_000_000 + n}","language":"en",` +
  `"attribute_values":{"city":"${word} ${n % 1000}","score":${n},"note":"${'n'.repeat(60)}"}}\n`

/** The same person, as a line of COPY. */
const rowOf = (n: number, organization_id: number) =>
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
  ].join('\t')}\n`

async function writeLines(path: string, people: number, line: (n: number) => string) {
  const file = createWriteStream(path)
  for (let n = 1; n <= people; n += 1) if (!file.write(line(n))) await once(file, 'drain')
  file.end()
  await once(file, 'close')
}

async function timed(stage: Stage, work: () => Promise<unknown>): Promise<Measured> {
  const began = performance.now()
  const { usage } = await withUsage({ service: stage.service.pid, postgres: stage.ground.postgresPid }, work)
  return { seconds: (performance.now() - began) / 1e3, usage }
}

function psql({ url }: Service, ...commands: string[]) {
  const words = commands.flatMap(command => ['-c', command])
  return runProgram('psql', ['-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', url, ...words], { PATH: process.env.PATH })
}

/** What curl is told of a transfer: a client as lean as psql is. */
const transferOf = (token: string, ...words: string[]) => [
  '-sS',
  '--fail',
  '-H',
  `Authorization: Bearer ${token}`,
  ...words,
]

/** Sends a file to an import, and throws unless all of it was `result`. */
async function importFile({ service, people }: Stage, token: string, path: string, result: string): Promise<void> {
  const type = 'Content-Type: application/x-ndjson'
  const words = transferOf(token, '-H', type, '-X', 'POST', '-T', path, `${service.address}/v1/people/import`)
  const told = await runProgram('curl', words, { PATH: process.env.PATH })
  const last = JSON.parse(told.trim().split('\n').at(-1)!) as Record<string, number>
  if (last[result] !== people) throw new Error(`not all people were ${result}: ${JSON.stringify(last)}`)
}

async function exportAll({ service }: Stage, token: string, path: string): Promise<void> {
  const words = transferOf(token, '-X', 'POST', '-o', path, `${service.address}/v1/people/export`)
  await runProgram('curl', words, { PATH: process.env.PATH })
}

async function requireLines(path: string, people: number): Promise<void> {
  let lines = 0
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>)
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) lines += 1
  if (lines !== people) throw new Error(`${lines} people were exported of ${people}`)
}

async function organizationId({ url }: Service, key: string): Promise<number> {
  return inDatabase(url, async client => {
    const { rows } = await client.query<{ id: number }>('select id from organizations where key = $1', [key])
    return rows[0]!.id
  })
}

/** COPY of all people into an organization that it makes. */
async function copyIn(stage: Stage, key: string): Promise<Measured> {
  const { ground, service, people, tokens } = stage
  await tokens(key)
  const organization_id = await organizationId(service, key)
  const path = join(ground.folder, 'rows')
  await writeLines(path, people, n => rowOf(n, organization_id))
  await psql(service, 'checkpoint')
  return timed(stage, () => psql(service, `\\copy entities (${columns}) from '${path}'`))
}

async function importIn(stage: Stage, token: string, word: string, result: string): Promise<Measured> {
  const path = join(stage.ground.folder, 'lines-in')
  await writeLines(path, stage.people, n => lineOf(n, word))
  await psql(stage.service, 'checkpoint')
  return timed(stage, () => importFile(stage, token, path, result))
}

async function warmUp(all: Stage) {
  const stage = { ...all, people: Math.min(all.people, warmingPeople) }
  await copyIn(stage, 'warming-copied')
  await importIn(stage, await stage.tokens('warming-imported'), 'First', 'created')
}

async function runRound(stage: Stage, round: number): Promise<Record<string, Measured>> {
  const { ground, service, people, tokens } = stage
  const path = (name: string) => join(ground.folder, name)
  const token = await tokens(`imported${round}`)
  const imported = await organizationId(service, `imported${round}`)
  // COPY before, between and after: within a minute the machine may lose a third of its speed.
  const copies = [await copyIn(stage, `copied${round}-1`)]
  const importNew = await importIn(stage, token, 'First', 'created')
  copies.push(await copyIn(stage, `copied${round}-2`))
  const importMerge = await importIn(stage, token, 'Second', 'updated')
  copies.push(await copyIn(stage, `copied${round}-3`))
  await psql(service, 'vacuum entities', 'checkpoint')
  const all = `select * from entities where organization_id = ${imported} and stack_id = 0`
  const outs: { copyTo: Measured; export: Measured }[] = []
  for (let turn = 0; turn < turnsOut; turn += 1) {
    const copyTo = await timed(stage, () => psql(service, `\\copy (${all}) to '${path('out')}'`))
    outs.push({ copyTo, export: await timed(stage, () => exportAll(stage, token, path('lines'))) })
    await requireLines(path('lines'), people)
  }
  const [copyTo, exported] = [middle(outs.map(out => out.copyTo)), middle(outs.map(out => out.export))]
  return { copy: middle(copies), 'import-new': importNew, 'import-merge': importMerge, copyTo, export: exported }
}

const middle = (all: Measured[]) => all.toSorted((one, other) => one.seconds - other.seconds)[all.length >> 1]!

function show(
  name: string,
  people: number,
  rounds: Measured[],
  bound?: { ratio: number; atLeast: number; aim: number },
) {
  const of = (value: (one: Measured) => number) => median(rounds.map(value))
  const rate = Math.round(people / of(({ seconds }) => seconds))
  const cpu = `kith ${Math.round(of(({ usage }) => usage.service))} %, PostgreSQL ${Math.round(of(({ usage }) => usage.postgres))} %`
  const memory = `kith at most ${Math.round(Math.max(...rounds.map(({ usage }) => usage.servicePeakMb)))} MB`
  const reach = bound ? `  ratio ${bound.ratio.toFixed(2)} (at least ${bound.atLeast}, aim ${bound.aim})` : ''
  print(`${name.padEnd(14)} ${rate.toLocaleString('en').padStart(9)} rows/s  CPU: ${cpu}; ${memory}${reach}`)
}

/** Measures imports against COPY FROM of the same rows into the same table, and exports against COPY TO, in alternation. */
async function main() {
  const { values } = parseArgs({
    options: { people: { type: 'string', default: '200000' }, rounds: { type: 'string', default: '3' } },
  })
  const [people, rounds] = [Number(values.people), Number(values.rounds)]
  const ending = prepareEnding()
  try {
    const ground = await ending.hold(prepareGround, started => started.stop())
    await ground.createDatabase('bench')
    const service = await ending.hold(
      () => startService(ground, checkout, 'bench', 1),
      started => started.stop(),
    )
    const stage: Stage = { ground, service, tokens: organizationTokens(checkout, service), people }
    print(
      `${new Date().toISOString()}; Node ${process.version}, PostgreSQL ${await serverVersion(service)}; ${people} people, medians of ${rounds} rounds`,
    )
    for (const index of await indexesOf(service)) print(`  ${index}`)
    await warmUp(stage)
    const measured: Record<string, Measured>[] = []
    for (let round = 1; round <= rounds; round += 1) measured.push(await runRound(stage, round))
    const of = (name: string) => measured.map(round => round[name]!)
    const seconds = (name: string) => median(of(name).map(one => one.seconds))
    for (const [against, names] of [
      ['copy', ['import-new', 'import-merge']],
      ['copy_to', ['export']],
    ] as const) {
      show(against, people, of(against))
      for (const name of names as readonly RowName[])
        show(name, people, of(name), { ratio: seconds(against) / seconds(name), ...bounds[name] })
    }
  } finally {
    await ending.close()
  }
}

await main()

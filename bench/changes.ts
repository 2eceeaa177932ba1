import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual, parseArgs } from 'node:util'
import { prepareCleanup } from './cleanup.ts'
import { countLines, curl, psql } from './clients.ts'
import { inDatabase, serverVersion } from './database.ts'
import { startPostgres, startService } from './environment.ts'
import { median } from './measure.ts'
import { printPlatform } from './report.ts'
import { createToken } from './tokens.ts'
import { measureTime, type Timed } from './usage.ts'

/** The bounds of the ratio of the feed's rate to the rate of COPY TO of the same columns. */
const bound = { atLeast: 0.4, aim: 0.6 }

const checkout = fileURLToPath(new URL('..', import.meta.url))
const print = (line = '') => process.stdout.write(`${line}\n`)

/** Half of the changes create people, the other half changes two fields and an attribute of each. Each has its own time. */
const fillSql = (changes: number) => `
insert into entities (organization_id, stack_id, id, external_id, active, version, first_name, last_name, email, attributes,
  created_at, updated_at)
select 1, 0, ('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'p' || n, true, 2, 'First ' || n, 'Last ' || n,
  'p' || n || '@example.org', jsonb_build_object('city', 'c' || n % 1000, 'score', n), now(), now()
from generate_series(1, ${changes / 2}) n;
insert into changes (organization_id, sequence, at, subject, stack_id, entity_id, operation, version, before, after, actor,
  request_id)
select 1, n, now() + n * interval '1.001 ms', 'entity', 0,
  ('01900000-0000-7000-8000-' || lpad(to_hex(1 + n % ${changes / 2}), 12, '0'))::uuid,
  case when n <= ${changes / 2} then 'create' else 'update' end, case when n <= ${changes / 2} then 1 else 2 end,
  case when n > ${changes / 2} then jsonb_build_object('first_name', 'A ' || n, 'last_name', 'B', 'attribute_values',
    jsonb_build_object('score', n)) end,
  jsonb_build_object('external_id', 'p' || n, 'first_name', 'First ' || n, 'last_name', 'Last ' || n, 'email',
    'p' || n || '@example.org', 'attribute_values', jsonb_build_object('city', 'c' || n % 1000, 'score', n)),
  'importer', gen_random_uuid()::text
from generate_series(1, ${changes}) n;
update change_heads set sequence = ${changes} where organization_id = 1;
update followers set sequence = ${changes} where organization_id = 1;
`

const copies = {
  'copy of the table': 'select * from changes where organization_id = 1 order by sequence',
  'copy of the same columns': `select c.sequence, c.at, c.subject, c.entity_id, e.external_id, s.key, c.operation, c.version,
    c.before, c.after, c.actor, c.request_id
    from changes c left join entities e on e.organization_id = 1 and e.stack_id = c.stack_id and e.id = c.entity_id
    left join stacks s on s.organization_id = 1 and s.id = c.stack_id
    where c.organization_id = 1 order by c.sequence`,
} as const
const sameColumns = 'copy of the same columns'

/** A line of COPY, as the feed shows it. The generated values need no escapes. */
function parseCopied(line: string): object {
  const [sequence, at, , id, external_id, stack_key, operation, version, before, after, actor, request_id] = line
    .split('\t')
    .map(field => (field === '\\N' ? null : field))
  return {
    sequence: Number(sequence),
    at: new Date(at!).toISOString(),
    subject: 'person',
    id,
    external_id,
    stack_key,
    operation,
    version: Number(version),
    before: JSON.parse(before ?? 'null'),
    after: JSON.parse(after ?? 'null'),
    actor,
    request_id,
  }
}

/** Compares every line of both files. Throws unless the feed has the same changes as the COPY. */
async function expectSameChanges(copiedPath: string, feedPath: string, changes: number): Promise<void> {
  const lines = (path: string) => createInterface({ input: createReadStream(path) })[Symbol.asyncIterator]()
  const [copied, fed] = [lines(copiedPath), lines(feedPath)]
  for (let count = 0; ; count += 1) {
    const [one, other] = [await copied.next(), await fed.next()]
    if (one.done && other.done && count === changes) return
    if (one.done || other.done || !isDeepStrictEqual(parseCopied(one.value), JSON.parse(other.value)))
      throw new Error(`Change ${count + 1} differs:\n${one.value}\n${other.value}`)
  }
}

type Side = { rounds: Timed[]; bytes: number }

function printSide(name: string, { rounds, bytes }: Side, changes: number, ratio: number | undefined) {
  const rate = Math.round(changes / median(rounds.map(({ seconds }) => seconds))).toLocaleString('en')
  // The kernel counts CPU in ticks of 10 ms, so a mean over the rounds says more than a median.
  const cpu = (who: 'service' | 'postgres' | 'generator') =>
    rounds.reduce((sum, { seconds, usage }) => sum + usage[who] * seconds * 1e4, 0) / (rounds.length * changes)
  const work = `kith ${cpu('service').toFixed(1)}, PostgreSQL ${cpu('postgres').toFixed(1)}, client ${cpu('generator').toFixed(1)}`
  const shownRatio = ratio === undefined ? '' : `  ratio ${ratio.toFixed(2)}`
  print(`${name.padEnd(26)} ${rate.padStart(9)}/s  ${(bytes / 1e6).toFixed(1)} MB; CPU µs/change: ${work}${shownRatio}`)
}

/** Measures the feed as lines and COPY TO of the same changes, in alternation. Both clients write what they receive to a file. */
async function main() {
  const { values } = parseArgs({
    options: { changes: { type: 'string', default: '100000' }, rounds: { type: 'string', default: '9' } },
  })
  const [changes, rounds] = [Number(values.changes), Number(values.rounds)]
  const cleanup = prepareCleanup()
  try {
    const postgres = await cleanup.acquire(startPostgres, started => started.stop())
    await postgres.createDatabase('bench')
    const service = await cleanup.acquire(
      () => startService(postgres, checkout, 'bench', 1),
      started => started.stop(),
    )
    const token = await createToken(checkout, service, 'changes:read people:read')
    await inDatabase(service.url, async client => {
      await client.query(fillSql(changes))
      await client.query('vacuum (analyze) changes, entities')
    })
    printPlatform(await serverVersion(service))
    print(`${changes} changes, medians of ${rounds} rounds in alternation`)
    const [copied, fed] = [join(postgres.folder, 'copied'), join(postgres.folder, 'fed')]
    const copy = (sql: string) => psql(service, `\\copy (${sql.replaceAll('\n', ' ')}) to '${copied}'`)
    const readFeed = () => curl(token, '-H', 'Accept: application/x-ndjson', '-o', fed, `${service.address}/v1/changes`)
    for (let turn = 0; turn < 3; turn += 1) await readFeed()
    await copy(copies[sameColumns])
    await expectSameChanges(copied, fed, changes)
    const sides = new Map<string, Side>()
    const measure = async (name: string, path: string, work: () => Promise<unknown>) => {
      const timed = await measureTime({ service, postgres }, work)
      if ((await countLines(path)) !== changes) throw new Error(`The ${name} lacks changes.`)
      const before = sides.get(name)?.rounds ?? []
      sides.set(name, { rounds: [...before, timed], bytes: (await stat(path)).size })
    }
    for (let round = 0; round < rounds; round += 1) {
      for (const [name, sql] of Object.entries(copies)) await measure(name, copied, () => copy(sql))
      await measure('feed as lines', fed, readFeed)
    }
    const secondsOf = ({ rounds }: Side) => median(rounds.map(({ seconds }) => seconds))
    const feedSeconds = secondsOf(sides.get('feed as lines')!)
    for (const [name, side] of sides)
      printSide(name, side, changes, name === 'feed as lines' ? undefined : secondsOf(side) / feedSeconds)
    print(
      `feed_ratio=${(secondsOf(sides.get(sameColumns)!) / feedSeconds).toFixed(3)} (at least ${bound.atLeast}, aim ${bound.aim})`,
    )
  } finally {
    await cleanup.close()
  }
}

await main()

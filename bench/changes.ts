import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { prepareCleanup } from './cleanup.ts'
import { inDatabase, serverVersion } from './database.ts'
import { type Service, startPostgres, startService } from './environment.ts'
import { median, runProgram } from './measure.ts'

/** The bounds of the ratio of the feed's rate to the rate of COPY TO of the same columns. */
const bound = { atLeast: 0.4, aim: 0.6 }

const checkout = fileURLToPath(new URL('..', import.meta.url))
const print = (line = '') => process.stdout.write(`${line}\n`)
const environment = { PATH: process.env.PATH }

/** Half of the changes create people, the other half changes two fields and an attribute of each. */
const fillSql = (changes: number) => `
insert into entities (organization_id, stack_id, id, external_id, active, version, first_name, last_name, email, attributes,
  created_at, updated_at)
select 1, 0, ('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'p' || n, true, 2, 'First ' || n, 'Last ' || n,
  'p' || n || '@example.org', jsonb_build_object('city', 'c' || n % 1000, 'score', n), now(), now()
from generate_series(1, ${changes / 2}) n;
insert into changes (organization_id, sequence, at, subject, stack_id, entity_id, operation, version, before, after, actor,
  request_id)
select 1, n, now(), 'entity', 0, ('01900000-0000-7000-8000-' || lpad(to_hex(1 + n % ${changes / 2}), 12, '0'))::uuid,
  case when n <= ${changes / 2} then 'create' else 'update' end, case when n <= ${changes / 2} then 1 else 2 end,
  case when n > ${changes / 2} then jsonb_build_object('first_name', 'A ' || n, 'last_name', 'B', 'attribute_values',
    jsonb_build_object('score', n)) end,
  jsonb_build_object('external_id', 'p' || n, 'first_name', 'First ' || n, 'last_name', 'Last ' || n, 'email',
    'p' || n || '@example.org', 'attribute_values', jsonb_build_object('city', 'c' || n % 1000, 'score', n)),
  'importer', gen_random_uuid()::text
from generate_series(1, ${changes}) n;
update change_heads set sequence = ${changes} where organization_id = 1;
`

const copies = {
  'copy of the table': 'select * from changes where organization_id = 1 order by sequence',
  'copy of the same columns': `select c.sequence, c.at, c.subject, c.entity_id, e.external_id, s.key, c.operation, c.version,
    c.before, c.after, c.actor, c.request_id
    from changes c left join entities e on e.organization_id = 1 and e.stack_id = c.stack_id and e.id = c.entity_id
    left join stacks s on s.organization_id = 1 and s.id = c.stack_id
    where c.organization_id = 1 order by c.sequence`,
} as const

async function measureSeconds(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  await work()
  return (performance.now() - began) / 1e3
}

const psql = ({ url }: Service, command: string) =>
  runProgram('psql', ['-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', url, '-c', command], environment)

async function countLines(path: string): Promise<number> {
  let lines = 0
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>)
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) lines += 1
  return lines
}

/** Measures the feed as lines and COPY TO of the same changes, in alternation. */
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
    const words = ['token', '--org', 'default', '--scope', 'changes:read people:read', '--ttl', '86400']
    const token = await runProgram(process.execPath, [join(checkout, 'cli', 'main.ts'), ...words], {
      ...environment,
      DATABASE_URL: service.url,
    })
    await inDatabase(service.url, async client => {
      await client.query(fillSql(changes))
      await client.query('vacuum (analyze) changes, entities')
    })
    print(`${new Date().toISOString()}; Node ${process.version}, PostgreSQL ${await serverVersion(service)}`)
    print(`${changes} changes, medians of ${rounds} rounds`)
    const path = join(postgres.folder, 'out')
    const headers = ['-H', `Authorization: Bearer ${token.trim()}`, '-H', 'Accept: application/x-ndjson']
    const readFeed = () =>
      runProgram('curl', ['-sS', '--fail', ...headers, '-o', path, `${service.address}/v1/changes`], environment)
    for (let turn = 0; turn < 3; turn += 1) await readFeed()
    if ((await countLines(path)) !== changes) throw new Error('The feed lacks changes.')
    const seconds = new Map<string, number[]>()
    const add = (name: string, took: number) => seconds.set(name, [...(seconds.get(name) ?? []), took])
    for (let round = 0; round < rounds; round += 1) {
      for (const [name, sql] of Object.entries(copies))
        add(name, await measureSeconds(() => psql(service, `\\copy (${sql.replaceAll('\n', ' ')}) to '${path}'`)))
      add('feed as lines', await measureSeconds(readFeed))
    }
    const feed = median(seconds.get('feed as lines')!)
    for (const [name, took] of seconds) {
      const rate = Math.round(changes / median(took)).toLocaleString('en')
      const ratio = name === 'feed as lines' ? '' : `  ratio ${(median(took) / feed).toFixed(2)}`
      print(`${name.padEnd(26)} ${rate.padStart(10)} changes/s${ratio}`)
    }
    print(`The ratio to the same columns is at least ${bound.atLeast}, the aim is ${bound.aim}.`)
  } finally {
    await cleanup.close()
  }
}

await main()

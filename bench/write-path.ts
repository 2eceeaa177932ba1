// Compares the write path of the working tree with that of another revision in one process, without HTTP: both write the same sets in
// alternation, each to a database of its own. The same revision on both sides gives 0.98 to 1.02, also on a busy machine.
//   node bench/write-path.ts --against <revision>

import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type * as Contexts from '../src/db/context.ts'
import type * as Databases from '../src/db/db.ts'
import { urlOfDatabase } from '../src/db/embedded.ts'
import type * as Migrations from '../src/db/migrate.ts'
import type * as Queue from '../src/entities/write/request-coalescing.ts'
import type { Write } from '../src/entities/write-request.ts'
import type * as Organizations from '../src/organizations/organizations.ts'
import type * as Config from '../src/process/config.ts'
import type { BenchPostgres } from './environment.ts'
import { median } from './measure.ts'
import { word } from './population.ts'
import { cpuUsOf } from './processes.ts'
import { withPostgres } from './run.ts'
import { addCheckout, checkout, readCommit } from './side.ts'

/** The write path of a revision. `node` and `sets` are of the current kind of writes. */
type Path = { write(writes: Write[]): Promise<void>; backend: number; nodeUs: number[]; close(): Promise<void> }

async function openPath(postgres: BenchPostgres, name: string, folder: string): Promise<Path> {
  const load = <Module>(path: string): Promise<Module> => import(join(folder, 'src', path))
  const { openDatabase, statement } = await load<typeof Databases>('db/db.ts')
  const { migrate } = await load<typeof Migrations>('db/migrate.ts')
  const { writeArray } = await load<typeof Queue>('entities/write/request-coalescing.ts')
  const { createOrganization } = await load<typeof Organizations>('organizations/organizations.ts')
  // Revisions before decision 71 take the database and the number.
  const contexts = await load<typeof Contexts>('db/context.ts').catch(() => undefined)
  const { limits } = (
    await load<typeof Config>('process/config.ts').catch(() => load<typeof Config>('config.ts'))
  ).loadConfig({})
  await postgres.createDatabase(name)
  const url = urlOfDatabase(postgres.url, name)
  await migrate(url)
  // With one connection, one process of PostgreSQL does all the work of a side.
  const db = openDatabase(url, { connections: 1, statementTimeoutMs: 60_000 } as Parameters<typeof openDatabase>[1])
  const { id } = await createOrganization(db, 'bench')
  const reached = (contexts ? [contexts.contextOf(db, id)] : [db, id]) as unknown as [Contexts.Context]
  const [backend] = await db.query<{ pid: number }>(statement('', 'select pg_backend_pid() as pid'), [])
  return {
    backend: backend!.pid,
    nodeUs: [],
    close: () => db.close(),
    write: async writes => {
      const failed = (await writeArray(...reached, writes, { limits })).find(outcome => !('done' in outcome))
      if (failed) throw new Error(`${name}: ${JSON.stringify(failed)}`)
    },
  }
}

let people = 0
const attribute_values = () => ({ city: `c${word()}`, score: word() })
const fields = () => ({ first_name: `F${word()}`, last_name: `L${word()}`, language: 'it' })

function writeOf(operation: 'create' | 'patch', external_id: string, body: Write['body']): Write {
  return {
    ...{ operation, stack_id: 0, address: { external_id }, boundFrom: 'body', if_match: null, references: 'create' },
    ...{ body: operation === 'create' ? { external_id, ...body } : body, represent: false, bytes: 200 },
    ...{ actor: 'bench', request_id: 'x'.repeat(22) },
  }
}

/** The write of each kind for the person with a number. */
const kinds: Record<string, (person: number) => Write> = {
  create: person => writeOf('create', `p${person}`, { ...fields(), attribute_values: attribute_values() }),
  patch: person => writeOf('patch', `p${person}`, { ...fields(), attribute_values: attribute_values() }),
  attributes: person => writeOf('patch', `p${person}`, { attribute_values: attribute_values() }),
}

function makeSet(kind: string, size: number): Write[] {
  const isCreate = kind === 'create'
  const first = isCreate ? people : Math.floor(Math.random() * (people - size))
  if (isCreate) people += size
  return Array.from({ length: size }, (_, index) => kinds[kind]!(first + index))
}

async function measureSet(path: Path, writes: Write[]) {
  const before = process.cpuUsage()
  await path.write(structuredClone(writes))
  const { user, system } = process.cpuUsage(before)
  path.nodeUs.push(user + system)
}

async function compare(paths: [Path, Path], kind: string, size: number, sets: number): Promise<string> {
  for (let set = 0; set < 40; set += 1) {
    const writes = makeSet(kind, size)
    for (const path of paths) await path.write(structuredClone(writes))
  }
  const began = paths.map(({ backend }) => cpuUsOf(backend))
  for (const path of paths) path.nodeUs = []
  for (let set = 0; set < sets; set += 1) {
    const writes = makeSet(kind, size)
    for (const path of set % 2 === 0 ? paths : paths.toReversed()) await measureSet(path, writes)
  }
  const [ours, theirs] = paths
  const postgresUs = paths.map(({ backend }, index) => cpuUsOf(backend) - began[index]!)
  const nodeRatio = median(ours.nodeUs.map((us, set) => us / theirs.nodeUs[set]!))
  const perWrite = (us: number) => (us / sets / size).toFixed(1)
  const figures = [perWrite(median(ours.nodeUs) * sets), perWrite(postgresUs[0]!)]
  const ratios = [nodeRatio, postgresUs[0]! / postgresUs[1]!].map(ratio => ratio.toFixed(2))
  return `${kind.padEnd(11)} Node ${figures[0]} µs a write, PostgreSQL ${figures[1]} µs; to the revision: ${ratios.join(', ')}`
}

async function main() {
  const { values } = parseArgs({
    options: {
      against: { type: 'string' },
      size: { type: 'string', default: '64' },
      sets: { type: 'string', default: '300' },
    },
  })
  if (values.against === undefined) throw new Error('Give a revision: --against <revision>')
  const commit = await readCommit(values.against)
  await withPostgres(async ({ postgres, acquire }) => {
    const folder = await addCheckout(join(postgres.folder, 'revision'), commit, acquire)
    const open = (name: string, from: string) =>
      acquire(
        () => openPath(postgres, name, from),
        path => path.close(),
      )
    const paths: [Path, Path] = [await open('ours', checkout), await open('theirs', folder)]
    for (const kind of Object.keys(kinds))
      process.stdout.write(`${await compare(paths, kind, Number(values.size), Number(values.sets))}\n`)
  })
}

await main()

// Asks kith, PostGraphile and PocketBase the same of the same people, in alternation.
//   node bench/peers/main.ts --pocketbase <program> [--only sorted,filter]
// PocketBase is a Go program that is not on npm. Without a program it is left out.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, readFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { urlOfDatabase } from '../../src/db/embedded.ts'
import type { Cleanup } from '../cleanup.ts'
import { inDatabase } from '../database.ts'
import type { BenchPostgres } from '../environment.ts'
import { loadClosed } from '../load.ts'
import { median, runProgram } from '../measure.ts'
import { word } from '../population.ts'
import { askText, type BenchRequest, type Target, UnexpectedResponse } from '../requests.ts'
import { withPostgres } from '../run.ts'
import { checkout, Side } from '../side.ts'

const print = (line = '') => process.stdout.write(`${line}\n`)

const works = ['get', 'patch', 'sorted', 'filter', 'count'] as const
type Work = (typeof works)[number]

/** A running product. `requests` makes one of each work; `shows` is a text of its successful response. */
type Product = {
  name: string
  target: Target
  requests: Record<Work, () => BenchRequest>
  shows: Record<Work, string>
}

const names = {
  get: 'GET',
  patch: 'PATCH',
  sorted: 'sorted page of 50',
  filter: 'page of a city',
  count: 'count of a city',
}
const city = () => `area ${word() % 1_000}`

/** Each product shows the same five fields of a page. */
const fields = ['external_id', 'first_name', 'last_name', 'email', 'attribute_values.area']

function createKith(side: Side): Product {
  const page = (body: object): BenchRequest => ({ method: 'POST', path: '/v1/people/list', body })
  const filter = (size: number, more = {}): BenchRequest => ({
    method: 'POST',
    path: '/v1/people/filter',
    body: { filter: { 'attribute_values.area': city() }, cursor_configuration: { size }, fields, ...more },
  })
  return {
    name: 'kith',
    target: side,
    requests: {
      get: () => ({ method: 'GET', path: `/v1/people/${side.randomPerson()}` }),
      patch: () => ({ method: 'PATCH', path: `/v1/people/${side.randomPerson()}`, body: { first_name: `F${word()}` } }),
      sorted: () => page({ sort: { field: 'last_name' }, cursor_configuration: { size: 50 }, fields }),
      filter: () => filter(50),
      count: () => filter(1, { count: true }),
    },
    shows: { get: '"external_id"', patch: 'true', sorted: '"items":[{', filter: '"items":[{', count: '"count":' },
  }
}

const table = `create table people (external_id text primary key, first_name text, last_name text, email text, area text);
  create index on people (last_name); create index on people (area)`

async function startPostGraphile({ postgres, acquire }: Context, side: Side): Promise<Product> {
  const folder = join(postgres.folder, 'postgraphile')
  await cp(fileURLToPath(new URL('postgraphile', import.meta.url)), folder, { recursive: true })
  const environment = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env.PATH}` }
  await runProgram(
    'npm',
    ['install', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund', '--silent'],
    environment,
  )
  await postgres.createDatabase('postgraphile')
  const url = urlOfDatabase(postgres.url, 'postgraphile')
  await inDatabase(url, async client => {
    await client.query(table)
    await client.query(
      `insert into people select 'p' || i, 'First ' || i, 'Last ' || i, 'p' || i || '@example.org', 'area ' || i % 1000
       from generate_series(1, $1::integer) i`,
      [side.people],
    )
    await client.query('vacuum (analyze)')
  })
  const child = await acquire(
    async () =>
      spawn(process.execPath, ['server.js'], {
        cwd: folder,
        env: { ...environment, DATABASE_URL: url, NODE_ENV: 'production', GRAPHILE_ENV: 'production' },
      }),
    endProgram,
  )
  const [line] = (await once(child.stdout!, 'data')) as [Buffer]
  const ask = (query: string, variables: object): BenchRequest => ({
    method: 'POST',
    path: '/graphql',
    body: { query, variables },
  })
  const fields = 'externalId firstName lastName email area'
  const version = JSON.parse(await readFile(join(folder, 'node_modules/postgraphile/package.json'), 'utf8')).version
  const byArea = (content: string) =>
    `query q($area: String!, $first: Int) { allPeople(condition: { area: $area }, first: $first) { ${content} } }`
  return {
    name: `PostGraphile ${version}`,
    target: { address: /http\S+/.exec(String(line))![0], token: 'none' },
    requests: {
      get: () =>
        ask(`query q($id: String!) { personByExternalId(externalId: $id) { ${fields} } }`, { id: side.randomPerson() }),
      patch: () =>
        ask(
          `mutation m($id: String!, $patch: PersonPatch!) { updatePersonByExternalId(input: { externalId: $id, personPatch: $patch }) { person { externalId } } }`,
          { id: side.randomPerson(), patch: { firstName: `F${word()}` } },
        ),
      sorted: () => ask(`query q { allPeople(orderBy: LAST_NAME_ASC, first: 50) { nodes { ${fields} } } }`, {}),
      filter: () => ask(byArea(`nodes { ${fields} }`), { area: city(), first: 50 }),
      count: () => ask(byArea('totalCount'), { area: city() }),
    },
    shows: {
      get: '"externalId"',
      patch: '"externalId"',
      sorted: '"externalId"',
      filter: '"externalId"',
      count: '"totalCount"',
    },
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

const superuser = { identity: 'admin@example.org', password: 'not-a-secret-1' }
const peoplePerBatch = 2_000

async function startPocketBase({ postgres, acquire }: Context, side: Side, program: string): Promise<Product> {
  const data = `--dir=${join(postgres.folder, 'pocketbase')}`
  await runProgram(program, ['superuser', 'upsert', superuser.identity, superuser.password, data], process.env)
  const address = `http://127.0.0.1:${await freePort()}`
  await acquire(
    async () => spawn(program, ['serve', `--http=${address.slice('http://'.length)}`, data], { stdio: 'ignore' }),
    endProgram,
  )
  const isReady = () =>
    fetch(`${address}/api/health`).then(
      ({ ok }) => ok,
      () => false,
    )
  while (!(await isReady())) await setTimeout(100)
  const send = async <T>(token: string, method: 'POST' | 'PATCH', path: string, body: object) =>
    JSON.parse(await askText({ address, token }, { method, path, body })) as T
  const { token } = await send<{ token: string }>(
    '',
    'POST',
    '/api/collections/_superusers/auth-with-password',
    superuser,
  )
  await send(token, 'PATCH', '/api/settings', { batch: { enabled: true, maxRequests: peoplePerBatch, timeout: 60 } })
  const fields = ['external_id', 'first_name', 'last_name', 'email', 'area']
  await send(token, 'POST', '/api/collections', {
    name: 'people',
    type: 'base',
    fields: fields.map(name => ({ name, type: 'text' })),
    indexes: fields.map(name => `create index people_${name} on people (${name})`),
  })
  const records = '/api/collections/people/records'
  // An identifier of PocketBase has 15 characters.
  const idOf = (n: number) => `p${n}x`.padEnd(15, '0')
  for (let first = 1; first <= side.people; first += peoplePerBatch) {
    const count = Math.min(peoplePerBatch, side.people - first + 1)
    const requests = Array.from({ length: count }, (_, index) => {
      const n = first + index
      const person = {
        external_id: `p${n}`,
        first_name: `First ${n}`,
        last_name: `Last ${n}`,
        email: `p${n}@example.org`,
      }
      return { method: 'POST', url: records, body: { ...person, id: idOf(n), area: `area ${n % 1_000}` } }
    })
    await send(token, 'POST', '/api/batch', { requests })
  }
  const randomId = () => idOf(1 + (word() % side.people))
  const list = (query: string): BenchRequest => ({ method: 'GET', path: `${records}?${query}` })
  const byArea = () => `filter=${encodeURIComponent(`area = "${city()}"`)}`
  const version = (await runProgram(program, ['--version'], process.env)).trim().split(' ').at(-1)
  return {
    name: `PocketBase ${version}`,
    target: { address, token },
    requests: {
      get: () => ({ method: 'GET', path: `${records}/${randomId()}` }),
      patch: () => ({ method: 'PATCH', path: `${records}/${randomId()}`, body: { first_name: `F${word()}` } }),
      sorted: () => list('perPage=50&skipTotal=1&sort=last_name'),
      filter: () => list(`perPage=50&skipTotal=1&${byArea()}`),
      count: () => list(`perPage=1&${byArea()}`),
    },
    shows: {
      get: '"external_id"',
      patch: '"external_id"',
      sorted: '"external_id"',
      filter: '"external_id"',
      count: '"totalItems"',
    },
  }
}

async function endProgram(child: ChildProcess) {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill()
  await ended
}

type Context = { postgres: BenchPostgres; acquire: Cleanup['acquire'] }

/** GraphQL answers errors with 200, so a response is read before each load. */
async function verify({ name, target, requests, shows }: Product, work: Work) {
  const text = await askReady(target, requests[work])
  if (!text.includes(shows[work]) || text.includes('"errors"'))
    throw new Error(`${name} ${work}: ${text.slice(0, 500)}`)
}

/** kith answers 503 while it builds the index that the first request of an order asks for. */
async function askReady(target: Target, next: () => BenchRequest): Promise<string> {
  for (;;)
    try {
      return await askText(target, next())
    } catch (error) {
      if (!(error instanceof UnexpectedResponse && error.status === 503)) throw error
      await setTimeout(500)
    }
}

async function main() {
  const { values } = parseArgs({
    options: {
      people: { type: 'string', default: '100000' },
      seconds: { type: 'string', default: '3' },
      rounds: { type: 'string', default: '3' },
      connections: { type: 'string', default: '1,32' },
      only: { type: 'string', default: works.join() },
      pocketbase: { type: 'string' },
    },
  })
  await withPostgres(async context => {
    const side = await Side.open(context, { name: 'kith', checkout, people: Number(values.people), workers: 1 })
    const products = [createKith(side), await startPostGraphile(context, side)]
    if (values.pocketbase) products.push(await startPocketBase(context, side, values.pocketbase))
    for (const work of works.filter(each => values.only.split(',').includes(each)))
      for (const connections of values.connections.split(',').map(Number)) {
        const rates = products.map((): number[] => [])
        for (let round = 0; round <= Number(values.rounds); round += 1)
          for (const [index, product] of products.entries()) {
            await verify(product, work)
            const seconds = round === 0 ? 1 : Number(values.seconds)
            const load = {
              folder: context.postgres.folder,
              next: product.requests[work],
              connections,
              seconds,
              maxRate: 40_000,
            }
            const { rate } = await loadClosed(product.target, load)
            // The first round fills caches and compiles code.
            if (round > 0) rates[index]!.push(rate)
          }
        const figures = products.map(
          ({ name }, index) => `${name} ${Math.round(median(rates[index]!)).toLocaleString('en')}/s`,
        )
        print(`${names[work]}, ${connections} connection(s): ${figures.join(', ')}`)
      }
  })
}

await main()

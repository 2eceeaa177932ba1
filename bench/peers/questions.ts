// Asks kith, Directus and PocketBase the same questions about the same people: a search, a sorted page and a count.
//   node bench/peers/questions.ts --pocketbase <program>
// PocketBase is a Go program, so its binary has to be built first. Without one it is left out.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { urlOfDatabase } from '../../src/db/embedded.ts'
import { inDatabase, serverVersion } from '../database.ts'
import { median } from '../measure.ts'
import { minPeople } from '../options.ts'
import { populateQuestions } from '../questions/population.ts'
import { alternate, createAsk } from '../questions/questions-part.ts'
import { printPlatform } from '../report.ts'
import { withPostgres } from '../run.ts'
import { createToken } from '../tokens.ts'
import { directus, findFreePort, startDirectus } from './directus/peer.ts'
import { installPeer } from './peer.ts'

const checkout = fileURLToPath(new URL('../..', import.meta.url))
const print = (line = '') => process.stdout.write(`${line}\n`)

type Person = { external_id: string; first_name: string; last_name: string | null; email: string; city: string }

/** The same questions to each product. Each resolves with how many people it found or showed. */
type Product = { name: string; ask: Record<Question, () => Promise<number>> }
const questions = [
  'search a name',
  'search a misspelt name',
  'first sorted page',
  'a page in the middle',
  'count of a city',
] as const
type Question = (typeof questions)[number]

const size = 50
/** What Directus and PocketBase store of a person. */
const fields = ['external_id', 'first_name', 'last_name', 'email', 'attribute_values.city']
const city = 'city 100'

type Names = { exact: string; misspelt: string }

type Get = (path: string, body?: unknown) => Promise<never>

/** Returns a function that sends a request and reads its JSON. Throws unless the request succeeds. */
function createGet(address: string, headers: Record<string, string>): Get {
  return async (path, body) => {
    const response = await fetch(`${address}${path}`, {
      headers: { ...headers, 'Content-Type': 'application/json' },
      ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
    })
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    return (await response.json()) as never
  }
}

async function createKithProduct(
  address: string,
  token: string,
  people: number,
  { exact, misspelt }: Names,
): Promise<Product> {
  const ask = createAsk(address, token)
  const sort = { field: 'last_name' }
  const page = async (cursor?: string, count = size) =>
    (await ask('POST', '/v1/people/list', { sort, fields, cursor_configuration: { size: count, cursor } })) as {
      items: unknown[]
      next_cursor: string
    }
  const search = async (text: string) =>
    ((await ask('POST', '/v1/people/search', { text, size })) as { items: unknown[] }).items.length
  let middle: string | undefined
  for (let read = 0; read < people / 2; read += 500) middle = (await page(middle, 500)).next_cursor
  return {
    name: 'kith',
    ask: {
      'search a name': () => search(exact),
      'search a misspelt name': () => search(misspelt),
      'first sorted page': async () => (await page()).items.length,
      'a page in the middle': async () => (await page(middle)).items.length,
      'count of a city': async () => {
        const body = { filter: { 'attribute_values.city': city }, count: true, cursor_configuration: { size: 1 } }
        return ((await ask('POST', '/v1/people/filter', body)) as { count: number }).count
      },
    },
  }
}

function createDirectusProduct(get: Get, people: number, { exact, misspelt }: Names): Product {
  const items = async (query: string) =>
    ((await get(`/items/people?limit=${size}&${query}`)) as { data: unknown[] }).data.length
  return {
    name: 'directus',
    ask: {
      'search a name': () => items(`search=${exact}`),
      'search a misspelt name': () => items(`search=${misspelt}`),
      'first sorted page': () => items('sort=last_name'),
      'a page in the middle': () => items(`sort=last_name&offset=${people / 2}`),
      'count of a city': async () => {
        const query = `aggregate[count]=*&filter[city][_eq]=${encodeURIComponent(city)}`
        return Number(((await get(`/items/people?${query}`)) as { data: { count: string }[] }).data[0]!.count)
      },
    },
  }
}

function createPocketBaseProduct(get: Get, people: number, { exact, misspelt }: Names): Product {
  const records = '/api/collections/people/records'
  const items = async (query: string) =>
    ((await get(`${records}?perPage=${size}&skipTotal=1&${query}`)) as { items: unknown[] }).items.length
  const search = (text: string) =>
    items(`filter=${encodeURIComponent(`first_name ~ "${text}" || last_name ~ "${text}" || email ~ "${text}"`)}`)
  return {
    name: 'pocketbase',
    ask: {
      'search a name': () => search(exact),
      'search a misspelt name': () => search(misspelt),
      'first sorted page': () => items('sort=last_name'),
      'a page in the middle': () => items(`sort=last_name&page=${people / 2 / size}`),
      'count of a city': async () => {
        const query = `perPage=1&filter=${encodeURIComponent(`city = "${city}"`)}`
        return ((await get(`${records}?${query}`)) as { totalItems: number }).totalItems
      },
    },
  }
}

/** Creates the table of Directus, with an index for each question that one can serve. */
async function fillTable(url: string, people: readonly Person[]) {
  await inDatabase(url, async client => {
    await client.query(
      'create table people (external_id text primary key, first_name text, last_name text, email text, city text)',
    )
    await client.query('insert into people select * from jsonb_populate_recordset(null::people, $1::jsonb)', [
      JSON.stringify(people),
    ])
    for (const column of ['first_name', 'last_name', 'email', 'city'])
      await client.query(`create index on people (${column})`)
    await client.query('vacuum (analyze)')
  })
}

const superuser = { identity: 'admin@example.org', password: 'not-a-secret-1' }
const recordsPerBatch = 2_000

/** Starts PocketBase on an empty folder and stores the people, with an index for each question that one can serve. */
async function startPocketBase(program: string, folder: string, people: readonly Person[]) {
  const data = `--dir=${join(folder, 'pocketbase')}`
  const [code] = await once(
    spawn(program, ['superuser', 'upsert', superuser.identity, superuser.password, data]),
    'exit',
  )
  if (code !== 0) throw new Error(`${program} ended with ${code}`)
  const address = `http://127.0.0.1:${await findFreePort()}`
  const child = spawn(program, ['serve', `--http=${address.slice('http://'.length)}`, data], { stdio: 'ignore' })
  const stop = async () => {
    const ended = once(child, 'exit')
    child.kill()
    await ended
  }
  process.once('exit', () => child.kill('SIGKILL'))
  while (
    !(await fetch(`${address}/api/health`).then(
      ({ ok }) => ok,
      () => false,
    ))
  )
    await new Promise(resolve => setTimeout(resolve, 100))
  const signedIn = createGet(address, {})
  const { token } = (await signedIn('/api/collections/_superusers/auth-with-password', superuser)) as { token: string }
  const headers = { Authorization: token }
  const get = createGet(address, headers)
  await fetch(`${address}/api/settings`, {
    method: 'PATCH',
    headers: { ...headers, 'Content-Type': 'application/json' },
    body: JSON.stringify({ batch: { enabled: true, maxRequests: recordsPerBatch, timeout: 60 } }),
  })
  const names = ['external_id', 'first_name', 'last_name', 'email', 'city']
  await get('/api/collections', {
    name: 'people',
    type: 'base',
    fields: names.map(name => ({ name, type: 'text' })),
    indexes: names.map(name => `create index people_${name} on people (${name})`),
  })
  for (let first = 0; first < people.length; first += recordsPerBatch) {
    const requests = people
      .slice(first, first + recordsPerBatch)
      .map(body => ({ method: 'POST', url: '/api/collections/people/records', body }))
    await get('/api/batch', { requests })
  }
  return { get, stop }
}

/** Swaps two letters in the middle of a name. */
const misspell = (name: string) => name.replace(/(..)(.)(.)(.*)/, '$1$3$2$4')

async function main() {
  const { values } = parseArgs({
    options: {
      people: { type: 'string', default: '100000' },
      requests: { type: 'string', default: '50' },
      pocketbase: { type: 'string' },
    },
  })
  const count = Number(values.people)
  const options = { people: minPeople, rounds: 1, seconds: 1, workers: 1, rows: [] }
  await withPostgres(options, async ({ addTarget, acquire }) => {
    const { service, postgres } = await addTarget(checkout, 'kith_side')
    const scopes = 'people:read people:write records:read records:write schema:read schema:write changes:read'
    const token = await createToken(checkout, service, scopes, 'small')
    await populateQuestions(service, createAsk(service.address, token), 'small', count)
    const people = await inDatabase(service.url, async client => {
      const { rows } = await client.query<Person>(
        `select e.external_id, e.first_name, e.last_name, e.email, e.attributes ->> 'city' as city from entities e
         join organizations o on o.id = e.organization_id where o.key = 'small' and e.stack_id = 0`,
      )
      return rows
    })
    const exact = people.find(({ last_name }) => last_name !== null && last_name.length >= 7)!.last_name!
    const names = { exact, misspelt: misspell(exact) }
    printPlatform(await serverVersion(service))
    print(
      `${count.toLocaleString('en')} people, ${values.requests} requests of each kind; the name is ${exact}, misspelt ${names.misspelt}`,
    )
    const products = [await createKithProduct(service.address, token, count, names)]
    const folder = join(postgres.folder, 'peer-directus')
    const version = await installPeer(directus, folder)
    await postgres.createDatabase('peer_directus')
    const url = urlOfDatabase(postgres.url, 'peer_directus')
    await fillTable(url, people)
    const running = await acquire(
      () => startDirectus({ folder, url }),
      started => started.stop(),
    )
    await createGet(running.address, running.headers)('/collections', {
      collection: 'people',
      schema: null,
      meta: {},
    }).catch(() => {})
    products.push(createDirectusProduct(createGet(running.address, running.headers), count, names))
    if (values.pocketbase) {
      const program = values.pocketbase
      const started = await acquire(
        () => startPocketBase(program, postgres.folder, people),
        started => started.stop(),
      )
      products.push(createPocketBaseProduct(started.get, count, names))
    }
    print(`Directus ${version}`)
    for (const question of questions) {
      const found = await Promise.all(products.map(({ ask }) => ask[question]()))
      const times = await alternate(
        Number(values.requests),
        products.map(({ ask }) => ask[question]),
      )
      const figures = products.map(
        ({ name }, index) => `${name} ${median(times[index]!).toFixed(2)} ms (${found[index]} found)`,
      )
      print(`  ${question}: ${figures.join(', ')}`)
    }
  })
}

await main()

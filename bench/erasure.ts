import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { inDatabase, serverVersion } from './database.ts'
import { percentile } from './measure.ts'
import { minPeople } from './options.ts'
import { printPlatform } from './report.ts'
import { type BenchTarget, withPostgres } from './run.ts'
import { createToken } from './tokens.ts'

const maxErasureMs = 200
const changesOfPerson = 1_000
const linksOfPerson = 100

const checkout = fileURLToPath(new URL('..', import.meta.url))
const print = (line = '') => process.stdout.write(`${line}\n`)

type Send = (path: string, body: object) => Promise<unknown>

function senderOf({ service }: BenchTarget, token: string): Send {
  return async (path, body) => {
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
    const response = await fetch(service.address + path, { method: 'POST', headers, body: JSON.stringify(body) })
    const { data, message } = (await response.json()) as { data: { failed?: number }; message?: string }
    if (!response.ok || data.failed) throw new Error(`${path}: ${response.status} ${message ?? JSON.stringify(data)}`)
    return data
  }
}

/** One change for each of the other people, so that the log is as large as the tables. */
const fillChangesSql = `
insert into changes (organization_id, sequence, at, subject, stack_id, entity_id, operation, version, after, actor, request_id)
select e.organization_id, row_number() over (order by e.id), now(), 'entity', 0, e.id, 'create', 1,
  jsonb_build_object('external_id', e.external_id, 'email', e.email, 'state', 'active'), 'importer', '1'
from entities e where e.organization_id = $1 and e.stack_id = 0`

async function fill({ service, large }: BenchTarget) {
  await inDatabase(service.url, async client => {
    await client.query('delete from changes where organization_id = $1', [large.id])
    await client.query(fillChangesSql, [large.id])
    const head = '(select max(sequence) from changes where organization_id = $1)'
    for (const table of ['followers', 'change_heads'])
      await client.query(`update ${table} set sequence = ${head} where organization_id = $1`, [large.id])
    await client.query('vacuum (analyze)')
    await client.query('checkpoint')
  })
}

/** A person with a log and links: half of them to others, half from others, of which every second one has ended. */
async function makePerson(send: Send, name: string) {
  const half = linksOfPerson / 2
  const friends = Array.from({ length: half }, (_, n) => `${name}-friend-${n}`)
  await send('/v1/people', { external_id: name, email: `${name}@example.org`, attribute_values: { friends } })
  const linking = friends.map(external_id => ({
    op: 'upsert',
    external_id,
    body: { attribute_values: { friends: [name] } },
  }))
  await send('/v1/people/batch', { operations: linking })
  const ending = friends
    .filter((_, n) => n % 2 === 0)
    .map(external_id => ({ op: 'patch', external_id, body: { attribute_values: { friends: [] } } }))
  await send('/v1/people/batch', { operations: ending })
  const patches = Array.from({ length: changesOfPerson - 1 }, (_, n) => ({
    ...{ op: 'patch', external_id: name },
    body: {
      first_name: `${name} ${n}`,
      ...(n % 10 === 0 && { email: `${name}.${n}@example.org` }),
      email_consent: n % 2 === 0,
    },
  }))
  await send('/v1/people/batch', { operations: patches })
}

/** Measures the erasure of people with 1,000 changes and 100 links, in a database of many people. */
async function main() {
  const { values } = parseArgs({
    options: { people: { type: 'string', default: '100000' }, erasures: { type: 'string', default: '10' } },
  })
  const [people, erasures] = [Number(values.people), Number(values.erasures)]
  if (!(people >= minPeople)) throw new Error(`--people takes a number from ${minPeople}.`)
  const options = { people, rounds: 1, seconds: 1, workers: 1, rows: [] }
  await withPostgres(options, async ({ addTarget }) => {
    const target = await addTarget(checkout, 'bench')
    const scope = 'people:read people:write people:erase schema:write'
    const send = senderOf(target, await createToken(checkout, target.service, scope))
    await fill(target)
    await send('/v1/schema/attributes', { key: 'friends', owner: 'people', type: 'person', cardinality: 'many' })
    const names = Array.from({ length: erasures }, (_, n) => `erased-${n}`)
    for (const name of names) await makePerson(send, name)
    printPlatform(await serverVersion(target.service))
    print(
      `erasures of people with ${changesOfPerson} changes and ${linksOfPerson} links among ${people.toLocaleString('en')} people`,
    )
    const times: number[] = []
    for (const name of names) {
      const began = performance.now()
      const { erasure } = (await send(`/v1/people/${name}/erase`, { reason: 'bench' })) as {
        erasure: { removed: object }
      }
      times.push(performance.now() - began)
      if (name === names[0]) print(`  removed: ${JSON.stringify(erasure.removed)}`)
    }
    const isMet = percentile(times, 0.5) <= maxErasureMs
    print(
      `  the call by HTTP: p50 ${percentile(times, 0.5).toFixed(1)} ms, the slowest ${Math.max(...times).toFixed(1)} ms ` +
        `(p50 at most ${maxErasureMs} ms): ${isMet ? 'met' : 'NOT MET'}`,
    )
  })
}

await main()

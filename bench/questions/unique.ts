import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { inDatabase } from '../database.ts'
import type { Service } from '../environment.ts'
import { coolDown, median, parseWrk, runProgram } from '../measure.ts'

type Context = {
  service: Service
  token: string
  ask: (method: string, path: string, body?: unknown) => Promise<never>
  print: (line?: string) => void
  organization_id: number
}

type Attribute = { id: number; index_state: { state: string } }

const atLeast = 0.8
const [rounds, seconds, connections] = [5, 4, 64]
const script = fileURLToPath(new URL('../lua/unique.lua', import.meta.url))
const suffixes = ['indexed', 'unique'] as const
const attributesPath = '/v1/schema/attributes'

/** $1: organization, $2: key. Gives every person a value of its own. */
const giveValuesSql = `update entities set attributes = attributes || jsonb_build_object($2::text, 'stored ' || id)
  where organization_id = $1 and stack_id = 0`

/** Compares POST of people with two unique attributes and with two that are only indexed, in alternation. */
export async function measure(context: Context): Promise<void> {
  const { service, print, organization_id } = context
  await inDatabase(service.url, async client => {
    for (const suffix of suffixes)
      for (const key of ['code', 'badge']) await client.query(giveValuesSql, [organization_id, `${key}_${suffix}`])
    await client.query('vacuum (analyze) entities')
  })
  for (const suffix of suffixes) for (const key of ['code', 'badge']) await declare(context, `${key}_${suffix}`, suffix)
  await inDatabase(service.url, client => client.query('vacuum (analyze) terms'))
  const rates: Record<(typeof suffixes)[number], number[]> = { indexed: [], unique: [] }
  for (const suffix of suffixes) await create(context, suffix, 'warm')
  for (let round = 0; round < rounds; round += 1)
    for (const suffix of round % 2 === 0 ? suffixes : suffixes.toReversed())
      rates[suffix].push(await create(context, suffix, `${round}`))
  const [indexed, unique] = [median(rates.indexed), median(rates.unique)]
  const ratio = unique / indexed
  const verdict = ratio >= atLeast ? 'met' : 'NOT MET'
  print(`  POST with two indexed attributes: ${indexed.toFixed(0)}/s`)
  print(
    `  POST with two unique attributes: ${unique.toFixed(0)}/s, ${ratio.toFixed(2)} of that (at least ${atLeast}): ${verdict}`,
  )
}

/** Declares an attribute of all people, waits for its index, and makes it unique. */
async function declare({ ask, print }: Context, key: string, suffix: string) {
  const { id }: Attribute = await ask('POST', attributesPath, { key, owner: 'people', type: 'text', indexed: true })
  const isFilling = async () =>
    ((await ask('GET', `${attributesPath}/${id}`)) as Attribute).index_state.state === 'filling'
  while (await isFilling()) await setTimeout(200)
  if (suffix !== 'unique') return
  const began = performance.now()
  await ask('PATCH', `${attributesPath}/${id}`, { unique: true })
  print(`  making ${key} unique took ${((performance.now() - began) / 1_000).toFixed(2)} s`)
}

/** Creates people with wrk. Returns how many a second. */
async function create({ service, token }: Context, suffix: string, run: string): Promise<number> {
  await coolDown()
  const environment = { PATH: process.env.PATH, TOKEN: token, SUFFIX: suffix, RUN: `${process.pid}-${suffix}-${run}` }
  const words = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '10s', '-s', script, service.address]
  return parseWrk(await runProgram('wrk', words, environment)).rate
}

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { routeTable } from '../../src/app.ts'
import type { Route } from '../../src/http/pipeline/route.ts'
import { type Answer, createSender, type Sender } from '../hostile/sender.ts'
import { digestOf } from '../hostile/test-tenant.ts'
import { type Organization, type Service, startService } from '../support/service.ts'
import { bodyCases, type Case, type OwnIds, type Pairs, pathCases } from './foreign.ts'

let service: Service
let sender: Sender
let ours: Organization
let pairs: Pairs
let routes: Route[]

/** Definitions that both have, under the same keys. */
async function define({ send }: Organization) {
  await send('POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' })
  for (const body of [
    { owner: 'people', key: 'referrer', type: 'person' },
    { owner: 'people', key: 'friends', type: 'person', cardinality: 'many' },
    { owner: 'people', key: 'bought', type: 'stack', target_stack: 'orders', cardinality: 'many' },
    { owner: 'orders', key: 'buyer', type: 'person' },
  ])
    expect((await send('POST', '/v1/schema/attributes', body)).status).toBe(201)
}

type Asker = Organization & { ownIds: OwnIds }

/** Two organizations alike: one will name what is ours, the other what is nobody's, so that neither leaves a trace for the other. */
async function makeAskers(): Promise<[Asker, Asker]> {
  const make = async () => {
    const asker = await service.organization()
    await define(asker)
    const person = await asker.send('POST', '/v1/people', { external_id: 'ada' })
    const record = await asker.send('POST', '/v1/stacks/orders', { external_id: 'ada' })
    return { ...asker, ownIds: { uuid: person.body.data.id, record_id: record.body.data.record_id } }
  }
  return [await make(), await make()]
}

/** The same identifier but for its last character, which nobody has. */
const beside = (id: string) => id.slice(0, -1) + (id.endsWith('0') ? '1' : '0')
const pair = (foreign: string) => ({ foreign, unknown: beside(foreign) })

beforeAll(async () => {
  service = await startService()
  sender = createSender(service)
  ours = await service.organization()
  await define(ours)
  const add = async (path: string, body: object) => (await ours.send('POST', path, body)).body.data
  await add('/v1/schema/stacks', { key: 'secrets9', kind: 'item' })
  const relationship = await add('/v1/schema/attributes', { owner: 'people', key: 'secretly9', type: 'person' })
  await add('/v1/schema/attributes', { owner: 'orders', key: 'secretly9', type: 'person' })
  const consent_type = await add('/v1/schema/consent-types', { key: 'secret', channels: [{ channel: 'email' }] })
  const person = await add('/v1/people', {
    external_id: 'secret-9',
    email_consent: true,
    attribute_values: { referrer: 'x' },
  })
  const record = await add('/v1/stacks/orders', { external_id: 'secret-9', attribute_values: { buyer: 'secret-9' } })
  await add('/v1/stacks/secrets9', { external_id: 'o1' })
  pairs = {
    external_id: pair('secret-9'),
    uuid: pair(person.id),
    record_id: pair(record.record_id),
    stack_key: pair('secrets9'),
    attribute_key: pair('secretly9'),
    attribute_id: { foreign: String(relationship.id), unknown: '9' },
    consent_type_id: { foreign: String(consent_type.id), unknown: '9' },
  }
  routes = routeTable(service)
})
afterAll(async () => {
  sender.close()
  await service.stop()
})

/** An answer to the byte, but for the request's number, the date, and what is made anew each time. */
function seen({ status, headers, text }: Answer, identifier: string) {
  const { date: _, 'x-request-id': request_id, ...rest } = headers
  const said = `${JSON.stringify(rest)}\n${text}`
  // Numbers of definitions are never told back, so every byte counts.
  const named = identifier.length > 3 ? said.replaceAll(identifier, '<identifier>') : said
  const plain = named.replaceAll(request_id!, '<request id>').replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
  // Identifiers that a create makes; where none is made, every byte counts.
  const made = plain
    .replace(/"(id|record_id)":"[\da-f-]+"/g, '"$1":"<made>"')
    .replace(/internal\/[\da-f-]+/g, 'internal/<made>')
  return `${status} ${status === 201 || status === 200 ? made : plain}`
}

async function compare({ where, pair, ask }: Case, [left, right]: [Asker, Asker]): Promise<number> {
  const digests = () => Promise.all([ours, left, right].map(({ id }) => digestOf(service, id)))
  const before = await digests()
  const foreign = await sender.ask(left.token, ask(pair.foreign, left.ownIds))
  const unknown = await sender.ask(right.token, ask(pair.unknown, right.ownIds))
  expect(seen(foreign, pair.foreign), where).toBe(seen(unknown, pair.unknown))
  const after = await digests()
  expect(after[0], where).toBe(before[0])
  if (foreign.status >= 400) expect(after, where).toEqual(before)
  return foreign.status
}

/** Every case of every route, each with askers of its own; answers the statuses. */
async function compareAll(casesOf: (route: Route, pairs: Pairs) => Case[]): Promise<Map<string, number>> {
  const statuses = new Map<string, number>()
  for (const one of routes.flatMap(route => casesOf(route, pairs)))
    statuses.set(one.where, await compare(one, await makeAskers()))
  return statuses
}

// Hundreds of requests, each beside its twin.
describe('to an organization, what is another’s is what is nobody’s:', { timeout: 120_000 }, () => {
  test('in every parameter of every path', async () => {
    const statuses = await compareAll(pathCases)
    console.log(`foreign identifiers in paths: ${statuses.size} pairs on ${routes.length} routes`)
    expect([...statuses].filter(([, status]) => ![404, 500].includes(status))).toEqual([])
    const parameters = routes.flatMap(({ params }) => Object.keys(params ?? {}))
    expect(statuses.size).toBe(parameters.length)
  })

  test('in every place of every body', async () => {
    const statuses = await compareAll(bodyCases)
    console.log(`foreign identifiers in bodies: ${statuses.size} pairs`)
    const covered = new Set([...statuses.keys()].map(where => where.split(':')[0]))
    // The other bodies of definitions name nobody; the cursor of an export is that of a list.
    const bodied = routes.filter(
      ({ body, path }) =>
        body && !path.endsWith('/export') && (!path.startsWith('/v1/schema') || path.endsWith('attributes')),
    )
    expect(bodied.map(({ method, path }) => `${method} ${path}`).filter(route => !covered.has(route))).toEqual([])
  })

  test('in every query that stands for a body', async () => {
    const queries: [keyof Pairs, string, (identifier: string) => string][] = [
      ['uuid', '/v1/people/list', id => `cursor_configuration[after_id]=${id}`],
      ['record_id', '/v1/stacks/orders/list', id => `cursor_configuration[after_id]=${id}`],
      ['stack_key', '/v1/people/ada/related', key => `target=${key}`],
      ['external_id', '/v1/people', name => `attribute_values[referrer]=${name}`],
      [
        'consent_type_id',
        '/v1/people',
        id => `consents[0][consent_type_id]=${id}&consents[0][channel]=email&consents[0][state]=true`,
      ],
      ['external_id', '/v1/people/filter', name => `filter[external_id]=${name}`],
    ]
    const askers = await makeAskers()
    for (const [kind, path, queryOf] of queries) {
      const one = {
        where: path,
        pair: pairs[kind],
        ask: (identifier: string) => ({
          method: 'POST',
          path: `${path}?${queryOf(identifier)}`,
          headers: { Prefer: 'references=strict' },
        }),
      }
      await compare(one, askers)
    }
    console.log(`foreign identifiers in queries: ${queries.length} pairs`)
  })
})

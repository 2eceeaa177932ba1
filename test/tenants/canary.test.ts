import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openApiDocument } from '../../src/app.ts'
import { operationsOf } from '../hostile/operations.ts'
import { askOf, planOf } from '../hostile/requests.ts'
import { fuzzSeed } from '../hostile/seed.ts'
import { type Answer, createSender, type Sender } from '../hostile/sender.ts'
import { makeLane, type TestTenant } from '../hostile/test-tenant.ts'
import { type Organization, type Service, startService } from '../support/service.ts'

const canary = 'zqcanary7'

let service: Service
let sender: Sender
let ours: Organization
let lane: TestTenant
beforeAll(async () => {
  service = await startService()
  sender = createSender(service)
  lane = await makeLane(service, sender)
  ours = await service.organization()
})
afterAll(async () => {
  sender.close()
  await service.stop()
})

const values = { [canary]: [canary, { [canary]: canary }], told: canary }
const profile = {
  first_name: canary,
  last_name: canary,
  email: `${canary}@example.org`,
  mobile_prefix: canary,
  mobile_number: canary,
  language: `x-${canary.slice(0, 8)}`,
}
const description = { name: canary, description: canary }

/** Requests that put the canary into every field there is, some of them refused, with the words of the token's subject too. */
async function sing(round: number): Promise<void> {
  const token = await service.tokenFor(ours.key, undefined, canary)
  const ask = (method: string, path: string, body?: object) =>
    sender.ask(token, { method, path, body: body && JSON.stringify(body) })
  const key = `${canary}_${round}`
  await ask('POST', '/v1/schema/stacks', { key, kind: 'item', name: canary })
  await ask('POST', '/v1/schema/attributes', { key, owner: 'people', type: 'stack', target_stack: key, ...description })
  await ask('POST', '/v1/schema/attributes', {
    key: `${key}_text`,
    owner: key,
    type: 'text',
    indexed: true,
    ...description,
  })
  await ask('POST', '/v1/schema/consent-types', { key, channels: [{ channel: 'email' }], ...description })
  await ask('POST', '/v1/people', {
    external_id: key,
    ...profile,
    attribute_values: { ...values, [key]: `${canary} of ${round}` },
  })
  await ask('POST', `/v1/stacks/${key}`, { external_id: key, attribute_values: { ...values, [`${key}_text`]: canary } })
  await ask('PATCH', `/v1/people/${key}`, { first_name: `${canary}!`, email_consent: true })
  await ask('PATCH', `/v1/people/nobody ${canary}`.replace(' ', '%20'), { first_name: canary })
  await ask('PATCH', `/v1/people/${key}`, { email: canary, [canary]: canary })
  await ask('POST', '/v1/people/filter', { filter: { [canary]: canary } })
  await ask('POST', '/v1/people/batch', {
    operations: [{ op: 'put', external_id: canary, body: { [canary]: canary } }],
  })
  await sender.ask(token, { method: 'POST', path: '/v1/people', body: `{"first_name":"${canary}"` })
  await sender.ask(token, { method: 'GET', path: `/v1/${canary}/${canary}?${canary}=${canary}` })
}

test('what one organization stores never appears in an answer to another, nor in the log', {
  timeout: 120_000,
}, async () => {
  const seed = fuzzSeed()
  const document = openApiDocument(service)
  const plans = fc.oneof(...operationsOf(document).map(operation => planOf(operation, document)))
  const heard: Answer[] = []
  let singing = true
  const choir = (async () => {
    for (let round = 0; round < 12 || singing; round += 1) await sing(round)
  })()
  for (const plan of fc.sample(plans, { seed, numRuns: 700 }))
    heard.push(await sender.ask(lane.token, askOf(plan, lane)))
  singing = false
  await choir
  const everything = [
    ...['people', 'stacks/orders', 'stacks/visits'].flatMap(kind => [`/v1/${kind}/list`, `/v1/${kind}/filter`]),
  ].map(path => ({ method: 'POST', path, body: '{"cursor_configuration":{"size":500}}' }))
  const outside = ['/v1/schema', '/healthz', '/readyz', '/metrics', '/openapi.json', '/.well-known/jwks.json'].map(
    path => ({ method: 'GET', path, body: undefined }),
  )
  for (const asked of [...everything, ...outside]) heard.push(await sender.ask(lane.token, asked))

  const kept = await service.sql('select 1 from entities where organization_id = $1 and first_name like $2', [
    ours.id,
    `${canary}%`,
  ])
  console.log(
    `canary: ${heard.length} answers and ${service.logs.length} lines of log beside ${kept.length} people, KITH_FUZZ_SEED=${seed}`,
  )
  expect(kept.length).toBeGreaterThan(10)
  const told = heard.filter(({ text, headers }) => (text + JSON.stringify(headers)).includes(canary))
  expect(told.map(({ text }) => text.slice(0, 300))).toEqual([])
  expect(service.logs.length).toBeGreaterThan(500)
  expect(service.logs.filter(line => line.includes(canary))).toEqual([])
})

test('a fault that PostgreSQL tells of with the values of the row tells none of them on', async () => {
  await service.sql(`alter table entities add constraint refuse check (last_name <> '${canary} fault') not valid`)
  const body = JSON.stringify({ ...profile, last_name: `${canary} fault`, attribute_values: values })
  const answer = await sender.ask(ours.token, { method: 'POST', path: '/v1/people', body })
  await service.sql('alter table entities drop constraint refuse')
  expect([answer.status, answer.body.error]).toEqual([500, 'operation_failed'])
  expect(answer.text).not.toContain(canary)
  const faults = service.logs.filter(line => line.includes('"fault"'))
  expect(faults.length).toBeGreaterThan(0)
  expect(service.logs.filter(line => line.includes(canary))).toEqual([])
})

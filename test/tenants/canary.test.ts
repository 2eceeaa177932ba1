import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openApiDocument } from '../../src/process/app.ts'
import { operationsOf } from '../hostile/operations.ts'
import { planOf, requestOf } from '../hostile/requests.ts'
import { fuzzSeed } from '../hostile/seed.ts'
import { createSender, type RawResponse, type Sender } from '../hostile/sender.ts'
import { createTestTenant, type TestTenant } from '../hostile/test-tenant.ts'
import { eachText } from '../support/profile.ts'
import { type Organization, useOwnService } from '../support/service.ts'

const canary = 'zqcanary7'

const service = useOwnService()
let sender: Sender
let writer: Organization
let reader: TestTenant
beforeAll(async () => {
  sender = createSender(service)
  reader = await createTestTenant(service, sender)
  writer = await service.organization()
})
afterAll(async () => {
  sender.close()
})

const values = { [canary]: [canary, { [canary]: canary }], told: canary }
const { date_of_birth: _, ...profile } = {
  ...eachText(() => canary),
  email: `${canary}@example.org`,
  language: `x-${canary.slice(0, 8)}`,
}
const description = { name: canary, description: canary }

/** Sends the canary in every field, and as the token's subject. Some of the requests are refused. */
async function writeCanary(round: number): Promise<void> {
  const token = await service.tokenFor(writer.key, undefined, canary)
  const send = (method: string, path: string, body?: object) =>
    sender.send(token, { method, path, body: body && JSON.stringify(body) })
  const key = `${canary}_${round}`
  await send('POST', '/v1/schema/stacks', { key, kind: 'item', name: canary })
  await send('POST', '/v1/schema/attributes', {
    key,
    owner: 'people',
    type: 'stack',
    target_stack: key,
    ...description,
  })
  await send('POST', '/v1/schema/attributes', {
    key: `${key}_text`,
    owner: key,
    type: 'text',
    indexed: true,
    ...description,
  })
  await send('POST', '/v1/schema/consent-types', { key, channels: [{ channel: 'email' }], ...description })
  await send('POST', '/v1/people', {
    external_id: key,
    ...profile,
    attribute_values: { ...values, [key]: `${canary} of ${round}` },
  })
  await send('POST', `/v1/stacks/${key}`, {
    external_id: key,
    attribute_values: { ...values, [`${key}_text`]: canary },
  })
  await send('PATCH', `/v1/people/${key}`, { first_name: `${canary}!`, email_consent: true })
  await send('PATCH', `/v1/people/nobody ${canary}`.replace(' ', '%20'), { first_name: canary })
  await send('PATCH', `/v1/people/${key}`, { email: canary, [canary]: canary })
  await send('POST', '/v1/people/filter', { filter: { [canary]: canary } })
  await send('POST', '/v1/people/batch', {
    operations: [{ op: 'put', external_id: canary, body: { [canary]: canary } }],
  })
  await sender.send(token, { method: 'POST', path: '/v1/people', body: `{"first_name":"${canary}"` })
  await sender.send(token, { method: 'GET', path: `/v1/${canary}/${canary}?${canary}=${canary}` })
}

it('never shows what one organization stores in a response to another or in the log', {
  timeout: 120_000,
}, async () => {
  const seed = fuzzSeed()
  const document = openApiDocument(service)
  const plans = fc.oneof(...operationsOf(document).map(operation => planOf(operation, document)))
  const responses: RawResponse[] = []
  let isWriting = true
  const writing = (async () => {
    for (let round = 0; round < 12 || isWriting; round += 1) await writeCanary(round)
  })()
  for (const plan of fc.sample(plans, { seed, numRuns: 700 }))
    responses.push(await sender.send(reader.token, requestOf(plan, reader)))
  isWriting = false
  await writing
  const lists = [
    ...['people', 'stacks/orders', 'stacks/visits'].flatMap(kind => [`/v1/${kind}/list`, `/v1/${kind}/filter`]),
  ].map(path => ({ method: 'POST', path, body: '{"cursor_configuration":{"size":500}}' }))
  const otherEndpoints = [
    '/v1/schema',
    '/healthz',
    '/readyz',
    '/metrics',
    '/openapi.json',
    '/.well-known/jwks.json',
  ].map(path => ({ method: 'GET', path, body: undefined }))
  for (const request of [...lists, ...otherEndpoints]) responses.push(await sender.send(reader.token, request))

  const storedPeople = await service.sql('select 1 from entities where organization_id = $1 and first_name like $2', [
    writer.id,
    `${canary}%`,
  ])
  console.log(
    `canary: ${responses.length} responses and ${service.logs.length} log lines next to ${storedPeople.length} people, KITH_FUZZ_SEED=${seed}`,
  )
  expect(storedPeople.length).toBeGreaterThan(10)
  const leaks = responses.filter(({ text, headers }) => (text + JSON.stringify(headers)).includes(canary))
  expect(leaks.map(({ text }) => text.slice(0, 300))).toEqual([])
  expect(service.logs.length).toBeGreaterThan(500)
  expect(service.logs.filter(line => line.includes(canary))).toEqual([])
})

it('keeps the row values of a PostgreSQL error out of the response and the log', async () => {
  await service.sql(`alter table entities add constraint refuse check (last_name <> '${canary} fault') not valid`)
  const body = JSON.stringify({ ...profile, last_name: `${canary} fault`, attribute_values: values })
  const response = await sender.send(writer.token, { method: 'POST', path: '/v1/people', body })
  await service.sql('alter table entities drop constraint refuse')
  expect([response.status, response.body.error]).toEqual([500, 'operation_failed'])
  expect(response.text).not.toContain(canary)
  const faults = service.logs.filter(line => line.includes('"fault"'))
  expect(faults.length).toBeGreaterThan(0)
  expect(service.logs.filter(line => line.includes(canary))).toEqual([])
})

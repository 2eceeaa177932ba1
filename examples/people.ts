// Creates, patches and replaces some thousand generated people over HTTP, then reads each person and compares. The requests are
// sent in shuffled order, so that most links are written before their targets exist.
//
//   npm run example                                   with a temporary service
//   KITH_URL=… KITH_TOKEN=… node examples/people.ts     with a running service; use a new organization

import { faker } from '@faker-js/faker'

const serviceUrl = process.env.KITH_URL ?? 'http://127.0.0.1:8080'
const token = process.env.KITH_TOKEN ?? ''
const peopleCount = Number(process.env.PEOPLE ?? 2_000)
const seed = Number(process.env.SEED ?? 7)
const concurrency = 16

type Answer = { consent_type_id: number; channel: 'email' | 'sms'; state: boolean }
type Body = Record<string, unknown> & { consents?: Answer[]; attribute_values?: Record<string, unknown> }
type Request = { method: 'POST' | 'PATCH' | 'PUT'; path: string; body: Body }

/** The expected final state of a person. */
type Expected = {
  external_id: string
  first_name: string
  last_name: string | null
  referrer: string | undefined
  employer: string | undefined
  loyalty: number | undefined
  answers: Map<string, boolean>
}

async function send(method: string, path: string, body?: unknown): Promise<{ status: number; data: never }> {
  const response = await fetch(`${serviceUrl}${path}`, {
    method,
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const envelope = (await response.json()) as { data: never; message?: string; details?: unknown }
  if (!response.ok && response.status !== 409)
    throw new Error(`${method} ${path}: ${response.status} ${envelope.message} ${JSON.stringify(envelope.details)}`)
  return { status: response.status, data: envelope.data }
}

/** Runs `work` for each element, in order, with a limited concurrency. */
async function forEachConcurrently<T>(list: T[], work: (element: T) => Promise<void>) {
  const remaining = list.values()
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      for (const element of remaining) await work(element)
    }),
  )
}

async function declare(): Promise<number> {
  await send('POST', '/v1/schema/stacks', { key: 'companies', kind: 'item', name: 'Companies' })
  await send('POST', '/v1/schema/attributes', { key: 'referrer', owner: 'people', type: 'person' })
  await send('POST', '/v1/schema/attributes', {
    key: 'employer',
    owner: 'people',
    type: 'stack',
    target_stack: 'companies',
  })
  await send('POST', '/v1/schema/attributes', { key: 'loyalty', owner: 'people', type: 'number' })
  await send('POST', '/v1/schema/consent-types', {
    key: 'surveys',
    channels: [{ channel: 'email' }, { channel: 'sms' }],
  })
  const { data } = await send('GET', '/v1/schema/consent-types')
  return (data as { items: { id: number; key: string }[] }).items.find(type => type.key === 'surveys')!.id
}

const answerOf = (consent_type_id: number): Answer => ({
  consent_type_id,
  channel: faker.helpers.arrayElement(['email', 'sms'] as const),
  state: faker.datatype.boolean(),
})

/** Generates the requests of each person (a create, then perhaps a replace, then patches) and the expected final states. */
function generate(surveysId: number): { creations: Request[]; updates: Request[][]; expected: Expected[] } {
  const names = Array.from({ length: peopleCount }, (_, index) => `person-${index}`)
  const companies = Array.from({ length: 50 }, (_, index) => `company-${index}`)
  const creations: Request[] = []
  const updates: Request[][] = []
  const expected = names.map(external_id => {
    const person = generatePerson(external_id, names, companies)
    const path = `/v1/people/${external_id}`
    creations.push({ method: 'POST', path: '/v1/people', body: { external_id, ...generateCreateBody(person) } })
    const replaced = faker.datatype.boolean(0.3)
    const personUpdates: Request[] = []
    if (replaced) personUpdates.push({ method: 'PUT', path, body: generateReplaceBody(person) })
    for (let turn = faker.number.int({ max: 2 }); turn >= 0; turn -= 1) {
      const answer = answerOf(faker.helpers.arrayElement([1, surveysId]))
      personUpdates.push({ method: 'PATCH', path, body: generatePatchBody(person, answer) })
    }
    updates.push(personUpdates)
    return person
  })
  return { creations: faker.helpers.shuffle(creations), updates: faker.helpers.shuffle(updates), expected }
}

function generatePerson(external_id: string, names: string[], companies: string[]): Expected {
  return {
    external_id,
    first_name: faker.person.firstName(),
    last_name: faker.person.lastName(),
    referrer: faker.helpers.maybe(() => faker.helpers.arrayElement(names), { probability: 0.8 }),
    employer: faker.helpers.maybe(() => faker.helpers.arrayElement(companies), { probability: 0.5 }),
    loyalty: undefined,
    answers: new Map(),
  }
}

function generateCreateBody(person: Expected): Body {
  const { first_name, last_name, referrer, employer } = person
  const email = faker.internet.email({ firstName: 'reader', lastName: person.external_id, provider: 'example.org' })
  return { first_name, last_name, email, attribute_values: { referrer, employer, city: faker.location.city() } }
}

function generateReplaceBody(person: Expected): Body {
  person.first_name = faker.person.firstName()
  person.last_name = null
  const { first_name, referrer, employer } = person
  return { first_name, attribute_values: { referrer: referrer && { external_id: referrer }, employer } }
}

function generatePatchBody(person: Expected, answer: Answer): Body {
  person.loyalty = faker.number.int({ max: 1_000 })
  person.answers.set(`${answer.consent_type_id}:${answer.channel}`, answer.state)
  return { consents: [answer], attribute_values: { loyalty: person.loyalty } }
}

/** The summary flag of a channel: true if any answer grants consent, null without answers. */
function summaryFlag(answers: Map<string, boolean>, channel: string): boolean | null {
  const states = [...answers].filter(([key]) => key.endsWith(channel)).map(([, state]) => state)
  return states.length === 0 ? null : states.includes(true)
}

type Person = {
  state: string
  first_name: string
  last_name: string | null
  email_consent: boolean | null
  sms_consent: boolean | null
  consents: (Answer & { source: string })[]
  attribute_values: Record<string, unknown>
}

function differences(person: Person, expected: Expected): string[] {
  const { referrer, employer, loyalty } = person.attribute_values
  const comparisons: [string, unknown, unknown][] = [
    ['state', person.state, 'active'],
    ['first_name', person.first_name, expected.first_name],
    ['last_name', person.last_name, expected.last_name],
    ['referrer', referrer, expected.referrer],
    ['employer', employer, expected.employer],
    ['loyalty', loyalty, expected.loyalty],
    ['email_consent', person.email_consent, summaryFlag(expected.answers, 'email')],
    ['sms_consent', person.sms_consent, summaryFlag(expected.answers, 'sms')],
    ...person.consents.map(({ consent_type_id, channel, state, source }): [string, unknown, unknown] => {
      const answer = expected.answers.get(`${consent_type_id}:${channel}`)
      return [`consent ${consent_type_id} ${channel}`, source === 'answer' ? state : undefined, answer]
    }),
  ]
  return comparisons
    .filter(([, actual, expectedValue]) => actual !== expectedValue)
    .map(([name, actual, expectedValue]) => `${expected.external_id}: ${name} is ${actual}, expected ${expectedValue}`)
}

faker.seed(seed)
const startedMs = performance.now()
const { creations, updates, expected } = generate(await declare())

let updatedCount = 0
await forEachConcurrently(creations, async ({ method, path, body }) => {
  const { status } = await send(method, path, body)
  if (status !== 201) throw new Error(`${body.external_id} existed before. Use a new organization.`)
})
await forEachConcurrently(updates, async personUpdates => {
  for (const { method, path, body } of personUpdates) await send(method, path, body)
})

const problems: string[] = []
await forEachConcurrently(expected, async person => {
  const { data } = await send('GET', `/v1/people/${person.external_id}`)
  problems.push(...differences(data, person))
  if ((data as Person & { version: number }).version > 1) updatedCount += 1
})

const requests = creations.length + updates.flat().length + expected.length
const seconds = (performance.now() - startedMs) / 1_000
console.log(`${peopleCount} people, seed ${seed}: ${requests} requests in ${seconds.toFixed(1)} s`)
console.log(
  `${updatedCount} of them were written more than once; ${problems.length} differences from the expected state`,
)
for (const problem of problems.slice(0, 20)) console.error(problem)
if (problems.length > 0) process.exitCode = 1

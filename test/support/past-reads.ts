import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { parseExactly } from '../../src/values/parse-json.ts'
import { linesFrom, ndjsonHeaders } from './lines.ts'
import { nextMillisecond } from './moments.ts'
import type { Service } from './service.ts'
import { createShop, type Shop } from './shop.ts'

// Random histories of an organization, whose reads are kept as they were answered and then asked for again.

/** A step of a history. The numbers select the entity, name, attribute or consent type among those that exist. */
export type Step =
  | { do: 'create' | 'upsert'; path: number; name: number | null; body: Body }
  | { do: 'put' | 'patch'; entity: number; body: Body }
  | { do: 'rename'; entity: number; name: number | null; body: Body }
  | { do: 'delete' | 'restore'; entity: number }
  | { do: 'merge'; entity: number; from: number }
  | { do: 'unmerge'; merge: number }
  | { do: 'import'; lines: { name: number; body: Body }[] }
  | { do: 'batch'; atomic: boolean; operations: { op: 'patch' | 'delete'; entity: number; body: Body }[] }
  | { do: 'consent type'; mandatory: boolean; state: boolean; channels: string[] }
  | { do: 'patch consent type'; id: number; patch: object }
  | { do: 'attribute'; key: string; type: string; many: boolean }
  | { do: 'patch attribute'; id: number; patch: object }
  | { do: 'stack'; name: number }

type Body = Record<string, unknown>

const nameCount = 6
const nameOf = (number: number) => `n${number}`
const name = fc.nat(nameCount - 1)
const names = name.map(nameOf)
const number = fc.constantFrom(0, 1, -0.5, 0.1, 1e-7, 123456789012345, 5e-324)
const plain = fc.oneof(
  number,
  fc.constantFrom<unknown>(null, null, 'x', ' y\n"\\', '\u{1f600}', true, [], [1, null, 'n0'], {
    b: { a: null },
    aa: [0.1],
  }),
  names,
)
const plainValues = fc.record({ a: plain, '10': plain, 'k"\\ey': plain, x: plain }, { requiredKeys: [] })
const links = fc.record(
  {
    referrer: fc.option(names),
    friends: fc.option(fc.array(names, { maxLength: 4 })),
    employer: fc.option(names),
    y: fc.oneof(names, fc.array(names, { maxLength: 3 })),
  },
  { requiredKeys: [] },
)
const consents = fc.array(
  fc.record(
    {
      consent_type_id: fc.constantFrom(1, 1, 2, 3),
      channel: fc.constantFrom('email', 'sms'),
      state: fc.boolean(),
      collected_at: fc.constantFrom('2020-01-01T00:00:00Z', '2020-01-02T00:00:00Z'),
      method: fc.constantFrom('double_opt_in', 'paper'),
    },
    { requiredKeys: ['consent_type_id', 'channel', 'state'] },
  ),
  { minLength: 1, maxLength: 2 },
)
const profile = fc.record(
  {
    first_name: fc.constantFrom(null, 'Ada', ' "A",(\\)\n', '\u00e9'),
    email: fc.constantFrom(null, 'a@example.com'),
    push_notification_consent: fc.option(fc.boolean()),
  },
  { requiredKeys: [] },
)
const flags = fc.record({ email_consent: fc.boolean(), sms_consent: fc.boolean() }, { requiredKeys: [] })
const body: fc.Arbitrary<Body> = fc.oneof(
  { weight: 3, arbitrary: links.map(attribute_values => ({ attribute_values })) },
  { weight: 2, arbitrary: plainValues.map(attribute_values => ({ attribute_values })) },
  { weight: 1, arbitrary: profile },
  { weight: 1, arbitrary: consents.map(given => ({ consents: given })) },
  { weight: 1, arbitrary: flags },
  { weight: 1, arbitrary: fc.constant({ attribute_values: null }) },
)
const entity = fc.nat(30)
const flag = fc.boolean()
const channels = fc.constantFrom(['email'], ['sms'], ['email', 'sms'])
const key = fc.constantFrom('x', 'y')

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constantFrom('create', 'upsert'), path: fc.nat(2), name: fc.option(name), body }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constantFrom('put', 'patch', 'patch'), entity, body }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('rename'), entity, name: fc.option(name, { freq: 6 }), body }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('delete'), entity }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('restore'), entity }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('merge'), entity, from: entity }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('unmerge'), merge: fc.nat(5) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('import'),
      lines: fc.array(fc.record({ name, body }), { minLength: 1, maxLength: 4 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('batch'),
      atomic: flag,
      operations: fc.array(fc.record({ op: fc.constantFrom('patch', 'delete'), entity, body }), {
        minLength: 2,
        maxLength: 3,
      }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('consent type'), mandatory: flag, state: flag, channels }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('patch consent type'),
      id: fc.integer({ min: 1, max: 3 }),
      patch: fc.record(
        {
          state: fc.constantFrom('active', 'archived'),
          mandatory: flag,
          default_state: flag,
          channels: channels.chain(list =>
            flag.map(double_opt_in => list.map(channel => ({ channel, double_opt_in }))),
          ),
        },
        { requiredKeys: [] },
      ),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('attribute'),
      key,
      type: fc.constantFrom('person', 'number', 'json'),
      many: flag,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('patch attribute'),
      id: fc.integer({ min: 1, max: 7 }),
      patch: fc.oneof(
        fc.record({ state: fc.constantFrom('active', 'archived') }),
        fc.record({ cardinality: fc.constantFrom('one', 'many') }),
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('stack'), name }) },
) as fc.Arbitrary<Step>

export const history: fc.Arbitrary<Step[]> = fc.array(step, { minLength: 10, maxLength: 30, size: 'max' })

/** The first steps of every history: people with links and answers, and a second consent type. */
const beginning: Step[] = [
  { do: 'consent type', mandatory: false, state: true, channels: ['email', 'sms'] },
  {
    do: 'import',
    lines: [
      { name: 0, body: { attribute_values: { friends: ['n1', 'n0', 'n2'], employer: 'n0', a: 1 } } },
      { name: 1, body: { attribute_values: { referrer: 'n0' }, consents: [consentTo(1), consentTo(2)] } },
    ],
  },
]

function consentTo(consent_type_id: number) {
  return { consent_type_id, channel: 'email', state: true }
}

const parsed = (text: string | undefined) => text && parseExactly(text)

/** A read of an entity at a moment: the text of its data, or undefined if it was not found. */
type PastRead = { path: string; text: string | undefined }
type Moment = { at: string; sequence: number; isBatch: boolean; reads: Map<string, PastRead> }

/** Runs the steps in a new organization. Returns the number of reads that were repeated, and those that differ. */
export async function repeatReads(
  service: Service,
  steps: Step[],
): Promise<{ repeated: number; differences: object[] }> {
  const shop = await createShop(service, 'referrer', 'friends', 'employer')
  const moments: Moment[] = []
  for (const step of [...beginning, ...steps]) {
    await run(service, shop, step)
    moments.push(await readAll(service, shop, step.do === 'batch'))
    await nextMillisecond()
  }
  let repeated = 0
  const differences: object[] = []
  const compare = async (query: string, past: PastRead, expected: string | undefined, moment: Moment) => {
    repeated += 1
    const text = await readData(service, shop, `${past.path}?${query}`)
    const given = text?.replace(/,"as_of":\{[^}]*\}\}$/, '}')
    const as_of = text && (JSON.parse(text) as { as_of: { at: string; sequence: number } }).as_of
    const isRight = !as_of || !query.startsWith('at') || (as_of.at === moment.at && as_of.sequence === moment.sequence)
    if (!isDeepStrictEqual(parsed(given), parsed(expected)) || !isRight || (text !== undefined && !as_of))
      differences.push({ query, path: past.path, expected, given, as_of, moment: moments.indexOf(moment) })
  }
  const paths = new Map(moments.flatMap(({ reads }) => [...reads]).map(([id, { path }]) => [id, path]))
  const versionsSeen = new Set<string>()
  for (const [index, moment] of moments.entries()) {
    const comparing = [...paths].map(async ([id, path]) => {
      const read = moment.reads.get(id)
      await compare(`at=${moment.at}`, { path, text: undefined }, read?.text, moment)
      const entity = read?.text && (JSON.parse(read.text) as { id?: string; version: number })
      // A merged person's identifier shows the survivor, but its versions are its own.
      if (!entity || (entity.id !== undefined && entity.id !== id)) return
      const { version } = entity
      if (versionsSeen.has(`${id} ${version}`)) return
      versionsSeen.add(`${id} ${version}`)
      // A batch may change the targets of a link after it wrote the link.
      if (!moment.isBatch) await compare(`version=${version}`, read, read.text, moments[index]!)
    })
    await Promise.all(comparing)
  }
  return { repeated, differences }
}

const peoplePath = '/v1/people'
const companiesPath = '/v1/stacks/companies'

async function readAll(service: Service, shop: Shop, isBatch: boolean): Promise<Moment> {
  const [head] = await service.sql<{ sequence: number }>(
    'select sequence from change_heads where organization_id = $1',
    [shop.id],
  )
  const entities = await readEntities(service, shop)
  const reads = await Promise.all(
    entities.map(
      async ({ entity_id, path }): Promise<[string, PastRead]> => [
        entity_id,
        { path, text: await readData(service, shop, path) },
      ],
    ),
  )
  await nextMillisecond()
  return { at: new Date().toISOString(), sequence: Number(head!.sequence), isBatch, reads: new Map(reads) }
}

type LoggedEntity = { entity_id: string; path: string; exists: boolean }

/** Every entity that ever existed, in the order of creation. */
async function readEntities(service: Service, shop: Shop): Promise<LoggedEntity[]> {
  const rows = await service.sql<{ entity_id: string; key: string | null; exists: boolean }>(
    `select c.entity_id, s.key,
       exists (select from entities e where e.organization_id = $1 and e.id = c.entity_id) as exists
     from changes c left join stacks s on s.organization_id = $1 and s.id = c.stack_id
     where c.organization_id = $1 and c.operation = 'create' and c.entity_id is not null order by c.sequence`,
    [shop.id],
  )
  return rows.map(({ entity_id, key, exists }) => ({
    entity_id,
    exists,
    path:
      key === null
        ? `${peoplePath}/internal/${entity_id}`
        : `/v1/stacks/${key}/internal/${entity_id.replaceAll('-', '').slice(0, 24)}`,
  }))
}

/** Reads the data of an entity as text. Throws at any status but 200 and 404. */
async function readData(service: Service, { token }: Shop, path: string): Promise<string | undefined> {
  const response = await fetch(`${service.address}${path}`, { headers: { Authorization: `Bearer ${token}` } })
  const text = await response.text()
  service.checkResponse({ method: 'GET', path: path.split('?')[0]!, status: response.status, body: JSON.parse(text) })
  if (response.status === 404) return undefined
  if (response.status !== 200) throw new Error(`${path} returned ${response.status}: ${text}`)
  return text.slice('{"status":"Success","data":'.length, -1)
}

/** The body for a stack: a record has only attribute values. */
const bodyFor = (path: string, body: Body): Body =>
  path.startsWith(peoplePath) ? body : { attribute_values: body.attribute_values ?? {} }

/** Runs a step. A refusal is a possible result. */
async function run(service: Service, shop: Shop, step: Step): Promise<void> {
  const { send } = shop
  const entities = await readEntities(service, shop)
  // A restore mostly addresses what was deleted, and another write what exists.
  const pick = (number: number) => {
    const wanted = number > 25 ? entities : entities.filter(({ exists }) => exists === (step.do !== 'restore'))
    return wanted[number % wanted.length]
  }
  switch (step.do) {
    case 'create':
    case 'upsert': {
      const path = [peoplePath, peoplePath, companiesPath][step.path]!
      const name = step.name === null ? {} : { external_id: nameOf(step.name) }
      await send('POST', step.do === 'create' ? path : `${path}/upsert`, { ...bodyFor(path, step.body), ...name })
      return
    }
    case 'put':
    case 'patch':
    case 'rename': {
      const { path } = pick(step.entity) ?? { path: `${peoplePath}/nobody` }
      const name = step.do === 'rename' ? { external_id: step.name === null ? null : nameOf(step.name) } : {}
      await send(step.do === 'put' ? 'PUT' : 'PATCH', path, { ...bodyFor(path, step.body), ...name })
      return
    }
    case 'delete':
    case 'restore': {
      const { path } = pick(step.entity) ?? { path: `${peoplePath}/nobody` }
      if (step.do === 'delete') await send('DELETE', path)
      else if (path.includes('/internal/')) await send('POST', `${path}/restore`)
      return
    }
    case 'import': {
      const lines = step.lines.map(line => ({ external_id: nameOf(line.name), ...line.body }))
      await send('POST', `${peoplePath}/import`, linesFrom(lines), ndjsonHeaders)
      return
    }
    case 'batch': {
      const people = entities.filter(({ path }) => path.startsWith(peoplePath))
      const operations = step.operations.map(({ op, entity, body }) => ({
        op,
        id: people[entity % people.length]?.entity_id,
        ...(op === 'patch' && { body }),
      }))
      if (people.length > 0) await send('POST', `${peoplePath}/batch`, { atomic: step.atomic, operations })
      return
    }
    case 'merge':
    case 'unmerge':
      return runIdentityStep(service, shop, step, entities)
    default:
      await runDefinitionStep(service, shop, step)
  }
}

async function runIdentityStep(
  service: Service,
  { id, send }: Shop,
  step: Extract<Step, { do: 'merge' | 'unmerge' }>,
  entities: LoggedEntity[],
): Promise<void> {
  if (step.do === 'merge') {
    const people = entities.filter(({ path, exists }) => exists && path.startsWith(peoplePath))
    const [into, from] = [step.entity, step.from].map(number => people[number % people.length])
    if (into && from) await send('POST', `${into.path}/merge`, { from_id: from.entity_id })
    return
  }
  const merges = await service.sql<{ merged_id: string; person_id: string }>(
    'select merged_id, person_id from merges where organization_id = $1 and unmerged_sequence is null order by id',
    [id],
  )
  const undone = merges[step.merge % merges.length]
  if (undone) await send('POST', `${peoplePath}/internal/${undone.person_id}/unmerge`, { from_id: undone.merged_id })
}

async function runDefinitionStep(service: Service, { id, send }: Shop, step: Step): Promise<void> {
  if (step.do === 'consent type') {
    const { mandatory, state: default_state } = step
    const key = `type${await countChanges(service, id)}`
    const channels = step.channels.map(channel => ({ channel, is_default: !mandatory && default_state }))
    await send('POST', '/v1/schema/consent-types', { key, mandatory, default_state, channels })
  }
  if (step.do === 'patch consent type') await send('PATCH', `/v1/schema/consent-types/${step.id}`, step.patch)
  if (step.do === 'attribute') {
    const { key, type, many } = step
    await send('POST', '/v1/schema/attributes', { owner: 'people', key, type, cardinality: many ? 'many' : 'one' })
  }
  if (step.do === 'patch attribute') await send('PATCH', `/v1/schema/attributes/${step.id}`, step.patch)
  if (step.do === 'stack') await send('POST', '/v1/schema/stacks', { key: `s${step.name}`, kind: 'item' })
}

async function countChanges(service: Service, organization_id: number): Promise<number> {
  const text = 'select count(*)::integer as count from changes where organization_id = $1'
  return (await service.sql<{ count: number }>(text, [organization_id]))[0]!.count
}

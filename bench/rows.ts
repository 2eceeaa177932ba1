import { formatLine, randomOf, word } from './population.ts'
import { ask, type BenchRequest, importLines, importPeople } from './requests.ts'
import type { Side } from './side.ts'

/** A row of the benchmark. */
export type Row = {
  name: string
  title: string
  /** `core`: the rows of every run. `questions`: those of reads that few requests ask. */
  group: 'core' | 'questions'
  /** The bare statement that does the same in PostgreSQL, run by pgbench. */
  sql?: string
} & (
  | {
      /** Returns a function that makes the next request of a load. */
      requests(side: Side): (() => BenchRequest) | Promise<() => BenchRequest>
      /** Work that is repeated meanwhile. Then only the times of the requests are measured, at 100 a second. */
      beside?(side: Side): () => Promise<unknown>
    }
  | {
      /** Prepares work outside of the measurement. The work returns the number of items that it did. */
      prepare(side: Side): Promise<() => Promise<number>>
    }
)

const randomSql = '\\set person random(1, :people)\n\\set word random(1, 1000000000)\n'
const whereSql = "organization_id = :organization and stack_id = 0 and external_id = 'p' || :person::text"
const oneLine = (sql: string) => sql.replaceAll(/\n +/g, ' ')

const patchBody = () => ({
  first_name: `F${word()}`,
  last_name: `L${word()}`,
  language: randomOf(['en', 'it', 'de', 'fr']),
  attribute_values: { city: `c${word()}`, score: word() },
})

const patch = (path: string, body: object, headers?: Record<string, string>): BenchRequest => ({
  method: 'PATCH',
  path,
  body,
  ...(headers && { headers }),
})
const post = (path: string, body: object): BenchRequest => ({ method: 'POST', path, body })
const get = (path: string): BenchRequest => ({ method: 'GET', path })

/** Imports people with new names outside of a measurement. Returns the names. */
async function addPeople(side: Side, count: number): Promise<string[]> {
  const names = Array.from({ length: count }, () => side.uniqueName())
  await importPeople(
    side,
    names.map((name, index) => formatLine(name, index)),
    'created',
  )
  return names
}

const newLines = (side: Side, count: number) =>
  Array.from({ length: count }, (_, n) => formatLine(side.uniqueName(), n))

/** Work that sends one request for each of several new people, over several connections. */
const onNewPeople =
  (count: number, connections: number, request: (name: string, side: Side) => BenchRequest) => async (side: Side) => {
    const names = await addPeople(side, count)
    return async () => {
      const requests = names.map(name => request(name, side))
      await side.sendAll(requests, connections)
      return names.length
    }
  }

/** Requests of a token whose role may read five fields of people. */
const withRole = (request: (side: Side) => BenchRequest) => async (side: Side) => {
  const key = side.uniqueName().replace('-', '_')
  const scopes = ['people:read']
  const read = ['first_name', 'last_name', 'email', 'attribute_values.area', 'attribute_values.city']
  await ask(side, post('/v1/roles', { key, scopes, fields: { people: { read } } }))
  const { token } = await ask<{ token: string }>(
    side,
    post('/v1/tokens', { name: key, scopes, role: key, expires_in: 3_600 }),
  )
  const headers = { Authorization: `Bearer ${token}` }
  return () => ({ ...request(side), headers })
}

const getRandom = (side: Side) => get(`/v1/people/${side.randomPerson()}`)

const pageAtRandom = (side: Side) =>
  post('/v1/people/list', { sorting_type: 'asc', cursor_configuration: { size: 50, after_id: side.randomId() } })

const filterByArea = () =>
  post('/v1/people/filter', {
    filter: { 'attribute_values.area': `area ${word() % 1_000}` },
    cursor_configuration: { size: 20 },
  })

/** All rows, in the order in which they are measured. */
export const rows: readonly Row[] = [
  {
    group: 'core',
    name: 'patch',
    title: 'PATCH a random person: 3 fields, 2 attributes',
    requests: side => () => patch(`/v1/people/${side.randomPerson()}`, patchBody()),
    sql: oneLine(`${randomSql}update entities set first_name = 'F' || :word::text, last_name = 'L' || :word::text,
      language = (array['en', 'it', 'de', 'fr'])[1 + :word::integer % 4],
      attributes = attributes || jsonb_build_object('city', 'c' || :word::text, 'score', :word::integer),
      version = version + 1, updated_at = now() where ${whereSql};`),
  },
  {
    group: 'core',
    name: 'attributes',
    title: 'PATCH 2 attributes of a random person, which no search finds',
    requests: side => () =>
      patch(`/v1/people/${side.randomPerson()}`, { attribute_values: { city: `c${word()}`, score: word() } }),
  },
  {
    group: 'core',
    name: 'get',
    title: 'GET a person by external id',
    requests: side => () => getRandom(side),
    sql: `${randomSql}select * from entities where ${whereSql};`,
  },
  {
    group: 'core',
    name: 'get-role',
    title: 'GET a person by external id, of which a role shows five fields',
    requests: withRole(getRandom),
  },
  {
    group: 'core',
    name: 'post',
    title: 'POST a person',
    requests: side => () => {
      const name = side.uniqueName()
      return post('/v1/people', { ...patchBody(), external_id: name, email: `${name}@example.org` })
    },
    sql: oneLine(`${randomSql}insert into entities (organization_id, stack_id, id, external_id, active, version, first_name, last_name,
      email, language, attributes, created_at, updated_at) values (:organization, 0, uuidv7(),
      'x' || :word::text || '-' || :person::text || '-' || :client_id::text || '-' || clock_timestamp()::text, true, 1, 'First', 'Last',
      'n' || :word::text || '@example.org', 'en',
      jsonb_build_object('city', 'c' || :word::text, 'score', :word::integer), now(), now());`),
  },
  {
    group: 'core',
    name: 'page',
    title: 'list a page of 50 at a random place',
    requests: side => () => pageAtRandom(side),
    sql: oneLine(`${randomSql}select * from entities where organization_id = :organization and stack_id = 0
      and id > (select id from entities where ${whereSql}) order by id limit 50;`),
  },
  {
    group: 'core',
    name: 'filter',
    title: 'filter a page of 20 by an indexed attribute',
    requests: () => filterByArea,
  },
  {
    group: 'core',
    name: 'links',
    title: 'PATCH with one relationship and two consent answers',
    requests: side => () =>
      patch(`/v1/people/${side.randomPerson()}`, {
        attribute_values: { referrer: side.randomPerson() },
        consents: side.consentTypeIds.map((consent_type_id, index) => ({
          consent_type_id,
          channel: index === 0 ? 'email' : 'sms',
          state: word() % 2 === 0,
        })),
      }),
  },
  {
    group: 'core',
    name: 'keyed',
    title: 'PATCH with an Idempotency-Key',
    requests: side => () =>
      patch(`/v1/people/${side.randomPerson()}`, patchBody(), { 'Idempotency-Key': side.uniqueName() }),
  },
  {
    group: 'core',
    name: 'match',
    title: 'upsert of a random person by email',
    requests: side => () =>
      post('/v1/people/upsert', {
        email: `${side.randomPerson()}@example.org`,
        last_name: `L${word()}`,
        match: ['email'],
      }),
  },
  {
    group: 'core',
    name: 'search',
    title: 'search a page of 20 by a last name',
    requests: () => () => post('/v1/people/search', { text: `Last ${word() % 10_000}`, size: 20 }),
  },
  {
    group: 'core',
    name: 'rename',
    title: 'rename a person',
    prepare: onNewPeople(2_000, 64, (name, side) => patch(`/v1/people/${name}`, { external_id: side.uniqueName() })),
  },
  {
    group: 'core',
    name: 'delete',
    title: 'delete a person',
    prepare: onNewPeople(2_000, 64, name => ({ method: 'DELETE', path: `/v1/people/${name}` })),
  },
  {
    group: 'core',
    name: 'batch',
    title: 'batches of 1,000 patches, for each patch',
    prepare: async side => {
      const batches = Array.from({ length: 10 }, () =>
        post('/v1/people/batch', {
          operations: Array.from({ length: 1_000 }, () => ({
            op: 'patch',
            external_id: side.randomPerson(),
            body: patchBody(),
          })),
        }),
      )
      return async () => {
        await side.sendAll(batches, 1)
        return 10_000
      }
    },
  },
  {
    group: 'core',
    name: 'import',
    title: 'import of new people, for each line',
    prepare: async side => {
      const lines = newLines(side, 10_000)
      return () => importPeople(side, lines, 'created')
    },
  },
  {
    group: 'core',
    name: 'import-again',
    title: 'import of the same people again, for each line',
    prepare: async side => {
      const lines = newLines(side, 10_000)
      await importPeople(side, lines, 'created')
      return () => importPeople(side, lines, 'unchanged')
    },
  },
  {
    group: 'core',
    name: 'import-orders',
    title: 'import of orders, five to a customer who comes later, for each line',
    prepare: async side => {
      const stack = side.uniqueName().replace('-', '_')
      await ask(side, post('/v1/schema/stacks', { key: stack, kind: 'item' }))
      await ask(side, post('/v1/schema/attributes', { key: 'customer', owner: stack, type: 'person' }))
      const customers = Array.from({ length: 2_000 }, () => side.uniqueName())
      const lines = Array.from({ length: 10_000 }, (_, n) => {
        const attribute_values = { customer: randomOf(customers), total: n, note: 'n'.repeat(60) }
        return `${JSON.stringify({ external_id: side.uniqueName(), attribute_values })}\n`
      })
      return () => importLines(side, `/v1/stacks/${stack}/import`, lines, 'created')
    },
  },
  {
    group: 'core',
    name: 'patch-beside',
    title: 'PATCH a random person while an import of new people runs',
    requests: side => () => patch(`/v1/people/${side.randomPerson()}`, patchBody()),
    beside: side => () => importPeople(side, newLines(side, 10_000), 'created'),
  },
  {
    group: 'core',
    name: 'import-match',
    title: 'import of new people with match=email, for each line',
    prepare: async side => {
      const lines = newLines(side, 10_000)
      return () => importPeople(side, lines, 'created', '?match=email')
    },
  },
  {
    group: 'core',
    name: 'export',
    title: 'export of all people, for each line',
    prepare: async side => () => side.countLines(post('/v1/people/export', {})),
  },
  {
    group: 'core',
    name: 'merge',
    title: 'merge two people of whom each has an answer',
    prepare: async side => {
      const names = await addPeople(side, 1_000)
      const pairs = names.slice(0, 500).map((name, index) => [name, names[500 + index]!] as const)
      return async () => {
        await side.sendAll(
          pairs.map(([name, from]) => post(`/v1/people/${name}/merge`, { from })),
          4,
        )
        return pairs.length
      }
    },
  },
  {
    group: 'core',
    name: 'erase',
    title: 'erase a person',
    prepare: onNewPeople(500, 1, name => post(`/v1/people/${name}/erase`, { reason: 'benchmark', records: 'keep' })),
  },
  {
    group: 'questions',
    name: 'get-roles',
    title: 'GET a person by external id, in turn without a role and with each of three',
    requests: async side => {
      const requests = [() => getRandom(side)]
      while (requests.length < 4) requests.push(await withRole(getRandom)(side))
      let turn = 0
      return () => requests[turn++ % requests.length]!()
    },
  },
  {
    group: 'questions',
    name: 'page-role',
    title: 'list a page of 50 at a random place, of which a role shows five fields',
    requests: withRole(pageAtRandom),
  },
  {
    group: 'questions',
    name: 'filter-role',
    title: 'filter a page of 20 by an indexed attribute, of which a role shows five fields',
    requests: withRole(filterByArea),
  },
  {
    group: 'questions',
    name: 'sort',
    title: 'first page of 50 sorted by an indexed attribute',
    requests: () => () =>
      post('/v1/people/list', {
        sort: { field: 'attribute_values.area', direction: word() % 2 === 0 ? 'asc' : 'desc' },
        cursor_configuration: { size: 50 },
      }),
  },
  {
    group: 'questions',
    name: 'fields',
    title: 'page of 50 with two fields',
    requests: side => () =>
      post('/v1/people/list', {
        fields: ['external_id', 'email'],
        cursor_configuration: { size: 50, after_id: side.randomId() },
      }),
  },
  {
    group: 'questions',
    name: 'count',
    title: 'count of a filter by an indexed attribute',
    requests: () => () =>
      post('/v1/people/filter', {
        filter: { 'attribute_values.area': `area ${word() % 1_000}` },
        cursor_configuration: { size: 1 },
        count: true,
      }),
  },
  {
    group: 'questions',
    name: 'lookup',
    title: 'look up a person by email',
    requests: side => () => post('/v1/people/lookup', { email: `${side.randomPerson()}@example.org` }),
  },
  {
    group: 'questions',
    name: 'contactable',
    title: 'whether a person may be written to',
    requests: side => () =>
      post(`/v1/people/${side.randomPerson()}/contactable`, {
        consent_type_id: side.consentTypeIds[0],
        channel: 'email',
      }),
  },
  {
    group: 'questions',
    name: 'history',
    title: 'first page of the history of a person',
    requests: side => () => get(`/v1/people/${side.randomPerson()}/history`),
  },
  {
    group: 'questions',
    name: 'feed',
    title: 'feed of all changes as lines, for each change',
    prepare: async side => () =>
      side.countLines({ ...get('/v1/changes?after=0'), headers: { Accept: 'application/x-ndjson' } }),
  },
  {
    group: 'questions',
    name: 'aggregate',
    title: 'count of people by area',
    requests: () => () => post('/v1/people/aggregate', { group_by: ['attribute_values.area'] }),
  },
  {
    group: 'questions',
    name: 'duplicates',
    title: 'first page of duplicates',
    requests: () => () => post('/v1/people/duplicates', { size: 20 }),
  },
]

/** A row of the benchmark: the requests to kith, their reference, and the bounds of the ratio. */
export type BenchRow = {
  name: string
  title: string
  /** The kind of request in lua/requests.lua. */
  kind: 'get' | 'patch' | 'post' | 'list' | 'links'
  /** The reference: a statement that pgbench runs, or another row, which is measured over HTTP too. */
  against: { sql: string } | { row: string }
  /** The number of HTTP connections, and of pgbench clients. */
  connections: number
  clients: number
  /** The organization of the people: the large one, or one with 10,000 people. */
  organization: 'large' | 'small'
  /**
   * `rate` compares requests with transactions per second: more is better. `latency` compares medians: less is better.
   */
  measure: 'rate' | 'latency'
  /** The bound that counts as met: a minimum for rates, a maximum for latencies and for the small organization. */
  atLeast: number
  /** The bound to aim for. */
  aim: number
}

const whereSql = "organization_id = :organization and stack_id = 0 and external_id = 'p' || :person::text"
const randomSql = '\\set person random(1, :people)\n\\set word random(1, 1000000000)\n'

const updateSql =
  `${randomSql}update entities set first_name = 'F' || :word::text, last_name = 'L' || :word::text, language = (array['en', 'it', 'de', 'fr'])[1 + :word::integer % 4],
  attributes = attributes || jsonb_build_object('city', 'c' || :word::text, 'score', :word::integer),
  version = version + 1, updated_at = now() where ${whereSql};`.replaceAll('\n  ', ' ')
const selectSql = `${randomSql}select * from entities where ${whereSql};`
const insertSql =
  `${randomSql}insert into entities (organization_id, stack_id, id, external_id, active, version, first_name, last_name,
  email, language, attributes, created_at, updated_at) values (:organization, 0, uuidv7(),
  'x' || :word::text || '-' || :person::text || '-' || :client_id::text || '-' || clock_timestamp()::text, true, 1, 'First', 'Last',
  'n' || :word::text || '@example.org', 'en',
  jsonb_build_object('city', 'c' || :word::text, 'score', :word::integer), now(), now());`.replaceAll('\n  ', ' ')
const pageSql = `${randomSql}select * from entities where organization_id = :organization and stack_id = 0
  and id > ('01900000-0000-7000-8000-' || lpad(to_hex(greatest(:person::integer - 100, 1)), 12, '0'))::uuid
  order by id limit 50;`.replaceAll('\n  ', ' ')

const defaults = { connections: 64, clients: 16, organization: 'large', measure: 'rate' } as const

/** All rows, in the order in which they are measured. */
export const rows: readonly BenchRow[] = [
  {
    ...defaults,
    name: 'patch',
    title: 'PATCH a random person: 3 fields, 2 attributes',
    kind: 'patch',
    against: { sql: updateSql },
    atLeast: 0.5,
    aim: 0.8,
  },
  {
    ...defaults,
    name: 'get',
    title: 'GET a person by external id',
    kind: 'get',
    against: { sql: selectSql },
    atLeast: 0.5,
    aim: 0.75,
  },
  {
    ...defaults,
    name: 'post',
    title: 'POST a person',
    kind: 'post',
    against: { sql: insertSql },
    atLeast: 0.45,
    aim: 0.8,
  },
  {
    ...defaults,
    name: 'list',
    title: 'list a page of 50',
    kind: 'list',
    against: { sql: pageSql },
    atLeast: 0.25,
    aim: 0.5,
  },
  {
    ...defaults,
    name: 'links',
    title: 'PATCH with one relationship and two consent answers',
    kind: 'links',
    against: { row: 'patch' },
    atLeast: 0.4,
    aim: 0.6,
  },
  {
    ...defaults,
    name: 'alone',
    title: 'PATCH at one connection: median latency',
    kind: 'patch',
    against: { sql: updateSql },
    connections: 1,
    clients: 1,
    measure: 'latency',
    atLeast: 5,
    aim: 3,
  },
  {
    ...defaults,
    name: 'small',
    title: 'GET at 10,000 people, to GET at all of them',
    kind: 'get',
    against: { row: 'get' },
    organization: 'small',
    atLeast: 1.5,
    aim: 1.2,
  },
]

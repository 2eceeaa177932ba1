/** One row of the benchmark: what is asked of the service, what of PostgreSQL, and how near the two should be. */
export type BenchRow = {
  name: string
  title: string
  /** The kind of request in lua/requests.lua. */
  kind: 'get' | 'patch' | 'post' | 'list' | 'links'
  /** What pgbench runs; or the row it is compared with, over HTTP like itself. */
  against: { sql: string } | { row: string }
  /** Connections over HTTP, and clients of pgbench. */
  connections: number
  clients: number
  /** Whose people: the large organization's, or those of one with 10,000. */
  organization: 'large' | 'small'
  /** `rate`: requests to transactions a second, more is better. `latency`: medians, less is better. */
  measure: 'rate' | 'latency'
  atLeast: number
  aim: number
}

const where = "organization_id = :organization and stack_id = 0 and external_id = 'p' || :person::text"
const choose = '\\set person random(1, :people)\n\\set word random(1, 1000000000)\n'

const update =
  `${choose}update entities set first_name = 'F' || :word::text, last_name = 'L' || :word::text, language = (array['en', 'it', 'de', 'fr'])[1 + :word::integer % 4],
  attributes = attributes || jsonb_build_object('city', 'c' || :word::text, 'score', :word::integer),
  version = version + 1, updated_at = now() where ${where};`.replaceAll('\n  ', ' ')
const select = `${choose}select * from entities where ${where};`
const insert =
  `${choose}insert into entities (organization_id, stack_id, id, external_id, active, version, first_name, last_name,
  email, language, attributes, created_at, updated_at) values (:organization, 0, uuidv7(),
  'x' || :word::text || '-' || :person::text || '-' || :client_id::text || '-' || clock_timestamp()::text, true, 1, 'First', 'Last',
  'n' || :word::text || '@example.org', 'en',
  jsonb_build_object('city', 'c' || :word::text, 'score', :word::integer), now(), now());`.replaceAll('\n  ', ' ')
const page = `${choose}select * from entities where organization_id = :organization and stack_id = 0
  and id > ('01900000-0000-7000-8000-' || lpad(to_hex(greatest(:person::integer - 100, 1)), 12, '0'))::uuid
  order by id limit 50;`.replaceAll('\n  ', ' ')

const usual = { connections: 64, clients: 16, organization: 'large', measure: 'rate' } as const

export const rows: readonly BenchRow[] = [
  {
    ...usual,
    name: 'patch',
    title: 'PATCH a random person: 3 fields, 2 attributes',
    kind: 'patch',
    against: { sql: update },
    atLeast: 0.5,
    aim: 0.8,
  },
  {
    ...usual,
    name: 'get',
    title: 'GET a person by external id',
    kind: 'get',
    against: { sql: select },
    atLeast: 0.5,
    aim: 0.75,
  },
  { ...usual, name: 'post', title: 'POST a person', kind: 'post', against: { sql: insert }, atLeast: 0.45, aim: 0.8 },
  {
    ...usual,
    name: 'list',
    title: 'list a page of 50',
    kind: 'list',
    against: { sql: page },
    atLeast: 0.25,
    aim: 0.5,
  },
  {
    ...usual,
    name: 'links',
    title: 'PATCH with one relationship and two consent answers',
    kind: 'links',
    against: { row: 'patch' },
    atLeast: 0.4,
    aim: 0.6,
  },
  {
    ...usual,
    name: 'alone',
    title: 'PATCH at one connection: median latency',
    kind: 'patch',
    against: { sql: update },
    connections: 1,
    clients: 1,
    measure: 'latency',
    atLeast: 5,
    aim: 3,
  },
  {
    ...usual,
    name: 'small',
    title: 'GET at 10,000 people, to GET at all of them',
    kind: 'get',
    against: { row: 'get' },
    organization: 'small',
    atLeast: 1.5,
    aim: 1.2,
  },
]

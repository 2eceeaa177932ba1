import type pg from 'pg'
import { inDatabase } from './database.ts'
import type { Service } from './environment.ts'

/** The number of people in the small organization. */
export const smallPeople = 10_000
const smallKey = 'small'

/** An organization with people `p1` … `p<people>`, and the consent types that their requests use. */
export type Populated = { id: number; people: number; token: string; consentTypeIds: readonly number[] }

/** Declares the definitions that the requests use, and inserts people as kith stores them: 370 bytes each. */
export async function populate(service: Service, people: number, createToken: (key: string) => Promise<string>) {
  const token = await createToken(smallKey)
  const consentTypeIds = await declareDefinitions(service)
  return inDatabase(service.url, async client => {
    const large = { id: await readOrganizationId(client, 'default'), people, token: service.token, consentTypeIds }
    const small = { id: await readOrganizationId(client, smallKey), people: smallPeople, token, consentTypeIds: [] }
    for (const { id, people } of [large, small]) await insertPeople(client, id, people)
    await client.query('vacuum (analyze) entities')
    await client.query('checkpoint')
    return { large, small }
  })
}

export async function readOrganizationId(client: pg.Client, key: string): Promise<number> {
  const { rows } = await client.query<{ id: number }>('select id from organizations where key = $1', [key])
  if (!rows[0]) throw new Error(`The organization ${key} does not exist.`)
  return rows[0].id
}

/** Declares a relationship and two consent types. Returns the identifiers of the consent types. */
async function declareDefinitions(service: Service): Promise<number[]> {
  await declare(service, 'attributes', { key: 'referrer', owner: 'people', type: 'person' })
  const channels = [{ channel: 'email' }, { channel: 'sms' }]
  return [
    await declare(service, 'consent-types', { key: 'surveys', channels }),
    await declare(service, 'consent-types', { key: 'offers', channels }),
  ]
}

async function declare({ address, token }: Service, kind: string, definition: object): Promise<number> {
  const response = await fetch(`${address}/v1/schema/${kind}`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify(definition),
  })
  if (!response.ok) throw new Error(`The definition in ${kind} could not be declared: ${await response.text()}`)
  return ((await response.json()) as { data: { id: number } }).data.id
}

/** The columns of recognition keys, which a revision to compare with may not have yet, and their values. */
const keyColumns = `, email_key, mobile_key, has_keys`
const keyValues = `, 'p' || i || '@example.org', '+39' || (3000000000 + i)::text, true`

export async function insertPeople(client: pg.Client, organization_id: number, people: number) {
  const { rows } = await client.query(
    `select from information_schema.columns where table_name = 'entities' and column_name = 'has_keys'`,
  )
  const hasKeys = rows.length > 0
  await client.query(
    `insert into entities (organization_id, stack_id, id, external_id, active, version, first_name, last_name, email,
       mobile_prefix, mobile_number, language, attributes, created_at, updated_at${hasKeys ? keyColumns : ''})
     select $1, 0, ('01900000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, 'p' || i, true, 1, 'First ' || i, 'Last ' || i,
       'p' || i || '@example.org', '+39', (3000000000 + i)::text, 'en',
       jsonb_build_object('city', 'city ' || i % 1000, 'score', i, 'note', repeat('n', 60)), now(), now()${hasKeys ? keyValues : ''}
     from generate_series(1, $2::integer) i`,
    [organization_id, people],
  )
}

/** Reads the definitions of the indexes that every write of a person updates. */
export async function indexesOf({ url }: Service): Promise<string[]> {
  const { rows } = await inDatabase(url, client =>
    client.query<{ indexdef: string }>(
      `select indexdef from pg_indexes where schemaname = 'public' and tablename = 'entities' order by indexname`,
    ),
  )
  return rows.map(({ indexdef }) => indexdef)
}

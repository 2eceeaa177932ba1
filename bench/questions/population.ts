import type pg from 'pg'
import { inDatabase } from '../database.ts'
import type { Service } from '../environment.ts'
import type { Ask } from './questions-part.ts'

const companies = 10_000
const peoplePerStatement = 250_000

/** A number from 0 to 1 of a row i, which depends on nothing else. */
const draw = (salt: number) => `((hashint8extended(i, ${salt}) & 1048575)::float8 / 1048576)`

const syllables =
  'ba be bi bo da de di do fa fe fi ga go ka ke ki la le li lo ma me mi mo na ne ni no pa pe ra re ri ro sa se si so ta te ti to va ve vi za zo'
const endings = 'n r s l t nd rt ck  ni no na sen son  '

/** One of the words. With a larger power the first words are more frequent, as in real names. */
const word = (words: string, salt: number, power: number) => {
  const list = words.split(' ')
  return `(array[${list.map(each => `'${each}'`).join(',')}])[1 + floor(${list.length} * power(${draw(salt)}, ${power}))::integer]`
}
const firstName = `initcap(${word(syllables, 1, 2)} || ${word(syllables, 2, 2)} || ${word(endings, 3, 1)})`
const lastName = `initcap(${word(syllables, 4, 1.5)} || ${word(syllables, 5, 1.5)} || case when ${draw(6)} < 0.5 then ${word(syllables, 7, 1)} else '' end || ${word(endings, 8, 1)})`

const personId = `('01900000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid`
const companyId = (number: string) => `('66000000' || lpad(to_hex(${number}), 16, '0') || '00000000')::uuid`

/**
 * Replaces the people of an organization by people whose names are made of syllables, some frequent and most rare. Each has a country
 * (30), a city (1,000), a score, an amount, a time of signing up, and one of 10,000 companies as employer.
 */
export async function populateQuestions(
  service: Service,
  ask: Ask,
  key: string,
  people: number,
): Promise<{ organization_id: number; people: number }> {
  await ask('POST', '/v1/schema/stacks', { key: 'companies', kind: 'item' })
  for (const attribute of [
    { key: 'country', type: 'text', indexed: true },
    { key: 'city', type: 'text', indexed: true },
    { key: 'score', type: 'number', indexed: true },
    { key: 'amount', type: 'number' },
    { key: 'signed_up', type: 'datetime', indexed: true },
    { key: 'employer', type: 'stack', target_stack: 'companies' },
  ])
    await ask('POST', '/v1/schema/attributes', { owner: 'people', ...attribute })
  return inDatabase(service.url, async client => {
    const found = await client.query<{ id: number }>('select id from organizations where key = $1', [key])
    const organization_id = found.rows[0]!.id
    await client.query('set synchronous_commit = off')
    for (const table of ['terms', 'entities', 'fills'])
      await client.query(`delete from ${table} where organization_id = $1`, [organization_id])
    for (let from = 1; from <= people; from += peoplePerStatement)
      await insertPeople(client, organization_id, from, Math.min(people, from + peoplePerStatement - 1))
    await insertCompanies(client, organization_id, people)
    await client.query('vacuum (analyze)')
    await client.query('checkpoint')
    await waitForIndexes(client, organization_id)
    return { organization_id, people }
  })
}

async function insertPeople(client: pg.Client, organization_id: number, from: number, until: number) {
  await client.query(
    `insert into entities (organization_id, stack_id, id, external_id, active, version, first_name, last_name, email,
       mobile_prefix, mobile_number, language, attributes, created_at, updated_at, email_key, mobile_key, has_keys)
     select $1, 0, ${personId}, 'p' || i, true, 1, p.first_name, case when i % 50 > 0 then p.last_name end,
       lower(p.first_name || '.' || p.last_name || i || '@example.org'), '+39', (3000000000 + i)::text, 'en',
       jsonb_build_object('country', 'country ' || floor(30 * power(${draw(20)}, 3)), 'city', 'city ' || floor(1000 * power(${draw(21)}, 2)),
         'score', i, 'amount', (${draw(22)} * 100000)::integer / 100.0,
         'signed_up', to_char(timestamptz '2020-01-01 00:00Z' + ${draw(23)} * interval '6 years', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')),
       timestamptz '2026-01-01 00:00Z' + i * interval '1 ms', timestamptz '2026-01-01 00:00Z' + i * interval '1 ms',
       lower(p.first_name || '.' || p.last_name || i || '@example.org'), '+39' || (3000000000 + i)::text, true
     from generate_series($2::bigint, $3::bigint) i
       cross join lateral (select ${firstName} as first_name, ${lastName} as last_name) p`,
    [organization_id, from, until],
  )
}

async function insertCompanies(client: pg.Client, organization_id: number, people: number) {
  const stack = `(select id from stacks where organization_id = $1 and key = 'companies')`
  await client.query(
    `insert into entities (organization_id, stack_id, id, external_id, active, version, attributes, created_at, updated_at, has_keys)
     select $1, ${stack}, ${companyId('i')}, 'c' || i, true, 1, jsonb_build_object('name', 'Company ' || i), now(), now(), true
     from generate_series(1, ${companies}) i`,
    [organization_id],
  )
  await client.query(
    `insert into links (organization_id, source_id, attribute_id, target_stack_id, target_id, position)
     select $1, ${personId}, (select id from attributes where organization_id = $1 and key = 'employer'), ${stack},
       ${companyId(`1 + i % ${companies}`)}, 0
     from generate_series(1, $2::bigint) i`,
    [organization_id, people],
  )
}

/** Waits until the background fill of the service is done. It begins anew, because people were inserted behind its back. */
export async function waitForIndexes(client: pg.Client, organization_id: number) {
  await client.query('update attributes set index_ready = false where organization_id = $1 and index_id is not null', [
    organization_id,
  ])
  await client.query('update change_heads set schema_version = schema_version + 1 where organization_id = $1', [
    organization_id,
  ])
  for (;;) {
    const { rows } = await client.query(
      'select from attributes where organization_id = $1 and index_id is not null and not index_ready limit 1',
      [organization_id],
    )
    if (rows.length === 0) break
    await new Promise(resolve => setTimeout(resolve, 1_000))
  }
  await client.query('vacuum (analyze)')
  await client.query('checkpoint')
}

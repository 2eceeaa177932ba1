import { countries } from '../../cli/seed/name-lists.ts'

type RunSql = (text: string, values: unknown[]) => Promise<unknown>

/** The SQL of the id of the person with a number. */
export const personIdSql = (number: string) => `('01900000-0000-7000-8000-' || lpad(to_hex(${number}), 12, '0'))::uuid`

type Attributes = { first?: number; name?: string; attributes?: string }

/** Inserts people with one statement: `p1` to `p<count>`, in the order of their ids. `attributes` is SQL in which `n` is the number. */
export const insertPeople = (
  runSql: RunSql,
  organization_id: number,
  count: number,
  { first = 1, name = 'p', attributes = `'{}'` }: Attributes = {},
): Promise<unknown> =>
  runSql(
    `insert into entities (organization_id, stack_id, id, external_id, active, version, attributes, created_at, updated_at)
     select $1, 0, ${personIdSql('n')}, $2 || n, true, 1, ${attributes}, now(), now()
     from generate_series($3::integer, $4::integer) n`,
    [organization_id, name, first, first + count - 1],
  )

/**
 * Inserts people with one statement, as kith stores them: `customer-1` to `customer-<count>`, with names, emails and cities that repeat.
 * The person with the number n has the same values in every run.
 */
export async function insertManyPeople(runSql: RunSql, organization_id: number, count: number): Promise<void> {
  const firstNames = countries.flatMap(country => country.firstNames)
  const lastNames = countries.flatMap(country => country.lastNames)
  const cities = countries.flatMap(country => country.cities)
  await runSql(
    `insert into entities (organization_id, stack_id, id, external_id, active, version, first_name, last_name, email, language,
       attributes, created_at, updated_at, email_key)
     select $1, 0, ${personIdSql('n')}, 'customer-' || n, true, 1,
       ($3::text[])[1 + n % ${firstNames.length}], ($4::text[])[1 + n / ${firstNames.length} % ${lastNames.length}],
       'person' || n || '@example.org', 'en', jsonb_build_object('city', ($5::text[])[1 + n % ${cities.length}]),
       now(), now(), 'person' || n || '@example.org'
     from generate_series(1, $2::integer) n`,
    [organization_id, count, firstNames, lastNames, cities],
  )
}

import pg from 'pg'

/** The columns of a person as kith stores them. The primary key is the external id, which peers find fastest. */
const tableSql = `create table people (
  external_id text collate "C" primary key,
  id uuid not null unique,
  active boolean not null,
  version integer not null,
  first_name text,
  last_name text,
  email text,
  mobile_prefix text,
  mobile_number text,
  date_of_birth text collate "C",
  language text,
  email_consent boolean,
  sms_consent boolean,
  push_notification_consent boolean,
  attributes jsonb not null default '{}',
  created_at timestamptz not null,
  updated_at timestamptz not null
) with (fillfactor = 85)`

const valuesSql = `('01900000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, true, 1, 'First ' || i, 'Last ' || i,
  'p' || i || '@example.org', '+39', (3000000000 + i)::text, 'en',
  jsonb_build_object('city', 'city ' || i % 1000, 'score', i, 'note', repeat('n', 60)), now(), now()
  from generate_series(1, $1::integer) i`
const columns = 'id, active, version, first_name, last_name, email, mobile_prefix, mobile_number, language, attributes'

/** Triggers that do the further work of a kith PATCH: merge attributes, increment the version, and log both states. */
const triggersSql = `
  create table changes (
    sequence bigint generated always as identity primary key,
    at timestamptz not null,
    id uuid not null,
    version integer not null,
    before jsonb not null,
    after jsonb not null
  );
  create function merge() returns trigger language plpgsql as $$ begin
    new.attributes := old.attributes || new.attributes;
    new.version := old.version + 1;
    new.updated_at := now();
    return new;
  end $$;
  create function log() returns trigger language plpgsql as $$ begin
    insert into changes (at, id, version, before, after) values (now(), new.id, new.version, to_jsonb(old), to_jsonb(new));
    return null;
  end $$;
  create trigger merge before update on people for each row execute function merge();
  create trigger log after update on people for each row execute function log()`

/**
 * Creates a table `people` with people `p1` … `p<people>`, 370 bytes each. With `logged`, triggers do the work of a
 * kith PATCH.
 */
export async function createPeople(url: string, people: number, { logged = false } = {}): Promise<void> {
  await inDatabase(url, async client => {
    await client.query(tableSql)
    if (logged) await client.query(triggersSql)
    await client.query('create index people_email on people (email)')
    const insert = `insert into people (external_id, ${columns}, created_at, updated_at) select 'p' || i, ${valuesSql}`
    await client.query(insert, [people])
    await settle(client, 'people')
  })
}

/** Stores the same people in the table that Parse Server created for its class `people`. */
export async function fillParseClass(url: string, people: number): Promise<void> {
  await inDatabase(url, async client => {
    await client.query('create index people_email on people (email)')
    // Parse Server stores a version as a floating-point number, and an identifier as text.
    const insert = `insert into people ("objectId", ${columns}, "createdAt", "updatedAt")
      select 'p' || i, ${valuesSql.replace('::uuid', '')}`
    await client.query(insert, [people])
    await settle(client, 'people')
  })
}

async function settle(client: pg.Client, name: string) {
  await client.query(`vacuum (analyze) ${name}`)
  await client.query('checkpoint')
}

async function inDatabase(url: string, work: (client: pg.Client) => Promise<void>) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await work(client).finally(() => client.end())
}

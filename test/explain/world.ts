import { beforeAll } from 'vitest'
import { contextOf } from '../../src/db/context.ts'
import { backfillIndexes } from '../../src/entities/indexes/index-backfill.ts'
import { termOf } from '../../src/entities/indexes/index-keys.ts'
import { type Definitions, reloadDefinitions } from '../../src/organizations/definitions.ts'
import { type Organization, type Service, useOwnService } from '../support/service.ts'
import { makeShop, type Shop } from '../support/writes.ts'

/**
 * Two large organizations next to many small ones: PostgreSQL's average statistics fit neither. A manual run with a million people
 * gave the same plans. The plans do not change above some ten thousand.
 */
export type World = {
  service: Service
  /** A large organization without further identifiers. */
  shop: Shop
  /** A large organization in which the person `p<n>` has the alias `a<n>`, and a person was merged into each of the first quarter. */
  merged: Organization
  /** The definitions of `shop`. */
  definitions: Definitions
  /** The ids of the attributes of `shop` by key. */
  attributes: Record<string, number>
  /** The newest change number of `merged`. */
  head: number
}

export const people = 20_000
const smallOrganizations = 2_000
/** The people of `shop` with the first value of `level`, and of `tier`: more than a statement counts before it chooses an index. */
export const ofLevel = people * 0.6
export const ofTier = people * 0.75
/** People of `shop` with relationships: each has one of the referrers as its referrer, itself as a friend, and `p1` as its agent. */
export const related = people - 100
export const referrers = 100
/** In `merged`, as many people link to each person by the attribute 1. */
export const linksPerPerson = 5
/** The log of a person begins after this number: the change `base + n` created the person n. */
export const base = 100
export const changesPerPerson = 3
/** These people have 100 further changes each. */
export const busyPeople = 100

const idOf = (kind: number) => (n: number) => `0190000${kind}-0000-7000-8000-${n.toString(16).padStart(12, '0')}`
const sqlIdOf = (kind: number) => (n: string) =>
  `('0190000${kind}-0000-7000-8000-' || lpad(to_hex(${n}), 12, '0'))::uuid`

/** The internal identifier of the person `p<n>`. */
export const personId = idOf(0)
const personSql = sqlIdOf(0)
/** The internal identifier of the person who was merged into `p<n>`. */
export const mergedId = idOf(1)
const mergedSql = sqlIdOf(1)
const orderSql = sqlIdOf(6)
const productSql = sqlIdOf(7)
/** The internal identifiers of consecutive people. */
export const personIds = (first: number, count: number) =>
  Array.from({ length: count }, (_, index) => personId(first + index))

/** Makes the world before the tests of the file. */
export function useWorld(): World {
  const service = useOwnService()
  const world = { service } as World
  beforeAll(async () => {
    world.shop = await makeShop(service)
    world.merged = await service.organization()
    await declare(world)
    // The indexes of empty stacks are ready at once.
    await backfillIndexes(service.db)
    await populate(world)
    await service.sql('vacuum analyze')
    world.definitions = await reloadDefinitions(contextOf(service.db, world.shop.id))
  }, 300_000)
  return world
}

async function declare({ shop, merged }: World) {
  const { stacks, attributes } = shop.client.schema
  for (const key of ['orders', 'products']) await stacks.create({ key, kind: 'item' })
  await attributes.create({ key: 'city', owner: 'people', type: 'text', indexed: true })
  await attributes.create({ key: 'score', owner: 'people', type: 'number', indexed: true })
  for (const key of ['level', 'tier']) await attributes.create({ key, owner: 'people', type: 'text', indexed: true })
  await attributes.create({ key: 'code', owner: 'people', type: 'text', indexed: true, unique: true })
  await attributes.create({ key: 'agent', owner: 'people', type: 'person' })
  await attributes.create({
    key: 'bought',
    owner: 'people',
    type: 'stack',
    target_stack: 'orders',
    cardinality: 'many',
  })
  await attributes.create({ key: 'product', owner: 'orders', type: 'stack', target_stack: 'products' })
  await attributes.create({ key: 'maker', owner: 'products', type: 'person' })
  await merged.client.schema.attributes.create({ key: 'referrer', owner: 'people', type: 'person' })
}

type Insert = (text: string, last?: number) => Promise<unknown>

async function populate(world: World) {
  const { service, shop, merged } = world
  const ids = await service.sql<{ key: string; id: number }>(
    'select key, id from attributes where organization_id = $1',
    [shop.id],
  )
  world.attributes = Object.fromEntries(ids.map(({ key, id }) => [key, id]))
  const insert: Insert = (text, last = people) => service.sql(`${text} from generate_series(1, ${last}) i`)
  for (const id of [shop.id, merged.id]) {
    await insertPeople(insert, `${id}`, people)
    await insertWords(insert, `${id}`)
  }
  const small = '100000 + i'
  await insertPeople(insert, small, smallOrganizations)
  for (const [organization, count] of [
    [`${merged.id}`, people],
    [small, smallOrganizations],
  ] as const)
    await insertMerges(insert, organization, count)
  await insertSegments(insert, `${shop.id}`, people)
  await insertSegments(insert, small, smallOrganizations)
  await insertRelationships(insert, world)
  await insertTerms(world)
  await insertSignIns(insert, `${shop.id}`)
  await insert(
    `${insertChanges} select ${shop.id}, ${base + changesPerPerson * people} + i, now(), 'entity', 0, ${personSql(`1 + i % ${busyPeople}`)},
       'update', ${changesPerPerson + 1} + i / ${busyPeople}, '{}', '{"first_name": "Ada"}', 'a', 'r'`,
    100 * busyPeople,
  )
  // A person whose merge was undone.
  await insert(
    `insert into merges (organization_id, id, merged_id, into_id, person_id, sequence, at, undo, unmerged_sequence)
     select ${merged.id}, ${people} + i, ${personSql('i')}, ${personSql('11 + i')}, ${personSql('11 + i')}, ${base + people} + i, now(),
       '{"into_version": 2, "answers": []}', ${base + 2 * people}`,
    1,
  )
  for (const { id } of [shop, merged]) {
    const [head] = await service.sql<{ sequence: number }>(
      `update change_heads set sequence = (select max(sequence) from changes where organization_id = $1)
       where organization_id = $1 returning sequence`,
      [id],
    )
    world.head = head!.sequence
  }
}

const insertChanges = `insert into changes
  (organization_id, sequence, at, subject, stack_id, entity_id, operation, version, before, after, actor, request_id)`

/** Inserts people with an answer each, and their changes: a second lies between two creations, of which the first was a day ago. */
async function insertPeople(insert: Insert, organization: string, count: number) {
  const id = personSql('i')
  await insert(
    `insert into entities (organization_id, stack_id, id, external_id, active, version, email, attributes, answers, created_at, updated_at,
       email_key, mobile_key)
     select ${organization}, 0, ${id}, 'p' || i, true, ${changesPerPerson}, 'p' || i || '@example.org',
       jsonb_build_object('city', 'city ' || i % ${people / 10}, 'score', i, 'number', i, 'note', 'note ' || i, 'code', 'c' || i,
         'level', 'level ' || case when i % 5 < 3 then 1 else 2 end, 'tier', 'tier ' || case when i % 4 < 3 then 1 else 2 end),
       jsonb_build_object(1 + i % 2 || ':email', jsonb_build_object('state', true)), now(), now(),
       'p' || i || '@example.org', '+39' || i`,
    count,
  )
  await insert(
    `insert into consent_history (organization_id, person_id, version, consent_type_id, channel, state, source, at, actor, request_id)
     select ${organization}, ${id}, 1, 1 + i % 2, 'email', true, 'entry', now(), 'a', 'r'`,
    count,
  )
  for (let version = 1; version <= changesPerPerson; version++)
    await insert(
      `${insertChanges} select ${organization}, ${base} + ${version - 1} * ${count} + i, now() - interval '1 day' + i * interval '1 s',
         'entity', 0, ${id}, '${version === 1 ? 'create' : 'update'}', ${version}, ${version === 1 ? 'null' : `'{}'`},
         ${version === 1 ? `jsonb_build_object('state', 'active', 'external_id', 'p' || i)` : `'{"attribute_values": {"friend": "p1"}}'`}, 'a', 'r'`,
      count,
    )
}

/** Gives each person an alias and links from other people, and the first quarter merged people. Some people were deleted. */
async function insertMerges(insert: Insert, organization: string, count: number) {
  const [person, merged] = [personSql('i'), mergedSql('i')]
  const head = base + changesPerPerson * people
  await insert(
    `insert into aliases (organization_id, external_id, person_id, merge_id, created_at)
     select ${organization}, 'a' || i, ${person}, case when i <= ${count / 4} then i end, now()`,
    count,
  )
  await insert(
    `insert into merges (organization_id, id, merged_id, into_id, person_id, sequence, at, undo)
     select ${organization}, i, ${merged}, ${person}, ${person}, ${head} + i, now(),
       '{"into_version": 2, "answers": []}'`,
    count / 4,
  )
  await insert(
    `${insertChanges} select ${organization}, ${head} + i, now(), 'entity', 0, ${merged}, 'merge', 1,
       jsonb_build_object('external_id', 'a' || i), '{}', 'a', 'r'`,
    count / 4,
  )
  await insert(
    `${insertChanges} select ${organization}, ${head + people} + i, now(), 'entity', 0, ${personSql(`${people / 2} + i`)}, 'delete',
       ${changesPerPerson + 1}, '{}', '{}', 'a', 'r'`,
    count / 10,
  )
  for (let k = 1; k <= linksPerPerson; k++)
    await insert(
      `insert into links (organization_id, source_id, attribute_id, target_stack_id, target_id, position)
       select ${organization}, ${personSql(`1 + (i * 7 + ${k} * 1999) % ${people}`)}, 1, 0, ${person}, ${k}`,
      count,
    )
}

/** Inserts what a search of people reads: words that all have, and words of their own. */
async function insertWords(insert: Insert, organization: string) {
  const words = `array['common', 'all', 'rare' || chr(97 + i % 26) || i % 997, 'p' || i]`
  const id = personSql('i')
  await insert(
    `insert into search_documents select ${organization}, 0, ${id}, ' ' || array_to_string(${words}, ' ') || ' '`,
  )
  await insert(`insert into search_words select ${organization}, 0, unnest(${words}), ${id}`)
  await insert(
    `insert into search_features select ${organization}, 0, unnest(array['-word' || i, 'wo' || chr(97 + i % 26)]), 'word' || i`,
    people / 4,
  )
}

/** Inserts every person into the segments 1 to 3. */
async function insertSegments(insert: Insert, organization: string, count: number) {
  for (const segment of [1, 2, 3]) {
    await insert(
      `insert into segment_members (organization_id, person_id, segment_id) select ${organization}, ${personSql('i')}, ${segment}`,
      count,
    )
    await insert(
      `insert into segment_changes (organization_id, segment_id, sequence, person_id, entered)
       select ${organization}, ${segment}, i, ${personSql('i')}, true`,
      count,
    )
  }
  await insert(
    `insert into followers (organization_id, name, sequence) select ${organization}, 'segments', ${people}`,
    1,
  )
}

/** Inserts an order for each person, of which every second person bought one, and a hundred products made by the first hundred people. */
async function insertRelationships(insert: Insert, { service, shop, attributes }: World) {
  const stacks = await service.sql<{ key: string; id: number }>(
    'select key, id from stacks where organization_id = $1',
    [shop.id],
  )
  const stack = Object.fromEntries(stacks.map(({ key, id }) => [key, id]))
  for (const [key, prefix, id, count] of [
    ['orders', 'o', orderSql('i'), people],
    ['products', 'product ', productSql('i'), 100],
  ] as const)
    await insert(
      `insert into entities (organization_id, stack_id, id, external_id, active, version, created_at, updated_at)
       select ${shop.id}, ${stack[key]}, ${id}, '${prefix}' || i, true, 1, now(), now()`,
      count,
    )
  const link = (key: string, source: string, target_stack: number, target: string, count = related) =>
    insert(
      `insert into links (organization_id, source_id, attribute_id, target_stack_id, target_id, position)
       select ${shop.id}, ${source}, ${attributes[key]}, ${target_stack}, ${target}, 0`,
      count,
    )
  await link('referrer', personSql('i'), 0, personSql(`1 + i % ${referrers}`))
  await link('friends', personSql('i'), 0, personSql('i'))
  await link('agent', personSql('i'), 0, personSql('1'))
  await link('bought', personSql('i * 2'), stack.orders!, orderSql('i'), related / 2)
  await link('product', orderSql('i'), stack.products!, productSql('1 + i % 100'), people)
  await link('maker', productSql('i'), 0, personSql('i'), 100)
}

/** Inserts the index terms of the people of the shop. */
async function insertTerms({ service, shop }: World) {
  const terms = (type: 'text' | 'number', of: (n: number) => unknown) =>
    Array.from({ length: people }, (_, index) => termOf(type, of(index + 1)))
  for (const [key, values] of [
    ['city', terms('text', n => `city ${n % (people / 10)}`)],
    ['score', terms('number', n => n)],
    ['code', terms('text', n => `c${n}`)],
    ['level', terms('text', n => `level ${n % 5 < 3 ? 1 : 2}`)],
    ['tier', terms('text', n => `tier ${n % 4 < 3 ? 1 : 2}`)],
  ] as const)
    await service.sql(
      `insert into terms (organization_id, index_id, value, entity_id)
       select a.organization_id, a.index_id, t.term, ${personSql('t.n')}
       from attributes a cross join unnest($3::text[]) with ordinality as t(term, n)
       where a.organization_id = $1 and a.key = $2`,
      [shop.id, key, values],
    )
}

/** Inserts sessions and codes of which few are of the organization, and ten have expired. */
async function insertSignIns(insert: Insert, organization: string) {
  const count = people / 4
  const expiry = (valid: string) =>
    `now() + case when i % ${count / 10} = 0 then interval '-1 minute' else interval '${valid}' end`
  await insert(
    `insert into sessions (organization_id, id, token_sha256, name, scope, method, expires_at)
     select case when i <= 20 then ${organization} else 100000 + i % 3 end, gen_random_uuid(), sha256(i::text::bytea), 'x', 'people:read',
       'code', ${expiry('1 hour')}`,
    count,
  )
  await insert(
    `insert into sign_in_codes (organization_id, code_sha256, name, scope, expires_at)
     select case when i <= 20 then ${organization} else 100000 end, sha256(i::text::bytea), 'x', 'people:read', ${expiry('1 hour')}`,
    count,
  )
}

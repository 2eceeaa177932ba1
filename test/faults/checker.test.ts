import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Service, startService } from '../support/service.ts'
import { check, linesOf } from './checker.ts'
import { type Entry, type Journal, newJournal, type Outcome } from './journal.ts'
import { startLoad } from './load.ts'
import type { FindingKind } from './replay.ts'
import { makeWorld, type World } from './world.ts'

let service: Service
let world: World
let journal: Journal
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())

/** Each test has an organization that was written to, and was found to be whole. */
beforeEach(async ({ task }) => {
  world = await makeWorld(service.databaseUrl, service.address)
  journal = newJournal()
  await writeMore(task.name)
  expect(linesOf(await check(world, journal, service.address))).toEqual([])
})

/** Goes on with the journal. */
async function writeMore(...words: (string | number)[]) {
  const load = startLoad({ world, addresses: [service.address], clients: 4, words })
  await load.acknowledged(60)
  await load.stop()
  journal.entries.push(...load.journal.entries)
  journal.surprises.push(...load.journal.surprises)
}

/** Stored data are changed past the service; `o` stands for the organization. */
async function mutate(text: string): Promise<number> {
  const client = new pg.Client({ connectionString: service.databaseUrl })
  await client.connect()
  const bound = text.replaceAll('$o', String(world.organization_id))
  const { rowCount } = await client.query(bound).finally(() => client.end())
  return rowCount ?? 0
}

const kindsFound = async () => new Set((await check(world, journal, service.address)).map(({ kind }) => kind))

const lastUpdate = `(select max(sequence) from changes where organization_id = $o and operation = 'update' and after->'attribute_values' ? 'mark')`

/** What is done to the stored data, and what has to be found. */
const mutations: [what: string, text: string, found: FindingKind][] = [
  [
    'a change is taken out of the log',
    `delete from changes where organization_id = $o and sequence = ${lastUpdate}`,
    'a write is lost',
  ],
  [
    'a change is taken out of the log',
    `delete from changes where organization_id = $o and sequence = ${lastUpdate}`,
    'the change log has a gap',
  ],
  [
    'the head is ahead of the log',
    'update change_heads set sequence = sequence + 1 where organization_id = $o',
    'the change log has a gap',
  ],
  [
    'a change stands in the log twice',
    `insert into changes select organization_id, (select sequence + 1 from change_heads where organization_id = $o), at, subject, stack_id,
       entity_id, definition_id, operation, version, before, after, actor, request_id from changes where organization_id = $o and sequence = ${lastUpdate}`,
    'a write was done twice',
  ],
  [
    'a change bears a mark that nobody sent',
    `update changes set after = jsonb_set(after, '{attribute_values,mark}', '"stranger"') where organization_id = $o and sequence = ${lastUpdate}`,
    'a write comes from nowhere',
  ],
  [
    'a version is left out',
    `update changes set version = version + 1 where organization_id = $o and sequence = ${lastUpdate}`,
    'a version skips',
  ],
  [
    'what a change found is not what the one before left',
    `update changes set before = jsonb_set(before, '{attribute_values,mark}', '"another"') where organization_id = $o and sequence = ${lastUpdate}`,
    'the change log does not replay',
  ],
  [
    'an entity is created twice under one name',
    `with head as (update change_heads set sequence = sequence + 1 where organization_id = $o returning sequence)
     insert into changes select $o, head.sequence, now(), 'entity', stack_id, gen_random_uuid(), null, 'create', 1, '{"state": null, "external_id": null}',
       jsonb_build_object('state', 'placeholder', 'external_id', external_id), 'x', 'x' from entities, head where organization_id = $o and external_id is not null limit 1`,
    'two entities have one name',
  ],
  [
    'a placeholder is born of nothing',
    `with head as (update change_heads set sequence = sequence + 1 where organization_id = $o returning sequence)
     insert into changes select $o, head.sequence, now(), 'entity', 0, gen_random_uuid(), null, 'create', 1, '{"state": null, "external_id": null}',
       '{"state": "placeholder", "external_id": "orphan"}', 'x', (select request_id from changes where organization_id = $o and sequence = ${lastUpdate}) from head`,
    'a placeholder has no cause',
  ],
  [
    'an entity lost its last change',
    `update entities e set attributes = attributes - 'mark' where organization_id = $o and id = (select id from entities where organization_id = $o and attributes ? 'mark' limit 1)`,
    'what is stored is not what the change log tells',
  ],
  [
    'an entity has another version',
    `update entities set version = version + 1 where ctid = (select ctid from entities where organization_id = $o limit 1)`,
    'what is stored is not what the change log tells',
  ],
  [
    'an entity is gone without a deletion',
    `delete from entities where ctid = (select ctid from entities where organization_id = $o limit 1)`,
    'what is stored is not what the change log tells',
  ],
  [
    'an entity is there without a change',
    `insert into entities (organization_id, stack_id, id, external_id, active, version, created_at, updated_at) values ($o, 0, gen_random_uuid(), 'x', false, 1, now(), now())`,
    'what is stored is not what the change log tells',
  ],
  [
    'an answer of the history is another',
    `update consent_history set previous_state = not coalesce(previous_state, false) where ctid = (select ctid from consent_history where organization_id = $o limit 1)`,
    'the consent history does not replay',
  ],
  [
    'an answer is missing in the history',
    `delete from consent_history where ctid = (select ctid from consent_history where organization_id = $o order by version desc limit 1)`,
    'the consent history does not replay',
  ],
  [
    'a current answer is none of the history',
    `update entities set answers = '{}' where ctid = (select ctid from entities where organization_id = $o and answers <> '{}' limit 1)`,
    'the consent history does not replay',
  ],
  [
    'a summary flag is not what the answers say',
    `update entities set email_consent = not email_consent where ctid = (select ctid from entities where organization_id = $o and email_consent is not null limit 1)`,
    'the consent history does not replay',
  ],
  [
    'a link leads to nobody',
    `update links set target_id = gen_random_uuid() where ctid = (select ctid from links where organization_id = $o limit 1)`,
    'a link leads to nothing',
  ],
  [
    'a link comes from nobody',
    `insert into links select organization_id, gen_random_uuid(), attribute_id, target_stack_id, target_id, 0 from links where organization_id = $o limit 1`,
    'a link leads to nothing',
  ],
  [
    'a link is missing',
    `delete from links l where ctid = (select k.ctid from links k join entities s on s.organization_id = $o and s.id = k.source_id
       join entities t on t.organization_id = $o and t.id = k.target_id and t.external_id like 'born%' where k.organization_id = $o limit 1)`,
    'links are not what the change log tells',
  ],
  [
    'a link leads to somebody else',
    `update links l set target_id = (select id from entities where organization_id = $o and external_id is null and stack_id = 0 limit 1)
     where ctid = (select k.ctid from links k join entities s on s.organization_id = $o and s.id = k.source_id
       where k.organization_id = $o and k.target_stack_id = 0 limit 1)
       and exists (select from entities where organization_id = $o and external_id is null and stack_id = 0)`,
    'links are not what the change log tells',
  ],
  [
    'a term is missing in the index',
    `delete from terms where ctid = (select ctid from terms where organization_id = $o limit 1)`,
    'an index is not what is stored',
  ],
]

describe('the checker', () => {
  it.each(mutations)('sees it when %s', async (_, text, found) => {
    // What is to be spoilt has to be there.
    for (let more = 1; (await mutate(text)) === 0; more += 1) await writeMore(text, more)
    expect(await kindsFound()).toContain(found)
  })

  it('sees it when later writes have lower numbers than earlier ones', async () => {
    const [first, second] = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222']
    for (const mark of [first, second]) {
      const started = performance.now()
      const body = { attribute_values: { mark } }
      const reply = await service.sender(world.token)('POST', '/v1/people', body, { 'X-Request-Id': mark })
      expect(reply.status).toBe(201)
      journal.entries.push(entryOf(mark, 'acknowledged', started))
    }
    expect(await kindsFound()).toEqual(new Set())
    const [a, b] = [
      `(select max(sequence) - 1 from changes where organization_id = $o)`,
      `(select max(sequence) from changes where organization_id = $o)`,
    ]
    await mutate(`update changes set sequence = 1000000 where organization_id = $o and sequence = ${a}`)
    await mutate(
      `update changes set sequence = sequence - 1 where organization_id = $o and sequence = (select sequence from change_heads where organization_id = $o)`,
    )
    await mutate(
      `update changes set sequence = (select sequence from change_heads where organization_id = $o) where organization_id = $o and sequence = ${b}`,
    )
    expect(await kindsFound()).toEqual(new Set(['later writes come before earlier ones']))
  })

  it('sees it when what was refused is done, and when half of a batch is', async () => {
    const entry = journal.entries.find(({ writes }) => writes.every(({ outcome }) => outcome === 'acknowledged'))!
    entry.writes[0]!.outcome = 'refused'
    expect(await kindsFound()).toEqual(new Set(['a refused write was done']))
    entry.writes[0]!.outcome = 'acknowledged'
    entry.atomic = true
    entry.writes.push({ identity: 'never done', outcome: 'unknown' })
    expect(await kindsFound()).toEqual(new Set(['half of a batch was done']))
  })

  it('sees it when an answer is none that a fault explains', async () => {
    journal.surprises.push('500')
    expect(await kindsFound()).toEqual(new Set(['an answer that no fault explains']))
  })

  it('sees it when a read shows something else than what is stored', async () => {
    const other = await makeWorld(service.databaseUrl, service.address)
    await service.sender(other.token)('POST', '/v1/people', { external_id: 'ada' })
    world = { ...world, token: other.token }
    expect(await kindsFound()).toEqual(new Set(['a read is not what is stored']))
  })
})

const entryOf = (identity: string, outcome: Outcome, started: number): Entry => ({
  method: 'POST',
  path: '/v1/people',
  body: {},
  headers: {},
  atomic: false,
  writes: [{ identity, outcome }],
  started,
  finished: performance.now(),
  status: 201,
})

import pg from 'pg'
import { beforeEach, describe, expect, it } from 'vitest'
import type { Received } from '../support/receiver.ts'
import { useOwnService } from '../support/service.ts'
import { compareWithDeliveries } from './against-deliveries.ts'
import { check, formatFindings } from './checker.ts'
import { deletionIdentity, type Entry, type Journal, newJournal, type Outcome, restoreIdentity } from './journal.ts'
import { startLoad } from './load.ts'
import type { FindingKind } from './replay.ts'
import { readStored } from './stored.ts'
import { makeWorld, type World } from './world.ts'

const service = useOwnService()
let world: World
let journal: Journal

/** Each test has an organization of its own, which was written to and has no findings. */
beforeEach(async ({ task }) => {
  world = await makeWorld(service.databaseUrl, service.address)
  journal = newJournal()
  await writeMore(task.name)
  expect(formatFindings(await check(world, journal, service.address))).toEqual([])
})

/** Writes more under load and appends to the journal. */
async function writeMore(...seedParts: (string | number)[]) {
  const load = startLoad({ world, addresses: [service.address], clients: 4, seedParts })
  await load.waitForAcknowledged(60)
  await load.stop()
  journal.entries.push(...load.journal.entries)
  journal.unexplained.push(...load.journal.unexplained)
}

/** Changes stored data directly in the database; `$o` is replaced by the organization's id. Returns the number of rows. */
async function mutate(text: string): Promise<number> {
  const client = new pg.Client({ connectionString: service.databaseUrl })
  await client.connect()
  const boundText = text.replaceAll('$o', String(world.organization_id))
  const { rowCount } = await client.query(boundText).finally(() => client.end())
  return rowCount ?? 0
}

const findKinds = async () => new Set((await check(world, journal, service.address)).map(({ kind }) => kind))

const lastUpdate = `(select max(sequence) from changes where organization_id = $o and operation = 'update' and after->'attribute_values' ? 'mark')`

/** Mutations of the stored data, and the finding that each must cause. */
const mutations: [mutation: string, text: string, expectedKind: FindingKind][] = [
  [
    'a change is missing in the log',
    `delete from changes where organization_id = $o and sequence = ${lastUpdate}`,
    'a write is lost',
  ],
  [
    'a change is missing in the log',
    `delete from changes where organization_id = $o and sequence = ${lastUpdate}`,
    'the change log has a gap',
  ],
  [
    'the head is ahead of the log',
    'update change_heads set sequence = sequence + 1 where organization_id = $o',
    'the change log has a gap',
  ],
  [
    'a change is in the log twice',
    `insert into changes select organization_id, (select sequence + 1 from change_heads where organization_id = $o), at, subject, stack_id,
       entity_id, definition_id, operation, version + 1000, before, after, actor, request_id from changes where organization_id = $o and sequence = ${lastUpdate}`,
    'a write was done twice',
  ],
  [
    'a change has a mark that no request sent',
    `update changes set after = jsonb_set(after, '{attribute_values,mark}', '"stranger"') where organization_id = $o and sequence = ${lastUpdate}`,
    'an unrequested write was done',
  ],
  [
    'a version is left out',
    `update changes set version = version + 1000 where organization_id = $o and sequence = ${lastUpdate}`,
    'a version is skipped',
  ],
  [
    'the before value of a change differs from the change before',
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
    'a placeholder is created without a cause',
    `with head as (update change_heads set sequence = sequence + 1 where organization_id = $o returning sequence)
     insert into changes select $o, head.sequence, now(), 'entity', 0, gen_random_uuid(), null, 'create', 1, '{"state": null, "external_id": null}',
       '{"state": "placeholder", "external_id": "orphan"}', 'x', (select request_id from changes where organization_id = $o and sequence = ${lastUpdate}) from head`,
    'a placeholder has no cause',
  ],
  [
    'an entity lost its last change',
    `update entities e set attributes = attributes - 'mark' where organization_id = $o and id = (select id from entities where organization_id = $o and attributes ? 'mark' limit 1)`,
    'stored entities differ from the change log',
  ],
  [
    'an entity has another version',
    `update entities set version = version + 1 where ctid = (select ctid from entities where organization_id = $o limit 1)`,
    'stored entities differ from the change log',
  ],
  [
    'an entity is missing without a deletion',
    `delete from entities where ctid = (select ctid from entities where organization_id = $o limit 1)`,
    'stored entities differ from the change log',
  ],
  [
    'an entity exists without a change',
    `insert into entities (organization_id, stack_id, id, external_id, active, version, created_at, updated_at) values ($o, 0, gen_random_uuid(), 'x', false, 1, now(), now())`,
    'stored entities differ from the change log',
  ],
  [
    'a previous state in the history is wrong',
    `update consent_history set previous_state = not coalesce(previous_state, false) where ctid = (select ctid from consent_history where organization_id = $o limit 1)`,
    'the consent history does not replay',
  ],
  [
    'an answer is missing in the history',
    `delete from consent_history where ctid = (select ctid from consent_history where organization_id = $o order by version desc limit 1)`,
    'the consent history does not replay',
  ],
  [
    'the current answers lack one of the history',
    `update entities set answers = '{}' where ctid = (select ctid from entities where organization_id = $o and answers <> '{}' limit 1)`,
    'the consent history does not replay',
  ],
  [
    'a summary flag contradicts the answers',
    `update entities set email_consent = not email_consent where ctid = (select ctid from entities where organization_id = $o and email_consent is not null limit 1)`,
    'the consent history does not replay',
  ],
  [
    'a link has no target',
    `update links set target_id = gen_random_uuid() where ctid = (select ctid from links where organization_id = $o limit 1)`,
    'a link is dangling',
  ],
  [
    'a link has no source',
    `insert into links (organization_id, source_id, attribute_id, target_stack_id, target_id, position)
       select organization_id, gen_random_uuid(), attribute_id, target_stack_id, target_id, 0 from links where organization_id = $o limit 1`,
    'a link is dangling',
  ],
  [
    'a link is missing',
    `delete from links l where ctid = (select k.ctid from links k join entities s on s.organization_id = $o and s.id = k.source_id
       join entities t on t.organization_id = $o and t.id = k.target_id and t.external_id like 'born%' where k.organization_id = $o limit 1)`,
    'stored links differ from the change log',
  ],
  [
    'a link has another target',
    `update links l set target_id = (select id from entities where organization_id = $o and external_id is null and stack_id = 0 limit 1)
     where ctid = (select k.ctid from links k join entities s on s.organization_id = $o and s.id = k.source_id
       where k.organization_id = $o and k.target_stack_id = 0 limit 1)
       and exists (select from entities where organization_id = $o and external_id is null and stack_id = 0)`,
    'stored links differ from the change log',
  ],
  [
    'a term is missing in the index',
    `delete from terms where ctid = (select ctid from terms where organization_id = $o limit 1)`,
    'the index differs from the stored entities',
  ],
]

describe('the checker', () => {
  it.each(mutations)('reports that %s', async (_, text, expectedKind) => {
    // The load must have written a row that the mutation can change.
    for (let attempt = 1; (await mutate(text)) === 0; attempt += 1) await writeMore(text, attempt)
    expect(await findKinds()).toContain(expectedKind)
  })

  it('reports change numbers that are out of order', async () => {
    const [first, second] = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222']
    for (const mark of [first, second]) {
      const started = performance.now()
      const body = { attribute_values: { mark } }
      const reply = await service.sender(world.token)('POST', '/v1/people', body, { 'X-Request-Id': mark })
      expect(reply.status).toBe(201)
      journal.entries.push(entryOf(mark, 'acknowledged', started))
    }
    expect(await findKinds()).toEqual(new Set())
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
    expect(await findKinds()).toEqual(new Set(['change numbers are out of order']))
  })

  it('follows a restore, and reports one without a deletion', async () => {
    const send = service.sender(world.token)
    const mark = '33333333-3333-4333-8333-333333333333'
    const consents = [{ consent_type_id: 1, channel: 'email', state: true }]
    const body = { external_id: 'back', consents, attribute_values: { mark } }
    const steps = [
      { identity: mark, method: 'POST', path: '/v1/people', body, request: mark },
      { identity: deletionIdentity('r1', 'back'), method: 'DELETE', path: '/v1/people/back', request: 'r1' },
    ]
    let id = ''
    for (const { identity, method, path, body, request } of steps) {
      const started = performance.now()
      const reply = await send(method, path, body, { 'X-Request-Id': request })
      id ||= reply.body.data.id
      journal.entries.push(entryOf(identity, 'acknowledged', started))
    }
    const started = performance.now()
    expect((await send('POST', `/v1/people/internal/${id}/restore`, undefined, { 'X-Request-Id': 'r2' })).status).toBe(
      200,
    )
    journal.entries.push(entryOf(restoreIdentity('r2'), 'acknowledged', started))
    expect(await findKinds()).toEqual(new Set())
    // The response to a restore of a person who exists has the version of an earlier change.
    const existing = entryOf(restoreIdentity('r3'), 'acknowledged', performance.now())
    journal.entries.push(existing)
    expect(await findKinds()).toEqual(new Set(['a write is lost']))
    existing.writes[0]!.restored = { id, version: 3 }
    expect(await findKinds()).toEqual(new Set())
    await mutate(`update changes set operation = 'restore' where organization_id = $o and request_id = '${mark}'`)
    expect(await findKinds()).toContain('the change log does not replay')
  })

  it('reports a refused write that was done, and an atomic batch that was done in part', async () => {
    const entry = journal.entries.find(({ writes }) => writes.every(({ outcome }) => outcome === 'acknowledged'))!
    entry.writes[0]!.outcome = 'refused'
    expect(await findKinds()).toEqual(new Set(['a refused write was done']))
    entry.writes[0]!.outcome = 'acknowledged'
    entry.atomic = true
    entry.writes.push({ identity: 'never done', outcome: 'unknown' })
    expect(await findKinds()).toEqual(new Set(['an atomic batch was done in part']))
  })

  it('reports an unexplained response', async () => {
    journal.unexplained.push('500')
    expect(await findKinds()).toEqual(new Set(['an unexplained response']))
  })

  it('reports a read that differs from the stored data', async () => {
    const other = await makeWorld(service.databaseUrl, service.address)
    await service.sender(other.token)('POST', '/v1/people', { external_id: 'ada' })
    world = { ...world, token: other.token }
    expect(await findKinds()).toEqual(new Set(['a read differs from the stored entities']))
  })
})

describe('the comparison of deliveries', () => {
  it('follows repetitions, and reports a delivery that is lost, invented, changed or out of order', async () => {
    const body = { url: 'https://receiver.invalid/', events: ['person.*', 'record.*'] }
    expect((await service.sender(world.token)('POST', '/v1/webhooks', body)).status).toBe(201)
    await writeMore('deliveries')
    const stored = await readStored(world.databaseUrl, world.organization_id)
    const webhook = stored.changes.find(({ subject }) => subject === 'webhook')!
    const received = stored.changes
      .filter(({ sequence }) => sequence > webhook.sequence)
      .map(change => ({
        id: `${stored.log_id}:${change.sequence}`,
        sequence: change.sequence,
        event: { data: { ...change, id: change.entity_id } },
      })) as unknown as Received[]
    const findKindsOf = (requests: Received[]) => compareWithDeliveries(stored, requests).map(({ kind }) => kind)
    const [first] = received as [Received]
    expect(findKindsOf(received)).toEqual([])
    expect(findKindsOf([...received, ...received.slice(5)])).toEqual([])
    expect(findKindsOf(received.slice(1))).toEqual(['a change was not delivered'])
    const invented = { ...first, id: `another:${first.sequence}` }
    expect(findKindsOf([invented, ...received])).toEqual(['an unrequested change was delivered'])
    const changed = { ...first, event: { data: { ...first.event.data, version: 1_000 } } }
    expect(findKindsOf([changed, ...received.slice(1)])).toEqual(['a delivery differs from the change log'])
    const [one, next] = [...Map.groupBy(received, ({ event }) => event.data.id).values()].find(each => each.length > 1)!
    const swapped = received.filter(request => request !== one)
    swapped.splice(swapped.indexOf(next!) + 1, 0, one!)
    expect(findKindsOf(swapped)).toEqual(['deliveries are out of order'])
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

import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { startEmbedded } from '../../src/db/embedded.ts'
import { killServer, query, serverPid } from '../support/embedded-service.ts'
import { endProcesses, hasServer, launch, makeDataFolder, senderTo, terminate, tokenFrom } from '../support/process.ts'
import type { Send } from '../support/service.ts'

afterEach(endProcesses)

const writers = 8
const writesBeforeKill = 300

/** The state that a write should leave. `null`: the person does not exist. */
type Person = Record<string, unknown> | null

/** The test's own record of a person: the last acknowledged state, and the one write that got no response. */
type Entry = { acknowledged: Person; pending?: Person; writes: number }

type Step = { method: string; path: string; body?: Record<string, unknown>; after: Person }

/**
 * The next write of a person: a create, then changes with a consent and a link each, and every seventh turn a deletion.
 */
function nextStep(external_id: string, { acknowledged, writes }: Entry, turn: number): Step {
  const path = `/v1/people/${external_id}`
  if (acknowledged && turn % 7 === 6) return { method: 'DELETE', path, after: null }
  const employer = `company_${turn}`
  const body = {
    external_id,
    first_name: `turn ${turn}`,
    email_consent: turn % 2 === 0,
    attribute_values: { turn, referrer: `hub_${turn % 5}`, employers: [employer, `company_of_${external_id}`] },
  }
  // A deletion increments the version too. The next person of the same name continues from it.
  const after = { ...body, version: writes + 1 }
  if (!acknowledged) return { method: 'POST', path: '/v1/people', body, after }
  return { method: turn % 2 === 0 ? 'PATCH' : 'PUT', path, body, after }
}

/** Writes one person until the service is gone. Calls `onAcknowledged` after each acknowledged write. */
async function keepWriting(send: Send, external_id: string, journal: Map<string, Entry>, onAcknowledged: () => void) {
  const entry: Entry = { acknowledged: null, writes: 0 }
  journal.set(external_id, entry)
  for (let turn = 0; ; turn++) {
    const { method, path, body, after } = nextStep(external_id, entry, turn)
    entry.pending = after
    const reply = await send(method, path, body).catch(() => undefined)
    if (!reply) return
    if (reply.status >= 300) throw new Error(`${method} returned ${reply.status}: ${JSON.stringify(reply.body)}`)
    entry.acknowledged = after
    entry.writes += 1
    delete entry.pending
    onAcknowledged()
  }
}

/** Declares the relationships that the writes use: one to people, one to records of a stack. */
async function declare(send: Send) {
  const replies = [
    await send('POST', '/v1/schema/stacks', { key: 'companies', kind: 'item' }),
    await send('POST', '/v1/schema/attributes', { key: 'referrer', owner: 'people', type: 'person' }),
    await send('POST', '/v1/schema/attributes', {
      key: 'employers',
      owner: 'people',
      type: 'stack',
      target_stack: 'companies',
      cardinality: 'many',
    }),
  ]
  expect(replies.map(({ status }) => status)).toEqual([201, 201, 201])
}

/**
 * Writes from several clients at once, and calls `kill` after 300 acknowledged writes. Returns the record of each
 * person.
 */
async function writeUntilKilled(send: Send, kill: () => Promise<unknown>): Promise<Map<string, Entry>> {
  const journal = new Map<string, Entry>()
  let acknowledgedCount = 0
  let killed: Promise<unknown> | undefined
  const onAcknowledged = () => {
    if (++acknowledgedCount === writesBeforeKill) killed = kill()
  }
  await Promise.all(
    Array.from({ length: writers }, (_, index) => keepWriting(send, `person_${index}`, journal, onAcknowledged)),
  )
  await killed
  expect(acknowledgedCount).toBeGreaterThanOrEqual(writesBeforeKill)
  return journal
}

/** Reads a person: the fields that the writes set. `null`: the person does not exist. */
async function readPerson(send: Send, external_id: string): Promise<Person> {
  const { status, body } = await send('GET', `/v1/people/${external_id}`)
  if (status === 404) return null
  const { first_name, email_consent, attribute_values, version } = body.data
  return { external_id, first_name, email_consent, attribute_values, version }
}

/** Queries for inconsistent rows, by fault. Each returns no row on a consistent database. */
const faultQueries = {
  'a version that differs from the number of changes': `
    select e.id, e.version, count(c.sequence) from entities e left join changes c on c.entity_id = e.id
    group by e.organization_id, e.stack_id, e.id having e.version - min(c.version) + 1 <> count(c.sequence)
      or e.version <> max(c.version)`,
  'a missing entity whose last change is not a deletion': `
    select c.entity_id from changes c where c.subject = 'entity' and not exists (select from entities e where e.id = c.entity_id)
    group by c.entity_id having (array_agg(c.operation order by c.sequence desc))[1] <> 'delete'`,
  'a gap in the change numbers': `
    select h.sequence, count(c.sequence), max(c.sequence) from change_heads h left join changes c using (organization_id)
    group by h.organization_id having h.sequence <> count(c.sequence) or h.sequence <> max(c.sequence)`,
  'a consent answer that differs from the last entry of its history': `
    select * from (
      select id as person_id, split_part(a.key, ':', 1)::integer as consent_type_id, split_part(a.key, ':', 2) as channel,
        (a.value ->> 'state')::boolean as state from entities, jsonb_each(answers) a
    ) current full join (
      select distinct on (person_id, consent_type_id, channel) person_id, consent_type_id, channel, h.state
      from consent_history h join entities e on e.id = h.person_id order by person_id, consent_type_id, channel, h.version desc
    ) last using (person_id, consent_type_id, channel) where current.state is distinct from last.state`,
  'a history entry whose previous state differs from the entry before': `
    select * from (select previous_state, lag(state) over (
        partition by person_id, consent_type_id, channel order by version) as before from consent_history) replayed
    where previous_state is distinct from before`,
  'a summary flag that differs from the consent answers': `
    select id from entities where answers <> '{}' and email_consent is distinct from (
      select bool_or((a.value ->> 'state')::boolean) from jsonb_each(answers) a where a.key like '%:email')`,
  'a link whose target does not exist': `
    select * from links l where not exists (select from entities e where e.organization_id = l.organization_id
      and e.stack_id = l.target_stack_id and e.id = l.target_id)`,
  'a link whose source does not exist': `
    select * from links l where not exists (select from entities e where e.id = l.source_id)`,
}

it.each([
  ['of the service', (kill: () => Promise<unknown>) => kill()],
  [
    'of the service and its PostgreSQL',
    (kill: () => Promise<unknown>, path: string) => Promise.all([kill(), killServer(path)]),
  ],
])('loses no acknowledged write and leaves none half done after kill -9 %s', async (_, killWith) => {
  const dataDir = await makeDataFolder()
  const environment = { KITH_DATA_DIR: dataDir, LOG_LEVEL: 'warn' }
  const path = join(dataDir, 'postgresql')
  const killed = launch(environment)
  const address = await killed.ready
  const token = await tokenFrom(environment)
  const send = senderTo(address, token)
  await declare(send)
  const kill = () => {
    killed.child.kill('SIGKILL')
    return killed.ended
  }
  const journal = await writeUntilKilled(send, () => killWith(kill, path))
  const orphan = await serverPid(path)

  const next = launch(environment)
  const sendToNext = senderTo(await next.ready, token)
  if (orphan) expect(await serverPid(path)).toBe(orphan)
  for (const [external_id, { acknowledged, pending }] of journal)
    expect([acknowledged, pending]).toContainEqual(await readPerson(sendToNext, external_id))

  const { url, stop } = await startEmbedded({ dataDir, purpose: 'command', log: () => {} })
  for (const [fault, text] of Object.entries(faultQueries)) expect([fault, await query(url, text)]).toEqual([fault, []])
  await stop()
  expect((await sendToNext('POST', '/v1/people', { external_id: 'afterwards' })).status).toBe(201)
  expect(await terminate(next)).toBe(0)
  expect(await hasServer(dataDir)).toBe(false)
})

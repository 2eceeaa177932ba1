import { inDatabase } from '../database.ts'
import { ask, importPeople } from '../requests.ts'
import type { Side } from '../side.ts'
import { type GrowthRow, repeat, type SizedWork } from './row.ts'

const asked = 1_000
const manyAddresses = 1_000_000
const day = 86_400_000

const nameOf = (n: number) => `mailed${n}`
const addressOf = (n: number) => `${nameOf(n)}@example.com`

/** Imports people who may be written to, one of ten with a bounce. */
async function addPeople(side: Side): Promise<void> {
  const lines = Array.from(
    { length: asked },
    (_, n) => `${JSON.stringify({ external_id: nameOf(n), email: addressOf(n), email_consent: true })}\n`,
  )
  await importPeople(side, lines, 'created', '?consents=now')
  const events = lines.filter((_, n) => n % 10 === 0).map((_, n) => bounceOf(addressOf(n * 10), Date.now() - day))
  await ask(side, { method: 'POST', path: '/v1/deliverability', body: { events } })
}

const bounceOf = (address: string, atMs: number) => ({
  channel: 'email',
  address,
  type: 'hard_bounce',
  at: new Date(atMs).toISOString(),
})

/** Gives an organization answers and events of addresses that no person has. Requests would take an hour. */
async function addAddresses(side: Side, count: number): Promise<void> {
  const id = side.organizationId
  const statements = [
    `insert into address_answers (organization_id, channel, address, consent_type_id, state, answered_at, text_version, method_rank, sequence)
     select ${id}, 'email', 'nobody' || n || '@example.net', 1, n % 2 = 0, now() - interval '1 day', 0, 0, 0 from generate_series(1, ${count}) n`,
    `insert into deliverability (organization_id, channel, hash, address, events, reason, suppressed_from, suppressed_until)
     select ${id}, 'email', sha256(n::text::bytea), 'nobody' || n || '@example.net',
       jsonb_build_object('hard_bounce', jsonb_build_object('at', '2026-01-01T00:00:00.000Z')), 'hard_bounce',
       now() - interval '1 day', now() + interval '179 days' from generate_series(1, ${count}) n`,
  ]
  await inDatabase(side.service.url, async client => {
    for (const statement of statements) await client.query(statement)
    await client.query('vacuum (analyze) address_answers, deliverability')
  })
}

/** The same work in an organization with a thousand addresses, and in one with a million more. */
const ofAddresses = (
  row: Pick<GrowthRow, 'name' | 'title' | 'wanted'>,
  work: (side: Side) => () => Promise<number>,
): GrowthRow => ({
  ...row,
  prepare: async (side, openSide) => {
    const large = await openSide(`${row.name.replaceAll('-', '_')}_large`)
    for (const each of [side, large]) await addPeople(each)
    await addAddresses(large, manyAddresses)
    const sized = (side: Side, size: string): SizedWork => ({ size, side, work: work(side) })
    return { small: sized(side, '1,000 addresses'), large: sized(large, '1,001,000 addresses') }
  },
})

const people = Array.from({ length: asked }, (_, n) => nameOf(n))
const purpose = { consent_type_id: 1, channel: 'email' }

export const addressRows: readonly GrowthRow[] = [
  ofAddresses({ name: 'contactable', title: 'whether a thousand people may be written to', wanted: '30 ms' }, side =>
    repeat(20, () =>
      ask(side, { method: 'POST', path: '/v1/people/contactable', body: { external_ids: people, ...purpose } }),
    ),
  ),
  ofAddresses({ name: 'address-events', title: 'a thousand new events of addresses', wanted: '100 ms' }, side => {
    let requests = 0
    return repeat(5, () => {
      requests += 1
      const events = people.map((_, n) => bounceOf(`bounced${n}@example.net`, Date.now() - day + requests))
      return ask(side, { method: 'POST', path: '/v1/deliverability', body: { events } })
    })
  }),
  {
    name: 'deliverable-page',
    title: 'a page of people who may be written to, without and with the state of their address',
    wanted: '1.3 ×',
    prepare: async side => {
      await addPeople(side)
      await addAddresses(side, manyAddresses)
      const page = (filter: object, size: string): SizedWork => ({
        size,
        side,
        work: repeat(20, () =>
          ask(side, {
            method: 'POST',
            path: '/v1/people/filter',
            body: { filter, cursor_configuration: { size: 50 } },
          }),
        ),
      })
      const mayWrite = { email_consent: true }
      const deliverability = { $some: { channel: 'email', state: 'deliverable' } }
      return { small: page(mayWrite, 'without'), large: page({ ...mayWrite, deliverability }, 'with') }
    },
  },
]

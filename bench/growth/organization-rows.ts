import { setTimeout } from 'node:timers/promises'
import { inDatabase } from '../database.ts'
import { ask, askText } from '../requests.ts'
import type { Side } from '../side.ts'
import { addOrganizations, organizationTokens } from './organizations.ts'
import { startReceiver } from './receiver.ts'
import type { GrowthRow, SizedWork } from './row.ts'

const [few, many] = [100, 10_000]

type Prepare = GrowthRow['prepare']

/** Prepares the same work on a service with few organizations, and on one with many. */
const withOrganizations =
  (workOf: (side: Side, count: number) => SizedWork['work'] | Promise<SizedWork['work']>): Prepare =>
  async (side, openSide) => {
    const sized = async (side: Side, count: number) => {
      await addOrganizations(side, count)
      return { size: `${count.toLocaleString('en')} organizations`, side, work: await workOf(side, count) }
    }
    return { small: await sized(side, few), large: await sized(await openSide(`${side.name}_many`), many) }
  }

/** A change of each organization, as a client of the database stores it: nothing tells the service. */
const logChangesSql = `with moved as (
    update change_heads set sequence = sequence + 1 returning organization_id, sequence
  ) insert into changes (organization_id, sequence, at, subject, stack_id, entity_id, operation, version, before, after, actor, request_id)
  select m.organization_id, m.sequence, now(), 'entity', 0, e.id, 'update', 1000000 + m.sequence, '{"first_name": "A"}', '{"first_name": "B"}',
    'bench', ''
  from moved m cross join lateral (
    select c.entity_id as id from changes c where c.organization_id = m.organization_id and c.entity_id is not null
    order by c.sequence limit 1
  ) e`

const behindSql = `select from change_heads h where not exists (
    select from followers f where f.organization_id = h.organization_id and f.name = 'ledger' and f.sequence >= h.sequence
  ) limit 1`

const untilFollowed = ({ service }: Side) =>
  inDatabase(service.url, async client => {
    while ((await client.query(behindSql)).rowCount !== 0) await setTimeout(20)
  })

/** How long an idle service is watched. */
const idleMs = 20_000

const patchesPerSecond = 150
const patches = 900

/** The most requests under way. */
const maxInFlight = 8

/** Sends a PATCH of the person of each organization in turn, at a steady rate, or as fast as a busy machine allows. */
async function patchInTurn(
  { address }: Side,
  tokens: readonly string[],
  { first = 0, count = patches, perSecond = patchesPerSecond },
): Promise<number> {
  const startedMs = performance.now()
  const sent = new Set<Promise<unknown>>()
  for (let n = 0; n < count; n += 1) {
    const pauseMs = startedMs + (n * 1_000) / perSecond - performance.now()
    if (pauseMs > 0) await setTimeout(pauseMs)
    while (sent.size >= maxInFlight) await Promise.race(sent)
    const token = tokens[(first + n) % tokens.length]!
    const body = { first_name: `F${first + n}-${Math.random()}` }
    const sending = askText({ address, token }, { method: 'PATCH', path: '/v1/people/p', body })
    sent.add(sending)
    // One that fails stays, and fails the work where it is awaited.
    sending.then(
      () => sent.delete(sending),
      () => {},
    )
  }
  await Promise.all(sent)
  return count
}

export const organizationRows: readonly GrowthRow[] = [
  {
    name: 'followers',
    title: 'followers that catch up, each organization',
    wanted: '2 ms',
    prepare: withOrganizations(async (side, count) => {
      await untilFollowed(side)
      return async () => {
        await inDatabase(side.service.url, client => client.query(logChangesSql))
        await untilFollowed(side)
        return count
      }
    }),
  },
  {
    name: 'idle',
    title: 'idle service, each minute',
    wanted: '500,000 µs and 1,000,000 µs',
    prepare: withOrganizations(async side => {
      await untilFollowed(side)
      return async () => {
        await setTimeout(idleMs)
        return idleMs / 60_000
      }
    }),
  },
  {
    name: 'spread',
    title: `PATCH, ${patchesPerSecond} a second`,
    wanted: '2 times',
    prepare: async side => {
      await addOrganizations(side, many)
      const tokens = await organizationTokens(side, many)
      // The first request of an organization reads its definitions.
      await patchInTurn(side, tokens, { count: many, perSecond: Number.POSITIVE_INFINITY })
      await untilFollowed(side)
      let first = 0
      const spread = async () => {
        first += patches
        return patchInTurn(side, tokens, { first })
      }
      return {
        small: { size: 'of one organization', side, work: () => patchInTurn(side, tokens.slice(0, 1), {}) },
        large: { size: `of ${many.toLocaleString('en')}`, side, work: spread },
      }
    },
  },
  {
    name: 'webhook',
    title: 'PATCH and the delivery of its change, 40 a second',
    wanted: '300 µs and 200 µs above a PATCH',
    prepare: async side => {
      await addOrganizations(side, 2)
      const tokens = await organizationTokens(side, 2)
      const receiver = await startReceiver()
      const body = { url: receiver.url, events: ['person.updated'] }
      await ask({ address: side.address, token: tokens[1]! }, { method: 'POST', path: '/v1/webhooks', body })
      const sized = (n: number, size: string) => ({
        size,
        side,
        work: async () => {
          const before = receiver.count()
          const count = await patchInTurn(side, [tokens[n]!], { count: 400, perSecond: 40 })
          if (n === 1) await receiver.untilCount(before + count)
          return count
        },
      })
      return { small: sized(0, 'PATCH alone'), large: sized(1, 'with a webhook') }
    },
  },
]

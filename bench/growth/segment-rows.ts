import { setTimeout } from 'node:timers/promises'
import { inDatabase } from '../database.ts'
import { loadCounted } from '../load.ts'
import { ask, type BenchRequest, importLines, importPeople, type Target } from '../requests.ts'
import type { Side } from '../side.ts'
import { addOrganizations, organizationTokens } from './organizations.ts'
import { type GrowthRow, repeat } from './row.ts'

const people = 1_000
const ordersPerPerson = 5
const writes = 5_000
const connections = 16
const manySegments = 20

/** Imports people, and orders that lead to them. */
async function addOrders(target: Target) {
  const declare = (kind: string, body: object) => ask(target, { method: 'POST', path: `/v1/schema/${kind}`, body })
  await declare('stacks', { key: 'orders', kind: 'item' })
  await declare('attributes', { owner: 'orders', key: 'buyer', type: 'person' })
  await declare('attributes', { owner: 'orders', key: 'total', type: 'number' })
  const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)
  const line = (value: object) => `${JSON.stringify(value)}\n`
  await importPeople(
    target,
    numbers(people).map(n => line({ external_id: `p${n}`, first_name: `Ada ${n}` })),
    'created',
  )
  const orders = numbers(people * ordersPerPerson).map(n =>
    line({ external_id: `o${n}`, attribute_values: { buyer: `p${n % people}`, total: n % 100 } }),
  )
  await importLines(target, '/v1/stacks/orders/import', orders, 'created')
}

/** The filters of segments over the orders of a person: about half of the people change sides now and then. */
const filterOf = (n: number) => ({
  'incoming.orders.buyer': [
    { $some: { 'attribute_values.total': { $gte: 50 + n } } },
    { $none: { 'attribute_values.total': { $lt: n } } },
    { $count: { $gte: 3 }, $where: { 'attribute_values.total': { $gte: 40 + n } } },
    { $sum: { 'attribute_values.total': { $gte: 250 + n } } },
  ][n % 4],
})

/** Gives an organization segments, and waits until their members are computed. */
async function addSegments({ service }: Side, organization: Organization, count: number) {
  for (let n = 0; n < count; n += 1)
    await ask(organization, { method: 'POST', path: '/v1/segments', body: { key: `s${n}`, filter: filterOf(n) } })
  const computed = 'select count(*)::integer as count from segments where organization_id = $1 and since is not null'
  await inDatabase(service.url, async client => {
    while ((await client.query<{ count: number }>(computed, [organization.id])).rows[0]!.count < count)
      await setTimeout(50)
  })
  await untilFollowed({ service }, organization)
}

type Organization = Target & { id: number }

const behindSql = `select from followers f join change_heads h using (organization_id)
  where f.organization_id = $1 and f.name = 'segments' and f.sequence < h.sequence`

/** Waits until the segments of an organization are at the head of its log. */
const untilFollowed = ({ service }: Pick<Side, 'service'>, { id }: Organization, pauseMs = 50) =>
  inDatabase(service.url, async client => {
    while ((await client.query(behindSql, [id])).rowCount !== 0) await setTimeout(pauseMs)
  })

/** Opens organizations with orders, the first with `few` segments and the second with twenty. */
async function openOrganizations(side: Side, few: number): Promise<[Organization, Organization]> {
  await addOrganizations(side, 2)
  const tokens = await organizationTokens(side, 2)
  const ids = await inDatabase(side.service.url, client =>
    client.query<{ id: number }>(`select id from organizations where key in ('o1', 'o2') order by key`),
  )
  const organizations = tokens.map((token, index) => ({ address: side.address, token, id: ids.rows[index]!.id }))
  const [first, second] = organizations as [Organization, Organization]
  for (const organization of organizations) await addOrders(organization)
  await addSegments(side, first, few)
  await addSegments(side, second, manySegments)
  return [first, second]
}

const patchOfOrder = (): BenchRequest => ({
  method: 'PATCH',
  path: `/v1/stacks/orders/o${Math.floor(Math.random() * people * ordersPerPerson)}`,
  body: { attribute_values: { total: Math.floor(Math.random() * 100) } },
})

/** Lets no process follow the segments of an organization any more. */
const hold = ({ service }: Side, { id }: Organization) =>
  inDatabase(service.url, client =>
    client.query(`update followers set leased_until = 'infinity' where organization_id = $1 and name = 'segments'`, [
      id,
    ]),
  )

export const segmentRows: readonly GrowthRow[] = [
  {
    name: 'segments',
    title: 'PATCH of an order, without the work of the follower of segments',
    wanted: '1.05 times',
    prepare: async side => {
      const [none, many] = await openOrganizations(side, 0)
      await hold(side, many)
      const sized = (organization: Organization, size: string) => ({
        size,
        side,
        work: async () => {
          await loadCounted(organization, { next: patchOfOrder, count: writes, connections })
          return writes
        },
      })
      return { small: sized(none, 'no segments'), large: sized(many, `${manySegments} segments`) }
    },
  },
  {
    name: 'segments-followed',
    title: 'PATCH of an order, until its segments have followed',
    wanted: '2,000 ms',
    prepare: async side => {
      const [one, many] = await openOrganizations(side, 1)
      const sized = (organization: Organization, size: string) => ({
        size,
        side,
        work: repeat(10, async () => {
          await ask(organization, patchOfOrder())
          await untilFollowed(side, organization, 10)
        }),
      })
      return { small: sized(one, '1 segment'), large: sized(many, `${manySegments} segments`) }
    },
  },
]

import type { Service } from '../support/service.ts'
import type { Sender } from './sender.ts'

/** An organization that one run after the other works on: its state depends on nothing but the seed. */
export type TestTenant = {
  id: number
  token: string
  /** A token that lacks this scope alone. */
  tokenWithout: Map<string, string>
  sender: Sender
  service: Service
  /** Internal identifiers that creates have answered. */
  people: string[]
  records: Record<string, string[]>
  /** The number of the last change. */
  head: number
}

/** Attributes that every lane declares; what the generators of `knowledge.ts` know of. Ids count from 1 in this order. */
export const declared = [
  { owner: 'people', key: 'city', type: 'text', indexed: true },
  { owner: 'people', key: 'score', type: 'number', indexed: true },
  { owner: 'people', key: 'joined', type: 'datetime', indexed: true },
  { owner: 'people', key: 'born', type: 'date', indexed: true },
  { owner: 'people', key: 'vip', type: 'boolean', indexed: true },
  { owner: 'people', key: 'tags', type: 'text', cardinality: 'many', indexed: true },
  { owner: 'people', key: 'counts', type: 'number', cardinality: 'many' },
  { owner: 'people', key: 'anything', type: 'json' },
  { owner: 'people', key: 'referrer', type: 'person' },
  { owner: 'people', key: 'mixed', type: 'person' },
  { owner: 'people', key: 'friends', type: 'person', cardinality: 'many' },
  { owner: 'people', key: 'bought', type: 'stack', target_stack: 'orders', cardinality: 'many' },
  { owner: 'orders', key: 'total', type: 'number', indexed: true },
  { owner: 'orders', key: 'buyer', type: 'person' },
  { owner: 'visits', key: 'page', type: 'text' },
] as const

const scopes = ['people:read', 'people:write', 'records:read', 'records:write', 'schema:read', 'schema:write']

export async function makeLane(service: Service, sender: Sender): Promise<TestTenant> {
  const { id, key, token, send } = await service.organization()
  for (const [stack, kind] of [
    ['orders', 'item'],
    ['visits', 'event'],
  ])
    await send('POST', '/v1/schema/stacks', { key: stack, kind })
  for (const attribute of declared) {
    const made = await send('POST', '/v1/schema/attributes', attribute)
    if (made.status !== 201) throw new Error(JSON.stringify(made.body))
  }
  await send('POST', '/v1/schema/consent-types', { key: 'surveys', channels: [{ channel: 'email' }] })
  const tokens = scopes.map(async lacked => {
    const others = scopes.filter(scope => scope !== lacked).join(' ')
    return [lacked, await service.tokenFor(key, others)] as const
  })
  const tokenWithout = new Map(await Promise.all(tokens))
  const lane = { id, token, tokenWithout, sender, service, people: [], records: { orders: [], visits: [] }, head: 0 }
  return { ...lane, head: await headOf(lane) }
}

/** The number of the organization's last change: a refused request leaves it where it was. */
export async function headOf({ service, id }: Pick<TestTenant, 'service' | 'id'>): Promise<number> {
  const text = 'select sequence from change_heads where organization_id = $1'
  const [head] = await service.sql<{ sequence: number }>(text, [id])
  return head!.sequence
}

const tables = [
  'entities',
  'links',
  'terms',
  'changes',
  'consent_history',
  'stacks',
  'attributes',
  'consent_types',
  'change_heads',
  'fills',
  'sweeps',
]
const digestOfTable = (table: string) =>
  `coalesce((select md5(string_agg(t::text, ';' order by t::text)) from ${table} t where organization_id = $1), '')`
const digestText = `select ${tables.map(digestOfTable).join(" || '/' || ")} as digest`

/** What is stored of an organization, as one text: equal where nothing was changed in any table. */
export async function digestOf(service: Service, organization_id: number): Promise<string> {
  const [row] = await service.sql<{ digest: string }>(digestText, [organization_id])
  return row!.digest
}

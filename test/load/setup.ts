import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Cleanup } from '../../bench/cleanup.ts'
import { inDatabase } from '../../bench/database.ts'
import { type Service, startPostgres, startService } from '../../bench/environment.ts'
import { organizationTokens } from '../../bench/tokens.ts'

const checkout = fileURLToPath(new URL('../../', import.meta.url))

/** The number of people of each organization, with the names p1 … p<people>. */
export const people = 20_000

/** An organization on the service, as a load addresses it. */
export type Tenant = { address: string; token: string; people: number }

/** kith in a process of its own with production logging, and three organizations. Only the people of `linked` have links. */
export type LoadSetup = { service: Service; one: Tenant; neighbour: Tenant; linked: Tenant }

/** The number of links of each person of `linked`. */
const linksPerPerson = 8

export async function prepareSetup(cleanup: Cleanup): Promise<LoadSetup> {
  const environment = await cleanup.acquire(startPostgres, ({ stop }) => stop())
  await environment.createDatabase('load')
  const service = await cleanup.acquire(
    () => startService(environment, checkout, 'load', 1),
    ({ stop }) => stop(),
  )
  const tokenFor = organizationTokens(checkout, service)
  const tenants = {
    one: await tokenFor('one'),
    neighbour: await tokenFor('neighbour'),
    linked: await tokenFor('linked'),
  }
  await storePeople(service)
  const tenantOf = (token: string): Tenant => ({ address: service.address, token, people })
  return {
    service,
    one: tenantOf(tenants.one),
    neighbour: tenantOf(tenants.neighbour),
    linked: tenantOf(tenants.linked),
  }
}

const idOf = (number: string) => `('01900000-0000-7000-8000-' || lpad(to_hex(${number}), 12, '0'))::uuid`

/** Inserts people directly as kith would store them, which is faster than sending requests. */
async function storePeople({ url }: Service): Promise<void> {
  await inDatabase(url, async client => {
    await client.query(
      `insert into entities (organization_id, stack_id, id, external_id, active, version, first_name, attributes, created_at, updated_at)
       select o.id, 0, ${idOf('i')}, 'p' || i, true, 1, 'First ' || i,
         jsonb_build_object('city', 'city ' || i % 1000, 'note', repeat('n', 60)), now(), now()
       from organizations o, generate_series(1, $1::integer) i where o.key <> 'default'`,
      [people],
    )
    await client.query(
      `insert into attributes (organization_id, id, owner_stack_id, key, name, type, target_stack_id, cardinality, indexed, state, created_at, updated_at, version)
       select o.id, 1, 0, 'friends', 'Friends', 'person', 0, 'many', false, 'active', now(), now(), 2 from organizations o where o.key = 'linked'`,
    )
    await client.query(
      `insert into links (organization_id, source_id, attribute_id, target_stack_id, target_id, position)
       select o.id, ${idOf('i')}, 1, 0, ${idOf('1 + (i * 7919 + k * 104729) % $1::integer')}, k
       from organizations o, generate_series(1, $1::integer) i, generate_series(1, $2::integer) k where o.key = 'linked'`,
      [people, linksPerPerson],
    )
    await client.query('vacuum (analyze) entities, links')
    await client.query('checkpoint')
  })
}

/** The current memory and descriptors of a process; `peakMb` since the last call of {@link resetPeak}. */
export type ProcessUsage = { residentMb: number; peakMb: number; descriptors: number }

export function readProcessUsage({ pid }: Service): ProcessUsage {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const mb = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) / 1_024
  return { residentMb: mb('VmRSS'), peakMb: mb('VmHWM'), descriptors: readdirSync(`/proc/${pid}/fd`).length }
}

export const resetPeak = ({ pid }: Service): void => writeFileSync(`/proc/${pid}/clear_refs`, '5')

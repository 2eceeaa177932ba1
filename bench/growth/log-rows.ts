import { inDatabase } from '../database.ts'
import { ask } from '../requests.ts'
import type { Side } from '../side.ts'
import { type GrowthRow, repeat, type SizedWork } from './row.ts'

const manyChanges = 2_000_000
/** So each millisecond has several. */
const changesPerSecond = 10_000

/**
 * Appends changes of people to the log, the last of them now, makes those before an hour older, and moves the followers past them. PATCHes would
 * take ten minutes.
 */
async function appendChanges(side: Side, count: number): Promise<void> {
  const statements = [
    `update changes set at = at - interval '1 hour' where organization_id = ${side.organizationId}`,
    `insert into changes (organization_id, sequence, at, subject, stack_id, entity_id, operation, version, before, after, actor, request_id)
     select h.organization_id, h.sequence + n, date_trunc('milliseconds', now() - (${count} - n) * interval '1 s' / ${changesPerSecond}), 'entity', 0,
       ('01900000-0000-7000-8000-' || lpad(to_hex(n % 100000), 12, '0'))::uuid, 'update', 1000000 + n / 100000,
       '{"first_name": null}', '{"first_name": "Ada"}', 'bench', 'bench'
     from change_heads h cross join generate_series(1, ${count}) n where h.organization_id = ${side.organizationId}`,
    `update change_heads set sequence = sequence + ${count} where organization_id = ${side.organizationId}`,
    `update followers f set sequence = h.sequence from change_heads h
     where h.organization_id = f.organization_id and f.organization_id = ${side.organizationId}`,
  ]
  await inDatabase(side.service.url, async client => {
    for (const statement of statements) await client.query(statement)
  })
}

const readHead = async (side: Side) =>
  (await ask<{ head: number }>(side, { method: 'GET', path: '/v1/changes?limit=1' })).head

/** Reads a page after the same number again and again, from behind the first changes of the log, or of people only. */
function feedRow(name: string, title: string, filter: string): GrowthRow {
  const sizedWork = async (side: Side, size: string): Promise<SizedWork> => {
    const path = `/v1/changes?after=${await readHead(side)}&${filter}`
    return { size, side, work: repeat(50, () => ask(side, { method: 'GET', path })) }
  }
  return {
    name,
    title,
    wanted: '10 ms',
    prepare: async (side, openSide) => {
      const many = await openSide(`${name.replaceAll('-', '_')}_many`)
      const small = await sizedWork(side, '1,000 changes')
      const large = await sizedWork(many, '2,000,000 changes')
      await appendChanges(side, 1_000)
      await appendChanges(many, manyChanges)
      return { small, large }
    },
  }
}

const versions = { few: 10, many: 10_000 }

/** Gives a person this number of versions. */
async function addVersions(side: Side, person: string, count: number): Promise<void> {
  for (let first = 0; first < count; first += 500) {
    const operations = Array.from({ length: Math.min(500, count - first) }, (_, index) => ({
      op: 'patch',
      external_id: person,
      body: { first_name: `F${first + index}`, attribute_values: { [`k${(first + index) % 20}`]: first + index } },
    }))
    await ask(side, { method: 'POST', path: '/v1/people/batch', body: { operations } })
  }
}

const randomOf = (count: number) => 1 + Math.floor(Math.random() * count)

const pastVersionRow: GrowthRow = {
  name: 'past-version',
  title: 'person at a version',
  wanted: '3 ms',
  prepare: async side => {
    await addVersions(side, 'p1', versions.few)
    await addVersions(side, 'p2', versions.many)
    const atVersion = (person: string, count: number, size: string): SizedWork => {
      const read = () => ask(side, { method: 'GET', path: `/v1/people/${person}?version=${randomOf(count)}` })
      return { size, side, work: repeat(100, read) }
    }
    return {
      small: atVersion('p1', versions.few, '10 versions'),
      large: atVersion('p2', versions.many, '10,000 versions'),
    }
  },
}

const pastTimeRow: GrowthRow = {
  name: 'past-time',
  title: 'person at a time',
  wanted: '3 ms',
  prepare: async (side, openSide) => {
    const many = await openSide('past_time_many')
    await appendChanges(side, 1_000)
    await appendChanges(many, manyChanges)
    const atTime = (sized: Side, count: number, size: string): SizedWork => {
      const nowMs = Date.now()
      const read = () => {
        const at = new Date(nowMs - (randomOf(count) / changesPerSecond) * 1_000).toISOString()
        return ask(sized, { method: 'GET', path: `/v1/people/p1?at=${at}` })
      }
      return { size, side: sized, work: repeat(100, read) }
    }
    return { small: atTime(side, 1_000, '1,000 changes'), large: atTime(many, manyChanges, '10,000 changes a second') }
  },
}

export const logRows: readonly GrowthRow[] = [
  feedRow('feed-definitions', 'page of the changes of attributes', 'subject=attribute'),
  feedRow('feed-stack', 'page of the changes of records', 'subject=record'),
  pastVersionRow,
  pastTimeRow,
]

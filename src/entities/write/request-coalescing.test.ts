import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readMetrics } from '../../../test/support/metrics.ts'
import { someRuns } from '../../../test/support/runs.ts'
import { type Reply, useOwnService } from '../../../test/support/service.ts'
import { createShop, type Shop } from '../../../test/support/shop.ts'
import { names } from '../../../test/support/writes.ts'

const service = useOwnService()

type Op = {
  op: 'create' | 'patch' | 'put' | 'upsert' | 'delete' | 'rename' | 'get'
  key: string
  value: number
  if_match: number | undefined
}
type Person = { version: number; first_name: string | null; count: number | null }
/** The person with a name, and the version at which the name was last released. */
type Name = { person?: Person; releasedAt: number }
type People = Readonly<Record<string, Name>>
type Observed = { status: number; person?: Person }

const keys = ['a', 'b', 'c']

const untouched: People = Object.fromEntries(keys.map(key => [key, { releasedAt: 0 }]))
/** Releases a name by a change with this version. */
const release = ({ releasedAt }: Name, version: number): Name => ({ releasedAt: Math.max(releasedAt, version) })

/** A model of the rules without SQL: returns the response to an operation that runs alone, and the state after it. */
function step(people: People, { op, key, value, if_match }: Op): [Observed, People] {
  const { person, releasedAt } = people[key]!
  // The contract returns 500 for a PATCH of a missing external identifier.
  const missing = op === 'patch' || op === 'rename' ? 500 : 404
  if (op === 'get') return [person ? { status: 200, person } : { status: 404 }, people]
  if (!person && op !== 'create' && op !== 'upsert') return [{ status: missing }, people]
  if (if_match !== undefined && person?.version !== if_match && op !== 'create' && op !== 'upsert')
    return [{ status: 412 }, people]
  if (op === 'create' && person) return [{ status: 409 }, people]
  if (op === 'delete') return [{ status: 200 }, { ...people, [key]: release({ releasedAt }, person!.version + 1) }]
  if (op === 'rename') {
    const name = nextKey(key)
    const { person: holder, releasedAt: targetReleasedAt } = people[name]!
    if (holder) return [{ status: 409 }, people]
    const renamed = { ...person!, version: Math.max(person!.version, targetReleasedAt) + 1 }
    return [
      { status: 200, person: renamed },
      {
        ...people,
        [key]: release({ releasedAt }, renamed.version),
        [name]: { person: renamed, releasedAt: targetReleasedAt },
      },
    ]
  }
  const first_name = value % 2 === 0 ? `n${value}` : op === 'put' ? null : (person?.first_name ?? null)
  const changed = !person || person.first_name !== first_name || person.count !== value
  const next = { version: (person?.version ?? releasedAt) + (changed ? 1 : 0), first_name, count: value }
  return [
    { status: person ? 200 : 201, person: next },
    { ...people, [key]: { person: next, releasedAt } },
  ]
}

const nextKey = (key: string) => keys[(keys.indexOf(key) + 1) % keys.length]!

/** Returns the final state of every serial order of the operations that explains all observed responses. */
function finalStates(people: People, observed: { op: Op; response: Observed }[]): People[] {
  const found: People[] = []
  const visited = new Set<string>()
  const visit = (state: People, waiting: typeof observed) => {
    const situation = JSON.stringify([state, waiting])
    if (visited.has(situation)) return
    visited.add(situation)
    if (waiting.length === 0) found.push(state)
    for (const [index, { op, response }] of waiting.entries()) {
      const [expected, next] = step(state, op)
      if (JSON.stringify(expected) === JSON.stringify(response)) visit(next, waiting.toSpliced(index, 1))
    }
  }
  visit(people, observed)
  return found
}

async function perform({ send }: Shop, { op, key, value, if_match }: Op): Promise<Observed> {
  const path = `/v1/people/${key}`
  const body = { ...(value % 2 === 0 && { first_name: `n${value}` }), attribute_values: { count: value } }
  const headers = {
    Prefer: 'return=representation',
    ...(if_match !== undefined && op !== 'create' && op !== 'upsert' && { 'If-Match': `"${if_match}"` }),
  }
  if (op === 'get') return observedOf(await send('GET', path))
  if (op === 'create') return observedOf(await send('POST', '/v1/people', { external_id: key, ...body }))
  if (op === 'upsert') return observedOf(await send('POST', '/v1/people/upsert', { external_id: key, ...body }))
  if (op === 'delete') return observedOf(await send('DELETE', path, undefined, headers))
  if (op === 'rename') return observedOf(await send('PATCH', path, { external_id: nextKey(key) }, headers))
  return observedOf(await send(op.toUpperCase(), path, body, headers))
}

function observedOf({ status, body: { data, error } }: Reply): Observed {
  if (error === 'duplicate_entry') return { status: 409 }
  if (error === 'not_found') return { status }
  if (status >= 400 || data === true) return { status }
  const { version, first_name, attribute_values } = data
  return { status, person: { version, first_name, count: attribute_values.count ?? null } }
}

const operation = fc.record<Op>({
  op: fc.constantFrom('create', 'patch', 'patch', 'put', 'upsert', 'delete', 'rename', 'get'),
  key: fc.constantFrom(...keys),
  value: fc.nat(3),
  if_match: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined, freq: 5 }),
})

describe('concurrent requests', () => {
  it('are linearizable: some serial order explains all responses and the final state', async () => {
    const rounds = fc.array(fc.array(operation, { minLength: 2, maxLength: 7 }), { minLength: 1, maxLength: 3 })
    await fc.assert(
      fc.asyncProperty(rounds, async rounds => {
        const shop = await createShop(service, 'referrer', 'friends', 'employer')
        let states = [untouched]
        for (const operations of rounds) {
          const responses = await Promise.all(operations.map(op => perform(shop, op)))
          const reads = await Promise.all(
            keys.map(key => perform(shop, { op: 'get', key, value: 0, if_match: undefined })),
          )
          const after = keys.map((_, index) => reads[index]!.person)
          const observed = operations.map((op, index) => ({ op, response: responses[index]! }))
          const explained = states
            .flatMap(people => finalStates(people, observed))
            .filter(people =>
              isDeepStrictEqual(
                keys.map(key => people[key]!.person),
                after,
              ),
            )
          if (explained.length === 0)
            throw new Error(`no order explains ${JSON.stringify({ states, observed, after })}`)
          states = explained
        }
      }),
      someRuns(60),
    )
  }, 120_000)

  it('share sets, so that 100 writes take fewer than 50 transactions', async () => {
    const shop = await createShop(service, 'referrer', 'friends', 'employer')
    await shop.send('POST', '/v1/people/batch', {
      operations: names('p', 100).map(external_id => ({ op: 'create', body: { external_id } })),
    })
    const times = async () =>
      (await service.sql<{ at: string }>('select distinct at from changes where organization_id = $1', [shop.id]))
        .length
    const before = await times()
    const replies = await Promise.all(
      names('p', 100).map(name => shop.send('PATCH', `/v1/people/${name}`, { first_name: 'Ada' })),
    )
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]))
    // All changes of a set have the same time.
    expect((await times()) - before).toBeLessThan(50)
  })

  it('stay in a few sets while another process holds the head', async () => {
    const shop = await createShop(service, 'referrer', 'friends', 'employer')
    await shop.send('POST', '/v1/people/batch', {
      operations: names('p', 60).map(external_id => ({ op: 'create', body: { external_id } })),
    })
    const other = await service.db.connect()
    try {
      await other.query('begin')
      await other.query('update change_heads set sequence = sequence where organization_id = $1', [shop.id])
      const waiting = Promise.all(
        names('p', 60).map(name => shop.send('PATCH', `/v1/people/${name}`, { first_name: 'Ada' })),
      )
      const inFlight = async () => (await readMetrics(service.address)).value('kith_http_requests_in_flight')
      // The request for the metrics counts as one.
      await expect.poll(inFlight).toBe(61)
      await other.query('commit')
      expect(new Set((await waiting).map(({ status }) => status))).toEqual(new Set([200]))
      const times = await service.sql(
        `select distinct at from changes where organization_id = $1 and operation = 'update'`,
        [shop.id],
      )
      // The first write, the batches that started with it, and the rest.
      expect(times.length).toBeLessThan(6)
    } finally {
      await other.end()
    }
  })
})

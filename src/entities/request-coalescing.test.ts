import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Reply, type Service, startService } from '../../test/support/service.ts'
import { makeShop, names, type Shop } from '../../test/support/writes.ts'

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())

type Op = {
  op: 'create' | 'patch' | 'put' | 'upsert' | 'delete' | 'rename' | 'get'
  key: string
  value: number
  if_match: number | undefined
}
type Person = { version: number; first_name: string | null; count: number | null }
/** Who bears each name, and the version at which it was last left. */
type Name = { person?: Person; left: number }
type People = Readonly<Record<string, Name>>
type Seen = { status: number; person?: Person }

const keys = ['a', 'b', 'c']

const untouched: People = Object.fromEntries(keys.map(key => [key, { left: 0 }]))
const leave = ({ left }: Name, { version }: Person): Name => ({ left: Math.max(left, version + 1) })

/** What one operation answers when it runs alone, and what stands after it: the rules in a page, knowing no SQL. */
function step(people: People, { op, key, value, if_match }: Op): [Seen, People] {
  const { person, left } = people[key]!
  // The contract has 500 for a PATCH by external identifier.
  const missing = op === 'patch' || op === 'rename' ? 500 : 404
  if (op === 'get') return [person ? { status: 200, person } : { status: 404 }, people]
  if (!person && op !== 'create' && op !== 'upsert') return [{ status: missing }, people]
  if (if_match !== undefined && person?.version !== if_match && op !== 'create' && op !== 'upsert')
    return [{ status: 412 }, people]
  if (op === 'create' && person) return [{ status: 409 }, people]
  if (op === 'delete') return [{ status: 200 }, { ...people, [key]: leave({ left }, person!) }]
  if (op === 'rename') {
    const name = nextKey(key)
    const { person: bearer, left: nameLeft } = people[name]!
    if (bearer) return [{ status: 409 }, people]
    const renamed = { ...person!, version: person!.version + 1 }
    return [
      { status: 200, person: renamed },
      { ...people, [key]: leave({ left }, person!), [name]: { person: renamed, left: nameLeft } },
    ]
  }
  const first_name = value % 2 === 0 ? `n${value}` : op === 'put' ? null : (person?.first_name ?? null)
  const changed = !person || person.first_name !== first_name || person.count !== value
  const next = { version: (person?.version ?? left) + (changed ? 1 : 0), first_name, count: value }
  return [
    { status: person ? 200 : 201, person: next },
    { ...people, [key]: { person: next, left } },
  ]
}

const nextKey = (key: string) => keys[(keys.indexOf(key) + 1) % keys.length]!

/**
 * Every state that some order of the operations leaves, each alone, where all of them get the answers that were seen.
 */
function endings(people: People, observed: { op: Op; seen: Seen }[]): People[] {
  const found: People[] = []
  const visited = new Set<string>()
  const visit = (state: People, waiting: typeof observed) => {
    const situation = JSON.stringify([state, waiting])
    if (visited.has(situation)) return
    visited.add(situation)
    if (waiting.length === 0) found.push(state)
    for (const [index, { op, seen }] of waiting.entries()) {
      const [expected, next] = step(state, op)
      if (JSON.stringify(expected) === JSON.stringify(seen)) visit(next, waiting.toSpliced(index, 1))
    }
  }
  visit(people, observed)
  return found
}

async function perform({ send }: Shop, { op, key, value, if_match }: Op): Promise<Seen> {
  const path = `/v1/people/${key}`
  const body = { ...(value % 2 === 0 && { first_name: `n${value}` }), attribute_values: { count: value } }
  const headers = {
    Prefer: 'return=representation',
    ...(if_match !== undefined && op !== 'create' && op !== 'upsert' && { 'If-Match': `"${if_match}"` }),
  }
  if (op === 'get') return seenIn(await send('GET', path))
  if (op === 'create') return seenIn(await send('POST', '/v1/people', { external_id: key, ...body }))
  if (op === 'upsert') return seenIn(await send('POST', '/v1/people/upsert', { external_id: key, ...body }))
  if (op === 'delete') return seenIn(await send('DELETE', path, undefined, headers))
  if (op === 'rename') return seenIn(await send('PATCH', path, { external_id: nextKey(key) }, headers))
  return seenIn(await send(op.toUpperCase(), path, body, headers))
}

function seenIn({ status, body: { data, error } }: Reply): Seen {
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

describe('requests at the same time', () => {
  test('answer and leave behind what some order of them would, each alone', async () => {
    const rounds = fc.array(fc.array(operation, { minLength: 2, maxLength: 7 }), { minLength: 1, maxLength: 3 })
    await fc.assert(
      fc.asyncProperty(rounds, async rounds => {
        const shop = await makeShop(service)
        let states = [untouched]
        for (const operations of rounds) {
          const seen = await Promise.all(operations.map(op => perform(shop, op)))
          const reads = await Promise.all(
            keys.map(key => perform(shop, { op: 'get', key, value: 0, if_match: undefined })),
          )
          const after = keys.map((_, index) => reads[index]!.person)
          const observed = operations.map((op, index) => ({ op, seen: seen[index]! }))
          const explained = states
            .flatMap(people => endings(people, observed))
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
      { numRuns: 60 },
    )
  }, 120_000)

  test('share sets: a hundred that come together are a few transactions', async () => {
    const shop = await makeShop(service)
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
    // A set stores its changes under one time.
    expect((await times()) - before).toBeLessThan(50)
  })

  test('stay together while they wait for the head, however long another process stores', async () => {
    const shop = await makeShop(service)
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
      await other.query('select pg_sleep(2)')
      await other.query('commit')
      expect(new Set((await waiting).map(({ status }) => status))).toEqual(new Set([200]))
      const times = await service.sql(
        `select distinct at from changes where organization_id = $1 and operation = 'update'`,
        [shop.id],
      )
      // The first to come, those who came beside it, and the rest.
      expect(times.length).toBeLessThan(6)
    } finally {
      await other.end()
    }
  })

  test('beside one whose row is locked are answered, all of them', async () => {
    const shop = await makeShop(service)
    await shop.send('POST', '/v1/people/batch', {
      operations: names('p', 40).map(external_id => ({ op: 'create', body: { external_id } })),
    })
    const other = await service.db.connect()
    try {
      await other.query('begin')
      await other.query(
        `select from entities where organization_id = $1 and external_id in ('p3', 'p5', 'p8') for update`,
        [shop.id],
      )
      const locked = new Set(['p3', 'p5', 'p8'])
      const patch = (name: string) => shop.send('PATCH', `/v1/people/${name}`, { first_name: 'Ada' })
      const waiting = Promise.all([...locked].map(patch))
      const replies = await Promise.all(
        names('p', 40)
          .filter(name => !locked.has(name))
          .map(patch),
      )
      expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]))
      await other.query('rollback')
      expect((await waiting).map(({ status }) => status)).toEqual([200, 200, 200])
    } finally {
      await other.end()
    }
  })
})

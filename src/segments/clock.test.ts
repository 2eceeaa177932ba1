import fc from 'fast-check'
import { expect, it } from 'vitest'
import { follow } from '../../test/support/followers.ts'
import { someRuns } from '../../test/support/runs.ts'
import { type Organization, useOwnService } from '../../test/support/service.ts'
import { createShop, dataOf, readHead } from '../../test/support/shop.ts'
import type { Follower } from '../followers/follower.ts'
import { segmentFollower } from './segment-follower.ts'

const service = useOwnService()
const [minuteMs, hourMs] = [60_000, 3_600_000]
const hourOf = (ms: number) => Math.floor(ms / hourMs) * hourMs

/** The filter of people whose `due` is at most three hours ago or in less than two hours. */
const soon = { 'attribute_values.due': { $gte: { $ago: 'PT3H' }, $lt: { $from_now: 'PT2H' } } }
const isSoon = (dueMs: number, nowMs: number) => dueMs >= nowMs - 3 * hourMs && dueMs < nowMs + 2 * hourMs

type Item = {
  sequence: number
  subject: string
  before: { evaluated_at?: string } | null
  after: { evaluated_at?: string } | null
  segments: Record<'entered' | 'left', { people: string[] }[]> & { reason: 'change' | 'time' }
}

/** A shop with the segment `soon`. Its clock advances only when a test advances it. */
class World {
  readonly shop: Organization
  nowMs: number
  readonly members = new Set<string>()
  #after = 0

  private constructor(shop: Organization, nowMs: number) {
    this.shop = shop
    this.nowMs = nowMs
  }

  static async open(): Promise<World> {
    const shop = await createShop(service, { owner: 'people', key: 'due', type: 'datetime' })
    const world = new World(shop, hourOf(Date.now()))
    await dataOf(shop.send('POST', '/v1/segments', { key: 'soon', filter: soon }))
    await world.follow()
    world.#after = await readHead(service, shop.id)
    return world
  }

  follower(): Follower {
    return { ...segmentFollower({ nowMs: () => this.nowMs, clockMs: hourMs }), maxConcurrent: 1_000 }
  }

  /** Runs the follower at the current time. The clock advances by a minute, so that no pause is left. */
  async follow(follower = this.follower(), report?: () => void): Promise<void> {
    this.nowMs += minuteMs
    await follow(service.db, [follower], { nowMs: () => this.nowMs, ...(report && { report }) })
  }

  /** Writes a person who enters the segment after this many minutes. Returns the identifier. */
  async put(external_id: string, minutes: number): Promise<string> {
    const due = new Date(this.nowMs + minutes * minuteMs).toISOString()
    const body = { external_id, attribute_values: { due } }
    return (await dataOf(this.shop.send('POST', '/v1/people/upsert', body))).id
  }

  /** Reads the feed since the last call, and applies its items to `members`. */
  async read(): Promise<Item[]> {
    const { items, last } = await dataOf(
      this.shop.send('GET', `/v1/changes?segment=soon&after=${this.#after}&limit=500`),
    )
    this.#after = last
    for (const { segments } of items as Item[]) {
      for (const id of segments.left.flatMap(({ people }) => people)) expect(this.members.delete(id)).toBe(true)
      for (const id of segments.entered.flatMap(({ people }) => people)) {
        expect(this.members.has(id)).toBe(false)
        this.members.add(id)
      }
    }
    return items
  }
}

it('tells of a person who enters and leaves without a write, with the reason and the time', async () => {
  const world = await World.open()
  const ada = await world.put('ada', 270)
  await world.follow()
  expect(await world.read()).toEqual([])
  const start = hourOf(world.nowMs)
  for (const [hours, direction] of [
    [3, 'entered'],
    [8, 'left'],
  ] as const) {
    world.nowMs = start + hours * hourMs
    await world.follow()
    const items = await world.read()
    expect(items).toMatchObject([
      {
        ...{ subject: 'segment', operation: 'update', actor: 'kith' },
        after: { evaluated_at: new Date(start + hours * hourMs).toISOString() },
        segments: { [direction]: [{ key: 'soon', people: [ada] }], reason: 'time' },
      },
    ])
    await world.follow()
    expect(await world.read()).toEqual([])
  }
})

it('moves a person whose suppression ends by itself, in a segment of those who may be written to', async () => {
  const shop = await createShop(service)
  const world = { nowMs: hourOf(Date.now()) }
  const followAt = async (nowMs: number) => {
    world.nowMs = nowMs
    await follow(service.db, [{ ...segmentFollower({ nowMs: () => nowMs, clockMs: hourMs }), maxConcurrent: 1_000 }], {
      nowMs: () => nowMs,
    })
  }
  const send = (path: string, body: object) => dataOf(shop.send('POST', path, body))
  const filter = { contactable: { consent_type_id: 1, channel: 'email' } }
  await send('/v1/segments', { key: 'soon', filter })
  await dataOf(shop.send('PATCH', '/v1/schema/settings', { suppression_days: 2 }))
  const consents = [{ consent_type_id: 1, channel: 'email', state: true }]
  const { id } = await send('/v1/people', { external_id: 'ada', email: 'ada@example.com', consents })
  await followAt(world.nowMs + minuteMs)
  const after = await readHead(service, shop.id)
  const event = { channel: 'email', address: 'ada@example.com', type: 'hard_bounce' }
  await send('/v1/deliverability', { events: [event] })
  const told = async () => {
    const { items } = await dataOf(shop.send('GET', `/v1/changes?segment=soon&after=${after}`))
    return (items as Item[]).map(({ segments: { entered, left, reason } }) => ({ entered, left, reason }))
  }
  await followAt(world.nowMs + hourMs)
  const bounced = { entered: [], left: [{ key: 'soon', people: [id] }], reason: 'change' }
  expect(await told()).toMatchObject([bounced])
  await followAt(world.nowMs + 40 * hourMs)
  expect(await told()).toHaveLength(1)
  await followAt(world.nowMs + 10 * hourMs)
  expect(await told()).toMatchObject([bounced, { entered: [{ people: [id] }], left: [], reason: 'time' }])
})

it('tells, after a pause, of each full hour at which somebody would have moved', async () => {
  const world = await World.open()
  const ada = await world.put('ada', 270)
  const bob = await world.put('bob', 390)
  await world.follow()
  const start = hourOf(world.nowMs)
  world.nowMs = start + 6 * hourMs
  await world.follow()
  const told = (hours: number, id: string) => ({
    after: { evaluated_at: new Date(start + hours * hourMs).toISOString() },
    segments: { entered: [{ people: [id] }], left: [], reason: 'time' },
  })
  expect(await world.read()).toMatchObject([told(3, ada), told(5, bob)])
  // Eve enters and leaves during the pause, so the feed does not mention her.
  await world.put('eve', 300)
  await world.follow()
  world.nowMs += 100 * hourMs
  await world.follow()
  const left = (await world.read()).flatMap(({ segments }) => segments.left.flatMap(({ people }) => people))
  expect([left.sort(), [...world.members]]).toEqual([[ada, bob].sort(), []])
})

it('moves everybody once, when two processes follow at the same time', async () => {
  const world = await World.open()
  for (let n = 0; n < 20; n++) await world.put(`p${n}`, 180 + n)
  await world.follow()
  await world.read()
  world.nowMs = hourOf(world.nowMs) + 3 * hourMs
  await Promise.all([world.follow(), world.follow()])
  const items = await world.read()
  expect(items).toMatchObject([{ segments: { reason: 'time' } }])
  expect(world.members.size).toBe(20)
})

it('moves everybody, when a process dies after it has logged the time and before it has moved them', async () => {
  const world = await World.open()
  const ada = await world.put('ada', 180)
  await world.follow()
  await world.read()
  world.nowMs = hourOf(world.nowMs) + 3 * hourMs
  const follower = world.follower()
  let holds = 0
  const dying: Follower = {
    ...follower,
    work: task =>
      follower.work({
        ...task,
        hold: tx => {
          holds += 1
          if (holds > 1) throw new Error('The process died.')
          return task.hold(tx)
        },
      }),
  }
  let deaths = 0
  await world.follow(dying, () => {
    deaths += 1
  })
  expect([deaths > 0, await world.read()]).toEqual([true, []])
  world.nowMs += hourMs
  await world.follow()
  expect(await world.read()).toMatchObject([{ subject: 'segment', segments: { reason: 'time' } }])
  expect(world.members).toEqual(new Set([ada]))
})

type Step = { name: string; hours: number; due?: number; isDeletion?: boolean }
const step: fc.Arbitrary<Step> = fc.record(
  {
    name: fc.constantFrom('p0', 'p1', 'p2', 'p3'),
    hours: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 2, arbitrary: fc.integer({ min: 1, max: 9 }) }),
    due: fc.integer({ min: -400, max: 700 }),
    isDeletion: fc.boolean(),
  },
  { requiredKeys: ['name', 'hours'] },
)

it(
  'the feed gives exactly the members at each time, in any order of writes and hours',
  () =>
    fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), async steps => {
        const world = await World.open()
        const people = new Map<string, { id: string; dueMs: number }>()
        for (const { name, hours, due, isDeletion } of [...steps, { name: '', hours: 1 } as Step]) {
          if (isDeletion && people.delete(name)) await dataOf(world.shop.send('DELETE', `/v1/people/${name}`))
          else if (due !== undefined) {
            const dueMs = world.nowMs + due * minuteMs
            people.set(name, { id: await world.put(name, due), dueMs })
          }
          if (hours === 0) continue
          world.nowMs += hours * hourMs
          await world.follow()
          await world.read()
          const expected = [...people.values()].filter(({ dueMs }) => isSoon(dueMs, world.nowMs)).map(({ id }) => id)
          expect([...world.members].sort()).toEqual(expected.sort())
        }
      }),
      someRuns(25),
    ),
  120_000,
)

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterEach, expect, it } from 'vitest'
import { checkout, endProcesses, makeFolder } from './support/process.ts'
import { useOwnService } from './support/service.ts'
import { createShop, type Shop } from './support/shop.ts'

const service = useOwnService()
const children = new Set<ChildProcess>()

afterEach(async () => {
  for (const child of children) child.kill('SIGKILL')
  await endProcesses()
})

const seed = Number(process.env.KITH_FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31))
const writes = 600

/** Mulberry32: the same numbers for the same seed. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let value = Math.imul(state ^ (state >>> 15), 1 | state)
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32
  }
}

/** The relationships of the world: which kind each leads to, and whether to many. */
const relationships = {
  people: {
    referrer: ['people', 'one'],
    friends: ['people', 'many'],
    bought: ['orders', 'many'],
    employer: ['companies', 'one'],
  },
  orders: { buyer: ['people', 'one'], seller: ['companies', 'one'], related: ['orders', 'many'] },
  companies: { contacts: ['people', 'many'] },
} as const
type Kind = keyof typeof relationships
const kinds = Object.keys(relationships) as Kind[]

/** A world that changes at random: what it creates, renames, links, deletes, restores, merges and erases. */
class World {
  readonly succeeded = new Map<string, number>()
  readonly #shop: Shop
  readonly #random: () => number
  readonly #ids: Record<Kind, string[]> = { people: [], orders: [], companies: [] }
  readonly #merged: { survivor: string; from_id: string }[] = []
  #turn = 0

  constructor(shop: Shop, random: () => number) {
    this.#shop = shop
    this.#random = random
  }

  #pick = <T>(list: readonly T[]): T => list[Math.floor(this.#random() * list.length)]!

  /** Most writes are to few entities, so that they meet. */
  #id = (kind: Kind): string | undefined => this.#pick(this.#ids[kind].slice(-25))

  #name = (kind: Kind) => `${kind}-${Math.floor(this.#random() * 40)}`

  #target = (kind: Kind) => {
    const id = this.#random() < 0.8 ? this.#id(kind) : undefined
    if (id === undefined) return this.#name(kind)
    return kind === 'people' ? { id } : { record_id: id }
  }

  #targets = (kind: Kind) => Array.from({ length: Math.floor(this.#random() * 4) }, () => this.#target(kind))

  #values(kind: Kind, isPatch: boolean) {
    const values: Record<string, unknown> = { note: this.#pick(['a', { b: { c: [1, null] } }, 1.5, null]) }
    for (const [key, [target, cardinality]] of Object.entries(relationships[kind])) {
      const chance = this.#random()
      if (chance < 0.5) continue
      if (chance < 0.6) values[key] = null
      else if (cardinality === 'one') values[key] = this.#target(target)
      else if (isPatch && chance < 0.8) values[key] = { $add: this.#targets(target), $remove: this.#targets(target) }
      else values[key] = this.#targets(target)
    }
    return values
  }

  async write(): Promise<void> {
    this.#turn += 1
    const kind = this.#random() < 0.6 ? 'people' : this.#pick(kinds)
    const path = kind === 'people' ? '/v1/people' : `/v1/stacks/${kind}`
    const id = this.#id(kind)
    const body = (isPatch: boolean) => ({
      ...(this.#random() < 0.4 && { external_id: this.#random() < 0.3 ? null : this.#name(kind) }),
      ...(kind === 'people' && { first_name: `turn ${this.#turn}`, language: this.#pick(['de', null]) }),
      attribute_values: this.#values(kind, isPatch),
    })
    const chance = this.#random()
    if (id === undefined || chance < 0.22) {
      const created = await this.#send('create', 'POST', path, body(false))
      if (created) this.#ids[kind].push(created.id ?? created.record_id)
    } else if (chance < 0.5) await this.#send('patch', 'PATCH', `${path}/internal/${id}`, body(true))
    else if (chance < 0.55) await this.#send('replace', 'PUT', `${path}/internal/${id}`, body(false))
    else if (chance < 0.65) await this.#send('delete', 'DELETE', `${path}/internal/${id}`)
    else if (chance < 0.77) await this.#send('restore', 'POST', `${path}/internal/${id}/restore`)
    else if (kind !== 'people') await this.#send('patch', 'PATCH', `${path}/internal/${id}`, body(true))
    else if (chance < 0.89) await this.#merge(id)
    else if (chance < 0.96) await this.#unmerge()
    else {
      const body = { reason: 'test', records: this.#pick(['keep', 'linked']) }
      await this.#send('erase', 'POST', `${path}/internal/${id}/erase`, body)
    }
  }

  async #merge(survivor: string) {
    const from_id = this.#id('people')!
    if (await this.#send('merge', 'POST', `/v1/people/internal/${survivor}/merge`, { from_id }))
      this.#merged.push({ survivor, from_id })
  }

  async #unmerge() {
    const { survivor, from_id } = this.#pick(this.#merged) ?? {}
    if (survivor) await this.#send('unmerge', 'POST', `/v1/people/internal/${survivor}/unmerge`, { from_id })
  }

  async #send(name: string, method: string, path: string, body?: unknown) {
    const reply = await this.#shop.send(method, path, body)
    expect(reply.status, JSON.stringify(reply.body)).toBeLessThan(500)
    if (reply.status >= 300) return undefined
    this.succeeded.set(name, (this.succeeded.get(name) ?? 0) + 1)
    return reply.body.data
  }
}

/** Begins the copy, in a process of its own. */
function copy(file: string, token: string, ...words: string[]): ChildProcess {
  const env = { PATH: process.env.PATH, KITH_URL: service.address, KITH_TOKEN: token, SIZE: '20' }
  const child = spawn(process.execPath, ['examples/duckdb-copy.ts', file, ...words], {
    cwd: checkout,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.add(child)
  return child
}

type Row = { id: string; values: Record<string, unknown>; relationships: Record<string, string[]> }

/** The entities of the copy by id. Absent and null are one. */
async function readCopy(file: string): Promise<Map<string, Row>> {
  const instance = await DuckDBInstance.create(file)
  const db = await instance.connect()
  const read = async <Name extends string>(sql: string) =>
    (await (await db.run(sql)).getRowObjects()) as Record<Name, string>[]
  const rows = new Map<string, Row>()
  for (const { id, owner, created_at, data } of await read<'id' | 'owner' | 'created_at' | 'data'>(
    'select id, owner, created_at, data::text as data from entities where data is not null',
  )) {
    const { attribute_values, ...fields } = JSON.parse(data)
    rows.set(id, { id, values: withoutNulls({ owner, created_at, ...fields, ...attribute_values }), relationships: {} })
  }
  for (const { source, key, target } of await read<'source' | 'key' | 'target'>(
    'select source, key, target from relationships order by source, key, position',
  )) {
    const { relationships } = rows.get(source)!
    relationships[key] = [...(relationships[key] ?? []), target]
  }
  db.closeSync()
  instance.closeSync()
  return rows
}

/** The same from an export by internal identifier. */
async function readExport({ client }: Shop): Promise<Map<string, Row>> {
  const rows = new Map<string, Row>()
  for (const owner of kinds)
    for await (const exported of client.entities(owner).export({ links: 'id' })) {
      const { id, record_id, stack_key, consents: _, attribute_values, ...fields } = exported as Record<string, unknown>
      const all = attribute_values as Record<string, unknown>
      const linked: Row['relationships'] = {}
      for (const key in relationships[owner]) {
        const targets = [all[key] ?? []].flat() as { id?: string; record_id?: string }[]
        if (targets.length > 0) linked[key] = targets.map(target => (target.id ?? target.record_id)!)
        delete all[key]
      }
      const values = withoutNulls({ owner, ...fields, ...all })
      rows.set((id ?? record_id) as string, { id: (id ?? record_id) as string, values, relationships: linked })
    }
  return rows
}

const withoutNulls = (values: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null))

it('a copy in DuckDB that is killed again and again equals an export after random writes, relationships included', async () => {
  const shop = await createShop(
    service,
    'companies',
    'orders',
    ...(['referrer', 'friends', 'employer', 'bought', 'buyer'] as const),
    { key: 'seller', owner: 'orders', type: 'stack', target_stack: 'companies' },
    { key: 'related', owner: 'orders', type: 'stack', target_stack: 'orders', cardinality: 'many' },
    { key: 'contacts', owner: 'companies', type: 'person', cardinality: 'many' },
    // An erasure takes undeclared keys of an undone merge out of the log.
    { key: 'note', owner: 'people', type: 'json' },
  )
  const random = randomFrom(seed)
  const world = new World(shop, random)
  const file = join(await makeFolder(), 'copy.duckdb')
  let isWriting = true
  const killing = (async () => {
    let killed = 0
    while (isWriting) {
      const child = copy(file, shop.token)
      await once(child.stdout!, 'data')
      await setTimeout(random() * 60)
      child.kill('SIGKILL')
      await once(child, 'exit')
      killed += 1
    }
    return killed
  })()
  try {
    for (let turn = 0; turn < writes; turn += 1) await world.write()
  } finally {
    isWriting = false
  }
  const killed = await killing
  const last = copy(file, shop.token, '--once')
  last.stdout!.resume()
  expect(await once(last, 'exit')).toEqual([0, null])
  const [copied, exported] = [await readCopy(file), await readExport(shop)]
  expect(killed).toBeGreaterThan(0)
  for (const name of ['create', 'patch', 'delete', 'restore', 'merge', 'erase'])
    expect(world.succeeded.get(name), `seed ${seed}: ${name}`).toBeGreaterThan(0)
  for (const [id, row] of exported) expect({ seed, row: copied.get(id) }).toEqual({ seed, row })
  expect([...copied.keys()].sort()).toEqual([...exported.keys()].sort())
})

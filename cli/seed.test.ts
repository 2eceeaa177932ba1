import { beforeEach, describe, expect, it } from 'vitest'
import type { Client, ImportCounts } from '../client/index.ts'
import { runInProcess } from '../test/support/command.ts'
import { type Organization, useService } from '../test/support/service.ts'
import { bodiesOf, earlierVersions, type FileName, files } from './seed/lines.ts'

const service = useService()
let organization: Organization
let client: Client

beforeEach(async () => {
  organization = await service.organization()
  client = organization.client
})

function seed(...args: string[]) {
  const environment = { KITH_URL: service.address, KITH_TOKEN: organization.token }
  return runInProcess(['seed', ...args], environment)
}

const dataset = { people: 60, seed: 3, consentTypeIds: { marketing: 1, surveys: 2 } }
const shop = ['--people', '60', '--seed', '3']

/** Runs kith seed with `--json`. Returns the exit code, the messages, and the counts by file. */
async function seedAsJson(...args: string[]) {
  const { code, stdout, stderr } = await seed(...shop, '--json', ...args)
  return { code, stderr, counts: JSON.parse(stdout) as Record<FileName, ImportCounts> }
}

/** Reads all entities, without the fields that differ between organizations. */
async function readAll() {
  const all: Record<string, unknown[]> = {}
  for (const file of files) {
    all[file] = []
    const page = { size: 500 }
    const entities = file === 'people' ? client.people.list(page) : client.stack(file).list(page)
    for await (const { created_at, updated_at, version, ...entity } of entities) {
      const { id, record_id, consents, ...body } = entity as Record<string, unknown>
      const answers = (consents as { answered_at: string }[] | undefined)?.map(({ answered_at, ...answer }) => answer)
      all[file].push({ ...body, answers })
    }
    all[file] = all[file].map(each => JSON.stringify(each)).sort()
  }
  return all
}

describe('kith seed', () => {
  it('imports every generated entity, and changes nothing the second time', async () => {
    const first = await seedAsJson()
    expect(first.code).toBe(0)
    const read = await readAll()
    for (const file of files) {
      const sent = [...bodiesOf(dataset, file)]
      expect(first.counts[file]).toMatchObject({ received: sent.length, failed: 0 })
      expect(read[file]).toHaveLength(sent.length + (file === 'people' ? friends() : 0))
    }
    const second = await seedAsJson()
    for (const file of files) {
      const { received } = first.counts[file]
      expect(second.counts[file]).toMatchObject({ received, created: 0, updated: 0, unchanged: received, failed: 0 })
    }
    expect(await readAll()).toEqual(read)
  })

  const friends = () =>
    [...bodiesOf(dataset, 'people')].filter(({ attribute_values }) =>
      String(attribute_values?.referrer).startsWith('friend-of-'),
    ).length

  it('creates the same data for the same numbers, and prints a summary', async () => {
    const { code, stdout, stderr } = await seed(...shop)
    expect(code).toBe(0)
    expect(stdout).toBe('')
    expect(stderr).toMatch(
      /^companies: 3 created, 0 updated, 0 unchanged\nproducts: 18 created, .*\npeople: [^\n]*\n$/s,
    )
    const read = await readAll()
    organization = await service.organization()
    client = organization.client
    await seed(...shop)
    expect(await readAll()).toEqual(read)
  })

  it('records both answers of customers who changed their consent', async () => {
    await seedAsJson()
    const earlier = [...earlierVersions(dataset)]
    expect(earlier.length).toBeGreaterThan(0)
    const answers = await service.sql<{ external_id: string; state: boolean }>(
      `select external_id, state from consent_history join entities on entities.organization_id = $1 and entities.id = person_id
       where consent_history.organization_id = $1`,
      [organization.id],
    )
    for (const { external_id, consents } of earlier) {
      const own = answers.filter(answer => answer.external_id === external_id)
      expect(own).toHaveLength(2 * consents!.length)
      expect((await client.people.get(external_id!)).version).toBeGreaterThan(1)
    }
  })

  it.each([
    [
      'a stack of another kind',
      () => client.schema.stacks.create({ key: 'visits', kind: 'item' }),
      /visits is of kind item/,
    ],
    [
      'an attribute of another type',
      () => client.schema.attributes.create({ key: 'city', owner: 'people', type: 'number' }),
      /people\.city is of type number/,
    ],
    ['no consent type marketing', () => client.schema.consentTypes.patch(1, { state: 'archived' }), /marketing/],
  ])('refuses an organization with %s, and changes nothing', async (_, prepare, pattern) => {
    await prepare()
    const before = await client.schema.get()
    const { code, stdout, stderr } = await seed(...shop)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(pattern)
    expect(await client.schema.get()).toEqual(before)
    expect((await client.people.list().page()).items).toEqual([])
  })

  it('keeps the names and indexes that the organization has chosen', async () => {
    await client.schema.stacks.create({ key: 'orders', kind: 'item', name: 'Orders of 2026' })
    await client.schema.attributes.create({ key: 'total', owner: 'orders', type: 'number', description: 'In euros.' })
    await seedAsJson()
    const { stacks, attributes } = await client.schema.get()
    expect(stacks.find(({ key }) => key === 'orders')?.name).toBe('Orders of 2026')
    expect(attributes.find(({ key }) => key === 'total')).toMatchObject({ description: 'In euros.', indexed: false })
  })

  it('prints each file as it would send it', async () => {
    for (const file of files) {
      const lines = [...bodiesOf(dataset, file)].map(body => `${JSON.stringify(body)}\n`)
      expect(await seed(...shop, '--print', file)).toEqual({ code: 0, stdout: lines.join(''), stderr: '' })
    }
  })
})

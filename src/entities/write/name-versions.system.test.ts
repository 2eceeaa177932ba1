import fc from 'fast-check'
import { expect, it } from 'vitest'
import { someRuns } from '../../../test/support/runs.ts'
import { type Organization, useService } from '../../../test/support/service.ts'
import { createShop } from '../../../test/support/shop.ts'

const service = useService()

const people = ['a', 'b', 'c', 'd'].map(name => `/v1/people/${name}`)
const companies = ['x', 'y'].map(name => `/v1/stacks/companies/${name}`)

/** A random step. `one` and `other` choose names, and `which` one of the entities that were made so far. */
type Step = { operation: keyof typeof operations; one: number; other: number; which: number; isRecord: boolean }

const reason = 'Request of the person'
const body = { first_name: 'Ada' }

/** The names in the requests of a step: two external identifiers, one internal identifier, and an earlier merge. */
type Names = {
  collection: string
  name: string
  other: string
  id: string | undefined
  merge: { into: string; from: string } | undefined
  values: object
}
type Request = [method: string, path: string, body?: object]
const operations = {
  create: ({ collection, name, values }) => [['POST', collection, { external_id: name, ...values }]],
  upsert: ({ collection, name, values }) => [['POST', `${collection}/upsert`, { external_id: name, ...values }]],
  recognize: ({ name, other }) => [
    ['PATCH', `/v1/people/${other}`, { email: 'ada@example.com' }],
    ['POST', '/v1/people/upsert', { external_id: name, email: 'ada@example.com', match: ['external_id', 'email'] }],
  ],
  patch: ({ collection, name }) => [['PATCH', `${collection}/${name}`, { attribute_values: { n: Math.random() } }]],
  rename: ({ collection, name, other }) => [['PATCH', `${collection}/${name}`, { external_id: other }]],
  replace: ({ collection, name, other }) => [['PUT', `${collection}/${name}`, { external_id: other }]],
  clear: ({ collection, name }) => [['PATCH', `${collection}/${name}`, { external_id: null }]],
  nameAgain: ({ collection, name, id }) => [['PATCH', `${collection}/internal/${id}`, { external_id: name }]],
  remove: ({ collection, name }) => [['DELETE', `${collection}/${name}`]],
  restore: ({ collection, id }) => [['POST', `${collection}/internal/${id}/restore`]],
  link: ({ name }) => [['POST', '/v1/people', { attribute_values: { friends: [name], employer: name } }]],
  merge: ({ name, other }) => [
    ...[name, other].map((external_id): Request => ['POST', '/v1/people/upsert', { external_id, ...body }]),
    ['POST', `/v1/people/${name}/merge`, { from: other }],
  ],
  unmerge: ({ merge }) => [['POST', `/v1/people/internal/${merge?.into}/unmerge`, { from_id: merge?.from }]],
  erase: ({ name }) => [['POST', `/v1/people/${name}/erase`, { reason, records: 'linked' }]],
  batch: ({ collection, name, other }) => [
    [
      'POST',
      `${collection}/batch`,
      {
        operations: [
          { op: 'delete', external_id: name },
          { op: 'patch', external_id: other, body: { external_id: name } },
          { op: 'upsert', external_id: other, body: {} },
        ],
      },
    ],
  ],
  atomic: ({ collection, name, other }) => [
    [
      'POST',
      `${collection}/batch`,
      {
        atomic: true,
        operations: [
          { op: 'upsert', external_id: name, body: {} },
          { op: 'patch', external_id: name, body: { external_id: null } },
          { op: 'upsert', external_id: other, body: {} },
          { op: 'patch', external_id: other, body: { external_id: name } },
        ],
      },
    ],
  ],
} satisfies Record<string, (names: Names) => Request[]>

const peopleOnly = ['recognize', 'link', 'merge', 'unmerge', 'erase']
const step: fc.Arbitrary<Step> = fc.record({
  operation: fc.constantFrom<Step['operation'][]>(...(Object.keys(operations) as []), 'merge', 'unmerge', 'erase'),
  one: fc.nat(3),
  other: fc.nat(3),
  which: fc.nat(5),
  isRecord: fc.boolean(),
})

/** The versions that were read under an address, the latest holder, and the highest version. */
type Reading = { versions: Map<number, string>; holder: string; version: number }

/**
 * Reads every address. Throws if another entity had the same version, or if the version is not above those of the
 * holders before.
 */
async function check({ send }: Organization, addresses: string[], readings: Map<string, Reading>) {
  const replies = await Promise.all(addresses.map(address => send('GET', address)))
  const ids: string[] = []
  for (const [index, { status, body }] of replies.entries()) {
    if (status === 404) continue
    const { version, ...entity } = body.data
    const address = addresses[index]!
    const holder: string = entity.id ?? entity.record_id
    ids.push(holder)
    const { versions, ...last } = readings.get(address) ?? { versions: new Map(), holder, version: 0 }
    const known = versions.get(version) ?? holder
    if (known !== holder) throw new Error(`${address} was ${known} at version ${version}, and is ${holder}`)
    const isRising = holder === last.holder ? version >= last.version : version > last.version
    if (!isRising) throw new Error(`${address} was at version ${last.version}, and is at ${version}`)
    readings.set(address, { versions: versions.set(version, holder), holder, version })
  }
  return ids
}

it('a version that was read under a name never belongs to another entity, and versions under a name only rise, however it passes on', {
  timeout: 240_000,
}, async () => {
  const done = new Map<string, number>()
  const property = fc.asyncProperty(fc.array(step, { minLength: 40, maxLength: 40 }), async steps => {
    const organization = await createShop(service, 'referrer', 'friends', 'employer')
    const readings = new Map<string, Reading>()
    const made = new Set<string>()
    const merges: { into: string; from: string }[] = []
    for (const { operation, one, other, which, isRecord } of steps) {
      const isOfPeople = !isRecord || peopleOnly.includes(operation)
      const names = (isOfPeople ? people : companies).map(path => path.split('/').at(-1)!)
      const collection = isOfPeople ? '/v1/people' : '/v1/stacks/companies'
      const ids = [...made].filter(id => id.includes('-') === isOfPeople)
      const requests = operations[operation]({
        collection,
        name: names[one % names.length]!,
        other: names[other % names.length]!,
        id: ids[which % Math.max(1, ids.length)],
        merge: merges[which % Math.max(1, merges.length)],
        values: isOfPeople ? body : {},
      }) as Request[]
      for (const [method, path, given] of requests) {
        if (path.includes('undefined')) continue
        const { status, body } = await organization.send(method, path, given, { Prefer: 'erased=recreate' })
        if (status === 200 && path.endsWith('/merge'))
          merges.push({ into: body.data.person.id, from: body.data.merged.id })
        if (status < 300) done.set(operation, (done.get(operation) ?? 0) + 1)
        if (status >= 500 && body.error !== 'not_found') throw new Error(`${method} ${path} answers ${status}`)
      }
      const internal = [...made].map(id => `/v1/${id.includes('-') ? 'people' : 'stacks/companies'}/internal/${id}`)
      for (const id of await check(organization, [...people, ...companies, ...internal], readings)) made.add(id)
    }
  })
  const numRuns = Number(process.env.KITH_NAME_RUNS ?? someRuns(25).numRuns)
  await fc.assert(property, { numRuns })
  // Few runs may lack an operation that needs others before it.
  if (numRuns < 15) return
  for (const operation of Object.keys(operations))
    expect([operation, done.get(operation) ?? 0]).not.toEqual([operation, 0])
})

import fc from 'fast-check'
import { expect, it } from 'vitest'
import { readDigest } from '../../test/hostile/test-tenant.ts'
import { readFeed, type WireChange } from '../../test/support/changes.ts'
import { canonicalText, dryRunOf, findDryRunMismatch, type WireDryRun } from '../../test/support/dry-runs.ts'
import { someRuns } from '../../test/support/runs.ts'
import { useService } from '../../test/support/service.ts'
import { createShop, type Shop } from '../../test/support/shop.ts'

const service = useService()

type Request = { method: string; path: string; body?: unknown }

const names = ['a', 'b', 'c', 'd']
const name = fc.constantFrom(...names)
const answer = fc.record(
  {
    consent_type_id: fc.constant(1),
    channel: fc.constantFrom('email', 'sms'),
    state: fc.boolean(),
    collected_at: fc.constantFrom('2026-01-01T00:00:00Z', '2026-02-01T00:00:00Z'),
  },
  { requiredKeys: ['consent_type_id', 'channel', 'state'], noNullPrototype: true },
)
const optional = <T>(values: fc.Arbitrary<T>) => fc.option(values, { freq: 2, nil: undefined })
const friends = fc.uniqueArray(fc.oneof(name, fc.constantFrom('e', 'f')), { maxLength: 3 })
const personBody = fc
  .record({
    first_name: optional(fc.constantFrom('x', 'y', null)),
    email: optional(fc.constantFrom('x@example.com', 'y@example.com', null)),
    sms_consent: optional(fc.boolean()),
    consents: optional(fc.uniqueArray(answer, { selector: ({ channel }) => channel, maxLength: 2 })),
    attribute_values: optional(
      fc.record({
        city: optional(fc.constantFrom('Rome', null, 3, { a: [1] })),
        referrer: optional(fc.oneof(name, fc.constantFrom(null, 'e', 'f'))),
        friends: optional(
          fc.oneof(friends, fc.record({ $add: friends, $remove: friends }, { requiredKeys: ['$add'] })),
        ),
        employer: optional(fc.constantFrom('k', 'l', null)),
      }),
    ),
  })
  .map(body => JSON.parse(JSON.stringify(body)) as object)
const recordBody = fc
  .record({ attribute_values: optional(fc.record({ size: fc.constantFrom(1, 2, null, 'x') })) })
  .map(body => JSON.parse(JSON.stringify(body)) as object)

/** Writes of one kind at the address of a name, and the operations of a batch. */
const writesOf = (path: string, nameOf: fc.Arbitrary<string>, bodies: fc.Arbitrary<object>) => {
  const named = fc.tuple(nameOf, bodies)
  const single = fc.oneof(
    named.map(([external_id, body]) => ({ method: 'POST', path, body: { external_id, ...body } })),
    named.map(([external_id, body]) => ({ method: 'POST', path: `${path}/upsert`, body: { external_id, ...body } })),
    fc
      .tuple(fc.constantFrom('PUT', 'PATCH'), named)
      .map(([method, [external_id, body]]) => ({ method, path: `${path}/${external_id}`, body })),
    fc.tuple(named, nameOf).map(([[external_id, body], other]) => ({
      ...{ method: 'PATCH', path: `${path}/${external_id}` },
      body: { ...body, external_id: other },
    })),
    nameOf.map(external_id => ({ method: 'DELETE', path: `${path}/${external_id}` })),
  )
  const operation = fc.oneof(
    fc
      .tuple(fc.constantFrom('create', 'upsert', 'put', 'patch'), named)
      .map(([op, [external_id, body]]) => ({ op, external_id, body })),
    nameOf.map(external_id => ({ op: 'delete', external_id })),
  )
  const batch = fc
    .record({ operations: fc.array(operation, { minLength: 1, maxLength: 6 }), atomic: fc.boolean() })
    .map(body => ({ method: 'POST', path: `${path}/batch`, body }))
  return fc.oneof({ weight: 4, arbitrary: single }, { weight: 1, arbitrary: batch })
}

/** A request, whose path may have the internal identifier of a person who was deleted. */
const anyWrite: fc.Arbitrary<Request> = fc.oneof(
  { weight: 8, arbitrary: writesOf('/v1/people', name, personBody) },
  { weight: 2, arbitrary: writesOf('/v1/stacks/companies', fc.constantFrom('k', 'l'), recordBody) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(name, personBody, fc.constantFrom('email', 'external_id'))
      .map(([external_id, body, match]) => ({
        ...{ method: 'POST', path: '/v1/people/upsert' },
        body: { email: 'x@example.com', ...body, external_id, match: [match] },
      })),
  },
  {
    weight: 2,
    arbitrary: fc.nat({ max: 9 }).map(index => ({ method: 'POST', path: `/v1/people/internal/{${index}}/restore` })),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.constantFrom('merge', 'unmerge'), name, name)
      .map(([verb, into, from]) => ({ method: 'POST', path: `/v1/people/${into}/${verb}`, body: { from } })),
  },
)

/** One request of each kind, so that every run tries all kinds. */
const oneOfEach: Request[] = [
  { method: 'POST', path: '/v1/people', body: { external_id: 'd' } },
  { method: 'PUT', path: '/v1/people/a', body: { first_name: 'x' } },
  { method: 'PATCH', path: '/v1/people/b', body: { first_name: 'x' } },
  { method: 'POST', path: '/v1/people/upsert', body: { external_id: 'a', first_name: 'y' } },
  { method: 'POST', path: '/v1/people/batch', body: { operations: [{ op: 'delete', external_id: 'b' }] } },
  { method: 'DELETE', path: '/v1/people/c' },
]

/** The answers of all people, without their times. */
const readAnswers = async (shop: Shop) => {
  const rows = await service.sql<{ id: string; answers: object }>(
    'select id, answers from entities where organization_id = $1 and stack_id = 0',
    [shop.id],
  )
  return new Map(rows.map(({ id, answers }) => [id, Object.keys(answers).length > 0 ? answers : undefined]))
}

type Answers = Record<string, { state: boolean; pending?: true; person_id?: string }>

/** The answers of a person that differ, as a dry run shows them. */
function changedAnswers(before: Answers = {}, after: Answers = {}): object[] {
  const shown = (answer: Answers[string] | undefined) =>
    answer ? { pending: answer.pending === true, person_id: answer.person_id ?? null, ...answer } : null
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].sort().flatMap(key => {
    if (JSON.stringify(before[key]) === JSON.stringify(after[key])) return []
    const [consent_type_id, channel] = key.split(':')
    const { method: _, text_version: __, ...from } = (shown(before[key]) ?? {}) as Record<string, unknown>
    const { method: ___, text_version: ____, ...to } = (shown(after[key]) ?? {}) as Record<string, unknown>
    const orNull = (value: object) => (Object.keys(value).length > 0 ? value : null)
    return [{ consent_type_id: Number(consent_type_id), channel, before: orNull(from), after: orNull(to) }]
  })
}

/** Sends a request as a dry run, and then for real. Returns whether it was accepted, and throws if the two differ. */
async function compare(shop: Shop, request: Request): Promise<boolean> {
  const { method, path, body } = request
  const { head } = await readFeed(shop)
  const answersBefore = await readAnswers(shop)
  const digest = await readDigest(service, shop.id)
  const dry = await shop.send(method, dryRunOf(path), body)
  expect(await readDigest(service, shop.id)).toBe(digest)
  const real = await shop.send(method, path, body)
  if (real.status >= 400) {
    const { request_id: _, errorstack: __, ...refusal } = real.body
    expect([dry.status, dry.body]).toMatchObject([real.status, refusal])
    return false
  }
  expect(dry.status, JSON.stringify(dry.body)).toBe(200)
  const { items: logged } = await readFeed(shop, `after=${head}`)
  if (/merge$/.test(path)) {
    expect(dry.body.data.changes).toEqual(real.body.data.changes)
    const fields = logged.filter(({ operation }) => operation === 'update').flatMap(fieldsOf)
    expect(canonicalText(inOrder(dry.body.data.changes.fields))).toBe(canonicalText(inOrder(fields)))
    return true
  }
  const kind = path.startsWith('/v1/people') ? 'people' : 'companies'
  const items = path.endsWith('/batch')
    ? (dry.body.data.items as { dry_run?: WireDryRun; status: number }[])
    : [{ dry_run: dry.body.data as WireDryRun }]
  const mismatch = findDryRunMismatch(
    kind,
    items.flatMap(item => item.dry_run ?? []),
    logged,
  )
  if (mismatch) throw new Error(`${JSON.stringify(request)}: ${mismatch}`)
  if (path.endsWith('/batch')) return true
  const answersAfter = await readAnswers(shop)
  const changed = [...new Set([...answersBefore.keys(), ...answersAfter.keys()])].flatMap(id =>
    changedAnswers(answersBefore.get(id) as Answers, answersAfter.get(id) as Answers),
  )
  expect(canonicalText(items[0]!.dry_run!.consents)).toBe(canonicalText(changed))
  return true
}

type Field = { path: string }

/** Sorts the fields by path, because a merge and the log list them in different orders. */
const inOrder = (fields: Field[]) => fields.toSorted((one, other) => (one.path < other.path ? -1 : 1))

/** The fields of an update, as a merge shows them. */
function fieldsOf({ before, after }: WireChange): Field[] {
  return Object.entries(after ?? {}).flatMap(([key, value]) => {
    if (key === 'consents') return []
    if (key !== 'attribute_values') return [{ path: `/${key}`, before: before?.[key] ?? null, after: value }]
    const values = (before?.attribute_values ?? {}) as Record<string, unknown>
    return Object.entries(value as object).map(([inner, to]) => ({
      ...{ path: `/attribute_values/${inner}`, before: values[inner] ?? null, after: to },
    }))
  })
}

it('returns for random writes of every kind what the log has of the same write right after', {
  timeout: 240_000,
}, async () => {
  const accepted = new Map<string, number>()
  await fc.assert(
    fc.asyncProperty(fc.array(anyWrite, { minLength: 15, maxLength: 30, size: 'max' }), async requests => {
      const shop = await createShop(service, 'referrer', 'friends', 'employer')
      for (const external_id of names.slice(0, 3)) await shop.client.people.create({ external_id, sms_consent: true })
      const ids: string[] = []
      for (const { path, ...rest } of requests) {
        const request = {
          ...rest,
          path: path.replace(/\{(\d)\}/, (_, index) => ids[Number(index) % ids.length] ?? names[0]!),
        }
        if (request.path.includes(`internal/${names[0]}`)) continue
        if (!(await compare(shop, request))) continue
        const verb = /\/(upsert|batch|merge|unmerge|restore)$/.exec(path)?.[1] ?? rest.method
        accepted.set(verb, (accepted.get(verb) ?? 0) + 1)
        const people = await service.sql<{ entity_id: string }>(
          `select distinct entity_id from changes where organization_id = $1 and stack_id = 0 and operation = 'delete'`,
          [shop.id],
        )
        ids.splice(0, ids.length, ...people.map(({ entity_id }) => entity_id).sort())
      }
    }),
    { ...someRuns(15), examples: [[oneOfEach]] },
  )
  console.log(`accepted writes: ${[...accepted].map(([verb, count]) => `${verb} ${count}`).join(', ')}`)
  for (const verb of ['POST', 'PUT', 'PATCH', 'DELETE', 'upsert', 'batch'])
    expect(accepted.get(verb)).toBeGreaterThan(0)
})

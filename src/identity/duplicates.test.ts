import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { DuplicateGroup } from '../../client/index.ts'
import { importLines, linesFrom } from '../../test/support/lines.ts'
import { someRuns } from '../../test/support/runs.ts'
import { type Organization, useService } from '../../test/support/service.ts'
import { scoreOf } from './duplicates.ts'
import { sharedKeys } from './duplicates-sql.ts'

const service = useService()
const path = '/v1/people/duplicates'

type Body = { by?: string[]; size?: number }

/** Reads all pages. Returns the people's names and the kinds of shared keys of each group. */
async function readAll({ send }: Organization, body: Body = {}) {
  const groups: DuplicateGroup[] = []
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const reply = await send('POST', path, { ...body, ...(cursor !== undefined && { cursor }) })
    expect(reply.status).toBe(200)
    expect(reply.body.data.items.length).toBeLessThanOrEqual(body.size ?? 20)
    expect(reply.body.data.has_more).toBe(reply.body.data.next_cursor !== null)
    groups.push(...reply.body.data.items)
    cursor = reply.body.data.next_cursor
  }
  return groups
}

const named = (groups: DuplicateGroup[]) =>
  groups.map(({ people, why }) => [
    people.map(({ external_id }) => external_id).join(' '),
    why.map(({ by }) => by).join(' '),
  ])

const mobile = { mobile_prefix: '+39', mobile_number: '3331234567' }
const born = { first_name: 'Ada', last_name: 'Lovelace', date_of_birth: '1915-12-10' }

async function organizationWith(people: object[]): Promise<Organization> {
  const organization = await service.organization()
  for (const person of people) expect((await organization.send('POST', '/v1/people', person)).status).toBe(201)
  return organization
}

describe('duplicates', () => {
  it('are groups of people who share an email, a phone number, or name and birth date, with scores and reasons', async () => {
    const organization = await organizationWith([
      { external_id: 'a1', email: 'ada@example.com' },
      { external_id: 'a2', email: 'ADA@Example.com', ...born },
      { external_id: 'b1', ...mobile },
      { external_id: 'b2', mobile_number: '+39 333 123 4567' },
      { external_id: 'c1', ...born, first_name: ' ada ', last_name: 'LOVELACE' },
      { external_id: 'd1', email: 'alone@example.com' },
      { external_id: 'd2', first_name: 'Ada', last_name: 'Lovelace' },
    ])
    const groups = await readAll(organization)
    expect(named(groups)).toEqual([
      ['a1 a2', 'email'],
      ['b1 b2', 'mobile'],
      ['a2 c1', 'name'],
    ])
    expect(groups.map(({ size, score, why }) => [size, score, why[0]!.value])).toEqual([
      [2, 0.95, 'ada@example.com'],
      [2, 0.9, '+393331234567'],
      [2, 0.7, 'ada lovelace 1915-12-10'],
    ])
    const read = (await organization.send('GET', '/v1/people/a2')).body.data
    const shown = groups[0]!.people[1]!
    expect(read).toMatchObject(shown)
    expect(Object.keys(shown)).toHaveLength(10)
    expect(named(await readAll(organization, { by: ['name', 'mobile'] }))).toEqual([
      ['b1 b2', 'mobile'],
      ['a2 c1', 'name'],
    ])
  })

  it('are listed once, with every key that all people of the group share', async () => {
    const both = { email: 'ada@example.com', ...mobile, ...born }
    const organization = await organizationWith([
      { external_id: 'a1', ...both },
      { external_id: 'a2', ...both },
    ])
    const groups = await readAll(organization)
    expect(named(groups)).toEqual([['a1 a2', 'email mobile name']])
    expect(groups[0]!.score).toBe(0.9985)
    expect(named(await readAll(organization, { by: ['name'] }))).toEqual([['a1 a2', 'email mobile name']])
    // A third person shares only the phone number and forms another group.
    await organization.send('POST', '/v1/people', { external_id: 'a3', ...mobile })
    expect(named(await readAll(organization))).toEqual([
      ['a1 a2', 'email mobile name'],
      ['a1 a2 a3', 'mobile'],
    ])
  })

  it('disappear when a person is deleted or changed', async () => {
    const people = ['a1', 'a2'].map(external_id => ({ external_id, email: 'ada@example.com' }))
    const organization = await organizationWith(people)
    expect(await readAll(organization)).toHaveLength(1)
    await organization.send('PATCH', '/v1/people/a1', { email: 'ada@example.org' })
    expect(await readAll(organization)).toEqual([])
    await organization.send('PATCH', '/v1/people/a1', { email: 'Ada@Example.com' })
    expect(await readAll(organization)).toHaveLength(1)
    await organization.send('DELETE', '/v1/people/a2')
    expect(await readAll(organization)).toEqual([])
  })

  it('have at most 100 people in a group, whose size tells the rest', async () => {
    const organization = await service.organization()
    const lines = Array.from({ length: 20_123 }, (_, n) => ({ email: n < 123 ? 'aa@example.com' : 'info@example.com' }))
    await importLines(
      organization,
      '/v1/people/import',
      linesFrom([...lines, { email: 'zz@example.com' }, { email: 'zz@example.com' }]),
    )
    const groups = await readAll(organization)
    expect(groups.map(({ size, people }) => [size, people.length])).toEqual([
      [123, 100],
      [20_000, 100],
      [2, 2],
    ])
  })

  it('are found on pages of any size as a comparison of all people finds them', { timeout: 120_000 }, async () => {
    const person = fc.record({
      email: fc.constantFrom(undefined, 'a@x.org', 'A@x.org', 'b@x.org', 'c@x.org'),
      mobile_number: fc.constantFrom(undefined, '+393331234567', '+393331234568'),
      date_of_birth: fc.constantFrom(undefined, '1915-12-10', '1915-12-11'),
      last_name: fc.constantFrom('Lovelace', 'LOVELACE', undefined),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(person, { maxLength: 12 }), fc.integer({ min: 1, max: 5 }), async (people, size) => {
        const numbered = people.map((each, n) => ({ ...each, external_id: `p${String(n).padStart(2, '0')}` }))
        const organization = await organizationWith(numbered)
        const keysOf = ({ email, mobile_number, date_of_birth, last_name }: (typeof numbered)[number]) => ({
          email: email?.toLowerCase(),
          mobile: mobile_number,
          name: last_name && date_of_birth && `${last_name.toLowerCase()} ${date_of_birth}`,
        })
        const expected = sharedKeys.flatMap((by, index) =>
          Object.values(
            Object.groupBy(
              numbered.filter(each => keysOf(each)[by]),
              each => keysOf(each)[by]!,
            ),
          ).flatMap(group => {
            const shared = sharedKeys.filter(
              key => new Set(group!.map(each => keysOf(each)[key])).size === 1 && keysOf(group![0]!)[key],
            )
            const isRepeated = sharedKeys.slice(0, index).some(key => shared.includes(key))
            return group!.length > 1 && !isRepeated
              ? [[group!.map(each => each.external_id).join(' '), shared.join(' ')]]
              : []
          }),
        )
        expect(new Set(named(await readAll(organization, { size })).map(String))).toEqual(new Set(expected.map(String)))
        expect(await readAll(organization, { size })).toHaveLength(expected.length)
      }),
      someRuns(25),
    )
  })
})

describe('a wrong request for duplicates', () => {
  it.each([
    [{ by: [] }, '/by'],
    [{ by: ['phone'] }, '/by/0'],
    [{ size: 0 }, '/size'],
    [{ size: 101 }, '/size'],
    [{ cursor: '' }, '/cursor'],
    [{ cursor: 'x' }, '/cursor'],
    [{ cursor: Buffer.from('["email","a\\u0000"]').toString('base64url') }, '/cursor'],
    [{ cursor: Buffer.from('["email","\\ud800"]').toString('base64url') }, '/cursor'],
    [{ cursor: Buffer.from('["email","a",1]').toString('base64url') }, '/cursor'],
    [{ by: ['name'], cursor: Buffer.from('["email","a"]').toString('base64url') }, '/cursor'],
  ])('with %j gets 400 at %s', async (body, where) => {
    const { send } = await service.organization()
    const reply = await send('POST', path, body)
    expect([reply.status, reply.body.error, reply.body.details![0]!.path]).toEqual([400, 'invalid_parameter', where])
  })

  it('gets 403 without people:read', async () => {
    const organization = await organizationWith([{ external_id: 'ada', email: 'ada@example.com' }])
    const writer = service.sender(await service.tokenFor(organization.key, 'people:write'))
    expect((await writer('POST', path)).status).toBe(403)
  })
})

it('a score is between those of its keys and 1, and grows with each key', () => {
  fc.assert(
    fc.property(fc.subarray([...sharedKeys], { minLength: 1 }), shared => {
      const score = scoreOf(shared)
      expect(score).toBeGreaterThanOrEqual(Math.max(...shared.map(key => scoreOf([key]))))
      expect(score).toBeLessThan(1)
    }),
  )
})

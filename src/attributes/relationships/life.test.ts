import { beforeEach, describe, expect, it } from 'vitest'
import { type Send, useOwnService } from '../../../test/support/service.ts'
import { createShop, useShop } from '../../../test/support/shop.ts'

const service = useOwnService()
const shop = useShop(service, 'referrer', 'friends', 'employer')
const { send } = shop

const person = async (external_id: string) => (await send('GET', `/v1/people/${external_id}`)).body.data
const valuesOf = async (external_id: string) => (await person(external_id)).attribute_values
const links = () => service.sql('select 1 from links where organization_id = $1', [shop.id])

describe('a placeholder', () => {
  beforeEach(() =>
    send('POST', '/v1/people', { external_id: 'ada', attribute_values: { referrer: 'bob', employer: 'acme' } }),
  )

  it('has only its external identifier, and POST completes it with the same id and links', async () => {
    const before = await person('bob')
    expect(before).toMatchObject({ state: 'placeholder', version: 1, first_name: null, attribute_values: {} })
    const reply = await send('POST', '/v1/people', { external_id: 'bob', first_name: 'Bob' })
    expect([reply.status, reply.body.data.id, reply.body.data.state]).toEqual([201, before.id, 'active'])
    expect(await valuesOf('ada')).toEqual({ referrer: 'bob', employer: 'acme' })
    expect((await send('POST', '/v1/people', { external_id: 'bob' })).status).toBe(409)
  })

  it.each([
    ['PATCH', { first_name: 'Bob' }, 'active'],
    ['PUT', { first_name: 'Bob' }, 'active'],
    ['PATCH', {}, 'placeholder'],
    ['PATCH', { external_id: 'bob' }, 'placeholder'],
  ])('is written by %s with %j and is %s afterwards', async (method, body, state) => {
    expect((await send(method, '/v1/people/bob', body)).body.data).toBe(true)
    expect((await person('bob')).state).toBe(state)
  })

  it('blocks its external identifier for renames', async () => {
    const reply = await send('PATCH', '/v1/people/ada', { external_id: 'bob' })
    expect([reply.status, reply.body.error]).toEqual([400, 'duplicate_entry'])
  })

  it('is not created under references=strict, which refuses the path of the missing target', async () => {
    const strict = { Prefer: 'references=strict' }
    const reply = await send('PATCH', '/v1/people/ada', { attribute_values: { friends: ['bob', 'eve'] } }, strict)
    expect([reply.status, reply.body.details?.[0]?.path]).toEqual([400, '/attribute_values/friends/1'])
    expect((await send('GET', '/v1/people/eve')).status).toBe(404)
    expect((await send('PATCH', '/v1/people/ada', { attribute_values: { friends: ['bob'] } }, strict)).status).toBe(200)
  })
})

describe('a link', () => {
  it('follows its target through a rename, and the version of the source does not change', async () => {
    await send('POST', '/v1/people', { external_id: 'ada', attribute_values: { friends: ['bob', 'eve'] } })
    await send('PATCH', '/v1/people/bob', { external_id: 'robert' })
    expect(await person('ada')).toMatchObject({ version: 1, attribute_values: { friends: ['robert', 'eve'] } })
  })

  it('shows a target without an external identifier by its internal one, as it can be written back', async () => {
    await send('POST', '/v1/people', {
      external_id: 'ada',
      attribute_values: { friends: ['bob', 'eve'], employer: 'acme', referrer: 'bob' },
    })
    const { id } = await person('bob')
    const { record_id } = (await send('GET', '/v1/stacks/companies/acme')).body.data
    await send('PATCH', '/v1/people/bob', { external_id: null })
    await send('PATCH', '/v1/stacks/companies/acme', { external_id: null })
    const shown = { friends: [{ id }, 'eve'], employer: { record_id }, referrer: { id } }
    expect(await valuesOf('ada')).toEqual(shown)
    expect((await send('POST', '/v1/people/list', { fields: ['attribute_values'] })).body.data.items).toContainEqual(
      expect.objectContaining({ attribute_values: shown }),
    )
    const before = await person('ada')
    expect((await send('PUT', '/v1/people/ada', { attribute_values: shown })).status).toBe(200)
    expect(await person('ada')).toEqual(before)
    await send('POST', '/v1/people', { external_id: 'copy', attribute_values: shown })
    expect(await valuesOf('copy')).toEqual(shown)
    expect((await send('GET', '/v1/people/copy?version=1')).body.data.attribute_values).toEqual(shown)
    const copy = await person('copy')
    await send('DELETE', '/v1/people/copy')
    await send('POST', `/v1/people/internal/${copy.id}/restore`)
    expect(await valuesOf('copy')).toEqual(shown)
  })

  it('to a target without an external identifier is present in a filter too, and none of its texts', async () => {
    const attribute_values = { friends: ['bob', 'eve'], employer: 'acme', referrer: 'bob' }
    await send('POST', '/v1/people', { external_id: 'ada', attribute_values })
    await send('PATCH', '/v1/people/bob', { external_id: null })
    await send('PATCH', '/v1/people/eve', { external_id: null })
    await send('PATCH', '/v1/stacks/companies/acme', { external_id: null })
    const isFound = async (key: string, operand: unknown) => {
      const filter = { external_id: 'ada', [`attribute_values.${key}`]: operand }
      return (await send('POST', '/v1/people/filter', { filter })).body.data.items.length === 1
    }
    for (const key of ['friends', 'employer', 'referrer']) {
      for (const present of [{ $exists: true }, { $neq: null }, { $nin: [null] }, { $neq: 'bob' }, { $some: {} }])
        expect([key, present, await isFound(key, present)]).toEqual([key, present, true])
      for (const missing of [{ $exists: false }, null, { $in: [null, 'bob'] }, { $contains: 'id' }, { $gte: '' }])
        expect([key, missing, await isFound(key, missing)]).toEqual([key, missing, false])
    }
    const refused = await send('POST', '/v1/people/filter', {
      filter: { 'attribute_values.friends': { $eq: ['x', null] } },
    })
    expect(refused.body.details).toEqual([
      { path: '/filter/attribute_values.friends/$eq/1', message: 'must not be null' },
    ])
  })

  it('disappears from reads when its target is deleted, and no new entity of the same name takes it', async () => {
    await send('POST', '/v1/people', {
      external_id: 'ada',
      attribute_values: { friends: ['bob', 'eve'], referrer: 'bob' },
    })
    await send('DELETE', '/v1/people/bob')
    expect(await person('ada')).toMatchObject({ version: 1, attribute_values: { friends: ['eve'] } })
    await send('POST', '/v1/people', { external_id: 'bob' })
    expect((await valuesOf('ada')).friends).toEqual(['eve'])
  })

  it('can lead to its own source and form a circle', async () => {
    await send('POST', '/v1/people', { external_id: 'ada', attribute_values: { referrer: 'ada', friends: ['bob'] } })
    await send('POST', '/v1/people', {
      external_id: 'bob',
      attribute_values: { referrer: 'ada', friends: ['bob', 'ada'] },
    })
    expect(await valuesOf('ada')).toEqual({ referrer: 'ada', friends: ['bob'] })
    expect(await valuesOf('bob')).toEqual({ referrer: 'ada', friends: ['bob', 'ada'] })
    expect((await send('DELETE', '/v1/people/ada')).status).toBe(200)
    expect(await valuesOf('bob')).toEqual({ friends: ['bob'] })
  })

  it.each([null, '', '  ', []])('is removed when its key is written with %j', async nothing => {
    await send('POST', '/v1/people', { external_id: 'ada', attribute_values: { referrer: 'bob' } })
    await send('PATCH', '/v1/people/ada', { attribute_values: { referrer: nothing } })
    expect(await valuesOf('ada')).toEqual({})
    expect(await links()).toHaveLength(0)
  })

  it('can be written in a query string', async () => {
    await send('POST', '/v1/people', { external_id: 'ada' })
    await send('PATCH', '/v1/people/ada?attribute_values[referrer]=bob&attribute_values[friends][0]=x', undefined)
    expect(await valuesOf('ada')).toEqual({ referrer: 'bob', friends: ['x'] })
  })
})

describe('a target named by its internal identifier', () => {
  let bob: { id: string }
  let acme: { record_id: string }
  beforeEach(async () => {
    bob = (await send('POST', '/v1/people', { external_id: 'bob' })).body.data
    acme = (await send('POST', '/v1/stacks/companies', { external_id: 'acme' })).body.data
  })
  const create = (attribute_values: object, headers?: Record<string, string>) =>
    send('POST', '/v1/people', { external_id: 'ada', attribute_values }, headers)
  const refusalOf = ({ status, body }: Awaited<ReturnType<Send>>) => [status, body.error, body.details]
  const people = () => service.sql('select 1 from entities where organization_id = $1 and stack_id = 0', [shop.id])

  it('is linked, and reads show its external identifier', async () => {
    const created = await create({ referrer: { id: bob.id.toUpperCase() }, employer: { record_id: acme.record_id } })
    expect(created.body.data.attribute_values).toEqual({ referrer: 'bob', employer: 'acme' })
    const [change] = (await send('GET', '/v1/people/ada/history')).body.data.items
    expect(change.after.attribute_values).toEqual({ referrer: 'bob', employer: 'acme' })
    await send('PATCH', '/v1/people/ada', { attribute_values: { friends: ['eve', { id: bob.id }, 'bob'] } })
    expect((await valuesOf('ada')).friends).toEqual(['eve', 'bob'])
  })

  it.each(['create', 'strict'])('must exist with references=%s, and nothing is stored otherwise', async references => {
    const id = '01a205a8-8eaf-7000-8000-0123456789ab'
    const reply = await create({ friends: ['bob', { id }] }, { Prefer: `references=${references}` })
    const details = [{ path: '/attribute_values/friends/1', message: 'names an entity that does not exist' }]
    expect(refusalOf(reply)).toEqual([400, 'invalid_parameter', details])
    await send('DELETE', '/v1/people/bob')
    expect(refusalOf(await create({ referrer: bob }))).toMatchObject([
      400,
      'invalid_parameter',
      [{ path: '/attribute_values/referrer' }],
    ])
    expect(await people()).toHaveLength(0)
  })

  it('must belong to the kind of the relationship and to the organization', async () => {
    const other = await createShop(service, 'referrer')
    expect((await other.send('POST', '/v1/people', { attribute_values: { referrer: { id: bob.id } } })).status).toBe(
      400,
    )
    expect((await create({ referrer: { id: acme.record_id } })).status).toBe(400)
    expect((await create({ referrer: { record_id: acme.record_id } })).status).toBe(400)
  })

  it('leads to the survivor of a merge', async () => {
    await send('POST', '/v1/people', { external_id: 'rob' })
    await send('POST', '/v1/people/rob/merge', { from: 'bob' })
    expect((await create({ referrer: { id: bob.id } })).body.data.attribute_values).toEqual({ referrer: 'rob' })
  })

  it('that a batch has deleted before is refused', async () => {
    const reply = await send('POST', '/v1/people/batch', {
      operations: [
        { op: 'delete', external_id: 'bob' },
        { op: 'create', body: { external_id: 'ada', attribute_values: { referrer: { id: bob.id } } } },
      ],
    })
    expect(reply.body.data.items.map(({ status }: { status: number }) => status)).toEqual([200, 400])
  })

  it.each(['create', 'strict'])(
    'as a bare text is refused with references=%s, so that no placeholder gets an internal identifier as its name',
    async references => {
      const headers = { Prefer: `references=${references}` }
      const message = `is the internal identifier of an entity, and no external identifier. Link to that entity with {"id": "${bob.id}"}`
      const details = [{ path: '/attribute_values/friends/1', message }]
      expect(refusalOf(await create({ friends: ['bob', bob.id] }, headers))).toEqual([
        400,
        'invalid_parameter',
        details,
      ])
      const record = await create({ employer: acme.record_id }, headers)
      expect(record.body.details![0]!.message).toContain(`{"record_id": "${acme.record_id}"}`)
      expect(await people()).toHaveLength(1)
    },
  )

  it('as a bare text is an external identifier if an entity has it, or no entity has it as its internal identifier', async () => {
    await send('POST', '/v1/people', { external_id: bob.id, first_name: 'Named like Bob' })
    const unknown = '01a205a8-8eaf-7000-8000-0123456789ab'
    await create({ referrer: bob.id, friends: [unknown] })
    expect(await valuesOf('ada')).toEqual({ referrer: bob.id, friends: [unknown] })
    expect((await person(bob.id)).first_name).toBe('Named like Bob')
    expect((await person(unknown)).state).toBe('placeholder')
  })
})

describe('a changed declaration', () => {
  const declare = (body: object) => send('POST', '/v1/schema/attributes', { owner: 'people', ...body })

  it('leaves plain values under a new relationship unchanged until they are written', async () => {
    await send('POST', '/v1/people', { external_id: 'ada', attribute_values: { mentor: 'plain' } })
    await declare({ key: 'mentor', type: 'person' })
    expect(await valuesOf('ada')).toEqual({ mentor: 'plain' })
    expect((await send('GET', '/v1/people/plain')).status).toBe(404)
    await send('PATCH', '/v1/people/ada', { attribute_values: { mentor: 'plain' } })
    expect((await person('plain')).state).toBe('placeholder')
    expect(await links()).toHaveLength(1)
  })

  it('keeps the links of an archived relationship readable and frees its key for a new declaration', async () => {
    const { id } = (await declare({ key: 'mentor', type: 'person' })).body.data
    await send('POST', '/v1/people', { external_id: 'ada', attribute_values: { mentor: 'bob' } })
    await send('PATCH', `/v1/schema/attributes/${id}`, { state: 'archived' })
    expect(await valuesOf('ada')).toEqual({ mentor: 'bob' })
    await declare({ key: 'mentor', type: 'number' })
    expect(await valuesOf('ada')).toEqual({ mentor: 'bob' })
    expect((await send('PATCH', '/v1/people/ada', { attribute_values: { mentor: 'bob' } })).status).toBe(400)
    await send('PATCH', '/v1/people/ada', { attribute_values: { mentor: 7 } })
    expect(await valuesOf('ada')).toEqual({ mentor: 7 })
    expect(await links()).toHaveLength(0)
    const back = await send('PATCH', `/v1/schema/attributes/${id}`, { state: 'active' })
    expect([back.status, back.body.error]).toEqual([409, 'duplicate_entry'])
  })

  it('can turn a relationship from one to many but not back', async () => {
    const { id } = (await declare({ key: 'mentor', type: 'person' })).body.data
    await send('POST', '/v1/people', { external_id: 'ada', attribute_values: { mentor: 'bob' } })
    expect((await send('PATCH', `/v1/schema/attributes/${id}`, { cardinality: 'many' })).status).toBe(200)
    expect(await valuesOf('ada')).toEqual({ mentor: ['bob'] })
    expect((await send('PATCH', `/v1/schema/attributes/${id}`, { cardinality: 'one' })).status).toBe(400)
  })
})

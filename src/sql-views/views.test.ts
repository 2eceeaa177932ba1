import { describe, expect, it } from 'vitest'
import { useOwnService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'
import { type Reader, useViews } from '../../test/support/sql-views.ts'

const service = useOwnService()
const shop = useShop(service, 'companies', 'orders', 'visits', 'referrer', 'friends', 'city', 'score', 'buyer')
const { ok } = shop
const { read } = useViews(service)

const declare = (key: string, type: string, rest: object = {}) =>
  ok('POST', '/v1/schema/attributes', { key, owner: 'people', type, ...rest })
const person = (external_id: string, body: object = {}) => ok('POST', '/v1/people', { external_id, ...body })
const typesOf = async ({ rows }: Reader, view: string) => {
  const columns = await rows<{ name: string; type: string }>(
    `select a.attname as name, format_type(a.atttypid, a.atttypmod) as type from pg_attribute a
     where a.attrelid = $1::regclass and a.attnum > 0 order by a.attnum`,
    [view],
  )
  return Object.fromEntries(columns.map(({ name, type }) => [name, type]))
}
const idOf = async (external_id: string) => (await ok('GET', `/v1/people/${external_id}`)).id

describe('the view of people', () => {
  it('has the columns of a read in their types, and one of each declared attribute', async () => {
    for (const [key, type] of [
      ['note', 'text'],
      ['vip', 'boolean'],
      ['joined', 'date'],
      ['seen', 'datetime'],
      ['extra', 'json'],
    ] as const)
      await declare(key, type)
    await declare('tags', 'text', { cardinality: 'many' })
    await declare('sizes', 'number', { cardinality: 'many' })
    const reader = await read(shop)
    expect(await typesOf(reader, 'people')).toEqual({
      id: 'uuid',
      external_id: 'text',
      first_name: 'text',
      last_name: 'text',
      email: 'text',
      mobile_prefix: 'text',
      mobile_number: 'text',
      mobile_e164: 'text',
      date_of_birth: 'date',
      language: 'text',
      email_consent: 'boolean',
      sms_consent: 'boolean',
      push_notification_consent: 'boolean',
      state: 'text',
      version: 'integer',
      created_at: 'timestamp with time zone',
      updated_at: 'timestamp with time zone',
      referrer: 'uuid[]',
      friends: 'uuid[]',
      city: 'text',
      score: 'numeric',
      note: 'text',
      vip: 'boolean',
      joined: 'date',
      seen: 'timestamp with time zone',
      extra: 'jsonb',
      tags: 'text[]',
      sizes: 'numeric[]',
      attribute_values: 'jsonb',
    })
    expect(Object.keys(await typesOf(reader, 'orders'))).toEqual([
      ...[
        'id',
        'record_id',
        'external_id',
        'state',
        'version',
        'created_at',
        'updated_at',
        'buyer',
        'attribute_values',
      ],
    ])
  })

  it('shows the values that a read shows, and links as internal identifiers in their order', async () => {
    await declare('seen', 'datetime')
    await declare('tags', 'text', { cardinality: 'many' })
    const values = {
      city: 'Rome',
      score: 7.25,
      friends: ['eve', 'bob'],
      seen: '2026-01-02T03:04:05.678+02:00',
      tags: ['b', 'a'],
    }
    const names = { first_name: 'Ada', date_of_birth: '1990-02-03', mobile_prefix: '+39', mobile_number: '3471234567' }
    await person('ada', { ...names, attribute_values: { ...values, undeclared: [1] } })
    const [eve, bob] = [await idOf('eve'), await idOf('bob')]
    const reader = await read(shop)
    const [row] = await reader.rows(
      `select *, date_of_birth::text as date_of_birth, seen::text as seen from people where external_id = 'ada'`,
    )
    const { id, version, created_at, mobile_e164 } = await ok('GET', '/v1/people/ada')
    expect(row).toMatchObject({ id, version, mobile_e164, ...names, city: 'Rome', score: '7.25', tags: ['b', 'a'] })
    expect(row).toMatchObject({ created_at: new Date(created_at), friends: [eve, bob], referrer: [], state: 'active' })
    expect(row).toMatchObject({ seen: '2026-01-02 01:04:05.678+00', attribute_values: { undeclared: [1] } })
    await ok('POST', '/v1/stacks/orders', { external_id: 'o1', attribute_values: { buyer: 'ada' } })
    const joined = 'select o.record_id, p.external_id from orders o join people p on p.id = any (o.buyer)'
    const { record_id } = await ok('GET', '/v1/stacks/orders/o1')
    expect(await reader.rows(joined)).toEqual([{ record_id, external_id: 'ada' }])
    await ok('DELETE', '/v1/people/eve')
    expect(await reader.rows(`select friends from people where external_id = 'ada'`)).toEqual([{ friends: [bob] }])
  })

  it('has the same people as a list: placeholders, and neither deleted, merged nor erased ones', async () => {
    for (const name of ['kept', 'deleted', 'merged', 'erased']) await person(name)
    await person('source', { attribute_values: { referrer: 'placeholder' } })
    await ok('DELETE', '/v1/people/deleted')
    await ok('POST', '/v1/people/kept/merge', { from: 'merged' })
    await ok('POST', '/v1/people/erased/erase', { reason: 'asked' })
    const { rows } = await read(shop)
    const { items } = await ok('POST', '/v1/people/list', {})
    const expected = (items as { external_id: string; state: string }[]).map(({ external_id, state }) => ({
      external_id,
      state,
    }))
    expect(await rows('select external_id, state from people order by id desc')).toEqual(expected)
    expect(expected.map(({ external_id }) => external_id).sort()).toEqual(['kept', 'placeholder', 'source'])
  })

  it('gives null for each stored value that is not of the type, and no error', async () => {
    const digits = '1'.repeat(300)
    const stored: unknown[] = [
      '',
      ' ',
      'x',
      '1',
      'true',
      0,
      -1.5,
      true,
      [],
      ['a', 1, null],
      {},
      { a: 1 },
      1e15,
      digits,
      '\\',
      "'",
    ]
    stored.push(
      '2024-02-29',
      '2023-02-29',
      '0000-01-01',
      '9999-12-31',
      '2024-1-1',

      'infinity',
      'now',
      'epoch',
    )
    stored.push(
      '2024-01-01T00:00:00Z',
      '2024-01-01t23:59:59z',
      '2024-01-01T00:00:00+23:59',
      '0001-01-01T00:00:00+23:59',
    )
    stored.push(
      '9999-12-31T23:59:59-23:59',
      '2024-01-01T00:00:00.111111111Z',
      '2024-01-01T00:00:00.1111111111Z',
      '2024-01-01T24:00:00Z',
      '2024-01-01T00:00:60Z',
    )
    stored.push('2024-01-01T00:00:00', '2024-01-01T00:00:00.Z', '20240101T000000Z', '2024-01-01T00:00:00-00:30', 'NaN')
    const types = ['text', 'number', 'boolean', 'date', 'datetime', 'json'] as const
    for (const [index, value] of stored.entries())
      await person(`p${index}`, {
        attribute_values: Object.fromEntries(
          types.flatMap(type => [
            [`one_${type}`, value],
            [`many_${type}`, value],
          ]),
        ),
      })
    for (const type of types) {
      await declare(`one_${type}`, type)
      await declare(`many_${type}`, type, { cardinality: 'many' })
    }
    const reader = await read(shop)
    const shown = await reader.rows(
      `select attribute_values -> 'one_text' as stored, one_text, one_number::text, one_boolean, one_date::text, one_datetime::text, one_json,
         many_number::text[], many_date::text[], many_datetime::text[], many_text, many_boolean, many_json
       from people order by substr(external_id, 2)::integer`,
    )
    expect(shown).toHaveLength(stored.length)
    const of = (value: unknown) => shown[stored.findIndex(each => JSON.stringify(each) === JSON.stringify(value))]!
    for (const row of shown) {
      const { stored: value } = row
      expect(row.one_text).toBe(typeof value === 'string' ? value : null)
      expect(row.one_number === null).toBe(typeof value !== 'number')
      expect(row.one_boolean).toBe(typeof value === 'boolean' ? value : null)
      expect(row.one_json).toEqual(value)
      if (!Array.isArray(value)) expect(row.many_text).toEqual([row.one_text])
      if (!Array.isArray(value)) expect(row.many_date).toEqual([row.one_date])
    }
    expect(shown.filter(({ one_date }) => one_date !== null).map(({ stored: value }) => value)).toEqual([
      '2024-02-29',
      '9999-12-31',
    ])
    const times = shown.filter(({ one_datetime }) => one_datetime !== null)
    expect(Object.fromEntries(times.map(row => [row.stored, row.one_datetime]))).toEqual({
      '2024-01-01T00:00:00Z': '2024-01-01 00:00:00+00',
      '2024-01-01t23:59:59z': '2024-01-01 23:59:59+00',
      '2024-01-01T00:00:00+23:59': '2023-12-31 00:01:00+00',
      '0001-01-01T00:00:00+23:59': '0001-12-31 00:01:00+00 BC',
      '9999-12-31T23:59:59-23:59': '10000-01-01 23:58:59+00',
      '2024-01-01T00:00:00.111111111Z': '2024-01-01 00:00:00.111111+00',
      '2024-01-01T00:00:00-00:30': '2024-01-01 00:30:00+00',
    })
    expect(of(['a', 1, null])).toMatchObject({ many_text: ['a', null, null], many_number: [null, '1', null] })
    expect(of([])).toMatchObject({ many_text: [], many_number: [], many_json: [], one_text: null })
    // The formats of a session change neither the result of a cast nor whether it fails.
    for (const style of ['SQL, DMY', 'German', 'Postgres, MDY']) {
      await reader.client.query(`set datestyle = '${style}'; set timezone = 'Asia/Tokyo'`)
      const text = `select one_date = date '9999-12-31' as same from people where one_date is not null order by one_date desc limit 1`
      expect(await reader.rows(text)).toEqual([{ same: true }])
      await reader.rows('select * from people')
    }
  })

  it('keeps the names of its own columns: an attribute with such a key has the column "attribute_values.<key>"', async () => {
    for (const key of ['id', 'email', 'version', 'attribute_values', 'organization_id', 'select', `k${'x'.repeat(62)}`])
      await declare(key, 'text')
    await person('ada', { email: 'ada@example.org', attribute_values: { email: 'own', select: 'word', version: 'v' } })
    const { rows } = await read(shop)
    expect(
      await rows(
        'select email, "attribute_values.email" as own, "select", version, "attribute_values.version" as v, organization_id from people',
      ),
    ).toEqual([{ email: 'ada@example.org', own: 'own', select: 'word', version: 1, v: 'v', organization_id: null }])
    const columns = Object.keys((await rows('select * from people'))[0]!)
    expect(columns).toContain(`k${'x'.repeat(62)}`)
  })

  it('has no more than 1,500 attributes, and all values in attribute_values', async () => {
    const items = Array.from({ length: 1_700 }, (_, n) => ({ key: `a${n}`, owner: 'people', type: 'text' }))
    await ok('POST', '/v1/schema/attributes/batch', { items })
    await person('ada', { attribute_values: { a0: 'first', a1699: 'last' } })
    const { rows } = await read(shop)
    expect(await rows(`select a0, attribute_values ->> 'a1699' as last from people`)).toEqual([
      { a0: 'first', last: 'last' },
    ])
    expect(Object.keys((await rows('select * from people'))[0]!).length).toBeLessThan(1_600)
  })
})

describe('the other views', () => {
  it('are one of each stack; a stack whose key is the name of another view has "stacks.<key>"', async () => {
    for (const key of ['changes', 'consents', 'table']) await ok('POST', '/v1/schema/stacks', { key, kind: 'item' })
    await ok('POST', '/v1/stacks/changes', { external_id: 'c' })
    const { rows } = await read(shop)
    expect(await rows('select external_id from "stacks.changes"')).toEqual([{ external_id: 'c' }])
    const names = await rows<{ name: string }>(
      `select table_name as name from information_schema.tables where table_schema = current_schema order by 1`,
    )
    expect(names.map(({ name }) => name).sort()).toEqual(
      [
        'changes',
        'companies',
        'consents',
        'orders',
        'people',
        'stacks.changes',
        'stacks.consents',
        'table',
        'visits',
      ].sort(),
    )
  })

  it('show the consents that a read shows, and whether the address refuses', async () => {
    await ok('POST', '/v1/schema/consent-types', {
      key: 'terms',
      mandatory: true,
      channels: [{ channel: 'email', is_default: false }],
    })
    await ok('POST', '/v1/schema/consent-types', {
      key: 'news',
      default_state: true,
      channels: [{ channel: 'email', is_default: false, double_opt_in: true }],
    })
    await ok('POST', '/v1/schema/consent-types', { key: 'old', channels: [{ channel: 'sms', is_default: false }] })
    await ok('PATCH', '/v1/schema/consent-types/4', { state: 'archived' })
    const email = 'ada@example.org'
    const consents = [
      { consent_type_id: 1, channel: 'email', state: true, method: 'web_form', collected_at: '2025-03-04T05:06:07Z' },
      { consent_type_id: 3, channel: 'email', state: true },
    ]
    await person('ada', { email, consents })
    await person('twin', { email, consents: [{ consent_type_id: 1, channel: 'email', state: false }] })
    await person('bob', { sms_consent: false, attribute_values: { referrer: 'placeholder' } })
    const { rows } = await read(shop)
    for (const name of ['ada', 'twin', 'bob', 'placeholder']) {
      const { items } = await ok('GET', `/v1/people/${name}/consents`)
      const shown = await rows(
        `select consent_type_id, channel, state, source, answered_at, pending, method, address_refused from consents
         where external_id = $1 order by consent_type_id, channel`,
        [name],
      )
      const expected = (items as Record<string, unknown>[]).map(item => ({
        consent_type_id: item.consent_type_id,
        channel: item.channel,
        state: item.state,
        source: item.source,
        answered_at: item.answered_at === null ? null : new Date(item.answered_at as string),
        pending: item.pending ?? false,
        method: item.method ?? null,
        address_refused: item.address_refused ?? false,
      }))
      expect(shown).toEqual(expected)
    }
    expect(await rows(`select distinct consent_type from consents order by 1`)).toEqual([
      { consent_type: 'marketing' },
      { consent_type: 'news' },
      { consent_type: 'terms' },
    ])
    const refused = 'select external_id from consents where address_refused'
    expect(await rows(refused)).toEqual([{ external_id: 'ada' }])
  })

  it('show the change log as the feed does, without what an erasure blanked', async () => {
    await person('ada', { first_name: 'Ada', attribute_values: { city: 'Rome', friends: ['bob'] } })
    await ok('PATCH', '/v1/people/ada', { attribute_values: { city: 'Oslo' } })
    await ok('POST', '/v1/stacks/orders', { external_id: 'o1', attribute_values: { buyer: 'ada' } })
    const { rows } = await read(shop)
    const { items } = await ok('GET', '/v1/changes')
    const shown = await rows(
      'select sequence::integer, at, subject, stack_key, operation, version, after, actor, request_id from changes order by 1',
    )
    const withoutLinks = (after: { attribute_values?: Record<string, unknown> }) => {
      const { friends, buyer, ...attribute_values } = after.attribute_values ?? {}
      return after.attribute_values ? { ...after, attribute_values } : after
    }
    expect(shown).toEqual(
      (items as Record<string, unknown>[]).map(
        ({ sequence, at, subject, stack_key, operation, version, after, actor, request_id }) => ({
          ...{
            sequence,
            at: new Date(at as string),
            subject,
            operation,
            after: withoutLinks(after as object),
            actor,
            request_id,
          },
          stack_key: stack_key ?? null,
          version: version ?? null,
        }),
      ),
    )
    const bob = await idOf('bob')
    const [{ links }] = (await rows(
      `select links from changes where operation = 'create' and after ->> 'external_id' = 'ada'`,
    )) as [{ links: object }]
    expect(links).toEqual({ friends: { after: [bob] } })
    const canaries = `select count(*)::integer as count from changes where concat(before, after) ~ 'Rome|Oslo'`
    expect(await rows(canaries)).toEqual([{ count: 2 }])
    await ok('POST', '/v1/people/ada/erase', { reason: 'asked' })
    expect(await rows(canaries)).toEqual([{ count: 0 }])
  })
})

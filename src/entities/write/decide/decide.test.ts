import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { noProfile } from '../../../../test/support/profile.ts'
import { type Attribute, buildDefinitions, type Definitions } from '../../../organizations/definitions.ts'
import type { CurrentState, EntityRow, Links } from '../../entity-row.ts'
import type { EntityBody, Write } from '../../write-request.ts'
import { planWrite, referenceKey } from '../plan.ts'
import { type Decision, type DecisionContext, decide } from './decide.ts'

const at = '2026-01-01T00:00:00.000Z'
const times = { created_at: at, updated_at: at }

function attribute(id: number, key: string, rest: Partial<Attribute>): Attribute {
  const named = { key, name: key, description: null, owner_stack_id: 0 }
  const plain = { type: 'text', target_stack_id: null, cardinality: 'one', indexed: false, state: 'active' } as const
  return { id, ...named, ...plain, ...times, ...rest }
}

const definitions: Definitions = buildDefinitions(1, {
  version: 1,
  stacks: [
    {
      id: 7,
      key: 'companies',
      name: 'companies',
      kind: 'item',
      retention_days: null,
      label: null,
      summary: null,
      erased_with: null,
      ...times,
    },
  ],
  attributes: [
    attribute(1, 'age', { type: 'number' }),
    attribute(2, 'referrer', { type: 'person', target_stack_id: 0 }),
    attribute(3, 'friends', { type: 'person', target_stack_id: 0, cardinality: 'many' }),
    attribute(4, 'employer', { type: 'stack', target_stack_id: 7 }),
    attribute(5, 'old', { type: 'person', target_stack_id: 0, state: 'archived' }),
    attribute(6, 'colours', { cardinality: 'many' }),
  ],
  consent_types: [],
})

const row: EntityRow = {
  stack_id: 0,
  id: '00000000-0000-7000-8000-000000000001',
  external_id: 'ada',
  active: true,
  version: 3,
  ...noProfile,
  first_name: 'Ada',
  language: 'en',
  push_notification_consent: true,
  answers: {},
  attributes: { city: 'Rome', nested: { a: null } },
  ...times,
}

type Given = { row?: EntityRow | null; links?: Links; idsByName?: Record<string, string>; write?: Partial<Write> }

function decideWith(operation: Write['operation'], body: EntityBody, given: Given = {}): Decision {
  const write: Write = {
    operation,
    stack_id: 0,
    address: { external_id: 'ada' },
    body,
    boundFrom: 'body',
    if_match: null,
    references: 'create',
    represent: false,
    bytes: 0,
    actor: 'tests',
    request_id: 'r',
    ...given.write,
  }
  const context: DecisionContext = {
    definitions,
    resolve: reference => given.idsByName?.[referenceKey(reference)],
    lastVersionOf: () => 0,
    knownAnswers: new Map(),
    at,
    newId: () => '00000000-0000-7000-8000-000000000099',
    limits: { entityKeys: 5, entityBytes: 2_000, placeholders: 2 },
  }
  const current: CurrentState | null =
    given.row === null ? null : { row: given.row ?? row, links: given.links ?? new Map() }
  return decide(current, write, planWrite(write, definitions, 1_000), context)
}

const changeOf = (decision: Decision) => ('change' in decision ? decision.change : undefined)
const refusalOf = (decision: Decision) => ('refusal' in decision ? decision.refusal : undefined)
const pathsOf = (decision: Decision) => refusalOf(decision)?.details.map(detail => detail.path)

describe('an absent, null or given field', () => {
  const texts = ['first_name', 'last_name', 'email', 'language'] as const
  const body = fc.record(Object.fromEntries(texts.map(name => [name, fc.option(fc.constantFrom('a', 'b', 'Ada'))])), {
    requiredKeys: [],
  })

  it('is kept, cleared or set by PATCH', () => {
    fc.assert(
      fc.property(body, given => {
        const columns = changeOf(decideWith('patch', given))?.columns ?? {}
        for (const name of texts)
          expect({ ...row, ...columns }[name]).toBe(given[name] === undefined ? row[name] : given[name])
      }),
    )
  })

  it('is cleared by PUT if absent or null, except the external identifier', () => {
    fc.assert(
      fc.property(body, given => {
        const change = changeOf(decideWith('put', given))!
        for (const name of texts) expect({ ...row, ...change.columns }[name]).toBe(given[name] ?? null)
        expect(change.columns).not.toHaveProperty('external_id')
        expect(change.columns.push_notification_consent).toBeNull()
        expect(change.removed.sort()).toEqual(['city', 'nested'])
      }),
    )
  })

  it('is merged key by key, one level deep, in attribute_values', () => {
    const change = changeOf(decideWith('patch', { attribute_values: { city: null, nested: { b: 1 }, size: 0 } }))!
    expect(change.set).toEqual({ nested: { b: 1 }, size: 0 })
    expect(change.removed).toEqual(['city'])
    expect(change.before).toEqual({ attribute_values: { city: 'Rome', nested: { a: null }, size: null } })
  })

  it('clears all attribute values if PATCH sets attribute_values to null', () => {
    expect(changeOf(decideWith('patch', { attribute_values: null }))!.removed.sort()).toEqual(['city', 'nested'])
  })
})

describe('a write that changes nothing', () => {
  it.each<EntityBody>([
    {},
    { first_name: 'Ada' },
    { last_name: null },
    { external_id: 'ada' },
    { attribute_values: { city: 'Rome', nested: { a: null }, absent: null, referrer: null, friends: [] } },
  ])('%j keeps the version', body => {
    expect(decideWith('patch', body)).toEqual({ unchanged: row })
  })

  it('keeps a placeholder, while a write with changes makes it active', () => {
    const placeholder = { ...row, active: false }
    expect(decideWith('patch', {}, { row: placeholder })).toEqual({ unchanged: placeholder })
    expect(changeOf(decideWith('patch', { last_name: 'L' }, { row: placeholder }))!.columns.active).toBe(true)
    expect(changeOf(decideWith('create', {}, { row: placeholder }))!.operation).toBe('update')
  })
})

describe('a refusal', () => {
  it.each<[Write['operation'], EntityBody, Given, string, number, string[]]>([
    ['patch', {}, { row: null }, 'not_found', 404, []],
    ['delete', {}, { row: null }, 'not_found', 404, []],
    ['create', { external_id: 'ada' }, {}, 'duplicate_entry', 409, ['/external_id']],
    ['patch', { external_id: 'bob' }, { idsByName: { '0\nbob': 'other' } }, 'duplicate_entry', 409, ['/external_id']],
    ['patch', {}, { write: { if_match: [2] } }, 'invalid_parameter', 412, []],
    ['patch', { attribute_values: { age: 'x' } }, {}, 'invalid_parameter', 400, ['/attribute_values/age']],
    ['patch', { attribute_values: { colours: 'red' } }, {}, 'invalid_parameter', 400, ['/attribute_values/colours']],
    [
      'patch',
      { attribute_values: { colours: ['red', 1] } },
      {},
      'invalid_parameter',
      400,
      ['/attribute_values/colours/1'],
    ],
    ['patch', { attribute_values: { referrer: 1.5 } }, {}, 'invalid_parameter', 400, ['/attribute_values/referrer']],
    ['patch', { attribute_values: { friends: ['a', 'b', 'c'] } }, {}, 'invalid_parameter', 400, ['/attribute_values']],
    ['patch', { attribute_values: { a: 1, b: 2, c: 3, d: 4 } }, {}, 'invalid_parameter', 400, ['/attribute_values']],
    ['patch', { attribute_values: { a: 'x'.repeat(2_000) } }, {}, 'invalid_parameter', 400, ['/attribute_values']],
    [
      'patch',
      { attribute_values: { friends: ['bob', 'eve'] } },
      { idsByName: { '0\nbob': 'b' }, write: { references: 'strict' } },
      'invalid_parameter',
      400,
      ['/attribute_values/friends/1'],
    ],
  ])('has the documented status, code and path for %s %j', (operation, body, given, code, status, paths) => {
    const decision = decideWith(operation, body, given)
    expect(refusalOf(decision)).toMatchObject({ code, status })
    expect(pathsOf(decision)).toEqual(paths)
  })

  it('lists every invalid value', () => {
    expect(pathsOf(decideWith('patch', { attribute_values: { age: true, referrer: {} } }))).toEqual([
      '/attribute_values/age',
      '/attribute_values/referrer',
    ])
  })

  it('does not occur if If-Match has the current version or a star', () => {
    expect(decideWith('patch', {}, { write: { if_match: [2, 3] } })).toEqual({ unchanged: row })
    expect(decideWith('patch', {}, { write: { if_match: '*' } })).toEqual({ unchanged: row })
  })
})

describe('links', () => {
  const linked: Links = new Map([[2, [{ id: 'b', external_id: 'bob' }]]])
  const bob = { idsByName: { '0\nbob': 'b' } }

  it('are unchanged if the target is already linked', () => {
    const given = { ...bob, links: linked }
    expect(decideWith('patch', { attribute_values: { referrer: { external_id: 'bob' } } }, given)).toEqual({
      unchanged: row,
    })
  })

  it('are replaced in order, and missing targets are named', () => {
    const change = changeOf(decideWith('patch', { attribute_values: { friends: ['eve', 'bob'] } }, bob))!
    expect(change.relinked.map(({ targets }) => targets)).toEqual([
      [{ name: { stack_id: 0, external_id: 'eve' } }, { id: 'b' }],
    ])
    expect(change.after).toEqual({ attribute_values: { friends: ['eve', 'bob'] } })
  })

  it('are removed from an archived attribute when its key gets a plain value', () => {
    const change = changeOf(
      decideWith(
        'patch',
        { attribute_values: { old: 'text' } },
        { links: new Map([[5, [{ id: 'b', external_id: 'bob' }]]]) },
      ),
    )!
    const before = [{ id: 'b', external_id: 'bob' }]
    expect(change.relinked).toEqual([{ attribute: definitions.attributeById.get(5), before, targets: [] }])
    expect(change.set).toEqual({ old: 'text' })
    expect(change.before!.attribute_values).toEqual({ old: 'bob' })
  })

  it('replace a plain value that was stored before the declaration', () => {
    const plain = { ...row, attributes: { referrer: 'bob' } }
    const change = changeOf(decideWith('patch', { attribute_values: { referrer: 'bob' } }, { ...bob, row: plain }))!
    expect(change.removed).toEqual(['referrer'])
    expect(change.relinked).toHaveLength(1)
  })

  it('create no placeholder if they name the entity itself, by its old or new name', () => {
    const change = changeOf(
      decideWith('patch', { external_id: 'countess', attribute_values: { friends: ['ada', 'countess'] } }),
    )!
    expect(change.missing).toEqual([])
    expect(change.relinked[0]!.targets).toEqual([{ id: row.id }])
    const created = changeOf(
      decideWith('create', { external_id: 'ada', attribute_values: { referrer: 'ada' } }, { row: null }),
    )!
    expect(created.relinked[0]!.targets).toEqual([{ id: created.id }])
  })
})

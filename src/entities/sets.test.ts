import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Service, startService } from '../../test/support/service.ts'
import type { Database, Statement } from '../db/db.ts'
import { writeEntities } from './sets.ts'
import type { EntityBody, Outcome, Write } from './write.ts'

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())

type Shop = Awaited<ReturnType<Service['organization']>>

/** An organization with a relationship to people, one to many of them, and one to companies. */
async function shop(): Promise<Shop> {
  const made = await service.organization()
  await made.send('POST', '/v1/schema/stacks', { key: 'companies', kind: 'item' })
  await made.send('POST', '/v1/schema/attributes', { key: 'referrer', owner: 'people', type: 'person' })
  await made.send('POST', '/v1/schema/attributes', {
    key: 'friends',
    owner: 'people',
    type: 'person',
    cardinality: 'many',
  })
  await made.send('POST', '/v1/schema/attributes', {
    key: 'employer',
    owner: 'people',
    type: 'stack',
    target_stack: 'companies',
  })
  return made
}

function write(
  operation: Write['operation'],
  external_id: string,
  body: EntityBody = {},
  rest: Partial<Write> = {},
): Write {
  return {
    operation,
    stack_id: 0,
    address: { external_id },
    body: operation === 'create' ? { external_id, ...body } : body,
    bound_from: 'body',
    if_match: null,
    references: 'create',
    represent: false,
    bytes: 100,
    actor: 'tests',
    request_id: 'sets',
    ...rest,
  }
}

/** A database that notes the names of the statements that go through it. */
function watched(db: Database): { db: Database; statements: string[]; transactions: () => number } {
  const statements: string[] = []
  let transactions = 0
  const note = (statement: Statement) => statements.push(statement.name)
  return {
    statements,
    transactions: () => transactions,
    db: {
      ...db,
      transaction: (work, options) => {
        transactions += 1
        return db.transaction(
          tx =>
            work({
              ...tx,
              query: (statement, values) => {
                note(statement)
                return tx.query(statement, values)
              },
            }),
          options,
        )
      },
    },
  }
}

const limits = { entity_keys: 1_000, entity_bytes: 524_288, placeholders: 100, links: 1_000 }

const run = (organization: Shop, writes: Write[], db = service.db) =>
  writeEntities(db, organization.id, writes, { limits })

const resultOf = (outcome: Outcome | undefined) => {
  if (!outcome) return 'missing'
  if ('done' in outcome) return outcome.done.result
  return 'refusal' in outcome ? outcome.refusal.word : 'error'
}

const names = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => `${prefix}${index}`)

describe('the number of statements does not grow with the array', () => {
  test.each([1, 50])('creating %i people: read, make, apply', async count => {
    const organization = await shop()
    const { db, statements, transactions } = watched(service.db)
    const outcomes = await run(
      organization,
      names('p', count).map(name => write('create', name, { first_name: 'Ada' })),
      db,
    )
    expect(outcomes.map(resultOf)).toEqual(Array(count).fill('created'))
    expect(statements).toEqual(['lock_entities', 'make_entities', 'apply_changes'])
    expect(transactions()).toBe(1)
  })

  test.each([1, 50])('patching %i people plainly: read, apply', async count => {
    const organization = await shop()
    await run(
      organization,
      names('p', count).map(name => write('create', name)),
    )
    const { db, statements } = watched(service.db)
    await run(
      organization,
      names('p', count).map(name => write('patch', name, { attribute_values: { city: 'Rome' } })),
      db,
    )
    expect(statements).toEqual(['lock_entities', 'apply_changes'])
  })

  test.each([1, 50])('patching %i people with everything', async count => {
    const organization = await shop()
    await run(
      organization,
      names('p', count).map(name => write('create', name)),
    )
    const { db, statements } = watched(service.db)
    const everything = (index: number): EntityBody => ({
      email_consent: true,
      consents: [{ consent_type_id: 1, channel: 'sms', state: false }],
      attribute_values: { referrer: `new${index}`, friends: [`f${index}`, 'shared'], employer: 'acme', plain: index },
    })
    const outcomes = await run(
      organization,
      names('p', count).map((name, index) => write('patch', name, everything(index))),
      db,
    )
    expect(outcomes.map(resultOf)).toEqual(Array(count).fill('updated'))
    expect(statements).toEqual([
      'lock_entities',
      'read_bearers',
      'read_links',
      'make_entities',
      'apply_changes',
      'unlink',
      'link',
      'append_consent_history',
    ])
    const [counted] = await service.sql<{ placeholders: number }>(
      `select count(*)::integer as placeholders from entities where organization_id = $1 and not active`,
      [organization.id],
    )
    expect(counted).toEqual({ placeholders: 2 * count + 2 })
  })

  test('a write that changes nothing stores nothing', async () => {
    const organization = await shop()
    await run(organization, [write('create', 'p')])
    const { db, statements } = watched(service.db)
    expect((await run(organization, [write('patch', 'p', { attribute_values: {} })], db)).map(resultOf)).toEqual([
      'unchanged',
    ])
    expect(statements).toEqual(['lock_entities', 'read_schema_version'])
  })
})

describe('neighbours in an array', () => {
  test('are not touched by a refusal, and a refused write leaves no placeholder', async () => {
    const organization = await shop()
    await run(organization, [write('create', 'a'), write('create', 'b')])
    const outcomes = await run(organization, [
      write('patch', 'a', { first_name: 'A' }),
      write('patch', 'nobody', { attribute_values: { referrer: 'orphan1' } }),
      write('patch', 'b', {
        first_name: 'B',
        consents: [{ consent_type_id: 99, channel: 'email', state: true }],
        attribute_values: { referrer: 'orphan2' },
      }),
      write('create', 'a'),
      write('create', 'c', { attribute_values: { referrer: 'wanted' } }),
    ])
    expect(outcomes.map(resultOf)).toEqual(['updated', 'not_found', 'invalid_parameter', 'duplicate_entry', 'created'])
    const rows = await service.sql<{ external_id: string; active: boolean }>(
      'select external_id, active from entities where organization_id = $1 order by external_id',
      [organization.id],
    )
    expect(rows).toEqual([
      { external_id: 'a', active: true },
      { external_id: 'b', active: true },
      { external_id: 'c', active: true },
      { external_id: 'wanted', active: false },
    ])
  })

  test('that address one row take effect one after the other, by whatever identifier', async () => {
    const organization = await shop()
    const [created] = await run(organization, [write('create', 'a')])
    const id = created && 'done' in created ? created.done.id : ''
    const outcomes = await run(organization, [
      write('patch', 'a', { first_name: 'one', attribute_values: { x: 1 } }),
      write('patch', 'a', { last_name: 'two' }, { address: { id } }),
      write('patch', 'a', { first_name: 'three' }),
    ])
    expect(outcomes.map(outcome => 'done' in outcome && outcome.done.version)).toEqual([2, 3, 4])
    const { body } = await organization.send('GET', '/v1/people/a')
    expect(body.data).toMatchObject({ first_name: 'three', last_name: 'two', attribute_values: { x: 1 }, version: 4 })
  })

  test('that write a name another one mentions keep the order of arrival', async () => {
    const organization = await shop()
    const outcomes = await run(organization, [
      write('create', 'a', { attribute_values: { referrer: 'b' } }),
      write('create', 'b', { attribute_values: { referrer: 'a' } }),
      write('patch', 'b', { external_id: 'c' }),
      write('patch', 'b', { first_name: 'gone' }),
      write('patch', 'c', { first_name: 'here' }),
      write('delete', 'a'),
      write('create', 'a'),
    ])
    expect(outcomes.map(resultOf)).toEqual([
      'created',
      'created',
      'updated',
      'not_found',
      'updated',
      'deleted',
      'created',
    ])
    const { body } = await organization.send('GET', '/v1/people/c')
    expect(body.data).toMatchObject({ first_name: 'here', attribute_values: {} })
  })

  test('share one birth of a placeholder that many of them name', async () => {
    const organization = await shop()
    const outcomes = await run(
      organization,
      names('p', 200).map(name => write('create', name, { attribute_values: { referrer: 'hub' } })),
    )
    expect(new Set(outcomes.map(resultOf))).toEqual(new Set(['created']))
    const births = await service.sql(
      `select 1 from changes where organization_id = $1 and after->>'external_id' = 'hub' and after->>'state' = 'placeholder'`,
      [organization.id],
    )
    expect(births).toHaveLength(1)
  })

  test('survive one whose statement the database throws out', async () => {
    const organization = await shop()
    await run(
      organization,
      names('p', 8).map(name => write('create', name)),
    )
    const broken = write('patch', 'p3', { first_name: 'x' }, { request_id: null as never })
    const writes = names('p', 8).map((name, index) =>
      index === 3 ? broken : write('patch', name, { first_name: 'fine' }),
    )
    const outcomes = await run(organization, writes)
    expect(outcomes.map(resultOf)).toEqual(names('p', 8).map((_, index) => (index === 3 ? 'error' : 'updated')))
  })

  test('wait for a row that is locked elsewhere no longer than a moment: the others go on', async () => {
    const organization = await shop()
    await run(
      organization,
      names('p', 4).map(name => write('create', name)),
    )
    const locker = await service.db.connect()
    try {
      await locker.query('begin')
      await locker.query('select 1 from entities where organization_id = $1 and external_id = $2 for update', [
        organization.id,
        'p2',
      ])
      const running = run(
        organization,
        names('p', 4).map(name => write('patch', name, { first_name: 'new' })),
      )
      const written = async () => {
        const rows = await service.sql(`select 1 from entities where organization_id = $1 and first_name = 'new'`, [
          organization.id,
        ])
        return rows.length
      }
      await expect.poll(written, { timeout: 8_000 }).toBeGreaterThanOrEqual(2)
      await locker.query('rollback')
      expect((await running).map(resultOf)).toEqual(Array(4).fill('updated'))
    } finally {
      await locker.end()
    }
  })
})

describe('writers at the same time', () => {
  test('two hundred that name the same new target make one placeholder', async () => {
    const organization = await shop()
    const replies = await Promise.all(
      names('p', 200).map(name =>
        organization.send('POST', '/v1/people', {
          external_id: name,
          attribute_values: { referrer: 'hub', employer: 'acme' },
        }),
      ),
    )
    expect(new Set(replies.map(reply => reply.status))).toEqual(new Set([201]))
    const rows = await service.sql<{ external_id: string }>(
      'select external_id from entities where organization_id = $1 and not active order by external_id',
      [organization.id],
    )
    expect(rows).toEqual([{ external_id: 'acme' }, { external_id: 'hub' }])
  })

  test('fifty that create one person make one, and tell the others', async () => {
    const organization = await shop()
    const replies = await Promise.all(
      names('', 50).map(first_name => organization.send('POST', '/v1/people', { external_id: 'one', first_name })),
    )
    expect(replies.filter(reply => reply.status === 201)).toHaveLength(1)
    expect(replies.filter(reply => reply.status === 409)).toHaveLength(49)
  })

  test('of a link to one leave one link', async () => {
    const organization = await shop()
    await run(organization, [write('create', 'a')])
    await Promise.all(
      names('target', 40).map(referrer =>
        organization.send('PATCH', '/v1/people/a', { attribute_values: { referrer } }),
      ),
    )
    const links = await service.sql('select 1 from links where organization_id = $1', [organization.id])
    expect(links).toHaveLength(1)
  })

  test('of one person lose no update', async () => {
    const organization = await shop()
    await run(organization, [write('create', 'a')])
    await Promise.all(
      names('k', 60).map(key => organization.send('PATCH', '/v1/people/a', { attribute_values: { [key]: true } })),
    )
    const { body } = await organization.send('GET', '/v1/people/a')
    expect(Object.keys(body.data.attribute_values)).toHaveLength(60)
    expect(body.data.version).toBe(61)
  })

  test('that rename in a circle end in one of the orders, without a deadlock', async () => {
    const organization = await shop()
    await run(organization, [write('create', 'a'), write('create', 'b')])
    for (let round = 0; round < 10; round += 1) {
      const replies = await Promise.all([
        organization.send('PATCH', '/v1/people/a', { external_id: 'b' }),
        organization.send('PATCH', '/v1/people/b', { external_id: 'a' }),
      ])
      for (const { status } of replies) expect([200, 400, 500]).toContain(status)
      for (const { body } of replies) expect([undefined, 'duplicate_entry', 'not_found']).toContain(body.error)
    }
    const rows = await service.sql<{ external_id: string }>(
      'select external_id from entities where organization_id = $1 order by external_id',
      [organization.id],
    )
    expect(rows.map(row => row.external_id)).toEqual(['a', 'b'])
  })

  test('a set decided on older definitions is decided again', async () => {
    const organization = await shop()
    await run(organization, [write('create', 'a', { attribute_values: { size: 'text' } })])
    const other = await service.db.connect()
    try {
      // Another process declares the attribute: this one hears of it only when it writes.
      await other.query('begin')
      await other.query(
        `insert into attributes values ($1, 99, 0, 'size', 'size', null, 'number', null, 'one', false, 'active', now(), now())`,
        [organization.id],
      )
      await other.query('update change_heads set schema_version = schema_version + 1 where organization_id = $1', [
        organization.id,
      ])
      await other.query('commit')
    } finally {
      await other.end()
    }
    const refused = await organization.send('PATCH', '/v1/people/a', { attribute_values: { size: 'text again' } })
    expect([refused.status, refused.body.details?.[0]?.path]).toEqual([400, '/attribute_values/size'])
  })

  test('a set refused by older definitions is decided again', async () => {
    const organization = await shop()
    await run(organization, [write('create', 'a')])
    const other = await service.db.connect()
    try {
      await other.query('begin')
      await other.query(
        `insert into consent_types values ($1, 2, 'new', 'new', null, 'active', false, false, '[{"channel": "email", "is_default": false}]', now(), now())`,
        [organization.id],
      )
      await other.query('update change_heads set schema_version = schema_version + 1 where organization_id = $1', [
        organization.id,
      ])
      await other.query('commit')
    } finally {
      await other.end()
    }
    const answer = { consent_type_id: 2, channel: 'email', state: true }
    expect((await organization.send('PATCH', '/v1/people/a', { consents: [answer] })).status).toBe(200)
  })
})

import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { importLines, linesFrom } from '../../../test/support/lines.ts'
import { type Reply, useOwnService } from '../../../test/support/service.ts'
import { useShop } from '../../../test/support/shop.ts'
import { names } from '../../../test/support/writes.ts'

const service = useOwnService()
beforeAll(async () => {
  await service.sql('create table skipping (times integer)')
  await service.sql('create sequence skipped')
  // The trigger skips the row, as PostgreSQL does if the row moved. A sequence also counts rolled-back transactions.
  await service.sql(
    `create function skip_ada() returns trigger language plpgsql as
       $$begin
         if old.external_id = 'ada' and nextval('skipped') <= (select times from skipping) then return null; end if;
         return case tg_op when 'DELETE' then old else new end;
       end$$`,
  )
  await service.sql(
    'create trigger skip_ada before update or delete on entities for each row execute function skip_ada()',
  )
})
const organization = useShop(service)
beforeEach(async () => {
  await skipTimes(0)
  for (const external_id of ['ada', 'bob']) await organization.client.people.create({ external_id })
})

async function skipTimes(times: number) {
  await service.sql('delete from skipping')
  await service.sql(`insert into skipping values (${times})`)
  await service.sql('alter sequence skipped restart')
}

const always = 1_000_000
const body = { first_name: 'Ada' }
const both = ['ada', 'bob'].map(external_id => ({ op: 'patch', external_id, body }))

const writes: [what: string, write: () => Promise<Reply>][] = [
  ['a PATCH', () => organization.send('PATCH', '/v1/people/ada', body)],
  ['a PUT', () => organization.send('PUT', '/v1/people/ada', body)],
  ['a rename', () => organization.send('PATCH', '/v1/people/ada', { external_id: 'eve' })],
  ['a deletion', () => organization.send('DELETE', '/v1/people/ada')],
  ['a keyed PATCH', () => organization.send('PATCH', '/v1/people/ada', body, { 'Idempotency-Key': 'a-key' })],
  ['an atomic batch', () => organization.send('POST', '/v1/people/batch', { operations: both, atomic: true })],
]

/** Returns the organization's entities, change log and head. */
const stored = async () => {
  const tables = {
    entities: 'select external_id, version, first_name from entities where organization_id = $1 order by external_id',
    changes: 'select sequence, operation, version from changes where organization_id = $1 order by sequence',
    head: 'select sequence from change_heads where organization_id = $1',
  }
  const rows = Object.entries(tables).map(async ([name, text]) => [name, await service.sql(text, [organization.id])])
  return Object.fromEntries(await Promise.all(rows))
}

describe('a row that moved after it was locked', () => {
  it.each(writes)('makes %s be decided again, and then it is stored', async (what, write) => {
    await skipTimes(1)
    expect((await write()).status).toBe(200)
    const { entities, changes, head } = await stored()
    const ada = entities.find(({ external_id }: { external_id: string }) => external_id !== 'bob')
    expect(ada?.version).toBe(what === 'a deletion' ? undefined : 2)
    expect(changes.map(({ sequence }: { sequence: number }) => sequence)).toEqual(
      names('', changes.length).map((_, n) => n + 1),
    )
    expect(changes).toHaveLength(what === 'an atomic batch' ? 4 : 3)
    expect(head).toEqual([{ sequence: changes.length }])
  })

  it.each(writes)('makes %s fail with 503 and store nothing if it moves in every attempt', async (_, write) => {
    const before = await stored()
    await skipTimes(always)
    const { status, body, headers } = await write()
    expect([status, body.error, headers.get('Retry-After')]).toEqual([503, 'operation_failed', '1'])
    expect(await stored()).toEqual(before)
  })

  it('fails no other write of its batch', async () => {
    await skipTimes(always)
    const { data } = (await organization.send('POST', '/v1/people/batch', { operations: both })).body
    expect(data.items.map(({ status }: { status: number }) => status)).toEqual([503, 200])
    expect((await stored()).entities).toMatchObject([
      { external_id: 'ada', first_name: null, version: 1 },
      { external_id: 'bob', first_name: 'Ada', version: 2 },
    ])
  })

  it('makes a large set of an import be decided again as a whole', async () => {
    const lines = ['ada', ...names('p', 300)].map(external_id => ({ external_id }))
    await importLines(organization, '/v1/people/import', linesFrom(lines))
    const before = (await stored()).head[0].sequence
    await skipTimes(1)
    const merged = linesFrom(lines.map(line => ({ ...line, ...body })))
    const { counts } = await importLines(organization, '/v1/people/import', merged)
    expect(counts).toMatchObject({ updated: lines.length, failed: 0 })
    const { entities, head } = await stored()
    expect(entities.filter(({ version }: { version: number }) => version === 2)).toHaveLength(lines.length)
    expect(head).toEqual([{ sequence: before + lines.length }])
  })
})

it('loses no write to a trigger that moves the row within the transaction', async () => {
  await service.sql(
    `create function move_person() returns trigger language plpgsql as
       $$begin
         if nextval('skipped') <= (select times from skipping) then
           update entities set updated_at = updated_at where organization_id = new.organization_id and id = new.person_id;
         end if;
         return new;
       end$$`,
  )
  await service.sql(
    'create trigger move_person before insert on consent_history for each row execute function move_person()',
  )
  const answer = { consents: [{ consent_type_id: 1, channel: 'email', state: true }] }
  await skipTimes(1)
  expect((await organization.send('PATCH', '/v1/people/bob', answer)).status).toBe(200)
  expect((await organization.send('GET', '/v1/people/bob')).body.data).toMatchObject({
    email_consent: true,
    version: 2,
  })
  await skipTimes(always)
  expect((await organization.send('PATCH', '/v1/people/bob', answer)).status).toBe(503)
  const history = 'select version from consent_history where organization_id = $1'
  expect(await service.sql(history, [organization.id])).toEqual([{ version: 2 }])
  expect((await organization.send('GET', '/v1/people/bob')).body.data.version).toBe(2)
})

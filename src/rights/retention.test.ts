import { describe, expect, it } from 'vitest'
import { verifyReceipt } from '../../client/index.ts'
import { follow } from '../../test/support/followers.ts'
import { sealLedgers } from '../../test/support/ledger.ts'
import { importLines, linesFrom } from '../../test/support/lines.ts'
import { type Organization, useOwnService } from '../../test/support/service.ts'
import { createShop } from '../../test/support/shop.ts'
import { contextOf } from '../db/context.ts'
import type { Follower } from '../followers/follower.ts'
import { auditLedger } from '../ledger/audit.ts'
import { retentionFollower } from './retention.ts'

const service = useOwnService()
const dayMs = 86_400_000

/** Runs the retention of one organization with a clock that is `days` ahead. */
async function retain({ id }: Organization, days: number, logRetentionDays?: number) {
  const nowMs = () => Date.now() + days * dayMs
  const follower = retentionFollower({ logRetentionDays, nowMs, pausePerWork: 0 })
  const work: Follower['work'] = async task =>
    task.organization_id === id ? follower.work(task) : { sequence: task.after, notBeforeMs: nowMs() + dayMs }
  await follow(service.db, [{ ...follower, work, maxConcurrent: 100 }], { nowMs })
}

const organizationWithEvents = (retention_days: number | null): Promise<Organization> =>
  createShop(
    service,
    { key: 'visits', kind: 'event', retention_days },
    { key: 'orders', kind: 'event' },
    'visitor',
    { owner: 'visits', key: 'page', type: 'text', indexed: true },
    { owner: 'people', key: 'visited', type: 'stack', target_stack: 'visits', cardinality: 'many' },
  )

const visit = (n: number) => ({ external_id: `visit ${n}`, attribute_values: { visitor: 'ada', page: `page ${n}` } })

/** All rows of an organization in a table, as text. */
const textOf = async ({ id }: Organization, table: string) =>
  JSON.stringify(await service.sql(`select to_jsonb(t) as row from ${table} t where organization_id = $1`, [id]))

const countOf = async ({ id }: Organization, table: string, condition: string) =>
  (
    await service.sql<{ count: number }>(
      `select count(*)::integer as count from ${table} where organization_id = $1 and ${condition}`,
      [id],
    )
  )[0]!.count

describe('the retention of an event stack', () => {
  it('erases records when they are as old, with their links, index keys, log and quotes', async () => {
    const organization = await organizationWithEvents(30)
    const { send } = organization
    const { record_id } = (await send('POST', '/v1/stacks/visits', visit(1))).body.data
    await send('POST', '/v1/stacks/orders', { external_id: 'order', attribute_values: { a: 1 } })
    await send('PATCH', '/v1/people/ada', { first_name: 'Ada', attribute_values: { visited: ['visit 1'] } })
    await retain(organization, 29.9)
    expect((await send('GET', '/v1/stacks/visits/visit%201')).status).toBe(200)
    const { head } = (await send('GET', '/v1/changes')).body.data
    await retain(organization, 30.1)
    expect((await send('GET', '/v1/stacks/visits/visit%201')).status).toBe(404)
    expect((await send('GET', '/v1/stacks/orders/order')).status).toBe(200)
    expect((await send('GET', '/v1/people/ada')).body.data).toMatchObject({ first_name: 'Ada', attribute_values: {} })
    for (const table of ['entities', 'links', 'terms', 'changes'])
      expect([table, await textOf(organization, table)]).toEqual([table, expect.not.stringMatching(/visit 1|page 1/)])
    const { items } = (await send('GET', `/v1/changes?after=${head}`)).body.data
    expect(items).toMatchObject([
      {
        sequence: head + 1,
        subject: 'record',
        id: record_id,
        external_id: null,
        stack_key: 'visits',
        operation: 'erase',
        version: 2,
        before: null,
        after: {},
        actor: 'retention',
      },
    ])
    const history = (await send('GET', `/v1/stacks/visits/internal/${record_id}/history`)).body.data.items
    expect(history.map(({ before, after }: { before: unknown; after: unknown }) => [before, after])).toEqual([
      [null, {}],
      [null, {}],
    ])
    // Retention leaves no tombstone, so the name is free.
    expect((await send('POST', '/v1/stacks/visits', visit(1))).status).toBe(201)
  })

  it('works in sets, counts what it has erased, and does nothing twice', async () => {
    const organization = await organizationWithEvents(1)
    await importLines(
      organization,
      '/v1/stacks/visits/import',
      linesFrom(Array.from({ length: 2_300 }, (_, n) => visit(n))),
    )
    const removed = async () => {
      const text = await (await fetch(`${service.address}/metrics`)).text()
      return Number(/^kith_retention_removed_total\{kind="records"\} (\d+)$/m.exec(text)?.[1] ?? 0)
    }
    const before = await removed()
    await retain(organization, 2)
    expect(await removed()).toBe(before + 2_300)
    expect(await countOf(organization, 'entities', 'stack_id = 1')).toBe(0)
    expect(await countOf(organization, 'changes', `operation = 'erase'`)).toBe(2_300)
    await retain(organization, 3)
    expect(await removed()).toBe(before + 2_300)
  })

  it('can be turned off, and an organization where nothing else happens is reached all the same', async () => {
    const organization = await organizationWithEvents(null)
    await organization.send('POST', '/v1/stacks/visits', visit(1))
    for (const day of [100, 101]) await retain(organization, day, 1)
    expect(await countOf(organization, 'entities', 'stack_id = 1')).toBe(1)
    await service.sql('update stacks set retention_days = 102, version = 1000 where organization_id = $1 and id = 1', [
      organization.id,
    ])
    await service.sql('update change_heads set schema_version = schema_version + 1 where organization_id = $1', [
      organization.id,
    ])
    await retain(organization, 101)
    expect(await countOf(organization, 'entities', 'stack_id = 1')).toBe(1)
    await retain(organization, 103)
    expect(await countOf(organization, 'entities', 'stack_id = 1')).toBe(0)
  })
})

describe('the retention of the log', () => {
  /** Creates an organization with a person with a history, a deleted person, and an answer. */
  async function organizationWithHistory() {
    const organization = await service.organization()
    const { send } = organization
    const ada = (
      await send('POST', '/v1/people', {
        external_id: 'ada',
        first_name: 'Ada',
        email: 'ada@example.com',
        email_consent: true,
      })
    ).body.data
    await send('PATCH', '/v1/people/ada', { first_name: 'Augusta' })
    await send('PATCH', '/v1/people/ada', { external_id: 'augusta' })
    const bob = (await send('POST', '/v1/people', { external_id: 'bob', first_name: 'Bob' })).body.data
    await send('DELETE', '/v1/people/bob')
    await send('POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' })
    return { ...organization, ada: ada.id as string, bob: bob.id as string }
  }

  /** Returns the sealed part of the receipt of Ada's answer, and checks that the receipt verifies. */
  async function sealedPartOf({ send }: Organization) {
    const { status, body } = await send('GET', '/v1/people/augusta/consents/1/email/receipt')
    expect([status, body.error]).toEqual([200, undefined])
    await verifyReceipt(Buffer.from(JSON.stringify(body.data)))
    const { entry, salt, tlog_proof } = body.data
    return { entry, salt, tlog_proof }
  }

  it('removes the values of old changes of people and records, and keeps numbers, times, definitions and answers', async () => {
    const organization = await organizationWithHistory()
    const { send, ada } = organization
    await sealLedgers(service)
    const read = async () => (await send('GET', '/v1/changes?limit=1000')).body.data.items as Record<string, unknown>[]
    const before = await read()
    const answers = (await send('GET', '/v1/people/augusta/consents/history')).body.data
    const receipt = await sealedPartOf(organization)
    await retain(organization, 6, 7)
    expect(await read()).toEqual(before)
    await retain(organization, 8, 7)
    const after = await read()
    const withoutValues = ({ before, after, ...rest }: Record<string, unknown>) => rest
    expect(after.map(withoutValues)).toEqual(before.map(withoutValues))
    expect(after.filter(({ subject }) => subject === 'person').map(change => [change.before, change.after])).toEqual([
      [null, {}],
      [null, {}],
      // The released names stay, because the versions of the next entities with these names continue from them.
      [{ external_id: 'ada' }, {}],
      [null, {}],
      [{ external_id: 'bob' }, {}],
    ])
    expect(after.filter(({ subject }) => subject === 'stack')).toEqual(
      before.filter(({ subject }) => subject === 'stack'),
    )
    expect((await send('GET', '/v1/people/augusta/consents/history')).body.data).toEqual(answers)
    expect(await sealedPartOf(organization)).toEqual(receipt)
    expect((await send('GET', '/v1/people/augusta')).body.data).toMatchObject({
      id: ada,
      first_name: 'Augusta',
      version: 3,
    })
    expect((await auditLedger(contextOf(service.db, organization.id))).findings).toEqual([])
    expect((await send('POST', '/v1/people', { external_id: 'bob' })).body.data.version).toBe(3)
  })

  it('does not keep an answer from the ledger that is sealed only after its change was emptied', async () => {
    const organization = await organizationWithHistory()
    await retain(organization, 8, 7)
    await sealLedgers(service)
    expect((await sealedPartOf(organization)).entry).toMatchObject({ person_id: organization.ada, state: true })
    expect((await auditLedger(contextOf(service.db, organization.id))).findings).toEqual([])
  })

  it('makes the states 404 that follow from the removed values, and no later ones wrong', async () => {
    const organization = await organizationWithHistory()
    const { send, ada, bob } = organization
    const at = new Date().toISOString()
    await retain(organization, 8, 7)
    await send('PATCH', `/v1/people/internal/${ada}`, { last_name: 'King' })
    for (const query of ['version=1', 'version=2', 'version=3', `at=${at}`])
      expect([query, (await send('GET', `/v1/people/internal/${ada}?${query}`)).status]).toEqual([query, 404])
    expect((await send('POST', `/v1/people/internal/${bob}/restore`)).status).toBe(404)
    const purpose = { consent_type_id: 1, channel: 'email' }
    expect((await send('POST', `/v1/people/internal/${ada}/contactable`, { ...purpose, at })).status).toBe(404)
    expect((await send('POST', `/v1/people/internal/${ada}/contactable`, purpose)).body.data.allowed).toBe(true)
  })

  it('does not take a placeholder that was completed later for a whole entity', async () => {
    const organization = await createShop(service, 'referrer')
    const { send } = organization
    await send('POST', '/v1/people', { external_id: 'ada', attribute_values: { referrer: 'bob' } })
    await retain(organization, 8, 7)
    await send('POST', '/v1/people', { external_id: 'bob', first_name: 'Bob' })
    expect((await send('GET', '/v1/people/bob?version=2')).status).toBe(404)
  })

  it('works in sets over any number of changes, and continues where it was', async () => {
    const organization = await service.organization()
    const { send } = organization
    await importLines(
      organization,
      '/v1/people/import',
      linesFrom(Array.from({ length: 2_500 }, (_, n) => ({ external_id: `p${n}`, first_name: 'Old' }))),
    )
    await retain(organization, 8, 7)
    expect(await countOf(organization, 'changes', `after <> '{}'`)).toBe(0)
    await send('POST', '/v1/people', { external_id: 'new', first_name: 'New' })
    expect(await countOf(organization, 'changes', `after <> '{}'`)).toBe(1)
    await retain(organization, 9, 7)
    expect(await countOf(organization, 'changes', `after <> '{}'`)).toBe(0)
    expect((await send('GET', '/v1/people/p7')).body.data.first_name).toBe('Old')
  })
})

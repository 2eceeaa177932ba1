import { beforeAll, describe, expect, it } from 'vitest'
import { findCanaries, type PlantedPerson, plantCanaries, readTables } from '../../../test/support/person-canaries.ts'
import { type Organization, useOwnService } from '../../../test/support/service.ts'
import { expectSuccess } from '../../../test/support/shop.ts'
import { contextOf } from '../../db/context.ts'
import { statement } from '../../db/db.ts'
import { runAndRollBack } from '../../db/run-and-roll-back.ts'
import { auditLedger } from '../../ledger/audit.ts'
import { erasePerson } from './erase-person.ts'
import { type ErasedTable, erasedTables, keptTables, tablesErasedElsewhere } from './erased-tables.ts'

const service = useOwnService({ KITH_WEBHOOK_ALLOW: '127.0.0.0/8' })

const reason = 'Request of the person'

describe('the lists of tables', () => {
  it('have every table of the database, with a reason, and no other one', async () => {
    const listed = [
      ...new Set(erasedTables.map(({ table }) => table)),
      ...Object.keys(tablesErasedElsewhere),
      ...Object.keys(keptTables),
    ]
    expect(listed.toSorted()).toEqual(await readTables(service))
  })

  describe('of a person with canaries', () => {
    let organization: Organization
    let person: PlantedPerson
    let canaries: Record<string, string>
    let planted: Map<string, string[]>
    beforeAll(async () => {
      organization = await service.organization()
      person = await plantCanaries(service, organization)
      const salts = await service.sql<{ salt: string }>(
        `select encode(salt, 'hex') as salt from ledger_entries where organization_id = $1`,
        [organization.id],
      )
      canaries = { ...person.canaries, ...Object.fromEntries(salts.map(({ salt }, n) => [`salt ${n}`, salt])) }
      planted = await readCanaryRows(service.sql)
    })

    /**
     * Reads the rows that contain a canary, by table. If a table has no text of a person, its rows count by the id of
     * the person.
     */
    async function readCanaryRows(sql: typeof service.sql): Promise<Map<string, string[]>> {
      const texts = Object.values(canaries).map(text => JSON.stringify(text).slice(1, -1).toLowerCase())
      const found = new Map<string, string[]>()
      const listed = [...erasedTables.map(row => row.table), ...Object.keys(tablesErasedElsewhere)]
      // A text search cannot read the compressed access log. src/accesses/access-log.test.ts checks it.
      for (const table of listed.filter(name => name !== 'access_batches')) {
        const rows = await sql<{ row: string }>(`select lower(to_jsonb(t)::text) as row from "${table}" t`)
        const having = (values: string[]) =>
          rows.map(({ row }) => row).filter(row => values.some(value => row.includes(value)))
        const withTexts = having(texts)
        found.set(table, withTexts.length > 0 ? withTexts : having([person.id]))
      }
      return found
    }

    /**
     * Erases without one of the statements, in a transaction that is rolled back. Returns the rows that are left, by
     * table.
     */
    async function eraseWithout(leftOut?: ErasedTable): Promise<Map<string, string[]>> {
      let left = new Map<string, string[]>()
      const transaction = (async work =>
        runAndRollBack(service.db, async tx => {
          const query = (async (sent, values) =>
            sent === leftOut?.statement ? [{ count: 0 }] : tx.query(sent, values)) as typeof tx.query
          const result = await work({ ...tx, query, commit: async () => {} })
          left = await readCanaryRows(text => tx.query(statement('', text), []))
          return result
        })) as typeof service.db.transaction
      const request = { person_id: person.id, reason, records: 'linked' as const, actor: 'tests', request_id: 'r' }
      const reached = contextOf({ ...service.db, transaction }, organization.id)
      const context = { ...reached, originName: service.config.ledgerOrigin }
      await erasePerson(context, request)
      return left
    }

    it('have a table with canaries in each row before the erasure', () => {
      expect([...planted].filter(([, rows]) => rows.length === 0)).toEqual([])
    })

    it('leave no row of the database with a canary as it was', async () => {
      const left = await eraseWithout()
      for (const [table, rows] of planted)
        expect([table, rows.filter(row => left.get(table)!.includes(row))]).toEqual([table, []])
    })

    it.each(erasedTables.map(row => ({ ...row, name: row.statement.name })))(
      'need the statement $name, without which a canary stays in $table',
      async ({ name, table }) => {
        const left = await eraseWithout(erasedTables.find(row => row.statement.name === name))
        expect(planted.get(table)!.filter(row => left.get(table)!.includes(row))).not.toEqual([])
      },
    )

    it('name every table that has a canary, and an erasure leaves none and certifies them', async () => {
      const sightings = await findCanaries(service, person.canaries)
      expect(sightings.filter(({ column }) => keptTables[column.split('.')[0]!] !== undefined)).toEqual([])
      const places = new Set(sightings.map(({ place }) => place))
      expect(Object.keys(person.canaries).filter(place => !places.has(place))).toEqual([])
      const { body } = await expectSuccess(
        organization.send('POST', `/v1/people/internal/${person.id}/erase`, { reason, records: 'linked' }),
      )
      // The row keeps the time of a refusal, which tells it from an older grant that arrives later. Its address is a
      // keyed hash.
      expect(await findCanaries(service, person.canaries)).toEqual([
        { column: 'address_answers.answered_at', place: 'the time of an answer' },
      ])
      expect(body.data.erasure).toMatchObject({
        person_id: person.id,
        merged_ids: [person.merged_id],
        record_ids: expect.arrayContaining([{ stack_key: 'orders', record_id: person.order_id }]),
      })
      // The company has no link with another person.
      expect(body.data.erasure.record_ids.map(({ record_id }: { record_id: string }) => record_id)).toContain(
        person.company_id,
      )
      const { findings } = await auditLedger(contextOf(service.db, organization.id), { since: undefined })
      expect(findings).toEqual([])
      expect(Object.keys(body.data.erasure.removed).toSorted()).toEqual(
        [...planted.keys()].filter(table => !['terms', 'search_features', 'search_words'].includes(table)).toSorted(),
      )
      // Each address of the erased person is still suppressed for the next person who has it.
      for (const place of ['the email', 'an earlier email', 'the email of the merged person']) {
        const again = { external_id: place, email: `${canaries[place]}@example.com` }
        await expectSuccess(organization.send('POST', '/v1/people', again, { Prefer: 'erased=recreate' }))
        const path = `/v1/people/${encodeURIComponent(place)}/deliverability`
        const { items } = (await expectSuccess(organization.send('GET', path))).body.data
        expect(items).toMatchObject([{ address: again.email, state: 'suppressed', suppression: { reference: null } }])
      }
      // The linked people stay, without references to the person.
      const grace = (await expectSuccess(organization.send('GET', '/v1/people/grace'))).body.data
      expect(grace.attribute_values).toEqual({ friends: ['bob'], city: 'Rome' })
      const erased = { id: person.id, erased: true }
      const log = (await expectSuccess(organization.send('GET', '/v1/people/grace/history'))).body.data.items
      expect(log.map((change: { after: object }) => change.after)).toEqual([
        { attribute_values: { friends: ['bob', erased], city: 'Rome' } },
        { attribute_values: { friends: [erased] } },
        expect.objectContaining({ attribute_values: { referrer: erased, friends: ['bob', erased] } }),
      ])
    })
  })
})

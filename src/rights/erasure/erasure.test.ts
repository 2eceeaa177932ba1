import { describe, expect, it } from 'vitest'
import { readFeed } from '../../../test/support/changes.ts'
import { follow } from '../../../test/support/followers.ts'
import { sealLedgers } from '../../../test/support/ledger.ts'
import { importLines, linesFrom } from '../../../test/support/lines.ts'
import { findCanaries } from '../../../test/support/person-canaries.ts'
import { createLoopbackSender, startReceiver } from '../../../test/support/receiver.ts'
import { type Organization, type Reply, useOwnService } from '../../../test/support/service.ts'
import { createShop, expectSuccess, useSharedShop } from '../../../test/support/shop.ts'
import { contextOf } from '../../db/context.ts'
import { statement } from '../../db/db.ts'
import { auditLedger } from '../../ledger/audit.ts'
import { verifyCertificate } from '../../ledger/certificate.ts'
import { ledgerFollower } from '../../ledger/seal.ts'
import { webhookFollower } from '../../webhooks/deliver.ts'
import { completeErasures, erasePerson, notRemoved } from './erase-person.ts'

const service = useOwnService({ KITH_WEBHOOK_ALLOW: '127.0.0.0/8' })
const shop = useSharedShop(service, 'referrer', 'friends', 'employer')

const reason = 'Request of the person'
const erase = ({ send }: Organization, path: string, body: object = {}) =>
  send('POST', `/v1/people/${path}/erase`, { reason, ...body })
const recreate = { Prefer: 'erased=recreate' }
const ofStatus = (reply: Reply) => [reply.status, reply.body.reason, reply.body.details?.map(({ path }) => path)]
const erasedAt = (path: string, status = 409) => [status, 'erased', [path]]

let people = 0
/** Creates a person with a unique name, email and phone number. */
async function createPerson({ send } = shop, body: object = {}) {
  people += 1
  const external_id = `person-${people}`
  const email = `Person.${people}@example.com`
  const mobile = { mobile_prefix: '+39', mobile_number: `333${String(people).padStart(7, '0')}` }
  const { id } = (await expectSuccess(send('POST', '/v1/people', { external_id, email, ...mobile, ...body }))).body.data
  return { id: id as string, external_id, email, ...mobile }
}

/** Creates an organization with one erased person. */
async function eraseOne() {
  const organization = await createShop(service, 'referrer', 'friends')
  const person = await createPerson(organization)
  await expectSuccess(erase(organization, person.external_id))
  return { organization, person, send: organization.send }
}

const erasingOf = ({ id }: { id: number }) => ({
  ...contextOf(service.db, id),
  originName: service.config.ledgerOrigin,
})

describe('the certificate', () => {
  it('states what was removed, by table, is signed, and is the same when asked again, under each identifier', async () => {
    const { id, external_id } = await createPerson()
    await expectSuccess(shop.send('PATCH', `/v1/people/${external_id}`, { first_name: 'Ada' }))
    const first = await expectSuccess(erase(shop, external_id))
    const { certificate, erasure, completed, dry_run } = first.body.data
    expect([first.status, completed, dry_run]).toEqual([200, true, false])
    expect(erasure).toMatchObject({
      person_id: id,
      reason,
      records: 'keep',
      removed: { entities: 1, changes: 2 },
      tombstones: 3,
    })
    const content = await verifyCertificate(certificate)
    expect([content.organization, content.erasure]).toEqual([shop.key, erasure])
    const keys = (await expectSuccess(shop.send('GET', '/v1/ledger/keys'))).body.data.keys
    expect(keys.map(({ key }: { key: string }) => key)).toContain(content.verifier_key)
    for (const path of [external_id, `internal/${id}`, `internal/${id.toUpperCase()}`])
      expect((await expectSuccess(erase(shop, path, { reason: 'Again' }))).body.data).toEqual(first.body.data)
    const [header, payload, signature] = certificate.split('.')
    const changed = Buffer.from(JSON.stringify({ ...content, organization: 'other' })).toString('base64url')
    await expect(verifyCertificate([header, changed, signature].join('.'))).rejects.toMatchObject({ part: 'signature' })
    await expect(verifyCertificate(`${header}.${payload}`)).rejects.toMatchObject({ part: 'certificate' })
  })

  it('is listed, newest first, in pages, for its organization only', async () => {
    const organization = await createShop(service)
    const ids: string[] = []
    for (let index = 0; index < 3; index += 1) {
      const { id, external_id } = await createPerson(organization)
      ids.unshift(id)
      await expectSuccess(erase(organization, external_id))
    }
    const page = (await expectSuccess(organization.send('GET', '/v1/erasures?limit=2'))).body.data
    expect([page.items.map(({ person_id }: { person_id: string }) => person_id), page.has_more]).toEqual([
      ids.slice(0, 2),
      true,
    ])
    const rest = (await expectSuccess(organization.send('GET', `/v1/erasures?before=${page.items[1].id}`))).body.data
    expect([rest.items.map(({ person_id }: { person_id: string }) => person_id), rest.has_more]).toEqual([
      ids.slice(2),
      false,
    ])
  })

  it('is not given for a dry run, which erases nothing and says what an erasure would remove', async () => {
    const { external_id } = await createPerson()
    const before = (await expectSuccess(shop.send('GET', `/v1/people/${external_id}`))).body.data
    const { body } = await expectSuccess(erase(shop, external_id, { dry_run: true }))
    expect(body.data).toMatchObject({
      certificate: null,
      dry_run: true,
      erasure: { id: null, removed: { entities: 1 } },
    })
    expect((await expectSuccess(shop.send('GET', `/v1/people/${external_id}`))).body.data).toEqual(before)
  })
})

describe('an erasure', () => {
  it('needs the scope people:erase, a reason, and somebody', async () => {
    const { external_id } = await createPerson()
    const token = await service.tokenFor(shop.key, 'people:read people:write')
    expect((await service.sender(token)('POST', `/v1/people/${external_id}/erase`, { reason })).status).toBe(403)
    const refused = await shop.send('POST', `/v1/people/${external_id}/erase`, {})
    expect([refused.status, refused.body.details?.[0]?.path]).toEqual([400, '/reason'])
    expect((await erase(shop, 'nobody')).status).toBe(404)
    expect((await erase(shop, 'internal/01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f')).status).toBe(404)
    expect((await shop.send('GET', `/v1/people/${external_id}`)).status).toBe(200)
  })

  it('is refused with 412 if If-Match names another version, and for a person who is deleted or erased', async () => {
    const { id, external_id } = await createPerson()
    const merged = await createPerson()
    await expectSuccess(shop.send('POST', `/v1/people/${external_id}/merge`, { from: merged.external_id }))
    const ifMatch = (value: string, address = external_id, body: object = {}) =>
      shop.send('POST', `/v1/people/${address}/erase`, { reason, ...body }, { 'If-Match': value })
    const { version } = (await expectSuccess(shop.send('GET', `/v1/people/${external_id}`))).body.data
    for (const body of [{}, { dry_run: true }])
      for (const address of [external_id, merged.external_id, `internal/${merged.id}`]) {
        const refused = await ifMatch(`"${version + 1}", W/"${version}"`, address, body)
        expect([refused.status, refused.body.error]).toEqual([412, 'invalid_parameter'])
      }
    expect((await ifMatch('7', external_id)).status).toBe(400)
    expect((await expectSuccess(shop.send('GET', `/v1/people/${external_id}`))).body.data.version).toBe(version)
    expect((await expectSuccess(ifMatch('*', external_id, { dry_run: true }))).body.data.dry_run).toBe(true)
    const { erasure } = (await expectSuccess(ifMatch(`"${version}"`, merged.external_id))).body.data
    expect(erasure.person_id).toBe(id)
    for (const value of ['*', `"${version}"`, `"${version + 1}"`])
      expect([value, (await ifMatch(value, `internal/${id}`)).status]).toEqual([value, 412])
    expect((await expectSuccess(erase(shop, external_id))).body.data.erasure).toEqual(erasure)

    const deleted = await createPerson()
    await expectSuccess(shop.send('DELETE', `/v1/people/${deleted.external_id}`))
    for (const value of ['*', '"1"', '"2"'])
      expect([value, (await ifMatch(value, deleted.external_id)).status]).toEqual([value, 412])
    expect((await expectSuccess(erase(shop, deleted.external_id))).body.data.erasure.person_id).toBe(deleted.id)
    expect((await ifMatch('*', 'nobody')).status).toBe(404)
  })

  it('of a person of another organization with the same identifiers is 404, and touches nothing', async () => {
    const [one, other] = [await createShop(service), await createShop(service)]
    const body = { external_id: 'ada', email: 'ada@example.com' }
    const { id } = (await expectSuccess(one.send('POST', '/v1/people', body))).body.data
    await expectSuccess(other.send('POST', '/v1/people', body))
    expect((await erase(other, `internal/${id}`)).status).toBe(404)
    await expectSuccess(erase(one, 'ada'))
    expect((await other.send('GET', '/v1/people/ada')).status).toBe(200)
    await expectSuccess(other.send('PATCH', '/v1/people/ada', { email: 'ada@example.org' }))
    expect((await one.send('GET', '/v1/people/ada')).status).toBe(404)
  })

  it('takes a deleted person, under the last external identifier and the internal one', async () => {
    for (const by of ['name', 'id']) {
      const { id, external_id } = await createPerson()
      await expectSuccess(shop.send('DELETE', `/v1/people/${external_id}`))
      const { erasure } = (await expectSuccess(erase(shop, by === 'name' ? external_id : `internal/${id}`))).body.data
      expect(erasure).toMatchObject({ person_id: id, removed: { changes: 2 } })
      expect((await shop.send('POST', `/v1/people/internal/${id}/restore`)).status).toBe(404)
    }
  })

  it('takes a placeholder', async () => {
    await expectSuccess(shop.send('POST', '/v1/people', { attribute_values: { referrer: 'only linked' } }))
    await expectSuccess(erase(shop, 'only%20linked'))
    expect((await shop.send('GET', '/v1/people/only%20linked')).status).toBe(404)
  })

  it('is happening once for concurrent requests, which get the same certificate', async () => {
    const { external_id } = await createPerson()
    const replies = await Promise.all(Array.from({ length: 8 }, () => expectSuccess(erase(shop, external_id))))
    expect(new Set(replies.map(({ body }) => body.data.certificate)).size).toBe(1)
  })

  it('of two people who link to each other at the same time takes both', async () => {
    const [one, other] = [await createPerson(), await createPerson()]
    await expectSuccess(
      shop.send('PATCH', `/v1/people/${one.external_id}`, { attribute_values: { referrer: other.external_id } }),
    )
    await expectSuccess(
      shop.send('PATCH', `/v1/people/${other.external_id}`, { attribute_values: { referrer: one.external_id } }),
    )
    await Promise.all([expectSuccess(erase(shop, one.external_id)), expectSuccess(erase(shop, other.external_id))])
    expect(await findCanaries(service, { one: one.external_id, other: other.external_id })).toEqual([])
  })

  it('leaves nothing of the person next to writes to the person and to those who link to it', async () => {
    const person = await createPerson()
    const { external_id } = person
    const quote = { attribute_values: { friends: [external_id] } }
    let isOver = false
    const writing = Array.from({ length: 4 }, async (_, index) => {
      while (!isOver) {
        await shop.send('PATCH', `/v1/people/${external_id}`, { last_name: `${external_id} ${Math.random()}` })
        await shop.send(
          'POST',
          '/v1/people/upsert',
          { external_id: `linker-${index}`, ...quote },
          { 'Idempotency-Key': `${Math.random()}` },
        )
        await shop.send('PATCH', `/v1/people/linker-${index}`, { attribute_values: { friends: [] } })
      }
    })
    await expectSuccess(shop.send('POST', '/v1/people/upsert', { external_id: 'linker-0', ...quote }))
    await expectSuccess(erase(shop, external_id))
    isOver = true
    await Promise.all(writing)
    expect(await findCanaries(service, { name: external_id, email: person.email })).toEqual([])
  })

  it('with `records: linked` keeps the records that somebody else is joined to', async () => {
    const { id, external_id } = await createPerson()
    const { external_id: other } = await createPerson()
    await expectSuccess(shop.send('PATCH', `/v1/people/${external_id}`, { attribute_values: { employer: 'shared' } }))
    await expectSuccess(shop.send('PATCH', `/v1/people/${other}`, { attribute_values: { employer: 'shared' } }))
    const { erasure } = (await expectSuccess(erase(shop, `internal/${id}`, { records: 'linked' }))).body.data
    expect(erasure.record_ids).toEqual([])
    expect((await shop.send('GET', '/v1/stacks/companies/shared')).status).toBe(200)
  })

  it('behaves as complete for every reader while a long log is being erased in several transactions', async () => {
    const organization = await createShop(service)
    const person = await createPerson(organization, { email_consent: true })
    for (let index = 0; index < 5; index += 1)
      await expectSuccess(
        organization.send('PATCH', `/v1/people/${person.external_id}`, { first_name: `secret ${index}` }),
      )
    const context = { ...erasingOf(organization), maxChanges: 3 }
    const request = { person_id: person.id, reason, records: 'keep' as const, actor: 'tests', request_id: 'r' }
    // The first transaction commits, and then the process ends.
    const stopping = { ...service.db, transaction: failAfter(1) }
    await expect(erasePerson({ ...context, db: stopping }, request)).rejects.toThrow('the process ends')
    const history = (await expectSuccess(organization.send('GET', `/v1/people/internal/${person.id}/history`))).body
      .data.items
    expect(history.map(({ before, after }: { before: object; after: object }) => [before, after])).toEqual(
      Array.from({ length: 7 }, () => [null, {}]),
    )
    const feed = JSON.stringify(
      (await expectSuccess(organization.send('GET', '/v1/changes?limit=1000'))).body.data.items,
    )
    expect(feed).not.toContain('secret')
    expect(feed).not.toContain(person.external_id)
    for (const path of ['', '?version=2', '/contactable'])
      expect((await organization.send('GET', `/v1/people/internal/${person.id}${path}`)).status).not.toBe(200)
    const listed = (await expectSuccess(organization.send('GET', '/v1/erasures'))).body.data.items
    expect(listed).toMatchObject([{ person_id: person.id, completed_at: null, certificate: null }])
    await completeErasures(service.db, service.config.ledgerOrigin)
    const { completed, erasure } = (await expectSuccess(erase(organization, `internal/${person.id}`))).body.data
    expect([completed, erasure.removed.changes]).toEqual([true, 6])
    expect(await findCanaries(service, { name: person.external_id, values: 'secret ' })).toEqual([])
  })

  /**
   * Creates an organization where five entities link to a person. A deleted entity and another one linked to it before.
   */
  async function createLinked() {
    const organization = await createShop(service, 'referrer', 'friends')
    const { send } = organization
    const person = await createPerson(organization)
    const { external_id } = person
    const attribute_values = { friends: [external_id, 'bob'], referrer: external_id }
    for (let index = 0; index < 7; index += 1)
      await expectSuccess(send('POST', '/v1/people', { external_id: `linker-${index}`, attribute_values }))
    await expectSuccess(send('PATCH', '/v1/people/linker-5', { attribute_values: { friends: null, referrer: null } }))
    await expectSuccess(send('DELETE', '/v1/people/linker-6'))
    const context = { ...erasingOf(organization), maxLinks: 3 }
    const request = { person_id: person.id, reason, records: 'keep' as const, actor: 'tests', request_id: 'r' }
    return { organization, person, context, request }
  }

  const countLinks = async (id: string) =>
    (await service.sql<{ count: number }>('select count(*)::integer from links where target_id = $1', [id]))[0]!.count

  it('of a person to whom many link is 202 while their links go, shows none of them, and counts them as one transaction does', async () => {
    const { organization, person, context, request } = await createLinked()
    const first = await erasePerson({ ...context, maxMs: 0 }, request)
    expect([first!.completed, first!.certificate]).toEqual([false, null])
    expect(await countLinks(person.id)).toBe(7)
    expect(await findCanaries(service, { name: person.external_id, email: person.email })).toEqual([])
    const read = (await expectSuccess(organization.send('GET', '/v1/people/linker-4'))).body.data
    expect(read.attribute_values).toEqual({ friends: ['bob'] })

    const path = `internal/${person.id}`
    await service.db.transaction(async tx => {
      await tx.query(statement('', 'select from erasures where organization_id = $1 for update'), [organization.id])
      const meanwhile = await erase(organization, path)
      expect([meanwhile.status, meanwhile.body.data]).toMatchObject([202, { completed: false, certificate: null }])
    })
    const last = await expectSuccess(erase(organization, path))
    expect([last.status, last.body.data.completed, await countLinks(person.id)]).toEqual([200, true, 0])
    const { organization: content, erasure } = await verifyCertificate(last.body.data.certificate)
    expect([content, erasure]).toEqual([organization.key, last.body.data.erasure])
    expect((await expectSuccess(erase(organization, path))).body.data).toEqual(last.body.data)

    const twin = await createLinked()
    const whole = (await expectSuccess(erase(twin.organization, `internal/${twin.person.id}`))).body.data
    expect(erasure.removed).toEqual(whole.erasure.removed)
    expect(erasure.removed).toMatchObject({ changes: 1, links: 10 })
  })

  it('goes on with the links after the process has ended between two sets, also in the background', async () => {
    const { organization, person, context, request } = await createLinked()
    const stopping = { ...service.db, transaction: failAfter(2) }
    await expect(erasePerson({ ...context, db: stopping }, request)).rejects.toThrow('the process ends')
    expect(await countLinks(person.id)).toBe(7)
    await completeErasures(service.db, service.config.ledgerOrigin)
    expect(await countLinks(person.id)).toBe(0)
    const [listed] = (await expectSuccess(organization.send('GET', '/v1/erasures'))).body.data.items
    const { certificate } = (await expectSuccess(erase(organization, `internal/${person.id}`))).body.data
    expect([typeof certificate, listed.certificate]).toEqual(['string', certificate])
  })

  it('leaves the ids of the person in the log of others, which shows that it was erased, beside a new person of the name', async () => {
    const { organization, person, context, request } = await createLinked()
    const { external_id } = person
    await erasePerson({ ...context, maxMs: 0 }, request)
    const link = { attribute_values: { friends: [external_id] } }
    await expectSuccess(organization.send('PATCH', '/v1/people/linker-4', link, recreate))
    const readHistory = async () =>
      (await expectSuccess(organization.send('GET', '/v1/people/linker-4/history'))).body.data.items.map(
        ({ after }: { after: { attribute_values: object } }) => after.attribute_values,
      )
    const erased = { id: person.id, erased: true }
    const expected = [link.attribute_values, { friends: [erased, 'bob'], referrer: erased }]
    expect(await readHistory()).toEqual(expected)
    await completeErasures(service.db, service.config.ledgerOrigin)
    expect(await readHistory()).toEqual(expected)
    const read = (await expectSuccess(organization.send('GET', '/v1/people/linker-4'))).body.data
    expect(read.attribute_values).toEqual(link.attribute_values)
  })

  it('of two people takes the links to both from the same sources, also at the same time', async () => {
    const { organization, person, context, request } = await createLinked()
    const other = await createPerson(organization)
    const friends = [person.external_id, other.external_id]
    for (let index = 0; index < 9; index += 1)
      await expectSuccess(
        organization.send('POST', '/v1/people', { external_id: `both-${index}`, attribute_values: { friends } }),
      )
    const results = await Promise.all(
      [person, other].map(({ id }) => erasePerson(context, { ...request, person_id: id })),
    )
    for (const result of results) expect(result!.completed).toBe(true)
    expect([await countLinks(person.id), await countLinks(other.id)]).toEqual([0, 0])
    expect(await findCanaries(service, { one: person.external_id, other: other.external_id })).toEqual([])
  })

  /** Transactions of the service's database that fail after the first `count`. */
  function failAfter(count: number): typeof service.db.transaction {
    let begun = 0
    return (work, options) => {
      begun += 1
      if (begun > count) throw new Error('the process ends')
      return service.db.transaction(work, options)
    }
  }
})

describe('a name that several people had, one after the other', () => {
  /**
   * Creates three people with one name: the first two were deleted, and the third has the name. Returns their ids,
   * oldest first.
   */
  async function createHolders() {
    const first = await createPerson()
    const { external_id } = first
    const path = `/v1/people/${external_id}`
    await expectSuccess(shop.send('DELETE', path))
    const second = (await expectSuccess(shop.send('POST', '/v1/people', { external_id }))).body.data
    await expectSuccess(shop.send('PATCH', path, { external_id: `${external_id}-renamed` }))
    await expectSuccess(shop.send('DELETE', `${path}-renamed`))
    const third = (await expectSuccess(shop.send('POST', '/v1/people', { external_id }))).body.data
    return { external_id, ids: [first.id, second.id, third.id] as [string, string, string] }
  }

  it('erases the one who has it once, however often it is asked, and tells of those who had it before', async () => {
    const { external_id, ids } = await createHolders()
    const others = [ids[1], ids[0]]
    const rehearsed = (await expectSuccess(erase(shop, external_id, { dry_run: true }))).body.data
    expect([rehearsed.erasure.person_id, rehearsed.other_holders]).toEqual([ids[2], others])
    const [about] = (await expectSuccess(shop.send('GET', `/v1/people/${external_id}/dossier`))).body.data
    expect([about.person.id, about.other_holders]).toEqual([ids[2], others])
    const { certificate } = (await expectSuccess(erase(shop, external_id))).body.data
    for (let repeated = 0; repeated < 2; repeated += 1)
      expect((await expectSuccess(erase(shop, external_id))).body.data).toMatchObject({
        certificate,
        erasure: { person_id: ids[2] },
        other_holders: others,
      })
    const asked = { consent_type_id: 1, channel: 'email' }
    const decision = (await expectSuccess(shop.send('POST', `/v1/people/${external_id}/contactable`, asked))).body.data
    expect(decision.reasons).toMatchObject([{ rule: 'erased' }])
    // Each other holder is found by its internal identifier, and is no longer listed after its erasure.
    for (const [index, id] of others.entries()) {
      const [line] = (await expectSuccess(shop.send('GET', `/v1/people/internal/${id}/dossier`))).body.data
      expect([line.person.id, line.other_holders]).toEqual([id, []])
      expect((await expectSuccess(erase(shop, `internal/${id}`))).body.data).toMatchObject({
        erasure: { person_id: id },
        other_holders: [],
      })
      const { other_holders } = (await expectSuccess(erase(shop, external_id))).body.data
      expect(other_holders).toEqual(others.slice(index + 1))
    }
  })

  it('erases the one who was deleted last, if that was after the erasure of another one', async () => {
    const { id, external_id } = await createPerson()
    await expectSuccess(shop.send('PATCH', `/v1/people/${external_id}`, { external_id: `${external_id}-renamed` }))
    const other = (await expectSuccess(shop.send('POST', '/v1/people', { external_id }))).body.data
    await expectSuccess(erase(shop, `internal/${id}`))
    await expectSuccess(shop.send('DELETE', `/v1/people/${external_id}`))
    for (let repeated = 0; repeated < 2; repeated += 1)
      expect((await expectSuccess(erase(shop, external_id))).body.data).toMatchObject({
        erasure: { person_id: other.id },
        other_holders: [],
      })
    expect((await expectSuccess(erase(shop, `${external_id}-renamed`))).body.data.erasure.person_id).toBe(id)
  })
})

describe('after an erasure', () => {
  it('reads find nobody, histories show that there was somebody, and decisions say `erased`', async () => {
    const person = await createPerson(shop, { email_consent: true })
    await sealLedgers(service)
    await expectSuccess(erase(shop, person.external_id))
    const base = `/v1/people/internal/${person.id}`
    for (const path of ['', '?version=1', `?at=${new Date().toISOString()}`, '/consents/1/email/receipt'])
      expect([path, (await shop.send('GET', `${base}${path}`)).status]).toEqual([path, 404])
    const { items } = (await expectSuccess(shop.send('GET', `${base}/history`))).body.data
    expect(items).toMatchObject([
      { operation: 'erase', before: null, after: {}, external_id: null },
      { operation: 'create', before: null, after: {}, external_id: null },
    ])
    expect((await expectSuccess(shop.send('GET', `${base}/consents/history`))).body.data).toEqual({
      items: [],
      has_more: false,
    })
    const asked = { consent_type_id: 1, channel: 'email' }
    const erased = { allowed: false, reasons: [{ rule: 'erased', sequence: items[0].sequence, at: items[0].at }] }
    for (const address of [`internal/${person.id}`, person.external_id])
      expect(
        (await expectSuccess(shop.send('POST', `/v1/people/${address}/contactable`, asked))).body.data,
      ).toMatchObject(erased)
    const many = await expectSuccess(
      shop.send('POST', '/v1/people/contactable', { external_ids: [person.external_id, 'nobody'], ...asked }),
    )
    expect(many.body.data.items).toMatchObject([erased, { reasons: [{ rule: 'not_found' }] }])
    const at = new Date().toISOString()
    expect((await expectSuccess(shop.send('POST', `${base}/contactable`, { ...asked, at }))).body.data).toMatchObject(
      erased,
    )
    expect((await shop.send('POST', `${base}/contactable`, { ...asked, at: items[1].at })).status).toBe(404)
  })

  it('the feed and the event stream tell the internal identifier only, also of earlier changes', async () => {
    const organization = await createShop(service)
    const person = await createPerson(organization, { first_name: 'Secret' })
    // A stream that follows the log keeps its newest changes in memory.
    const waiting = organization.send('GET', `/v1/changes?after=${await organization.head()}&wait=5`)
    await expectSuccess(organization.send('PATCH', `/v1/people/${person.external_id}`, { last_name: 'Secret' }))
    await waiting
    await expectSuccess(erase(organization, person.external_id))
    const changes = (await readFeed(organization, 'limit=1000')).items
    expect(changes.filter(({ id }) => id === person.id)).toMatchObject([
      { operation: 'create', external_id: null, after: {} },
      { operation: 'update', external_id: null, before: null, after: {} },
      { operation: 'erase', external_id: null, before: null, after: {} },
    ])
    expect(JSON.stringify(changes)).not.toMatch(/secret|person-/i)
  })

  it('webhooks tell `person.erased`, and deliveries that wait are dropped', async () => {
    const organization = await createShop(service)
    const receiver = await startReceiver()
    const sender = createLoopbackSender()
    try {
      await expectSuccess(organization.send('POST', '/v1/webhooks', { url: receiver.url, events: ['person.*'] }))
      const person = await createPerson(organization)
      receiver.answer = response => response.writeHead(503).end('later')
      await follow(service.db, [webhookFollower({ sender })])
      await expectSuccess(erase(organization, person.external_id))
      receiver.received.length = 0
      receiver.answer = response => response.writeHead(204).end()
      const nowMs = () => Date.now() + 3_600_000
      await follow(service.db, [webhookFollower({ sender, nowMs })], { nowMs })
      expect(receiver.received.map(({ event }) => [event.type, event.data.id, event.data.external_id])).toEqual([
        ['person.erased', person.id, null],
      ])
    } finally {
      await sender.close()
      await receiver.close()
      await service.sql('delete from followers')
    }
  })

  it('the ledger verifies, also if the answers were being sealed meanwhile', async () => {
    const organization = await createShop(service)
    const person = await createPerson(organization, { email_consent: true })
    await createPerson(organization, { email_consent: true })
    const origin = service.config.ledgerOrigin
    // The sealer has read the answers, and the erasure commits before the sealer stores them.
    let isErased = false
    const racing = {
      ...service.db,
      transaction: (async (work, options) => {
        if (!isErased) {
          isErased = true
          await expectSuccess(erase(organization, person.external_id))
        }
        return service.db.transaction(work, options)
      }) as typeof service.db.transaction,
    }
    await follow(racing, [ledgerFollower({ originName: origin })], { nowMs: () => Date.now() + 3_600_000 })
    expect(isErased).toBe(true)
    const entries = await service.sql<{ salt: Buffer | null }>(
      'select salt from ledger_entries where organization_id = $1 order by index',
      [organization.id],
    )
    expect(entries.map(({ salt }) => salt === null)).toEqual([true, false])
    expect((await auditLedger(contextOf(service.db, organization.id), { since: undefined })).findings).toEqual([])
  })

  it('the ledger has a leaf of every answer, also of one that was erased before it was sealed', async () => {
    const organization = await createShop(service)
    await createPerson(organization, { email_consent: true })
    await sealLedgers(service)
    const person = await createPerson(organization, { email_consent: true, sms_consent: false })
    await createPerson(organization, { email_consent: true })
    await expectSuccess(organization.send('PATCH', `/v1/people/${person.external_id}`, { email_consent: false }))
    const history = `select from consent_history where organization_id = $1`
    const answers = (await service.sql(history, [organization.id])).length
    await expectSuccess(erase(organization, person.external_id))
    await sealLedgers(service)
    const entries = await service.sql<{ sequence: number; salt: Buffer | null }>(
      'select sequence::float8, salt from ledger_entries where organization_id = $1 order by index',
      [organization.id],
    )
    expect(entries.length).toBe(answers)
    expect(entries.map(({ salt }) => salt === null)).toEqual([false, true, true, false, true])
    const sequences = entries.map(({ sequence }) => sequence)
    expect(sequences).toEqual(sequences.toSorted((a, b) => a - b))
    expect(await auditLedger(contextOf(service.db, organization.id))).toMatchObject({
      size: answers,
      findings: [],
      waiting: 0,
    })
    expect(await service.sql('select from erased_answers where organization_id = $1', [organization.id])).toEqual([])
  })
})

describe('a person who was erased', () => {
  it('is not created again by a create, an upsert or an import, unless with erased=recreate', async () => {
    const { organization, person, send } = await eraseOne()
    const { external_id } = person
    const create = (headers?: Record<string, string>) => send('POST', '/v1/people', { external_id }, headers)
    const upsert = (headers?: Record<string, string>) => send('POST', '/v1/people/upsert', { external_id }, headers)
    for (const attempt of [create, upsert]) {
      expect(ofStatus(await attempt())).toEqual(erasedAt('/external_id'))
      expect((await attempt(recreate)).status).toBe(201)
      // Another person has the identifier until the next erasure.
      expect((await send('PATCH', `/v1/people/${external_id}`, { first_name: 'Ada' })).status).toBe(200)
      await expectSuccess(erase(organization, external_id))
    }
    const lines = linesFrom([{ external_id }, { external_id: 'other' }])
    const refused = await importLines(organization, '/v1/people/import', lines)
    expect(refused).toMatchObject({
      refused: [{ line: 1, error: 'duplicate_entry', reason: 'erased' }],
      counts: { created: 1, failed: 1 },
    })
    const imported = await importLines(organization, '/v1/people/import?erased=recreate', linesFrom([{ external_id }]))
    expect(imported.counts).toMatchObject({ created: 1 })
  })

  it('is not created again by a batch', async () => {
    const { person, send } = await eraseOne()
    const batch = (more: object, headers?: Record<string, string>) =>
      send(
        'POST',
        '/v1/people/batch',
        { operations: [{ op: 'create', body: { external_id: person.external_id } }], ...more },
        headers,
      )
    expect((await expectSuccess(batch({}))).body.data.items).toMatchObject([
      { status: 409, reason: 'erased', details: [{ path: '/operations/0/body/external_id' }] },
    ])
    expect(ofStatus(await batch({ atomic: true }))).toEqual(erasedAt('/operations/0/body/external_id'))
    expect((await expectSuccess(batch({}, recreate))).body.data.items).toMatchObject([{ status: 201 }])
  })

  it('is not linked to, neither by a placeholder nor by an import in the same set', async () => {
    const { organization, person, send } = await eraseOne()
    const body = { attribute_values: { friends: ['bob', person.external_id] } }
    await expectSuccess(send('POST', '/v1/people', { external_id: 'eve' }))
    expect(ofStatus(await send('POST', '/v1/people', body))).toEqual(erasedAt('/attribute_values/friends/1'))
    expect(ofStatus(await send('PATCH', '/v1/people/eve', body))).toEqual(erasedAt('/attribute_values/friends/1', 400))
    const lines = linesFrom([{ external_id: 'linking', ...body }, { external_id: person.external_id }])
    expect((await importLines(organization, '/v1/people/import', lines)).counts).toMatchObject({
      created: 0,
      failed: 2,
    })
    expect((await send('PATCH', '/v1/people/eve', body, recreate)).status).toBe(200)
  })

  it('does not come back by a rename, or by the email or the phone number of somebody else', async () => {
    const { person, send } = await eraseOne()
    await expectSuccess(send('POST', '/v1/people', { external_id: 'eve' }))
    const { external_id, email, mobile_prefix, mobile_number } = person
    const attempts: [object, string][] = [
      [{ external_id }, '/external_id'],
      [{ email: email.toLowerCase() }, '/email'],
      [{ mobile_prefix: '0039', mobile_number }, '/mobile_number'],
      [{ mobile_number: `${mobile_prefix} ${mobile_number}` }, '/mobile_number'],
    ]
    for (const [body, path] of attempts) {
      expect(ofStatus(await send('PATCH', '/v1/people/eve', body))).toEqual(erasedAt(path, 400))
      expect(ofStatus(await send('POST', '/v1/people', { ...body }))).toEqual(erasedAt(path))
    }
    const everything = { external_id, email, mobile_prefix, mobile_number }
    expect((await send('PATCH', '/v1/people/eve', everything, recreate)).status).toBe(200)
  })

  it.each([
    ['composed', 'Zo\u00eb \u00c5'],
    ['decomposed', 'Zoe\u0308 A\u030a'],
    ['mixed', 'Zo\u00eb A\u030a'],
  ])('does not come back under the %s name or email in another normal form of Unicode', async (_, external_id) => {
    const organization = await createShop(service, 'friends')
    const { send } = organization
    const email = `${external_id.replace(' ', '.')}@example.com`
    await expectSuccess(send('POST', '/v1/people', { external_id, email }))
    const response = await erase(organization, encodeURIComponent(external_id))
    expect([response.status, response.body.data.erasure.tombstones]).toEqual([200, 2])
    for (const form of [external_id, external_id.normalize('NFC'), external_id.normalize('NFD')]) {
      const again = await erase(organization, encodeURIComponent(form))
      expect([again.status, again.body.data.certificate]).toEqual([200, response.body.data.certificate])
      const mail = `${form.replace(' ', '.')}@example.com`
      expect(ofStatus(await send('POST', '/v1/people', { email: mail }))).toEqual(erasedAt('/email'))
      expect(ofStatus(await send('POST', '/v1/people', { external_id: form }))).toEqual(erasedAt('/external_id'))
      const linking = { attribute_values: { friends: [form] } }
      expect(ofStatus(await send('POST', '/v1/people', linking))).toEqual(erasedAt('/attribute_values/friends/0'))
      const imported = await importLines(organization, '/v1/people/import', linesFrom([{ external_id: form }]))
      expect(imported.refused).toMatchObject([{ line: 1, reason: 'erased' }])
    }
    await expectSuccess(send('POST', '/v1/people', { external_id: external_id.normalize('NFD') }, recreate))
    // The tombstone was removed, and another Unicode form is another name.
    await expectSuccess(send('POST', '/v1/people', { external_id: external_id.normalize('NFC') }))
  })

  it('does not keep somebody else from a restore with the email and phone number of both, if it was deleted after the erasure', async () => {
    const organization = await createShop(service)
    const { send, ok } = organization
    const person = await createPerson(organization)
    const { email, mobile_prefix, mobile_number } = person
    const shared = { email, mobile_prefix, mobile_number }
    const early = await ok('POST', '/v1/people', { external_id: 'early', ...shared })
    const late = await ok('POST', '/v1/people', { external_id: 'late', ...shared })
    const restore = (id: string, headers?: Record<string, string>) =>
      send('POST', `/v1/people/internal/${id}/restore`, undefined, headers)
    await ok('DELETE', '/v1/people/early')
    await expectSuccess(erase(organization, person.external_id))
    await ok('DELETE', '/v1/people/late')
    const { data } = (await expectSuccess(restore(late.id))).body
    expect(data).toMatchObject({ external_id: 'late', ...shared })
    const refused = await restore(early.id)
    expect([refused.status, (refused.body as { reason?: string }).reason]).toEqual([409, 'erased'])
    expect(refused.body.details?.map(({ path }) => path)).toEqual(['/email', '/mobile_number'])
    // A restore that needs no tombstone leaves them all, even with the preference to recreate.
    await ok('DELETE', '/v1/people/late')
    await expectSuccess(restore(late.id, recreate))
    expect(ofStatus(await send('POST', '/v1/people', { email }))).toEqual(erasedAt('/email'))
    await expectSuccess(restore(early.id, recreate))
    await expectSuccess(send('POST', '/v1/people', shared))
  })

  it('does not keep somebody else from writing the own email and phone number in another way', async () => {
    const organization = await createShop(service)
    const { send } = organization
    const person = await createPerson(organization)
    const { email, mobile_prefix, mobile_number } = person
    await expectSuccess(send('POST', '/v1/people', { external_id: 'twin', email, mobile_prefix, mobile_number }))
    await expectSuccess(erase(organization, person.external_id))
    const rewritten = { email: email.toLowerCase(), mobile_prefix: '0039', mobile_number: `+39 ${mobile_number}` }
    expect([mobile_prefix, email]).not.toEqual([rewritten.mobile_prefix, rewritten.email])
    for (const [field, value] of Object.entries(rewritten))
      expect((await expectSuccess(send('PATCH', '/v1/people/twin', { [field]: value }))).body.data).toBe(true)
    const upserted = { external_id: 'twin', email: email.toUpperCase() }
    const lines = linesFrom([{ ...upserted, mobile_prefix: '39' }])
    expect(await importLines(organization, '/v1/people/import', lines)).toMatchObject({ counts: { updated: 1 } })
    // This request sets no erased value, so the tombstones stay despite its preference.
    await expectSuccess(send('PATCH', '/v1/people/twin', { email, mobile_prefix, mobile_number }, recreate))
    for (const body of [{ email }, { mobile_prefix, mobile_number }])
      expect(ofStatus(await send('POST', '/v1/people', body))[0]).toBe(409)
    await expectSuccess(send('PATCH', '/v1/people/twin', { email: null, mobile_number: null }))
    expect(ofStatus(await send('PATCH', '/v1/people/twin', { email }))).toEqual(erasedAt('/email', 400))
  })

  it('does not come back by the restore of somebody with the same email', async () => {
    const organization = await createShop(service)
    const { send } = organization
    const person = await createPerson(organization)
    const { id } = (await expectSuccess(send('POST', '/v1/people', { external_id: 'twin', email: person.email }))).body
      .data
    await expectSuccess(send('DELETE', '/v1/people/twin'))
    await expectSuccess(erase(organization, person.external_id))
    expect(ofStatus(await send('POST', `/v1/people/internal/${id}/restore`))).toEqual(erasedAt('/email'))
    expect((await send('POST', `/v1/people/internal/${id}/restore`, undefined, recreate)).status).toBe(200)
  })

  it('keeps the responses of idempotent requests from telling, and the request from being repeated', async () => {
    const { organization, send } = await eraseOne()
    const key = { 'Idempotency-Key': 'once' }
    const body = { external_id: 'again', first_name: 'Secret' }
    await expectSuccess(send('POST', '/v1/people', body, key))
    await expectSuccess(erase(organization, 'again'))
    expect(ofStatus(await send('POST', '/v1/people', body, key))).toEqual(erasedAt('/external_id'))
  })
})

describe('the places that a certificate names', () => {
  it('have the log files of proxies and of PostgreSQL, and not those of kith, which have no path of a request', async () => {
    const { person, send } = await eraseOne()
    await send('GET', `/v1/people/${person.external_id}/erasure`)
    const lines = service.logs.filter(line => line.includes('"route":"/v1/people/'))
    expect(lines.length).toBeGreaterThan(0)
    expect(lines.filter(line => line.includes(person.external_id))).toEqual([])
    expect(notRemoved.filter(place => place.startsWith('the log'))).toEqual([
      'the log files of proxies, which may have paths of requests, and of PostgreSQL, which may quote statements',
    ])
  })
})

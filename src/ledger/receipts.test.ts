import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { type VerifiedReceipt, verifyReceipt } from '../../client/index.ts'
import { sealLedgers } from '../../test/support/ledger.ts'
import { importLines, linesFrom } from '../../test/support/lines.ts'
import { type Reply, useService } from '../../test/support/service.ts'
import { expectSuccess, useSharedShop } from '../../test/support/shop.ts'
import { rotateLedgerKey } from './keys.ts'

const service = useService()
const shop = useSharedShop(service)

const receiptPath = (address: string, query = '') => `/v1/people/${address}/consents/1/email/receipt${query}`
const getReceipt = (address: string, query?: string) => shop.send('GET', receiptPath(address, query))
const verify = ({ body }: Reply, key?: string): Promise<VerifiedReceipt> =>
  verifyReceipt(Buffer.from(JSON.stringify(body.data)), { key })

let people = 0
/** Creates a person with an answer for email. Returns both identifiers. */
async function createPerson(state = true): Promise<{ external_id: string; id: string }> {
  const external_id = `person-${++people}`
  const consents = [{ consent_type_id: 1, channel: 'email', state }]
  const { body } = await expectSuccess(shop.send('POST', '/v1/people', { external_id, consents }))
  return { external_id, id: body.data.id }
}

const answerAgain = (external_id: string, state: boolean) =>
  expectSuccess(
    shop.send('PATCH', `/v1/people/${external_id}`, { consents: [{ consent_type_id: 1, channel: 'email', state }] }),
  )

/** The number of the last change of a person. */
async function lastSequence(id: string): Promise<number> {
  const values = [shop.id, id]
  const [row] = await service.sql<{ sequence: string }>(
    'select max(sequence) as sequence from changes where organization_id = $1 and entity_id = $2',
    values,
  )
  return Number(row!.sequence)
}

const readKeys = async (): Promise<string[]> =>
  (await shop.send('GET', '/v1/ledger/keys')).body.data.keys.map(({ key }: { key: string }) => key)

describe('The receipt of an answer', () => {
  it('verifies with the key of the ledger, by external and by internal identifier', async () => {
    const { external_id, id } = await createPerson()
    await sealLedgers(service)
    const [key] = await readKeys()
    const replies = await Promise.all(
      [external_id, `internal/${id}`, `internal/${id.toUpperCase()}`].map(address => getReceipt(address)),
    )
    for (const reply of replies) {
      expect(reply.status).toBe(200)
      expect(await verify(reply, key)).toMatchObject({
        entry: {
          organization: shop.key,
          person_id: id,
          consent_type_id: 1,
          channel: 'email',
          state: true,
          superseded: false,
        },
        origin: expect.stringMatching(new RegExp(`^kith/${shop.key}/`)),
      })
    }
    expect(replies[0]!.body.data['dpv:hasRecordOfActivity']).toMatchObject({
      'dpv:hasDataController': { 'dpv:hasName': shop.key },
      'dpv:hasConsentStatus': { '@type': 'dpv:ConsentGiven' },
    })
  })

  it('proves the signal of a browser and the consent string that were given, up to 8 KiB', async () => {
    const evidence = {
      method: 'gpc',
      consent_string: 'CPXxRfAPXxRfAAfKABENB-CgAAAAAAAAAAYgAAAAAAAA~'.padEnd(8_192, 'A'),
    }
    const consent = { consent_type_id: 1, channel: 'email', state: false }
    const write = (consent_string: string) =>
      shop.send('POST', '/v1/people', {
        external_id: 'browser',
        consents: [{ ...consent, ...evidence, consent_string }],
      })
    for (const long of ['A'.repeat(8_193), 'ü'.repeat(4_097)]) expect((await write(long)).status).toBe(400)
    const { body } = await expectSuccess(write(evidence.consent_string))
    await sealLedgers(service)
    const receipt = await getReceipt('browser')
    expect((await verify(receipt)).entry).toMatchObject(evidence)
    const forged = structuredClone(receipt.body.data)
    forged.entry.consent_string = 'other'
    await expect(verify({ ...receipt, body: { data: forged } })).rejects.toThrow()
    const { items } = (await shop.send('GET', '/v1/people/browser/consents/history')).body.data
    expect(items[0]).toMatchObject(evidence)
    const { id } = body.data
    expect((await getReceipt(`internal/${id}`)).status).toBe(200)
  })

  it('is that of the answer that stands, and with sequence of an older one', async () => {
    const { external_id, id } = await createPerson()
    const first = await lastSequence(id)
    await answerAgain(external_id, false)
    const second = await lastSequence(id)
    await sealLedgers(service)
    const standing = await getReceipt(external_id)
    expect(await verify(standing)).toMatchObject({ entry: { sequence: second, state: false, previous_state: true } })
    expect(standing.body.data['dpv:hasRecordOfActivity']['dpv:hasConsentStatus']['@type']).toBe('dpv:ConsentWithdrawn')
    for (const sequence of [first, second])
      expect(await verify(await getReceipt(external_id, `?sequence=${sequence}`))).toMatchObject({
        entry: { sequence },
      })
  })

  it('passes over an answer that was superseded, which sequence shows', async () => {
    const { external_id, id } = await createPerson()
    const standing = await lastSequence(id)
    await answerAgain(external_id, false)
    await service.sql(
      'update consent_history set superseded = true where organization_id = $1 and person_id = $2 and version = 2',
      [shop.id, id],
    )
    await sealLedgers(service)
    expect(await verify(await getReceipt(external_id))).toMatchObject({
      entry: { sequence: standing, superseded: false },
    })
    const older = await getReceipt(external_id, `?sequence=${await lastSequence(id)}`)
    expect(await verify(older)).toMatchObject({ entry: { superseded: true, state: false } })
  })

  it('says that nobody knows when the answer of an import was collected', async () => {
    const external_id = `person-${++people}`
    await importLines(shop, '/v1/people/import', linesFrom([{ external_id, email_consent: true }]))
    await sealLedgers(service)
    const receipt = await getReceipt(external_id)
    expect(await verify(receipt)).toMatchObject({ entry: { state: true, undated: true } })
    expect(JSON.stringify(receipt.body.data)).not.toContain('"dpv:isIndicatedAtTime":"')
    await answerAgain(external_id, true)
    await sealLedgers(service)
    expect((await verify(await getReceipt(external_id))).entry).not.toHaveProperty('undated')
  })

  it('states the evidence and the text that were given, and proves the text', async () => {
    const { external_id, id } = await createPerson()
    const text = 'Ja, bitte: Neuigkeiten für „mich“.'
    const sha256 = createHash('sha256').update(text).digest()
    await service.sql(
      `insert into consent_texts (organization_id, consent_type_id, version, language, text, url, sha256, created_at)
       values ($1, 1, 1, 'de', $2, 'https://shop.example/', $3, now())`,
      [shop.id, text, sha256],
    )
    const evidence = { method: 'web_form', text_version: 1, ip: '192.0.2.7' }
    await service.sql(
      `update consent_history set evidence = $3, pending = true, collected_at = '2026-11-01T10:00:00Z'
       where organization_id = $1 and person_id = $2`,
      [shop.id, id, JSON.stringify(evidence)],
    )
    await sealLedgers(service)
    const reply = await getReceipt(external_id)
    expect(await verify(reply)).toMatchObject({
      text: 'stated',
      entry: {
        ...evidence,
        text_sha256: sha256.toString('hex'),
        pending: true,
        collected_at: '2026-11-01T10:00:00.000Z',
      },
    })
    const record = reply.body.data['dpv:hasRecordOfActivity']
    expect(record['dpv:hasNotice']['rdf:value']).toEqual({ '@value': text, '@language': 'de' })
    expect(record['dpv:hasConsentStatus']['@type']).toBe('dpv:ConsentRequested')
  })

  it('remains when the person is deleted, by internal identifier and by the last name', async () => {
    const { external_id, id } = await createPerson()
    const last = `${external_id}-renamed`
    await expectSuccess(shop.send('PATCH', `/v1/people/${external_id}`, { external_id: last }))
    await expectSuccess(shop.send('DELETE', `/v1/people/${last}`))
    await sealLedgers(service)
    for (const address of [`internal/${id}`, last])
      expect(await verify(await getReceipt(address))).toMatchObject({ entry: { person_id: id } })
    expect(await getReceipt(external_id)).toMatchObject({
      status: 404,
      body: { message: 'There is no such person.' },
    })
  })

  it('is that of the person who has the name now, not of one who was deleted with it', async () => {
    const { external_id, id } = await createPerson(true)
    await expectSuccess(shop.send('DELETE', `/v1/people/${external_id}`))
    const { body } = await expectSuccess(shop.send('POST', '/v1/people', { external_id }))
    await sealLedgers(service)
    expect(await getReceipt(external_id)).toMatchObject({
      status: 404,
      body: { message: 'The person has not answered for this consent type on this channel.' },
    })
    const consents = [{ consent_type_id: 1, channel: 'email', state: false }]
    await expectSuccess(shop.send('PATCH', `/v1/people/${external_id}`, { consents }))
    await sealLedgers(service)
    expect(await verify(await getReceipt(external_id))).toMatchObject({
      entry: { person_id: body.data.id, state: false },
    })
    expect(await verify(await getReceipt(`internal/${id}`))).toMatchObject({ entry: { person_id: id, state: true } })
  })

  it('waits until the answer is sealed', async () => {
    const { external_id, id } = await createPerson()
    const receiving = getReceipt(external_id)
    await sealLedgers(service)
    expect(await verify(await receiving)).toMatchObject({ entry: { person_id: id } })
  })

  it('is refused with 503 and Retry-After while nothing seals the answer', async () => {
    const { external_id } = await createPerson()
    const { status, headers, body } = await getReceipt(external_id)
    expect({ status, error: body.error }).toEqual({ status: 503, error: 'operation_failed' })
    expect(body.message).toBe('The answer is stored, but not yet sealed in the ledger. Retry after 1 second.')
    expect(headers.get('Retry-After')).toBe('1')
  })

  it('is signed by the current key after a rotation, and earlier receipts verify with the earlier key', async () => {
    const { external_id } = await createPerson()
    await sealLedgers(service)
    const before = await getReceipt(external_id)
    await rotateLedgerKey(service.db)
    const [current, earlier] = await readKeys()
    expect(await verify(before, earlier)).toMatchObject({ key: earlier })
    expect(await verify(await getReceipt(external_id), current)).toMatchObject({ key: current })
    await expect(verify(before, current)).rejects.toMatchObject({ part: 'verifier_key' })
  })

  it('proves an answer among many', async () => {
    const first = await createPerson()
    const operations = Array.from({ length: 300 }, (_, n) => ({
      op: 'create',
      body: { external_id: `many-${n}`, consents: [{ consent_type_id: 1, channel: 'sms', state: n % 2 === 0 }] },
    }))
    await expectSuccess(shop.send('POST', '/v1/people/batch', { operations }))
    await sealLedgers(service)
    expect(await verify(await getReceipt(first.external_id))).toMatchObject({ entry: { person_id: first.id } })
    const sms = await shop.send('GET', '/v1/people/many-299/consents/1/sms/receipt')
    expect(await verify(sms)).toMatchObject({ entry: { channel: 'sms', state: false } })
  })
})

describe('There is no receipt', () => {
  it('of a person who does not exist, or who has not answered', async () => {
    const { body } = await expectSuccess(shop.send('POST', '/v1/people', { external_id: 'silent' }))
    expect(await getReceipt('nobody')).toMatchObject({ status: 404, body: { message: 'There is no such person.' } })
    for (const path of [
      receiptPath('silent'),
      receiptPath(`internal/${body.data.id}`),
      '/v1/people/silent/consents/999/sms/receipt',
    ])
      expect(await shop.send('GET', path)).toMatchObject({
        status: 404,
        body: { message: 'The person has not answered for this consent type on this channel.' },
      })
  })

  it('of a change in which the person did not answer, or of another person', async () => {
    const [one, other] = [await createPerson(), await createPerson()]
    for (const sequence of [await lastSequence(other.id), 1, Number.MAX_SAFE_INTEGER])
      expect(await getReceipt(one.external_id, `?sequence=${sequence}`)).toMatchObject({
        status: 404,
        body: { details: [{ path: '/sequence' }] },
      })
  })

  it.each([
    ['/v1/people/silent/consents/1/post/receipt', '/channel'],
    ['/v1/people/silent/consents/0/email/receipt', '/consent_type_id'],
    ['/v1/people/silent/consents/1/email/receipt?sequence=0', '/sequence'],
    ['/v1/people/silent/consents/1/email/receipt?sequence=x', '/sequence'],
    ['/v1/people/internal/x/consents/1/email/receipt', '/uuid'],
  ])('for %s', async (path, pointer) => {
    expect(await shop.send('GET', path)).toMatchObject({
      status: 400,
      body: { error: 'invalid_parameter', details: [{ path: pointer }] },
    })
  })

  it('without the scope consents:read', async () => {
    const { external_id } = await createPerson()
    await sealLedgers(service)
    const token = await service.tokenFor(shop.key, 'people:read changes:read')
    expect(await service.sender(token)('GET', receiptPath(external_id))).toMatchObject({ status: 403 })
  })

  it('of an answer that was erased: 410', async () => {
    const { external_id, id } = await createPerson()
    await sealLedgers(service)
    await service.sql('update ledger_entries set salt = null where organization_id = $1 and sequence = $2', [
      shop.id,
      await lastSequence(id),
    ])
    expect(await getReceipt(external_id)).toMatchObject({
      status: 410,
      body: { message: 'The answer was erased. The ledger has only a hash of it, which tells nothing.' },
    })
  })

  it('of an answer that was changed after it was sealed', async () => {
    const { external_id, id } = await createPerson(false)
    await sealLedgers(service)
    await service.sql('update consent_history set state = true where organization_id = $1 and person_id = $2', [
      shop.id,
      id,
    ])
    const { status, body } = await getReceipt(external_id)
    expect(status).toBe(500)
    expect(body.message).toMatch(/is not the one that the ledger sealed/)
  })

  it('of an answer whose text was changed', async () => {
    const other = await service.organization()
    await other.send('POST', '/v1/schema/consent-types/1/texts', { language: 'en', text: 'Yes, please.' })
    const consents = [{ consent_type_id: 1, channel: 'email', state: true, text_version: 1 }]
    await other.send('POST', '/v1/people', { external_id: 'ada', consents })
    await sealLedgers(service)
    await service.sql(`update consent_texts set text = 'Yes, Please.' where organization_id = $1`, [other.id])
    const { status, body } = await other.send('GET', '/v1/people/ada/consents/1/email/receipt')
    expect([status, body.message]).toEqual([
      500,
      'The stored text is not the one whose hash the ledger sealed, so there is no receipt. An administrator finds the difference with ' +
        'kith ledger verify.',
    ])
  })
})

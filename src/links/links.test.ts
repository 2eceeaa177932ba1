import { createHmac } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { formOf, linksOf, requestPage, storedAnswers } from '../../test/support/pages.ts'
import { type Organization, useService } from '../../test/support/service.ts'
import { type Link, type LinkKey, parseLink, signLink } from './token.ts'

const service = useService({ KITH_RATE_PAGES: '100000' })
let organization: Organization
beforeAll(async () => {
  organization = await createOrganization()
})

/** An organization with consent type 1 (email, sms), 2 (news: email with double opt-in, sms) and 3 (mandatory). */
async function createOrganization(): Promise<Organization> {
  const created = await service.organization()
  const { send } = created
  for (const body of [
    { key: 'news', name: 'News', channels: [{ channel: 'email', double_opt_in: true }, { channel: 'sms' }] },
    { key: 'contract', name: 'Contract', mandatory: true, channels: [{ channel: 'email' }] },
  ])
    expect((await send('POST', '/v1/schema/consent-types', body)).status).toBe(201)
  return created
}

let people = 0

/** A new person with these consents. */
async function createPerson(body: object = {}, { send } = organization): Promise<{ id: string; external_id: string }> {
  const external_id = `person-${++people}`
  const reply = await send('POST', '/v1/people', { external_id, ...body })
  expect(reply.status).toBe(201)
  return { id: reply.body.data.id, external_id }
}

const grant = (consent_type_id: number, channel: string, rest: object = {}) => ({
  consents: [{ consent_type_id, channel, state: true, ...rest }],
})

/** The states of a person's consents, by type and channel. */
async function statesOf(external_id: string): Promise<Record<string, boolean>> {
  const { body } = await organization.send('GET', `/v1/people/${external_id}`)
  const consents: { consent_type_id: number; channel: string; state: boolean }[] = body.data.consents
  return Object.fromEntries(consents.map(({ consent_type_id, channel, state }) => [`${consent_type_id}:${channel}`, state]))
}

const headOf = async ({ id }: Organization) =>
  (await service.sql<{ sequence: number }>('select sequence from change_heads where organization_id = $1', [id]))[0]!.sequence

describe('the consent links of a person', () => {
  it('begin with the address of the connection, whatever Host says', async () => {
    const { external_id } = await createPerson()
    const links = await linksOf(organization, external_id)
    expect(links).toEqual({
      preferences_url: expect.stringMatching(new RegExp(`^${service.address}/p/[\\w-]{64}$`)),
      unsubscribe_url: expect.stringMatching(new RegExp(`^${service.address}/u/[\\w-]{64}$`)),
    })
  })
})

import { beforeAll, expect } from 'vitest'
import { formOf, linksOf, requestPage, storedAnswers } from './pages.ts'
import { type Organization, useOwnService } from './service.ts'

/** A service with an organization and what tests of consent links do with its people. */
export function useLinks() {
  const service = useOwnService({ KITH_RATE_PAGES: '100000' })
  const organization = {} as Organization
  beforeAll(async () => {
    Object.assign(organization, await createOrganization())
  })
  let people = 0

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

  /** A new person with these consents. */
  async function createPerson(
    body: object = {},
    { send } = organization,
  ): Promise<{ id: string; external_id: string }> {
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
    return Object.fromEntries(
      consents.map(({ consent_type_id, channel, state }) => [`${consent_type_id}:${channel}`, state]),
    )
  }

  const headOf = async ({ id }: Organization) =>
    (await service.sql<{ sequence: number }>('select sequence from change_heads where organization_id = $1', [id]))[0]!
      .sequence

  /** Adds a text to a consent type, and returns its version. */
  async function addText(
    consent_type_id: number,
    language: string,
    text: string,
    { send } = organization,
  ): Promise<number> {
    const reply = await send('POST', `/v1/schema/consent-types/${consent_type_id}/texts`, { language, text })
    expect(reply.status).toBe(201)
    return reply.body.data.version
  }

  const links = (person: { external_id: string }, body: object = {}) => linksOf(organization, person.external_id, body)
  const tokenOf = (url: string) => url.slice(url.lastIndexOf('/') + 1)
  const answersOf = (person: { id: string }) => storedAnswers(service, organization, person.id)

  /** Checks and unchecks boxes of a preference page, by their position, and saves. */
  async function save(
    url: string,
    changes: { check?: string[]; uncheck?: string[] },
    headers: Record<string, string> = {},
  ) {
    const { shown, agree } = formOf(await requestPage(url))
    const { check = [], uncheck = [] } = changes
    const form = { shown, agree: [...agree.filter(value => !uncheck.includes(value)), ...check] }
    return requestPage(url, { form, headers })
  }

  return {
    service,
    organization,
    createOrganization,
    createPerson,
    grant,
    statesOf,
    headOf,
    addText,
    links,
    tokenOf,
    answersOf,
    save,
  }
}

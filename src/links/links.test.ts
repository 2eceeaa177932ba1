import { createHash } from 'node:crypto'
import { connect } from 'node:net'
import { beforeAll, describe, expect, it } from 'vitest'
import { formOf, linksOf, requestPage, storedAnswers } from '../../test/support/pages.ts'
import { type Organization, startService, useService } from '../../test/support/service.ts'
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

// The boxes of the page, in the order of the choices: the purposes 1 and 2, each by email and by SMS.
const [marketingEmail, marketingSms, newsEmail, newsSms] = ['0', '1', '2', '3'] as const

describe('the consent links of a person', () => {
  it('begin with the address of the connection, whatever the header Host says', async () => {
    const person = await createPerson()
    const { external_id } = person
    expect(await links(person)).toEqual({
      preferences_url: expect.stringMatching(new RegExp(`^${service.address}/p/[\\w-]{64}$`)),
      unsubscribe_url: expect.stringMatching(new RegExp(`^${service.address}/u/[\\w-]{64}$`)),
    })
    const { host, port } = new URL(service.address)
    const body = '{}'
    const text = await new Promise<string>((resolve, reject) => {
      const socket = connect(Number(port), '127.0.0.1', () =>
        socket.write(
          `POST /v1/people/${external_id}/consent-links HTTP/1.1\r\nHost: elsewhere.example\r\nX-Forwarded-Host: elsewhere.example\r\n` +
            `Authorization: Bearer ${organization.token}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n` +
            `Connection: close\r\n\r\n${body}`,
        ),
      )
      let received = ''
      socket.on('data', data => {
        received += data
      })
      socket.on('end', () => resolve(received))
      socket.on('error', reject)
    })
    expect(text).toContain(`http://${host}/p/`)
    expect(text).not.toContain('elsewhere')
  })

  it('begin with KITH_PUBLIC_URL, and are refused behind a proxy without it', async () => {
    const [named, unnamed] = await Promise.all([
      startService({ KITH_PUBLIC_URL: 'https://Contact.Example/kith/', KITH_BEHIND_PROXY: '1' }),
      startService({ KITH_BEHIND_PROXY: '1' }),
    ])
    try {
      const ours = await named.organization()
      await ours.send('POST', '/v1/people', { external_id: 'ada' })
      expect((await linksOf(ours, 'ada')).preferences_url).toMatch(/^https:\/\/contact\.example\/kith\/p\/[\w-]{64}$/)
      const theirs = await unnamed.organization()
      await theirs.send('POST', '/v1/people', { external_id: 'ada' })
      const { status, body } = await theirs.send('POST', '/v1/people/ada/consent-links', {})
      expect([status, body.error]).toEqual([500, 'operation_failed'])
      expect(body.message).toContain('KITH_PUBLIC_URL')
    } finally {
      await Promise.all([named.stop(), unnamed.stop()])
    }
  })

  it('are the same by internal identifier, and need the scope people:write', async () => {
    const person = await createPerson()
    const { status, body } = await organization.send('POST', `/v1/people/internal/${person.id}/consent-links`)
    expect(status).toBe(200)
    expect(parseLink(tokenOf(body.data.preferences_url))).toMatchObject({ person_id: person.id, kind: 'preferences' })
    const reader = service.sender(await service.tokenFor(organization.key, 'people:read consents:read'.split(' ')[0]!))
    expect((await reader('POST', `/v1/people/${person.external_id}/consent-links`)).status).toBe(403)
  })

  it('expire after a year, a confirmation after a week, or after expires_in', async () => {
    const person = await createPerson()
    const lifetimeOf = (url: string) => Math.round((parseLink(tokenOf(url))!.expiresAt - Date.now() / 1_000) / 10) * 10
    const both = { consent_type_id: 2, channel: 'email' }
    const made = await links(person, both)
    expect([made.preferences_url, made.unsubscribe_url, made.confirm_url!].map(lifetimeOf)).toEqual([
      365 * 86_400,
      365 * 86_400,
      7 * 86_400,
    ])
    const short = await links(person, { ...both, expires_in: 3_600 })
    expect(Object.values(short).map(lifetimeOf)).toEqual([3_600, 3_600, 3_600])
  })

  it('have a confirmation only for a purpose and channel with double opt-in, or with a grant that waits', async () => {
    const person = await createPerson(grant(2, 'email'))
    expect(await links(person, { consent_type_id: 2, channel: 'email' })).toHaveProperty('confirm_url')
    for (const body of [{}, { consent_type_id: 2 }, { channel: 'email' }, { consent_type_id: 2, channel: 'sms' }])
      expect(await links(person, body)).not.toHaveProperty('confirm_url')
    const channels = [{ channel: 'email' }, { channel: 'sms' }]
    const { send } = await service.organization()
    await send('PATCH', '/v1/schema/consent-types/1', { channels: [{ channel: 'email', double_opt_in: true }] })
    await send('POST', '/v1/people', { external_id: 'ada', ...grant(1, 'email') })
    await send('PATCH', '/v1/schema/consent-types/1', { channels })
    expect(await linksOf({ send }, 'ada', { consent_type_id: 1, channel: 'email' })).toHaveProperty('confirm_url')
  })

  it.each([
    [{ consent_type_id: 9 }, '/consent_type_id'],
    [{ consent_type_id: 3 }, '/consent_type_id'],
    [{ consent_type_id: 0 }, '/consent_type_id'],
    [{ channel: 'letter' }, '/channel'],
    [{ expires_in: 59 }, '/expires_in'],
    [{ expires_in: 5 * 366 * 86_400 + 1 }, '/expires_in'],
    [{ expires_in: 1.5 }, '/expires_in'],
    [{ kind: 'preferences' }, '/kind'],
  ])('are refused for %j at %s', async (body, path) => {
    const person = await createPerson()
    const reply = await organization.send('POST', `/v1/people/${person.external_id}/consent-links`, body)
    expect([reply.status, reply.body.details?.map(detail => detail.path)]).toEqual([400, [path]])
  })

  it('are 404 for a person that does not exist or is deleted', async () => {
    const person = await createPerson()
    await organization.send('DELETE', `/v1/people/${person.external_id}`)
    for (const path of [person.external_id, `internal/${person.id}`, 'nobody'])
      expect((await organization.send('POST', `/v1/people/${path}/consent-links`)).status).toBe(404)
  })
})

const pageKinds = ['preferences_url', 'unsubscribe_url', 'confirm_url'] as const

describe('every page', () => {
  it('changes nothing by GET and HEAD, however often a mail scanner opens it', async () => {
    const person = await createPerson({ consents: [grant(2, 'email').consents[0], grant(1, 'sms').consents[0]] })
    const made = await links(person, { consent_type_id: 2, channel: 'email' })
    const head = await headOf(organization)
    for (const kind of pageKinds)
      for (const method of ['GET', 'HEAD', 'GET']) {
        const { status, text } = await requestPage(`${made[kind]}?utm_source=mail`, { method })
        expect([status, text === '']).toEqual([200, method === 'HEAD'])
      }
    expect(await headOf(organization)).toBe(head)
  })

  it('has a strict policy, is not stored, not indexed, not framed, and tells no site where it is', async () => {
    const person = await createPerson(grant(2, 'email'))
    const made = await links(person, { consent_type_id: 2, channel: 'email' })
    for (const kind of pageKinds) {
      const { headers, text } = await requestPage(made[kind]!)
      const style = /<style>([\s\S]*)<\/style>/.exec(text)![1]!
      const hash = createHash('sha256').update(style).digest('base64')
      expect(headers.get('Content-Security-Policy')).toBe(
        `default-src 'none'; style-src 'sha256-${hash}'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'`,
      )
      expect(headers.get('Content-Type')).toBe('text/html; charset=utf-8')
      expect(headers.get('Cache-Control')).toBe('no-store')
      expect(headers.get('Referrer-Policy')).toBe('no-referrer')
      expect(headers.get('X-Robots-Tag')).toBe('noindex, nofollow')
      expect(headers.get('X-Frame-Options')).toBe('DENY')
      expect(headers.get('X-Content-Type-Options')).toBe('nosniff')
      expect(text).not.toMatch(/<script|\son\w+=|\sstyle=|https?:\/\//)
    }
  })

  it('shows nothing of the person but the consents', async () => {
    const secrets = { first_name: 'Wilhelmina', email: 'wilhelmina@example.com', mobile_number: '79123456' }
    const person = await createPerson({ ...secrets, ...grant(2, 'email') })
    const made = await links(person, { consent_type_id: 2, channel: 'email' })
    for (const kind of pageKinds) {
      const { text } = await requestPage(made[kind]!)
      for (const secret of [...Object.values(secrets), person.external_id, person.id])
        expect(text).not.toContain(secret)
    }
  })

  it('names the route in the log, never the token', async () => {
    const person = await createPerson()
    const { preferences_url } = await links(person)
    await requestPage(preferences_url)
    expect(service.logs.some(line => line.includes('"route":"/p/{token}"'))).toBe(true)
    expect(service.logs.join()).not.toContain(tokenOf(preferences_url))
  })
})

describe('a link', () => {
  /** The status and text of GET and POST, which are the same for every link that is not valid. */
  const refusalsOf = async (url: string) => {
    const replies = [await requestPage(url), await requestPage(url, { form: { 'List-Unsubscribe': 'One-Click' } })]
    for (const { text } of replies) expect(text).toContain('This link is not valid')
    return replies.map(({ status }) => status)
  }
  const keyOf = async ({ id }: Organization): Promise<LinkKey> =>
    (await service.sql<LinkKey>('select id, secret from link_keys where organization_id = $1', [id]))[0]!

  it('is refused if any of its characters is changed', async () => {
    const person = await createPerson(grant(1, 'email'))
    const { unsubscribe_url } = await links(person)
    const head = await headOf(organization)
    for (let at = unsubscribe_url.length - 64; at < unsubscribe_url.length; at += 1) {
      const other = unsubscribe_url[at] === 'A' ? 'B' : 'A'
      const tampered = unsubscribe_url.slice(0, at) + other + unsubscribe_url.slice(at + 1)
      const { status } = await requestPage(tampered, { method: 'POST' })
      expect([at, status]).toEqual([at, 404])
    }
    expect(await headOf(organization)).toBe(head)
  })

  it.each(['', 'A', 'A'.repeat(63), 'A'.repeat(65), '%41'.repeat(64), 'A'.repeat(7_000), '%00', '%ff', '..', '=', 'é'])(
    'is refused if its token is %s',
    async token => {
      const { status } = await requestPage(`${service.address}/p/${token}`)
      expect(status).toBe(404)
    },
  )

  it('is refused on another page than its own', async () => {
    const person = await createPerson(grant(2, 'email'))
    const made = await links(person, { consent_type_id: 2, channel: 'email' })
    for (const kind of pageKinds)
      for (const path of ['p', 'u', 'c']) {
        if (made[kind]!.includes(`/${path}/`)) continue
        expect(await refusalsOf(`${service.address}/${path}/${tokenOf(made[kind]!)}`)).toEqual([404, 404])
      }
  })

  it('of one organization opens nothing of another, with its own key or with the other one', async () => {
    const other = await createOrganization()
    const theirs = await createPerson(grant(1, 'email'), other)
    const { unsubscribe_url } = await linksOf(other, theirs.external_id)
    await links(await createPerson())
    const [ourKey, theirKey] = [await keyOf(organization), await keyOf(other)]
    expect(ourKey.secret).not.toEqual(theirKey.secret)
    const link = parseLink(tokenOf(unsubscribe_url))!
    const forged = [
      signLink({ ...link, organization_id: organization.id }, theirKey),
      signLink(link, ourKey),
      signLink({ ...link, organization_id: organization.id }, ourKey),
    ]
    const head = await headOf(other)
    const statuses = await Promise.all(forged.map(token => refusalsOf(`${service.address}/u/${token}`)))
    expect(statuses).toEqual([
      [404, 404],
      [404, 404],
      [410, 410],
    ])
    expect(await headOf(other)).toBe(head)
  })

  it('is refused when it has expired, when its person is deleted, and for a purpose that is archived', async () => {
    const person = await createPerson(grant(1, 'email'))
    const { unsubscribe_url, preferences_url } = await links(person)
    const link = parseLink(tokenOf(unsubscribe_url))!
    const expiring = (expiresAt: number, changes: Partial<Link> = {}) =>
      signLink({ ...link, ...changes, expiresAt }, key)
    const key = await keyOf(organization)
    const nowS = Math.floor(Date.now() / 1_000)
    expect(await refusalsOf(`${service.address}/u/${expiring(nowS)}`)).toEqual([410, 410])
    expect((await requestPage(`${service.address}/u/${expiring(nowS + 60)}`)).status).toBe(200)
    const mandatory = { consent_type_id: 3, channel: 'email' } as const
    expect(await refusalsOf(`${service.address}/u/${expiring(nowS + 60, mandatory)}`)).toEqual([410, 410])
    await organization.send('DELETE', `/v1/people/${person.external_id}`)
    expect(await refusalsOf(unsubscribe_url)).toEqual([410, 410])
    expect(await refusalsOf(preferences_url)).toEqual([410, 410])
    await organization.send('POST', `/v1/people/internal/${person.id}/restore`)
    expect((await requestPage(preferences_url)).status).toBe(200)
  })

  it('survives another process of the service, and is refused when its key is deleted', async () => {
    const person = await createPerson()
    const { preferences_url } = await links(person)
    const restarted = await startService({}, service.databaseUrl)
    try {
      expect((await requestPage(`${restarted.address}/p/${tokenOf(preferences_url)}`)).status).toBe(200)
    } finally {
      await restarted.stop()
    }
    const other = await createOrganization()
    await createPerson({}, other).then(async ({ external_id }) => {
      const { unsubscribe_url } = await linksOf(other, external_id)
      await service.sql('delete from link_keys where organization_id = $1', [other.id])
      expect(await refusalsOf(unsubscribe_url)).toEqual([404, 404])
    })
  })

  it('of requests that arrive together has one key', async () => {
    const other = await createOrganization()
    const { external_id } = await createPerson({}, other)
    const made = await Promise.all(Array.from({ length: 8 }, () => linksOf(other, external_id)))
    for (const { preferences_url } of made) expect((await requestPage(preferences_url)).status).toBe(200)
    expect(await service.sql('select id from link_keys where organization_id = $1', [other.id])).toHaveLength(1)
  })
})

describe('the preference page', () => {
  it('stores what the person changed and nothing else, with what proves it', async () => {
    const person = await createPerson({ language: 'de-CH', ...grant(1, 'email') })
    const version = await addText(1, 'de', 'Ich bin einverstanden.')
    await addText(1, 'en', 'I agree.')
    const { preferences_url } = await links(person)
    const page = await requestPage(preferences_url)
    expect(page.text).toContain('Ich bin einverstanden.')
    expect(page.text).not.toContain('I agree.')
    const saved = await save(
      preferences_url,
      { uncheck: [marketingEmail], check: [newsSms] },
      { 'User-Agent': 'Tests/1' },
    )
    expect(saved.status).toBe(200)
    expect(saved.text).toMatch(
      /Marketing, per E-Mail[\s\S]*nicht einverstanden[\s\S]*News, per SMS[\s\S]*einverstanden/,
    )
    expect(await answersOf(person)).toMatchObject([
      { consent_type_id: 1, channel: 'email', state: true },
      {
        consent_type_id: 1,
        channel: 'email',
        state: false,
        previous_state: true,
        actor: 'link',
        evidence: { method: 'preference_page', ip: '127.0.0.1', user_agent: 'Tests/1', text_version: version },
      },
      {
        consent_type_id: 2,
        channel: 'sms',
        state: true,
        previous_state: null,
        actor: 'link',
        evidence: { method: 'preference_page', ip: '127.0.0.1', user_agent: 'Tests/1' },
      },
    ])
    const { body } = await organization.send('GET', `/v1/people/${person.external_id}/history`)
    expect(body.data.items[0]).toMatchObject({ actor: 'link', operation: 'update' })
  })

  it('stores nothing if the person changed nothing, or sends the same form again', async () => {
    const person = await createPerson(grant(1, 'email'))
    const { preferences_url } = await links(person)
    const { shown, agree } = formOf(await requestPage(preferences_url))
    const unchanged = await requestPage(preferences_url, { form: { shown, agree } })
    expect(unchanged.text).toContain('You changed nothing.')
    expect(await answersOf(person)).toHaveLength(1)
    const form = { shown, agree: [marketingSms] }
    const replies = await Promise.all([1, 2, 3].map(() => requestPage(preferences_url, { form })))
    replies.push(await requestPage(preferences_url, { form }))
    for (const { status, text } of replies) {
      expect(status).toBe(200)
      expect(text).toMatch(/Marketing, by email[\s\S]*not agreed[\s\S]*Marketing, by SMS[\s\S]*agreed/)
    }
    expect(await answersOf(person)).toHaveLength(3)
    expect(await statesOf(person.external_id)).toMatchObject({ '1:email': false, '1:sms': true })
  })

  it('leaves alone what changed elsewhere after the page was opened', async () => {
    const person = await createPerson({ consents: [grant(1, 'email').consents[0], grant(1, 'sms').consents[0]] })
    const { preferences_url } = await links(person)
    const { shown } = formOf(await requestPage(preferences_url))
    await organization.send('PATCH', `/v1/people/${person.external_id}`, { email_consent: false })
    // The box of the refused purpose is still checked on the page.
    await requestPage(preferences_url, { form: { shown, agree: [marketingEmail] } })
    expect(await statesOf(person.external_id)).toMatchObject({ '1:email': false, '1:sms': false })
  })

  it('leaves a grant with double opt-in waiting, and shows so', async () => {
    const person = await createPerson()
    const { preferences_url } = await links(person)
    const saved = await save(preferences_url, { check: [newsEmail] })
    expect(saved.text).toMatch(/News, by email[\s\S]*waits for your confirmation/)
    expect(await answersOf(person)).toMatchObject([{ consent_type_id: 2, state: true, pending: true }])
    expect(await statesOf(person.external_id)).toMatchObject({ '2:email': false })
    expect(formOf(await requestPage(preferences_url)).agree).toEqual([newsEmail])
    await save(preferences_url, { uncheck: [newsEmail] })
    expect((await answersOf(person)).at(-1)).toMatchObject({ state: false, pending: false })
  })

  it('shows neither mandatory nor archived purposes', async () => {
    const other = await createOrganization()
    await other.send('PATCH', '/v1/schema/consent-types/1', { state: 'archived' })
    const { external_id } = await createPerson({}, other)
    const { preferences_url } = await linksOf(other, external_id)
    const { text } = await requestPage(preferences_url)
    expect(text).toContain('News')
    expect(text).not.toMatch(/Marketing|Contract/)
    const opened = formOf(await requestPage(preferences_url))
    await other.send('PATCH', '/v1/schema/consent-types/2', { state: 'archived' })
    expect((await requestPage(preferences_url)).text).toContain('There is nothing to choose at the moment.')
    const head = await headOf(other)
    expect((await requestPage(preferences_url, { form: { shown: opened.shown, agree: ['0', '1'] } })).status).toBe(200)
    expect(await headOf(other)).toBe(head)
  })

  it('refuses a form that it did not make, and one of another person', async () => {
    const [person, other] = [await createPerson(grant(1, 'email')), await createPerson()]
    const { preferences_url } = await links(person)
    const { shown } = formOf(await requestPage((await links(other)).preferences_url))
    const forged = `${Buffer.from('[[1,0,1,99]]').toString('base64url')}.${'A'.repeat(22)}`
    for (const form of [{ agree: '0' }, { shown: '', agree: '0' }, { shown, agree: '1' }, { shown: forged }]) {
      const { status, text } = await requestPage(preferences_url, { form: form as Record<string, string> })
      expect([status, text.includes('This page was out of date.')]).toEqual([400, true])
    }
    expect(await answersOf(person)).toHaveLength(1)
  })

  it.each([
    ['application/json', '{"agree":"0"}', 415],
    ['text/plain', 'agree=0', 415],
    ['multipart/form-data; boundary=x', '--x--', 415],
    ['', '', 415],
    ['application/x-www-form-urlencoded', `shown=${'x'.repeat(40_000)}`, 413],
    ['application/x-www-form-urlencoded', '%%%=%ff&\u0000', 400],
  ])('refuses a body of the type "%s" that begins with %.10s with %d', async (type, body, status) => {
    const person = await createPerson(grant(1, 'email'))
    const { preferences_url } = await links(person)
    const headers: Record<string, string> = type === '' ? {} : { 'Content-Type': type }
    expect((await requestPage(preferences_url, { method: 'POST', headers, body })).status).toBe(status)
    expect(await answersOf(person)).toHaveLength(1)
  })

  it('allows GET, HEAD and POST only', async () => {
    const { preferences_url } = await links(await createPerson())
    for (const method of ['PUT', 'PATCH', 'DELETE']) {
      const { status, headers } = await requestPage(preferences_url, { method })
      expect([status, headers.get('Allow')]).toEqual([405, 'GET, HEAD, POST'])
    }
  })

  it('shows HTML in names, descriptions and texts as text', async () => {
    const other = await service.organization()
    const evil = `<script>alert(1)</script>"'><img src=x onerror=alert(1)>&amp;`
    await other.send('PATCH', '/v1/schema/consent-types/1', { name: evil, description: evil })
    await addText(1, 'en', evil, other)
    const url = 'https://example.com/"><script>alert(1)</script>'
    await other.send('POST', '/v1/schema/consent-types/1/texts', { language: 'fr', text: evil, url })
    await other.send('PATCH', '/v1/schema/settings', {
      display_name: evil,
      privacy_url: url,
      page_texts: { fr: { title: evil, introduction: evil } },
    })
    const { external_id } = await createPerson({ language: 'fr', ...grant(1, 'email') }, other)
    const made = await linksOf(other, external_id)
    for (const address of [made.preferences_url, made.unsubscribe_url]) {
      for (const form of [undefined, formOf(await requestPage(address))]) {
        const { text } = await requestPage(address, form && { form })
        expect(text).not.toMatch(/<script|<img|"'>/)
        expect(text).toContain(
          '&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&gt;&lt;img src=x onerror=alert(1)&gt;&amp;amp;',
        )
      }
    }
  })

  it('does not show texts beyond 256 KiB, and then does not claim that they were shown', async () => {
    const other = await service.organization()
    for (let n = 2; n <= 6; n += 1)
      await other.send('POST', '/v1/schema/consent-types', { key: `t${n}`, channels: [{ channel: 'email' }] })
    for (let id = 1; id <= 6; id += 1) await addText(id, 'en', `${id}${'x'.repeat(60_000)}`, other)
    const person = await createPerson({}, other)
    const { preferences_url } = await linksOf(other, person.external_id)
    const page = await requestPage(preferences_url)
    expect(page.text.length).toBeLessThan(300_000)
    const agree = ['0', '1', '2', '3', '4', '5', '6']
    await requestPage(preferences_url, { form: { shown: formOf(page).shown, agree } })
    const answers = await storedAnswers(service, other, person.id)
    expect(answers.filter(({ channel }) => channel === 'email').map(({ evidence }) => evidence?.text_version)).toEqual([
      1,
      1,
      1,
      1,
      undefined,
      undefined,
    ])
  })
})

describe('the unsubscribe link', () => {
  const oneClick = { form: { 'List-Unsubscribe': 'One-Click' } }

  it('takes the one-click request of RFC 8058, in both forms, and again', async () => {
    const person = await createPerson(grant(1, 'email'))
    const { unsubscribe_url } = await links(person, { consent_type_id: 1, channel: 'email' })
    const multipart = {
      headers: { 'Content-Type': 'multipart/form-data; boundary=b', 'User-Agent': 'Mail/1' },
      body: '--b\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click\r\n--b--\r\n',
    }
    for (const request of [multipart, oneClick, multipart]) {
      const { status, text } = await requestPage(unsubscribe_url, request)
      expect([status, text.includes('You are unsubscribed')]).toEqual([200, true])
    }
    expect((await answersOf(person)).slice(1)).toMatchObject([
      {
        consent_type_id: 1,
        channel: 'email',
        state: false,
        actor: 'link',
        evidence: {
          method: 'unsubscribe_link',
          source: 'List-Unsubscribe=One-Click',
          ip: '127.0.0.1',
          user_agent: 'Mail/1',
        },
      },
    ])
  })

  it('stores one answer for requests that arrive together', async () => {
    const person = await createPerson(grant(1, 'email'))
    const { unsubscribe_url } = await links(person, { consent_type_id: 1, channel: 'email' })
    const replies = await Promise.all(Array.from({ length: 10 }, () => requestPage(unsubscribe_url, oneClick)))
    expect(replies.map(({ status }) => status)).toEqual(Array(10).fill(200))
    expect(await answersOf(person)).toHaveLength(2)
  })

  it.each([
    [{}, { '1:email': false, '1:sms': false, '2:email': false, '2:sms': false }],
    [{ channel: 'sms' }, { '1:email': true, '1:sms': false, '2:email': true, '2:sms': false }],
    [{ consent_type_id: 2 }, { '1:email': true, '1:sms': true, '2:email': false, '2:sms': false }],
    [
      { consent_type_id: 2, channel: 'sms' },
      { '1:email': true, '1:sms': true, '2:email': true, '2:sms': false },
    ],
  ])('made with %j refuses that and nothing else', async (body, states) => {
    const confirmed = { method: 'double_opt_in' }
    const consents = [1, 2].flatMap(id => ['email', 'sms'].flatMap(channel => grant(id, channel, confirmed).consents))
    const person = await createPerson({ consents })
    const { unsubscribe_url } = await links(person, body)
    expect((await requestPage(unsubscribe_url, { method: 'POST' })).status).toBe(200)
    expect(await statesOf(person.external_id)).toEqual({ ...states, '3:email': true })
  })

  it('refuses a grant that waits for its confirmation, and what was never answered', async () => {
    const person = await createPerson(grant(2, 'email'))
    const { unsubscribe_url, confirm_url } = await links(person, { consent_type_id: 2, channel: 'email' })
    await requestPage(unsubscribe_url, { form: { unsubscribe: 'yes' } })
    const [, refusal] = await answersOf(person)
    expect(refusal).toMatchObject({ state: false, evidence: { method: 'unsubscribe_link', source: 'page' } })
    // A person who has unsubscribed since is not subscribed by the older link.
    const { text } = await requestPage(confirm_url!, { form: { shown: '' } })
    expect(text).toContain('There is nothing to confirm')
    const unanswered = await createPerson()
    await requestPage((await links(unanswered)).unsubscribe_url, oneClick)
    expect((await answersOf(unanswered)).map(({ state }) => state)).toEqual([false, false, false, false])
  })

  it('offers the preference page, and says that it is done when it is opened again', async () => {
    const person = await createPerson(grant(1, 'email'))
    const { unsubscribe_url } = await links(person, { consent_type_id: 1, channel: 'email' })
    expect((await requestPage(unsubscribe_url)).text).toContain('Do you want to stop receiving this?')
    await requestPage(unsubscribe_url, oneClick)
    const { text } = await requestPage(unsubscribe_url)
    expect(text).toContain('You are unsubscribed')
    const [, path] = /href="(\.\.\/p\/[\w-]{64})"/.exec(text)!
    expect((await requestPage(new URL(path!, unsubscribe_url).href)).status).toBe(200)
  })

  it.each([
    ['application/json', '{}', 415],
    ['text/html', 'x', 415],
    ['application/x-www-form-urlencoded', 'x'.repeat(100_000), 413],
  ])('refuses a body of the type %s that begins with %.5s with %d', async (type, body, status) => {
    const person = await createPerson(grant(1, 'email'))
    const { unsubscribe_url } = await links(person)
    expect((await requestPage(unsubscribe_url, { headers: { 'Content-Type': type }, body })).status).toBe(status)
    expect(await answersOf(person)).toHaveLength(1)
  })

  it('cuts a user agent at 2 KiB, between two characters', async () => {
    const person = await createPerson()
    const { unsubscribe_url } = await links(person, { consent_type_id: 1, channel: 'email' })
    await requestPage(unsubscribe_url, { method: 'POST', headers: { 'User-Agent': `x${'é'.repeat(2_000)}` } })
    const [{ evidence } = { evidence: null }] = await answersOf(person)
    expect(evidence!.user_agent).toBe(`x${'é'.repeat(1_023)}`)
  })
})

describe('the confirmation', () => {
  it('confirms the grant that waits, once, with the text that the grant names', async () => {
    const version = await addText(2, 'en', 'The text of the grant.')
    const person = await createPerson(grant(2, 'email', { text_version: version, method: 'web_form' }))
    await addText(2, 'en', 'A newer text.')
    const { confirm_url } = await links(person, { consent_type_id: 2, channel: 'email' })
    const page = await requestPage(confirm_url!)
    expect(page.text).toContain('The text of the grant.')
    expect(page.text).not.toContain('A newer text.')
    expect(await statesOf(person.external_id)).toMatchObject({ '2:email': false })
    const form = { shown: formOf(page).shown }
    const replies = await Promise.all([1, 2, 3].map(() => requestPage(confirm_url!, { form })))
    for (const { status, text } of replies) expect([status, text.includes('it is confirmed')]).toEqual([200, true])
    expect(await statesOf(person.external_id)).toMatchObject({ '2:email': true })
    expect((await answersOf(person)).slice(1)).toMatchObject([
      { state: true, pending: false, actor: 'link', evidence: { method: 'double_opt_in', text_version: version } },
    ])
    expect((await requestPage(confirm_url!)).text).toContain('it is confirmed')
  })

  it('confirms nothing without the form of its page', async () => {
    const person = await createPerson(grant(2, 'email'))
    const { confirm_url } = await links(person, { consent_type_id: 2, channel: 'email' })
    const replies = [
      await requestPage(confirm_url!, { method: 'POST' }),
      await requestPage(confirm_url!, { form: { 'List-Unsubscribe': 'One-Click' } }),
    ]
    expect(replies.map(({ status }) => status)).toEqual([415, 400])
    expect(await answersOf(person)).toHaveLength(1)
  })
})

describe('the language of a page', () => {
  const titles = {
    en: 'Your preferences',
    de: 'Ihre Einstellungen',
    fr: 'Vos préférences',
    it: 'Le sue preferenze',
    es: 'Sus preferencias',
  }

  it.each([
    ['de-AT', 'fr', 'de'],
    ['fr_CH', undefined, 'fr'],
    ['IT', 'en', 'it'],
    [undefined, 'es-MX, en;q=0.5', 'es'],
    [undefined, 'pl, it;q=0.4, fr;q=0.9, en;q=0', 'fr'],
    ['pl', 'de', 'de'],
    [undefined, 'pl', 'en'],
    [undefined, undefined, 'en'],
  ] as const)('of a person with %s and a browser with %s is %s', async (language, accepted, expected) => {
    const person = await createPerson(language && { language })
    const { preferences_url } = await links(person)
    const { text } = await requestPage(preferences_url, { headers: { 'Accept-Language': accepted ?? '' } })
    expect(text).toContain(`<html lang="${expected}">`)
    expect(text).toContain(`<h1 dir="auto">${titles[expected]}</h1>`)
  })

  it('is that of the settings if neither the person nor the browser has one, with the title of the settings', async () => {
    const other = await service.organization()
    const page_texts = { it: { title: 'Che cosa possiamo scriverle?', introduction: 'Scelga.' } }
    await other.send('PATCH', '/v1/schema/settings', { language: 'it', page_texts })
    const { external_id } = await createPerson({}, other)
    const { text } = await requestPage((await linksOf(other, external_id)).preferences_url)
    expect(text).toMatch(/<html lang="it">[\s\S]*Che cosa possiamo scriverle\?[\s\S]*Scelga\./)
  })
})

describe('the rate limit of the pages', () => {
  it('refuses the requests of one network with a page, before it reads anything, and leaves others alone', async () => {
    const limited = await startService(
      {
        KITH_RATE_PAGES: '1',
        KITH_RATE_PAGES_BURST: '3',
        KITH_BEHIND_PROXY: '1',
        KITH_PUBLIC_URL: 'https://x.example',
      },
      service.databaseUrl,
    )
    try {
      const url = `${limited.address}/p/${tokenOf((await links(await createPerson())).preferences_url)}`
      const from = (address: string) => ({ headers: { 'X-Forwarded-For': address } })
      const replies = await Promise.all(Array.from({ length: 40 }, (_, n) => requestPage(url, from(`2001:db8::${n}`))))
      const refused = replies.filter(({ status }) => status === 429)
      expect(refused.length).toBeGreaterThan(0)
      expect(refused[0]!.headers.get('Retry-After')).toMatch(/^\d+$/)
      expect(refused[0]!.headers.get('Content-Type')).toBe('text/html; charset=utf-8')
      expect(refused[0]!.text).toContain('Too many requests')
      expect((await requestPage(url, from('2001:db8:1::1'))).status).toBe(200)
      expect((await requestPage(url, from('203.0.113.7'))).status).toBe(200)
    } finally {
      await limited.stop()
    }
  })

  it('records the address that the proxy reports, and none that is no address', async () => {
    const proxied = await startService(
      { KITH_BEHIND_PROXY: '1', KITH_PUBLIC_URL: 'https://x.example', KITH_RATE_PAGES: '1000' },
      service.databaseUrl,
    )
    try {
      for (const [reported, ip] of [
        ['198.51.100.1, 203.0.113.7', '203.0.113.7'],
        ['2001:DB8:0::7', '2001:db8::7'],
        ['unknown', undefined],
      ] as const) {
        const person = await createPerson()
        const { unsubscribe_url } = await links(person, { consent_type_id: 1, channel: 'email' })
        await requestPage(`${proxied.address}/u/${tokenOf(unsubscribe_url)}`, {
          method: 'POST',
          headers: { 'X-Forwarded-For': reported },
        })
        expect((await answersOf(person))[0]!.evidence!.ip).toBe(ip)
      }
    } finally {
      await proxied.stop()
    }
  })
})

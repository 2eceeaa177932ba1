import { createHash } from 'node:crypto'
import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { useLinks } from '../../test/support/links.ts'
import { linksOf, requestPage } from '../../test/support/pages.ts'
import { type Organization, startService } from '../../test/support/service.ts'
import { type ConsentLink, type LinkKey, parseLink, signLink } from '../consent-links/token.ts'

const { service, organization, createOrganization, createPerson, grant, headOf, links, tokenOf } = useLinks()

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

  it('that names an organization that cannot exist is refused, before any of its key is read', async () => {
    const content = Buffer.alloc(48, 1)
    for (const [page, kind] of [
      ['p', 0],
      ['u', 1],
      ['c', 2],
    ] as const) {
      content[0] = 16 + kind
      for (const organization_id of [2 ** 31, 2 ** 32 - 1, 2 ** 31 - 1, 0]) {
        content.writeUInt32BE(organization_id, 3)
        expect(await refusalsOf(`${service.address}/${page}/${content.toString('base64url')}`)).toEqual([404, 404])
      }
    }
    expect(
      await refusalsOf(`${service.address}/u/EQABgAAAAAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB`),
    ).toEqual([404, 404])
  })

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
    const expiring = (expiresAt: number, changes: Partial<ConsentLink> = {}) =>
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

it.each([
  ['unsubscribe', 'email', 9, 'EQAHAAAAAw-bPB5aDUw7j34dLDtKWWgAAAAJAXc1lADD3UTtkmTEkDc_GyFMrF3b'],
  ['confirm', 'sms', 9, 'EgAHAAAAAw-bPB5aDUw7j34dLDtKWWgAAAAJAnc1lACoQz7_dtNWh6YaQ6PKXt2L'],
  ['preferences', null, null, 'EAAHAAAAAw-bPB5aDUw7j34dLDtKWWgAAAAAAHc1lACX8MEL99XoXqNLafTdNzjW'],
] as const)('a link to %s on %s that was sent keeps its meaning', (kind, channel, consent_type_id, token) => {
  const person_id = '0f9b3c1e-5a0d-4c3b-8f7e-1d2c3b4a5968'
  const link = { kind, organization_id: 3, person_id, consent_type_id, channel, expiresAt: 2_000_000_000 }
  expect(parseLink(token)).toEqual({ ...link, keyId: 7 })
  expect(signLink(link, { id: 7, secret: Buffer.alloc(32, 1) })).toBe(token)
})

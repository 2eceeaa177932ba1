import { describe, expect, it } from 'vitest'
import { useLinks } from '../../test/support/links.ts'
import { formOf, linksOf, requestPage, storedAnswers } from '../../test/support/pages.ts'

const {
  service,
  organization,
  createOrganization,
  createPerson,
  grant,
  statesOf,
  headOf,
  addText,
  links,
  answersOf,
  save,
} = useLinks()

// The boxes of the page, in the order of the choices: the purposes 1 and 2, each by email and by SMS.
const [marketingEmail, marketingSms, newsEmail, newsSms] = ['0', '1', '2', '3'] as const

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

  it.each([
    ['was collected earlier', { collected_at: '2020-01-01T00:00:00.000Z' }],
    ['has no time', { undated: true }],
  ])('refuses anew if the refusal in force %s, so that no older grant counts that arrives later', async (_, time) => {
    const entry = { consent_type_id: 1, channel: 'email' }
    const person = await createPerson({ email: 'old@example.com', consents: [{ ...entry, state: false, ...time }] })
    const { unsubscribe_url } = await links(person, entry)
    expect((await requestPage(unsubscribe_url)).text).toContain('<button')
    await requestPage(unsubscribe_url, oneClick)
    expect((await requestPage(unsubscribe_url)).text).not.toContain('<button')
    const consents = [{ ...entry, state: true, collected_at: '2023-01-01T00:00:00.000Z' }]
    await organization.send('PATCH', `/v1/people/${person.external_id}`, { consents })
    expect((await answersOf(person)).map(({ state, evidence }) => [state, evidence?.method])).toEqual([
      [false, undefined],
      [false, 'unsubscribe_link'],
      [true, undefined],
    ])
    const decision = await organization.send('POST', `/v1/people/${person.external_id}/contactable`, entry)
    expect(decision.body.data.allowed).toBe(false)
    // After a minute, a request does not count as a repetition.
    const ago = new Date(Date.now() - 61_000).toISOString()
    const change = `update entities set answers = jsonb_set(answers, '{1:email,answered_at}', to_jsonb($2::text)) where organization_id = $1`
    await service.sql(`${change} and id = $3`, [organization.id, ago, person.id])
    await requestPage(unsubscribe_url, oneClick)
    expect(await answersOf(person)).toHaveLength(4)
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
    // The older link does not subscribe a person who has unsubscribed since.
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

  it('is for the address that the link was made for', async () => {
    const person = await createPerson({ ...grant(2, 'email'), email: 'typo@example.com' })
    const link = async () => (await links(person, { consent_type_id: 2, channel: 'email' })).confirm_url!
    const old = await link()
    const { shown } = formOf(await requestPage(old))
    await organization.send('PATCH', `/v1/people/${person.external_id}`, { email: 'Right@example.com' })
    for (const form of [undefined, { shown }]) expect((await requestPage(old, form && { form })).status).toBe(404)
    expect(await statesOf(person.external_id)).toMatchObject({ '2:email': false })
    const current = await link()
    await requestPage(current, { form: { shown: formOf(await requestPage(current)).shown } })
    expect(await statesOf(person.external_id)).toMatchObject({ '2:email': true })
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

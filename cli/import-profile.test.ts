import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { stringify } from 'csv-stringify/sync'
import { beforeEach, describe, expect, it } from 'vitest'
import { runInProcess, useFolder } from '../test/support/command.ts'
import { useService } from '../test/support/service.ts'
import { useShop } from '../test/support/shop.ts'

const service = useService()
const base = useFolder()
let directory: string

const organization = useShop(service)
beforeEach(async () => {
  directory = join(base, organization.key)
  await mkdir(directory)
})

/** Imports this text as a file of that name. Returns the exit code, the messages and the counts. */
async function importFile(name: string, content: string | Buffer, ...args: string[]) {
  await writeFile(join(directory, name), content)
  const all = ['import', 'people', name, '--json', ...args]
  const environment = { KITH_URL: service.address, KITH_TOKEN: organization.token }
  const { code, stdout, stderr } = await runInProcess(all, environment, directory)
  return { code, stderr, counts: stdout === '' ? null : JSON.parse(stdout) }
}

type Row = Record<string, string>
/** A file with every column that one of the rows has. */
const csv = (rows: Row[], columns = [...new Set(rows.flatMap(row => Object.keys(row)))]) =>
  stringify(rows, { header: true, columns })

const refusedRows = async (name: string) => readFile(join(directory, name.replace('.csv', '.refused.csv')), 'utf8')

/** The answers of a person, such as `1 email true 2024-01-31T09:00:00.000Z import`. */
async function answersOf(external_id: string) {
  const { consents } = await organization.client.people.get(external_id)
  return consents
    .filter(({ source }) => source === 'answer')
    .map(({ consent_type_id, channel, state, answered_at, undated, method }) =>
      [consent_type_id, channel, state, undated ? 'undated' : answered_at, method].join(' '),
    )
}

const history = () =>
  service.sql<{ state: boolean; superseded: boolean; evidence: Record<string, string> }>(
    'select state, superseded, evidence from consent_history where organization_id = $1 order by version, channel',
    [organization.id],
  )

/** Reads the events of all addresses, such as `ada@example.com hard_bounce 2024-05-02T12:00:00.000Z klaviyo`. */
async function suppressions() {
  // The events of the tests are years old.
  const events = await organization.client.deliverability.events()
  return events.items.map(({ address, type, at, provider }) => [address, type, at, provider].join(' ')).sort()
}

const surveys = () =>
  organization.client.schema.consentTypes.create({ key: 'surveys', channels: [{ channel: 'email' }] })

const klaviyo = (change: Row = {}): Row => ({
  Email: 'ada@example.com',
  'Klaviyo ID': 'K1',
  'First Name': 'Ada',
  'Last Name': 'Example',
  'Phone Number': '+4915123456789',
  City: 'Bern',
  Source: 'Footer form',
  'Email Marketing Consent': 'SUBSCRIBED',
  'Email Marketing Consent Timestamp': '2024-01-31T09:00:00Z',
  'SMS Marketing Consent': 'NEVER_SUBSCRIBED',
  'SMS Marketing Consent Timestamp': '',
  ...change,
})

describe('kith import of an export of Klaviyo', () => {
  it('reads fields, consent and evidence, leaves the other columns out, and says so', async () => {
    const { code, counts } = await importFile('k.csv', csv([klaviyo()]), '--profile', 'klaviyo')
    expect({ code, counts }).toMatchObject({ code: 0, counts: { created: 1, left_out_columns: ['City'] } })
    expect(await organization.client.people.get('klaviyo-K1')).toMatchObject({
      ...{ email: 'ada@example.com', first_name: 'Ada', last_name: 'Example' },
      ...{ mobile_prefix: '+49', mobile_number: '15123456789', attribute_values: {} },
    })
    expect(await answersOf('klaviyo-K1')).toEqual(['1 email true 2024-01-31T09:00:00.000Z import'])
    expect(await history()).toEqual([
      {
        ...{ state: true, superseded: false },
        evidence: {
          method: 'import',
          source: 'Klaviyo export; Email Marketing Consent: SUBSCRIBED; Source: Footer form',
          reference: 'K1',
        },
      },
    ])
  })

  it('gives every word its meaning, and counts it', async () => {
    await surveys()
    const words = ['SUBSCRIBED', 'Subscribed', 'UNSUBSCRIBED', 'Unsubscribed', 'NEVER_SUBSCRIBED', 'Never subscribed']
    const rows = [...words, 'PERHAPS', ''].map((word, index) =>
      klaviyo({
        'Klaviyo ID': `K${index}`,
        'Email Marketing Consent': word,
        'SMS Marketing Consent': word,
        'SMS Marketing Consent Timestamp': '2024-02-01T09:00:00+01:00',
      }),
    )
    const { counts } = await importFile('k.csv', csv(rows), '--profile', 'klaviyo')
    expect(counts.created).toBe(8)
    const given = (state: boolean) => [
      `1 email ${state} 2024-01-31T09:00:00.000Z import`,
      `1 sms ${state} 2024-02-01T08:00:00.000Z import`,
    ]
    for (const id of ['K0', 'K1']) expect(await answersOf(`klaviyo-${id}`)).toEqual(given(true))
    // Klaviyo has one consent for all email marketing.
    const refused = [...given(false), '2 email false 2024-01-31T09:00:00.000Z import']
    for (const id of ['K2', 'K3']) expect(await answersOf(`klaviyo-${id}`)).toEqual(refused)
    for (const id of ['K4', 'K5', 'K6', 'K7']) expect(await answersOf(`klaviyo-${id}`)).toEqual([])
    expect(counts.answers.consents).toEqual([
      { consent_type_id: 1, channel: 'email', grants: 2, refusals: 2 },
      { consent_type_id: 1, channel: 'sms', grants: 2, refusals: 2 },
      { consent_type_id: 2, channel: 'email', grants: 0, refusals: 2 },
    ])
    expect(counts.answers.without_answer).toEqual([
      { channel: 'email', lines: 4 },
      { channel: 'sms', lines: 4 },
    ])
    const column = 'Email Marketing Consent'
    expect(counts.answers.words).toContainEqual({ column, word: 'PERHAPS', outcome: 'none', known: false, lines: 1 })
    expect(counts.answers.words).toContainEqual({ column, word: '(empty)', outcome: 'none', known: true, lines: 1 })
    expect(counts.answers.words).toContainEqual({ column, word: 'SUBSCRIBED', outcome: 'grant', known: true, lines: 1 })
  })

  it('grants nothing to a suppressed profile, and refuses for one that unsubscribed or complained', async () => {
    const reasons = ['', 'HARD_BOUNCE', 'USER_SUPPRESSED', 'something new', 'UNSUBSCRIBED', '["SPAM_COMPLAINT"]']
    const rows = reasons.map((reason, index) =>
      klaviyo({ 'Klaviyo ID': `K${index}`, Email: `K${index}@example.com`, 'Email Suppressions': reason }),
    )
    const undated = await importFile('k.csv', csv(rows), '--profile', 'klaviyo')
    expect(undated).toMatchObject({ code: 1, counts: { received: 0 } })
    expect(undated.stderr).toContain('no time of the refusals and bounces in Email Suppressions')
    const exported = ['--exported-at', '2024-06-01T00:00:00Z']
    expect((await importFile('k.csv', csv(rows), '--profile', 'klaviyo', ...exported)).counts.created).toBe(6)
    const answers = await Promise.all(rows.map((_, index) => answersOf(`klaviyo-K${index}`)))
    const refused = ['1 email false 2024-06-01T00:00:00.000Z import']
    expect(answers).toEqual([['1 email true 2024-01-31T09:00:00.000Z import'], [], [], [], refused, refused])
    const sources = (await history()).map(({ evidence }) => evidence.source)
    expect(sources).toContain('Klaviyo export; Email Suppressions: SPAM_COMPLAINT; time of the export')
  })

  it('records bounces and complaints of the addresses, and the same file twice changes nothing', async () => {
    const reasons = [
      'HARD_BOUNCE',
      '["SPAM_COMPLAINT", "HARD_BOUNCE"]',
      'INVALID_EMAIL',
      'USER_SUPPRESSED',
      'UNSUBSCRIBE',
      '',
    ]
    const rows = reasons.map((reason, index) =>
      klaviyo({ 'Klaviyo ID': `K${index}`, Email: `K${index}@example.com`, 'Email Suppressions': reason }),
    )
    const args = ['--profile', 'klaviyo', '--exported-at', '2024-06-01T00:00:00Z']
    const dry = await importFile('k.csv', csv(rows), ...args, '--dry-run')
    expect(dry.counts.answers.events).toEqual([
      { channel: 'email', type: 'complaint', lines: 1 },
      { channel: 'email', type: 'hard_bounce', lines: 3 },
    ])
    expect(await suppressions()).toEqual([])
    const { counts } = await importFile('k.csv', csv(rows), ...args)
    expect(counts).toMatchObject({ created: 6, failed: 0, answers: dry.counts.answers })
    const of = (name: string, type: string) => `${name}@example.com ${type} 2024-06-01T00:00:00.000Z klaviyo`
    const expected = [of('k0', 'hard_bounce'), of('k1', 'complaint'), of('k1', 'hard_bounce'), of('k2', 'hard_bounce')]
    expect(await suppressions()).toEqual(expected)
    expect(await answersOf('klaviyo-K1')).toEqual(['1 email false 2024-06-01T00:00:00.000Z import'])
    const [head, answers] = [await organization.head(), await history()]
    const again = await importFile('k.csv', csv(rows.toReversed()), ...args)
    expect(again.counts).toMatchObject({ created: 0, unchanged: 6 })
    expect([await organization.head(), await history(), await suppressions()]).toEqual([head, answers, expected])
  })

  it('records nothing of the address of a refused line, until it is imported', async () => {
    const row = klaviyo({ 'Phone Number': 'none', 'Email Suppressions': 'HARD_BOUNCE' })
    const args = ['--profile', 'klaviyo', '--exported-at', '2024-06-01T00:00:00Z']
    expect((await importFile('k.csv', csv([row]), ...args)).counts).toMatchObject({ failed: 1 })
    expect(await suppressions()).toEqual([])
    const corrected = (await refusedRows('k.csv')).replace(',none,', ',,')
    expect((await importFile('corrected.csv', corrected, ...args)).counts).toMatchObject({ created: 1 })
    expect(await suppressions()).toHaveLength(1)
  })

  it.each([
    ['with a byte order mark', (text: string) => Buffer.from(`\ufeff${text}`), []],
    ['with CRLF', (text: string) => Buffer.from(text.replaceAll('\n', '\r\n')), []],
    ['with semicolons', (text: string) => Buffer.from(text.replaceAll(',', ';')), []],
    ['in UTF-16', (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le'), ['--encoding', 'utf-16le']],
  ])('reads a file %s', async (_, encode, args) => {
    const text = csv([klaviyo({ 'First Name': 'Änne', Größe: 'L' })])
    const keep = ['--map', 'Größe=attribute_values.size']
    const { counts } = await importFile('k.csv', encode(text), '--profile', 'klaviyo', ...keep, ...args)
    expect(counts).toMatchObject({ created: 1, failed: 0 })
    const person = await organization.client.people.get('klaviyo-K1')
    expect(person).toMatchObject({ first_name: 'Änne', attribute_values: { size: 'L' } })
    expect(await answersOf('klaviyo-K1')).toHaveLength(1)
  })

  it('changes nothing when the file comes again, and no state when an older export comes later', async () => {
    const newer = csv([
      klaviyo({
        'Email Marketing Consent': 'UNSUBSCRIBED',
        'Email Marketing Consent Timestamp': '2024-05-01T00:00:00Z',
      }),
    ])
    const older = csv([klaviyo()])
    expect((await importFile('new.csv', newer, '--profile', 'klaviyo')).counts).toMatchObject({ created: 1 })
    expect((await importFile('new.csv', newer, '--profile', 'klaviyo')).counts).toMatchObject({ unchanged: 1 })
    await importFile('old.csv', older, '--profile', 'klaviyo')
    const refused = ['1 email false 2024-05-01T00:00:00.000Z import']
    expect(await answersOf('klaviyo-K1')).toEqual(refused)
    expect((await history()).map(({ state, superseded }) => [state, superseded])).toEqual([
      [false, false],
      [true, true],
    ])
    for (const [name, file] of [
      ['old.csv', older],
      ['new.csv', newer],
    ] as const)
      expect((await importFile(name, file, '--profile', 'klaviyo')).counts).toMatchObject({ unchanged: 1 })
    expect(await answersOf('klaviyo-K1')).toEqual(refused)
    expect(await history()).toHaveLength(2)
  })

  it('lifts no unsubscription by a grant whose time the export does not tell', async () => {
    const { people } = organization.client
    await people.create({ external_id: 'klaviyo-K1', email_consent: false })
    await people.create({ external_id: 'hubspot-901', email_consent: false })
    const k = csv([klaviyo({ 'Email Marketing Consent Timestamp': '' })])
    const h = csv([hubspot({ 'Marketing email confirmation status': 'User clicked confirmation' })])
    const exported = ['--exported-at', new Date().toISOString(), '--ignore', 'Opted out of email: Surveys']
    await importFile('k.csv', k, '--profile', 'klaviyo', ...exported.slice(0, 2))
    await importFile('h.csv', h, '--profile', 'hubspot', ...exported)
    for (const external_id of ['klaviyo-K1', 'hubspot-901']) {
      expect(
        await organization.client.consents.contactable(external_id, { consent_type_id: 1, channel: 'email' }),
      ).toMatchObject({
        allowed: false,
      })
      const { items } = await organization.client.consents.history(external_id).page()
      expect(items.map(({ state, superseded, undated = false }) => [state, superseded, undated])).toEqual([
        [true, true, true],
        [false, false, false],
      ])
    }
    expect((await importFile('k.csv', k, '--profile', 'klaviyo', ...exported.slice(0, 2))).counts.unchanged).toBe(1)
  })

  it('refuses a line with a time that it cannot read, and imports it when it is corrected', async () => {
    const times = ['next week', '', '2024-01-31 09:00:00', '2024-01-31T09:00:00Z']
    const rows = times.map((time, index) =>
      klaviyo({
        'Klaviyo ID': `K${index}`,
        'Email Marketing Consent': time === '' ? 'UNSUBSCRIBED' : 'SUBSCRIBED',
        'Email Marketing Consent Timestamp': time,
      }),
    )
    const { code, counts } = await importFile('k.csv', csv(rows), '--profile', 'klaviyo')
    expect({ code, counts }).toMatchObject({ code: 1, counts: { created: 1, failed: 3 } })
    const refused = await refusedRows('k.csv')
    const reason = 'Email Marketing Consent Timestamp'
    expect(refused).toMatch(new RegExp(`line 2: ${reason} ""next week"" is not a date and time`))
    expect(refused).toMatch(new RegExp(`line 3: ${reason} is empty.*--exported-at`))
    expect(refused).toMatch(new RegExp(`line 4: ${reason} ""2024-01-31 09:00:00"" has no offset.*--time-zone`))
    expect(refused.split('\n')[0]).toBe(`\ufeffrefused_because,${Object.keys(rows[0]!).join()}`)
    expect(await history()).toHaveLength(1)
    const mended = refused.replaceAll('next week', '2023-01-01T00:00:00Z')
    const options = ['--time-zone', 'Europe/Berlin', '--exported-at', '2024-06-01T00:00:00Z']
    const again = await importFile('mended.csv', mended, '--profile', 'klaviyo', ...options)
    expect(again.counts).toMatchObject({ created: 3, failed: 0 })
    const answers = await Promise.all([0, 1, 2].map(index => answersOf(`klaviyo-K${index}`)))
    expect(answers.flat()).toEqual([
      '1 email true 2023-01-01T00:00:00.000Z import',
      '1 email false 2024-06-01T00:00:00.000Z import',
      '1 email true 2024-01-31T08:00:00.000Z import',
    ])
  })

  it('refuses a line with a phone number that it cannot split, unless the country or the column is given', async () => {
    const text = csv([klaviyo({ 'Phone Number': '01512 3456789' })])
    const { counts } = await importFile('k.csv', text, '--profile', 'klaviyo')
    expect(counts).toMatchObject({ failed: 1, created: 0 })
    expect(await refusedRows('k.csv')).toMatch(/line 2: Phone Number .*is not a phone number.*--phone-country/)
    await importFile('k.csv', text, '--profile', 'klaviyo', '--phone-country', 'DE')
    const person = await organization.client.people.get('klaviyo-K1')
    expect(person).toMatchObject({ mobile_prefix: '+49', mobile_number: '15123456789' })
    const ignored = await importFile('k.csv', text, '--profile', 'klaviyo', '--ignore', 'Phone Number')
    expect(ignored.counts).toMatchObject({ unchanged: 1 })
  })

  it('takes the country of the settings for a phone number without a prefix, unless another one is given', async () => {
    await organization.client.schema.patchSettings({ default_country: 'DE' })
    const text = csv([klaviyo({ 'Phone Number': '01512 3456789' })])
    await importFile('k.csv', text, '--profile', 'klaviyo')
    const phone = async () => (await organization.client.people.get('klaviyo-K1')).mobile_e164
    expect(await phone()).toBe('+4915123456789')
    await importFile(
      'k.csv',
      text.replace('01512 3456789', '333 1234567'),
      '--profile',
      'klaviyo',
      '--phone-country',
      'IT',
    )
    expect(await phone()).toBe('+393331234567')
    await organization.client.schema.patchSettings({ default_country: null })
  })

  it('keeps the extension of a phone number, and refuses a cell that is more or less than a number', async () => {
    const cells = ['+1 650 253 0000 ext. 12', 'private +49 1512 3456789, ask for Anna', '1990']
    const text = csv(cells.map((cell, index) => klaviyo({ 'Klaviyo ID': `P${index}`, 'Phone Number': cell })))
    const { counts } = await importFile('p.csv', text, '--profile', 'klaviyo', '--phone-country', 'DE')
    expect(counts).toMatchObject({ created: 1, failed: 2 })
    expect(await organization.client.people.get('klaviyo-P0')).toMatchObject({
      mobile_prefix: '+1',
      mobile_number: '6502530000 ext. 12',
    })
    expect(await refusedRows('p.csv')).toContain('ask for Anna')
  })

  it('stores nothing in a dry run, and prints what it would store', async () => {
    await writeFile(join(directory, 'k.csv'), csv([klaviyo(), klaviyo({ 'Email Marketing Consent': 'PERHAPS' })]))
    const environment = { KITH_URL: service.address, KITH_TOKEN: organization.token }
    const args = ['import', 'people', 'k.csv', '--profile', 'klaviyo', '--dry-run']
    const { code, stderr } = await runInProcess(args, environment, directory)
    expect(code).toBe(0)
    expect(stderr).toMatch(/2 lines in .*, checked and not stored/)
    expect(stderr).toContain(
      'email, marketing: 1 granted, 0 refused\nemail: 1 without an answer\nsms: 2 without an answer\n',
    )
    expect(stderr).toContain('  Email Marketing Consent: SUBSCRIBED: 1, a grant\n')
    expect(stderr).toContain('PERHAPS: 1, no answer (the profile does not know this word)\n')
    expect(stderr).toContain('Left out these columns: City.')
    expect(await history()).toEqual([])
  })

  it('keeps other columns as attributes if it is told to, never as fields with the same name', async () => {
    await organization.client.schema.attributes.create({
      key: 'town',
      owner: 'people',
      type: 'text',
      cardinality: 'many',
    })
    const text = csv([klaviyo({ email_consent: 'true', consents: '[]', town: 'Bern|Rome' })])
    await importFile(
      'k.csv',
      text,
      '--profile',
      'klaviyo',
      '--attributes',
      'rest',
      '--ignore',
      'Email Marketing Consent',
    )
    expect((await organization.client.people.get('klaviyo-K1')).attribute_values).toEqual({
      City: 'Bern',
      town: ['Bern', 'Rome'],
      email_consent: 'true',
      consents: '[]',
      'Email Marketing Consent Timestamp': '2024-01-31T09:00:00Z',
    })
    expect(await answersOf('klaviyo-K1')).toEqual([])
  })

  it('makes the external_id of the email address if it is told to', async () => {
    const rows = [klaviyo({ Email: ' Ada@Example.com' }), klaviyo({ Email: '' })]
    const { counts } = await importFile('k.csv', csv(rows), '--profile', 'klaviyo', '--external-id', 'email')
    expect(counts).toMatchObject({ created: 1, failed: 1 })
    expect(await answersOf('ada@example.com')).toHaveLength(1)
    expect(await refusedRows('k.csv')).toContain('line 3: Email is empty, so that the record has no external_id')
    const { 'Klaviyo ID': _, ...bare } = klaviyo()
    expect((await importFile('k.csv', csv([bare]), '--profile', 'klaviyo')).stderr).toMatch(
      /no column Klaviyo ID.*--external-id email/,
    )
  })

  it('grants the consent type that it is told, and refuses one that nobody can answer', async () => {
    await surveys()
    await organization.client.schema.consentTypes.create({
      ...{ key: 'service', channels: [{ channel: 'email' }], mandatory: true },
    })
    const run = (...args: string[]) => importFile('k.csv', csv([klaviyo()]), '--profile', 'klaviyo', ...args)
    await run('--consent-type', 'email=surveys')
    expect(await answersOf('klaviyo-K1')).toEqual(['2 email true 2024-01-31T09:00:00.000Z import'])
    expect((await run('--consent-type', 'email=service')).stderr).toContain(
      'service is no consent type that a person can answer on the channel email. Those of email are: marketing, surveys.',
    )
    expect((await run('--consent-type', 'fax=surveys')).stderr).toContain('--consent-type fax: this is neither')
    await organization.client.schema.consentTypes.patch(1, { state: 'archived' })
    expect((await run()).stderr).toContain('No consent type is the default of the channel email.')
  })
})

const mailchimp = (change: Row = {}): Row => ({
  'Email Address': 'ada@example.com',
  'First Name': 'Ada',
  'Last Name': 'Example',
  MEMBER_RATING: '2',
  OPTIN_TIME: '2024-01-31 09:00:00',
  OPTIN_IP: '192.0.2.10',
  CONFIRM_TIME: '2024-01-31 09:05:00',
  CONFIRM_IP: '192.0.2.11',
  LAST_CHANGED: '2024-06-01 00:00:00',
  LEID: '7',
  EUID: 'E1',
  NOTES: '',
  TAGS: '"VIP"',
  ...change,
})
const unsubscribed = (change: Row = {}) =>
  mailchimp({
    ...{ UNSUB_TIME: '2024-05-01 12:00:00', UNSUB_CAMPAIGN_TITLE: 'Spring', UNSUB_CAMPAIGN_ID: 'c1' },
    ...{ UNSUB_REASON: 'NORMAL', UNSUB_REASON_OTHER: '', ...change },
  })

describe('kith import of the exports of Mailchimp', () => {
  const run = (name: string, rows: Row[], ...args: string[]) =>
    importFile(name, csv(rows), '--profile', 'mailchimp', ...args)

  it('reads subscribed contacts, and a double opt-in only where the export proves it', async () => {
    const rows = [
      mailchimp(),
      mailchimp({ EUID: 'E2', OPTIN_TIME: '', OPTIN_IP: '' }),
      mailchimp({ EUID: 'E3', CONFIRM_TIME: '2024-01-31 09:00:00' }),
      mailchimp({ EUID: 'E4', CONFIRM_TIME: '', CONFIRM_IP: '' }),
      mailchimp({ EUID: 'E5', CONFIRM_TIME: '', CONFIRM_IP: '', OPTIN_TIME: '' }),
    ]
    const { counts } = await run('subscribed_members_export_1.csv', rows)
    expect(counts).toMatchObject({ created: 5, failed: 0 })
    const answers = await Promise.all([1, 2, 3, 4, 5].map(index => answersOf(`mailchimp-E${index}`)))
    expect(answers.flat()).toEqual([
      '1 email true 2024-01-31T09:05:00.000Z double_opt_in',
      '1 email true 2024-01-31T09:05:00.000Z import',
      '1 email true 2024-01-31T09:00:00.000Z import',
      '1 email true 2024-01-31T09:00:00.000Z import',
      '1 email true undated import',
    ])
    expect((await history())[0]!.evidence).toEqual({
      method: 'double_opt_in',
      source: 'Mailchimp export; status: subscribed',
      ip: '192.0.2.11',
      reference: 'E1',
    })
  })

  it('lets a grant without proof of its confirmation wait where the channel asks for a double opt-in', async () => {
    const channels = [{ channel: 'email' as const, is_default: true, double_opt_in: true }]
    await organization.client.schema.consentTypes.patch(1, { channels })
    await run('subscribed.csv', [mailchimp(), mailchimp({ EUID: 'E2', OPTIN_IP: '' })])
    const states = async (id: string) => (await organization.client.people.get(id)).consents[0]
    expect(await states('mailchimp-E1')).toMatchObject({ state: true })
    expect(await states('mailchimp-E2')).toMatchObject({ state: false, pending: true })
  })

  it('refuses for unsubscribed contacts, and ends equal in any order of the files', async () => {
    const files = {
      'subscribed.csv': [mailchimp()],
      'unsubscribed.csv': [unsubscribed()],
      'cleaned.csv': [mailchimp({ CLEAN_TIME: '2024-05-02 12:00:00' })],
      'nonsubscribed.csv': [mailchimp()],
    }
    for (const names of [Object.keys(files), Object.keys(files).reverse()]) {
      await organization.renew()
      for (const name of names) expect((await run(name, files[name as keyof typeof files])).code).toBe(0)
      expect(await answersOf('mailchimp-E1')).toEqual(['1 email false 2024-05-01T12:00:00.000Z import'])
      const refusals = (await history()).filter(({ state }) => !state)
      expect(refusals.map(({ evidence }) => evidence.source)).toEqual([
        'Mailchimp export; status: unsubscribed; UNSUB_REASON: NORMAL; UNSUB_CAMPAIGN_TITLE: Spring',
      ])
    }
  })

  it('grants nothing to cleaned and never subscribed contacts, whatever the file is called', async () => {
    const cleaned = mailchimp({ CLEAN_TIME: '2024-05-02 12:00:00' })
    await run('cleaned_members.csv', [cleaned])
    await run('nonsubscribed_members.csv', [mailchimp()])
    await run('subscribed_wrongly_named.csv', [cleaned])
    expect(await answersOf('mailchimp-E1')).toEqual([])
    await run('subscribed_wrongly_named_too.csv', [unsubscribed()])
    expect(await answersOf('mailchimp-E1')).toEqual(['1 email false 2024-05-01T12:00:00.000Z import'])
  })

  it('records a hard bounce of each cleaned contact at its time, in any order of the files', async () => {
    const bounced = {
      ...{ 'Email Address': 'bo@example.com', EUID: 'E2', CLEAN_TIME: '2024-05-02 12:00:00' },
      ...{ CLEAN_CAMPAIGN_TITLE: 'Spring', CLEAN_CAMPAIGN_ID: 'c1' },
    }
    const files: [string, Row[]][] = [
      ['subscribed.csv', [mailchimp(), mailchimp({ ...bounced, CLEAN_TIME: '' })]],
      ['cleaned.csv', [mailchimp(bounced)]],
    ]
    for (const ordered of [files, files.toReversed()]) {
      await organization.renew()
      for (const [name, rows] of ordered) expect((await run(name, rows)).code).toBe(0)
      expect(await suppressions()).toEqual(['bo@example.com hard_bounce 2024-05-02T12:00:00.000Z mailchimp'])
    }
  })

  it('refuses a file without a status, and takes it from the option', async () => {
    const unknown = await run('export.csv', [unsubscribed()])
    expect(unknown.code).toBe(2)
    expect(unknown.stderr).toContain('Give --status with one of subscribed, unsubscribed, cleaned, nonsubscribed.')
    expect((await run('export.csv', [unsubscribed()], '--status', 'gone')).code).toBe(2)
    await run('export.csv', [unsubscribed()], '--status', 'unsubscribed')
    expect(await answersOf('mailchimp-E1')).toHaveLength(1)
  })

  it('reads times in UTC, or in the given time zone with its summer time', async () => {
    const rows = [mailchimp(), mailchimp({ EUID: 'E2', CONFIRM_TIME: '2024-07-31 09:05:00' })]
    await run('subscribed.csv', rows, '--time-zone', 'America/New_York')
    expect([...(await answersOf('mailchimp-E1')), ...(await answersOf('mailchimp-E2'))]).toEqual([
      '1 email true 2024-01-31T14:05:00.000Z double_opt_in',
      '1 email true 2024-07-31T13:05:00.000Z double_opt_in',
    ])
    expect((await run('subscribed.csv', rows, '--time-zone', 'Mars')).stderr).toContain('There is no time zone Mars')
  })
})

const hubspot = (change: Row = {}): Row => ({
  'Record ID': '901',
  'First Name': 'Ada',
  'Last Name': 'Example',
  Email: 'ada@example.com',
  'Mobile Phone Number': '',
  'Unsubscribed from all email': 'false',
  'Opted out of email: Surveys': 'false',
  'Marketing email confirmation status': '',
  'Email hard bounce reason': '',
  "Legal basis for processing contact's data": 'Freely given consent from contact',
  ...change,
})

describe('kith import of an export of HubSpot', () => {
  const exportedAt = ['--exported-at', '2024-06-01T00:00:00Z']
  const mapped = ['--consent-type', 'Opted out of email: Surveys=surveys']
  const run = (rows: Row[], ...args: string[]) => importFile('h.csv', csv(rows), '--profile', 'hubspot', ...args)

  it('refuses what a contact opted out of, and grants only by a clicked confirmation', async () => {
    await surveys()
    const clicked = { 'Marketing email confirmation status': 'User clicked confirmation' }
    const changes: Row[] = [
      {},
      { 'Unsubscribed from all email': 'true' },
      { 'Opted out of email: Surveys': 'Yes' },
      clicked,
      { ...clicked, 'Unsubscribed from all email': 'TRUE' },
      { ...clicked, 'Opted out of email: Surveys': 'true' },
      { ...clicked, 'Email hard bounce reason': 'UNKNOWN_USER' },
      { 'Marketing email confirmation status': 'HubSpot Rep. marked confirmed' },
    ]
    const rows = changes.map((change, index) => hubspot({ ...change, 'Record ID': String(index) }))
    expect((await run(rows, ...exportedAt, ...mapped)).counts).toMatchObject({ created: 8, failed: 0 })
    const answers = await Promise.all(rows.map((_, index) => answersOf(`hubspot-${index}`)))
    const time = '2024-06-01T00:00:00.000Z'
    const all = [`1 email false ${time} import`, `2 email false ${time} import`]
    expect(answers).toEqual([
      ...[[], all, [all[1]], ['1 email true undated double_opt_in']],
      ...[all, ['1 email true undated double_opt_in', all[1]], [], []],
    ])
  })

  it('records a hard bounce at the time of the export, once for several columns', async () => {
    const header = [
      'Record ID',
      'Email',
      'Email hard bounce reason',
      'Email hard bounce reason',
      'Invalid email address',
    ]
    const rows = [
      ['0', 'mail@example.com', 'Unknown user', 'UNKNOWN_USER', 'true'],
      ['1', 'good@example.com', '', '', 'false'],
      ['2', 'odd@example.com', '', '', 'vielleicht'],
    ]
    const { counts } = await importFile('h.csv', stringify([header, ...rows]), '--profile', 'hubspot', ...exportedAt)
    expect(counts.answers.events).toEqual([{ channel: 'email', type: 'hard_bounce', lines: 1 }])
    expect(await suppressions()).toEqual(['mail@example.com hard_bounce 2024-06-01T00:00:00.000Z hubspot'])
  })

  it('refuses by any of several columns with one name, and grants nothing by a word that it does not know', async () => {
    await surveys()
    const names = ['Record ID', 'Marketing email confirmation status', 'Opted out of email: Surveys']
    const all = 'Unsubscribed from all email'
    const clicked = 'User clicked confirmation'
    const header = [...names, all, all, 'unsubscribed_from_all_email', 'Invalid email address']
    const rows = [
      ['0', clicked, 'false', 'false', 'true', '', ''],
      ['1', clicked, 'false', '', 'false', 'TRUE', ''],
      ...['wahr', 'ja', 'X', 'T'].map((word, index) => [`${2 + index}`, clicked, 'false', '', word, '', '']),
      ['6', clicked, 'ja', '', '', '', ''],
      ['7', clicked, '', '', '', '', 'X'],
      ['8', clicked, 'false', 'no', '', '0', 'false'],
    ]
    const text = stringify([header, ...rows])
    const { counts } = await importFile('h.csv', text, '--profile', 'hubspot', ...exportedAt, ...mapped)
    expect(counts).toMatchObject({ created: 9, failed: 0 })
    const answers = await Promise.all(rows.map((_, index) => answersOf(`hubspot-${index}`)))
    const time = '2024-06-01T00:00:00.000Z'
    const refused = [`1 email false ${time} import`, `2 email false ${time} import`]
    expect(answers).toEqual([refused, refused, [], [], [], [], [], [], ['1 email true undated double_opt_in']])
    expect(counts.answers.words).toContainEqual({
      ...{ column: all, word: 'wahr', outcome: 'withhold', known: false, lines: 1 },
    })
  })

  it('refuses the file until the time of the export and the type of each subscription are named', async () => {
    await surveys()
    const { stderr } = await run([hubspot()], ...mapped)
    expect(stderr).toContain('Name the time of the export with --exported-at')
    const untyped = await run([hubspot()], ...exportedAt)
    expect(untyped).toMatchObject({ code: 1, counts: { received: 0 } })
    expect(untyped.stderr).toContain('"Opted out of email: Surveys" has no consent type.')
    const ignored = await run([hubspot()], ...exportedAt, '--ignore', 'Opted out of email: Surveys')
    expect(ignored.counts).toMatchObject({ created: 1 })
    const wrongTime = await run([hubspot()], '--exported-at', '2024-06-01')
    expect(wrongTime.code).toBe(2)
    expect((await run([hubspot()], '--exported-at', '2999-01-01T00:00:00Z')).code).toBe(2)
  })
})

describe('kith import with a profile of one’s own', () => {
  it('reads the columns that the file describes', async () => {
    const profile = {
      version: 1,
      product: 'Acme',
      external_id: { columns: ['No'] },
      fields: { email: ['Mail'], 'attribute_values.town': ['Town'] },
      answers: [{ channel: 'email', column: 'News', words: { j: 'grant', n: 'refuse' }, time: ['Since'] }],
    }
    await writeFile(join(directory, 'mine.json'), JSON.stringify(profile))
    const text = 'No;Mail;Town;News;Since\n1;ada@example.com;Bern;J;31.01.2024 10:00\n2;;;N;01.02.2024 10:00\n'
    const { counts } = await importFile('a.csv', text, '--profile', './mine.json', '--time-zone', 'Europe/Zurich')
    expect(counts).toMatchObject({ created: 2, failed: 0, left_out_columns: [] })
    expect(await answersOf('1')).toEqual(['1 email true 2024-01-31T09:00:00.000Z import'])
    expect(await answersOf('2')).toEqual(['1 email false 2024-02-01T09:00:00.000Z import'])
    expect((await organization.client.people.get('1')).attribute_values).toEqual({ town: 'Bern' })
  })

  it('refuses a wrong profile by the path of the value, and wrong usage', async () => {
    await writeFile(join(directory, 'mine.json'), '{"version":1,"product":"Acme"}')
    const wrong = await importFile('a.csv', 'a\n1\n', '--profile', './mine.json')
    expect(wrong.stderr).toMatch(/The profile \.\/mine\.json cannot be used:\n {2}\/external_id is required/)
    expect((await importFile('a.csv', 'a\n1\n', '--profile', 'none')).code).toBe(2)
    expect((await importFile('a.ndjson', '{}\n', '--profile', 'klaviyo')).code).toBe(2)
    for (const option of ['--status unsubscribed', '--external-id email', '--consent-type sms=news']) {
      const without = await importFile('a.csv', 'external_id\na\n', ...option.split(' '))
      expect(without).toMatchObject({ code: 2, stderr: expect.stringContaining('applies only with --profile') })
    }
    await expect(organization.client.people.get('a')).rejects.toMatchObject({ code: 'not_found' })
    const both = ['--offset', 'Z', '--time-zone', 'UTC']
    expect((await importFile('a.csv', 'a\n1\n', '--profile', 'klaviyo', ...both)).code).toBe(2)
    const empty = await importFile('a.csv', 'Klaviyo ID,Email\n1,\n', '--profile', 'klaviyo')
    expect(empty.stderr).toContain('The file has no column with answers. The profile of Klaviyo reads: Email Marketing')
  })
})

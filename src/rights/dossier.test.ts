import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { importLines, linesFrom } from '../../test/support/lines.ts'
import { findCanaries, type PlantedPerson, plantCanaries } from '../../test/support/person-canaries.ts'
import { followSegments } from '../../test/support/segments.ts'
import { allScopes, type Organization, useOwnService } from '../../test/support/service.ts'
import { createShop, useSharedShop } from '../../test/support/shop.ts'
import { dossierSections, notInDossier } from './dossier-sections.ts'
import { erasedTables, keptTables, tablesErasedElsewhere } from './erasure/erased-tables.ts'

const service = useOwnService({ KITH_WEBHOOK_ALLOW: '127.0.0.0/8' })

// biome-ignore lint/suspicious/noExplicitAny: tests read any member of a line
type Line = Record<string, any> & { type: string }

async function readDossier({ send }: Organization, address: string): Promise<Line[]> {
  const reply = await send('GET', `/v1/people/${address}/dossier`)
  expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'application/x-ndjson'])
  return reply.body.data
}

const linesOf = (lines: Line[], type: string) => lines.filter(line => line.type === type)

describe('the dossier of a person with canaries', () => {
  let person: PlantedPerson
  let lines: Line[]
  const organization = useSharedShop(service)
  beforeAll(async () => {
    person = await plantCanaries(service, organization)
    lines = await readDossier(organization, `internal/${person.id}`)
  })

  it('has a section for every table that an erasure lists, or says why it has none', async () => {
    const listed = [...erasedTables.map(({ table }) => table), ...Object.keys(tablesErasedElsewhere)]
    const shown = dossierSections.flatMap(({ tables }) => tables)
    const decided = [...shown, ...Object.keys(notInDossier)]
    expect(listed.filter(table => !decided.includes(table))).toEqual([])
    expect(shown.filter(table => notInDossier[table] !== undefined)).toEqual([])
    expect(decided.filter(table => !listed.includes(table) && keptTables[table] === undefined)).toEqual([])
  })

  it('shows every canary that any table holds', async () => {
    const text = JSON.stringify(lines).toLowerCase()
    const sightings = await findCanaries(service, person.canaries)
    expect(new Set(sightings.map(({ place }) => place)).size).toBe(Object.keys(person.canaries).length)
    const missing = sightings.filter(({ place }) => !text.includes(person.canaries[place]!.toLowerCase()))
    expect(missing).toEqual([])
  })

  it('shows every row of the person in every table with a section', async () => {
    const ids = [person.id, person.merged_id]
    const aliases = `(select organization_id, person_id from aliases union all
      select organization_id, person_id from merges where email_key is not null) a`
    const counted: [string, string, string][] = [
      ['alias', aliases, 'person_id = any($2)'],
      ['consent_answer', 'consent_history', 'person_id = any($2)'],
      ['change', 'changes', 'entity_id = any($2)'],
      ['merge', 'merges', '(person_id = any($2) or merged_id = any($2))'],
      ['delivery', 'webhook_deliveries', 'entity = any($2::text[])'],
    ]
    for (const [type, table, condition] of counted) {
      const [row] = await service.sql<{ count: number }>(
        `select count(*)::integer as count from ${table} where organization_id = $1 and ${condition}`,
        [organization.id, ids],
      )
      expect([type, linesOf(lines, type).length]).toEqual([type, row!.count])
      expect(row!.count).toBeGreaterThan(0)
    }
  })

  it('names the person, the organization and the moment first, and counts its lines at the end', async () => {
    const { head, log_id } = (await organization.send('GET', '/v1/changes')).body.data
    expect(lines[0]).toMatchObject({
      type: 'about',
      person: { id: person.id, external_id: person.external_id, state: 'active', merged_ids: [person.merged_id] },
      organization: { key: organization.key, display_name: null },
      ...{ head, log_id, made_by: 'tests' },
    })
    const counts = Object.fromEntries(
      Object.entries(Object.groupBy(lines.slice(0, -1), ({ type }) => type)).map(([type, group]) => [
        type,
        group!.length,
      ]),
    )
    expect(lines.at(-1)).toEqual({ type: 'end', lines: counts })
  })

  it('shows the profile as a read does, and each attribute, consent and link apart', async () => {
    const read = (await organization.send('GET', `/v1/people/internal/${person.id}`)).body.data
    const { consents, attribute_values, ...profile } = read
    expect(linesOf(lines, 'profile')).toEqual([{ type: 'profile', ...profile }])
    const values = Object.fromEntries(linesOf(lines, 'attribute').map(({ key, value }) => [key, value]))
    expect({ referrer: 'bob', friends: [], employer: 'acme', ...values }).toEqual({ friends: [], ...attribute_values })
    expect(
      linesOf(lines, 'consent').map(({ type, consent_type_key, consent_type_name, ...consent }) => consent),
    ).toEqual(consents)
    const links = linesOf(lines, 'link').map(
      ({ direction, attribute_key, stack_key, external_id }) =>
        `${direction} ${attribute_key} ${stack_key} ${external_id}`,
    )
    expect(links).toContain('out employer companies acme')
    expect(links).toContain('in friends null grace')
    expect(links.filter(link => link.startsWith('in buyer orders'))).toHaveLength(1)
  })

  it('shows the linked records of both directions as reads do', async () => {
    const shown = new Map(linesOf(lines, 'record').map(({ type, ...record }) => [record.record_id, record]))
    expect([...shown.keys()].sort()).toEqual([person.order_id, person.company_id].sort())
    for (const [stack, id] of [
      ['orders', person.order_id],
      ['companies', person.company_id],
    ])
      expect(shown.get(id)).toEqual((await organization.send('GET', `/v1/stacks/${stack}/internal/${id}`)).body.data)
  })

  it('shows each answer with its evidence, the text that it names, and a path to its receipt', async () => {
    const history = (await organization.send('GET', `/v1/people/internal/${person.id}/consents/history`)).body.data
      .items
    const answers = linesOf(lines, 'consent_answer')
    const own = answers.filter(({ person_id }) => person_id === person.id)
    expect(own.map(({ type, person_id, consent_type_name, receipt, ...answer }) => answer)).toEqual(
      expect.arrayContaining(history),
    )
    expect(own).toHaveLength(history.length)
    expect(answers.filter(({ person_id }) => person_id === person.merged_id)).toHaveLength(1)
    expect(linesOf(lines, 'text')).toMatchObject([{ consent_type_id: 1, version: 1, text: 'Yes, write to me.' }])
    expect((await organization.send('GET', own[0]!.receipt)).body.data.entry.person_id).toBe(person.id)
  })

  it('is that of the survivor for every identifier that leads there', async () => {
    const names = (
      await service.sql<{ external_id: string }>('select external_id from aliases where organization_id = $1', [
        organization.id,
      ])
    ).map(row => row.external_id)
    expect(names.length).toBeGreaterThan(1)
    for (const address of [person.external_id, ...names]
      .map(encodeURIComponent)
      .concat(`internal/${person.merged_id}`)) {
      const [about, ...rest] = await readDossier(organization, address)
      expect(about!.person).toEqual(lines[0]!.person)
      expect(rest).toEqual(lines.slice(1))
    }
  })
})

describe('a dossier', () => {
  it('lists what links to the survivor of a merge once, and nothing that links to it no more', async () => {
    const organization = await createShop(service, 'referrer', 'friends')
    const { ok } = organization
    for (const external_id of ['survivor', 'first', 'second']) await ok('POST', '/v1/people', { external_id })
    const attribute_values = { friends: ['first', 'second'] }
    await ok('POST', '/v1/people', { external_id: 'standing', attribute_values: { referrer: 'first' } })
    await ok('POST', '/v1/people', { external_id: 'both', attribute_values })
    await ok('POST', '/v1/people', { external_id: 'once', attribute_values: { referrer: 'second' } })
    await ok('PATCH', '/v1/people/once', { attribute_values: { referrer: null } })
    for (const from of ['first', 'second']) await ok('POST', '/v1/people/survivor/merge', { from })
    const links = linesOf(await readDossier(organization, 'survivor'), 'link')
    expect(links.map(({ external_id }) => external_id).sort()).toEqual(['both', 'standing'])
  })

  it('remains after the deletion, by internal identifier and by the last name', async () => {
    const organization = await service.organization()
    const { send } = organization
    const { id } = (await send('POST', '/v1/people', { external_id: 'ada', first_name: 'Ada', email_consent: true }))
      .body.data
    await send('DELETE', '/v1/people/ada')
    const byId = await readDossier(organization, `internal/${id}`)
    expect(byId[0]!.person).toEqual({ id, external_id: 'ada', state: 'deleted', merged_ids: [] })
    expect(Object.keys(byId.at(-1)!.lines)).toEqual(['about', 'consent_answer', 'change'])
    expect((await readDossier(organization, 'ada')).slice(1)).toEqual(byId.slice(1))
    // A new person takes the name over.
    const other = (await send('POST', '/v1/people', { external_id: 'ada' })).body.data
    expect((await readDossier(organization, 'ada'))[0]!.person.id).toBe(other.id)
  })

  it('lists any number of links and changes, and each linked record once', async () => {
    const organization = await createShop(service, 'orders')
    const { send } = organization
    for (const key of ['buyer', 'payer'])
      await send('POST', '/v1/schema/attributes', { owner: 'orders', key, type: 'person' })
    await send('POST', '/v1/schema/attributes', {
      owner: 'people',
      key: 'bought',
      type: 'stack',
      target_stack: 'orders',
      cardinality: 'many',
    })
    const orders = Array.from({ length: 1_001 }, (_, n) => ({
      external_id: `o${n}`,
      attribute_values: { buyer: 'ada', ...(n % 2 && { payer: 'ada' }) },
    }))
    await importLines(organization, '/v1/stacks/orders/import', linesFrom(orders))
    const bought = Array.from({ length: 600 }, (_, n) => `o${n}`)
    await send('PATCH', '/v1/people/ada', { attribute_values: { bought } })
    const operations = Array.from({ length: 999 }, (_, n) => ({
      op: 'patch',
      external_id: 'ada',
      body: { first_name: `Ada ${n}` },
    }))
    // Each patch is one set. A slow database cannot store 999 in the time of one request.
    for (let first = 0; first < operations.length; first += 333)
      await send('POST', '/v1/people/batch', { operations: operations.slice(first, first + 333) })
    const { lines } = (await readDossier(organization, 'ada')).at(-1)!
    expect(lines).toMatchObject({ link: 1_001 + 500 + 600, record: 1_001, change: 1_001 })
    const dossier = await readDossier(organization, 'ada')
    expect(new Set(linesOf(dossier, 'record').map(({ record_id }) => record_id)).size).toBe(1_001)
    expect(new Set(linesOf(dossier, 'change').map(({ version }) => version)).size).toBe(1_001)
  })

  it('shows the segments that the person is in, and those that it entered and left', async () => {
    const { send } = await service.organization()
    const organization = { send } as Organization
    for (const [key, language] of [
      ['english', 'en'],
      ['italian', 'it'],
      ['gone', 'it'],
    ])
      await send('POST', '/v1/segments', { key, name: `Speaks ${key}`, filter: { language } })
    await followSegments(service)
    const { id } = (await send('POST', '/v1/people', { external_id: 'ada', language: 'it' })).body.data
    await followSegments(service)
    await send('PATCH', '/v1/people/ada', { language: 'en' })
    await followSegments(service)
    await send('DELETE', '/v1/segments/gone')
    const found = linesOf(await readDossier(organization, `internal/${id}`), 'segment')
    const line = (key: string, event: string, sequence: number | null) => ({
      ...{ type: 'segment', person_id: id, event, segment_key: key, sequence },
      segment_name: key === 'gone' ? null : `Speaks ${key}`,
    })
    expect(found).toEqual([
      line('english', 'member', null),
      line('english', 'entered', 5),
      line('italian', 'entered', 4),
      line('italian', 'left', 5),
      line('gone', 'entered', 4),
      line('gone', 'left', 5),
    ])
  })

  it('needs the scopes of everything that it shows', async () => {
    const organization = await service.organization()
    await organization.send('POST', '/v1/people', { external_id: 'ada' })
    const needed = ['people:read', 'exports:read', 'consents:read', 'changes:read', 'records:read']
    const readWith = async (scope: string) =>
      (await service.sender(await service.tokenFor(organization.key, scope))('GET', '/v1/people/ada/dossier')).status
    for (const missing of needed)
      expect([
        missing,
        await readWith(
          allScopes
            .split(' ')
            .filter(scope => scope !== missing)
            .join(' '),
        ),
      ]).toEqual([missing, 403])
    expect(await readWith(needed.join(' '))).toBe(200)
  })

  it('is 404 for a person who never existed', async () => {
    const { send } = await service.organization()
    for (const address of ['ada', 'internal/01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f'])
      expect((await send('GET', `/v1/people/${address}/dossier`)).status).toBe(404)
    expect((await send('GET', '/v1/people/internal/x/dossier')).status).toBe(400)
  })
})

const inCells = (page: string) => page.replaceAll(/<[^>]*>/g, ' ')

describe('a dossier as a page', () => {
  const organization = useSharedShop(service, { owner: 'orders', key: 'total', name: 'Amount', type: 'number' })
  const read = (address: string, headers: Record<string, string> = {}) =>
    organization.send('GET', `/v1/people/${address}`, undefined, { Accept: 'text/html', ...headers })

  it('shows every canary that any table holds, and everything that the lines show', async () => {
    const planted = await service.organization()
    const person = await plantCanaries(service, planted)
    const sent = await planted.send('GET', `/v1/people/internal/${person.id}/dossier`, undefined, {
      Accept: 'text/html',
    })
    const page = String(sent.body.data).toLowerCase()
    const sightings = await findCanaries(service, person.canaries)
    expect(sightings.filter(({ place }) => !page.includes(person.canaries[place]!.toLowerCase()))).toEqual([])
  })

  it('shows markup in any value as text', async () => {
    const attack = `<script>alert(1)</script>"'><img src=x>`
    const { ok } = organization
    await ok('PATCH', '/v1/schema/settings', { display_name: attack })
    await ok('POST', '/v1/schema/attributes', {
      owner: 'people',
      key: 'motto',
      name: attack,
      description: attack,
      type: 'text',
    })
    await ok('POST', '/v1/schema/consent-types/1/texts', { language: 'en', text: attack })
    const evidence = { method: 'web_form', text_version: 1, source: attack, reference: attack, user_agent: attack }
    const profile = {
      first_name: attack,
      last_name: attack,
      attribute_values: { motto: attack, [attack]: [{ [attack]: attack }] },
    }
    const consents = [{ consent_type_id: 1, channel: 'email', state: true, ...evidence }]
    await ok('POST', '/v1/people', { external_id: attack, ...profile, consents })
    await ok('PATCH', `/v1/people/${encodeURIComponent(attack)}`, { first_name: `${attack}!` })
    const { status, body } = await read(`${encodeURIComponent(attack)}/dossier`)
    expect([status, String(body.data).match(/<script|<img/g)]).toEqual([200, null])
    expect(
      String(body.data).split('&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&gt;&lt;img src=x&gt;').length,
    ).toBeGreaterThan(15)
    await ok('PATCH', '/v1/schema/settings', { display_name: null })
  })

  it('speaks the language of the parameter, else of Accept-Language, else of the person, else of the organization', async () => {
    const { ok } = organization
    await ok('POST', '/v1/people', { external_id: 'anna', language: 'it-CH' })
    await ok('POST', '/v1/people', { external_id: 'bob', language: 'sv' })
    await ok('PATCH', '/v1/schema/settings', { language: 'es' })
    const languageOf = async (address: string, accepted?: string) => {
      const { body } = await read(address, accepted === undefined ? {} : { 'Accept-Language': accepted })
      return /^<!doctype html>\n<html lang="(..)">/.exec(String(body.data))?.[1]
    }
    expect([
      await languageOf('anna/dossier?language=de', 'fr'),
      await languageOf('anna/dossier', 'sv, fr;q=0.8, en;q=0.5'),
      await languageOf('anna/dossier', '*'),
      await languageOf('bob/dossier'),
    ]).toEqual(['de', 'fr', 'it', 'es'])
    const refused = await read('anna/dossier?language=sv')
    expect([refused.status, refused.body.details?.[0]?.path]).toEqual([400, '/language'])
    await ok('PATCH', '/v1/schema/settings', { language: null })
  })

  it('names stacks, attributes and ways to answer by their words, in each language', async () => {
    const { ok } = organization
    await ok('POST', '/v1/schema/attributes', { owner: 'orders', key: 'buyer', name: 'Customer', type: 'person' })
    await ok('POST', '/v1/people', {
      external_id: 'carla',
      date_of_birth: '1990-03-01',
      consents: [{ consent_type_id: 1, channel: 'sms', state: false, method: 'paper' }],
    })
    await ok('POST', '/v1/stacks/orders', { external_id: 'o-7', attribute_values: { buyer: 'carla', total: 12.5 } })
    const stack = (await ok('GET', '/v1/schema/stacks/orders')).name
    const shown = {
      en: ['Date of birth', '1 March 1990', 'on paper', 'refused', 'Stored for the first time'],
      de: ['Geburtsdatum', '1. März 1990', 'auf Papier', 'abgelehnt', 'Erstmals gespeichert'],
      fr: ['Date de naissance', '1 mars 1990', 'sur papier', 'refusé', 'Enregistré pour la première fois'],
      it: ['Data di nascita', '1 marzo 1990', 'su carta', 'rifiutato', 'Conservato per la prima volta'],
      es: ['Fecha de nacimiento', '1 de marzo de 1990', 'en papel', 'rechazado', 'Guardado por primera vez'],
    }
    for (const [language, texts] of Object.entries(shown)) {
      const page = inCells(String((await read(`carla/dossier?language=${language}`)).body.data))
      expect(page).not.toContain('consent_type_id')
      for (const text of [...texts, stack, 'Customer', 'Amount', 'o-7']) expect(page).toContain(text)
    }
  })

  it('has all sections in their order, and each closed, for a person with hardly any data too', async () => {
    const { ok } = organization
    const { id } = await ok('POST', '/v1/people', { external_id: 'bare' })
    const bare = String((await read('bare/dossier')).body.data)
    await ok('DELETE', '/v1/people/bare')
    const gone = String((await read(`internal/${id}/dossier`)).body.data)
    for (const page of [bare, gone]) {
      const sections = [...page.matchAll(/<section id="(\w+)">/g)].map(([, name]) => name)
      expect(sections).toEqual(dossierSections.map(({ type }) => type).filter(type => type !== 'about'))
      for (const tag of ['section', 'table', 'tbody', 'article', 'dl', 'div', 'tr', 'td'])
        expect([tag, page.split(`<${tag}`).length]).toEqual([tag, page.split(`</${tag}>`).length])
      expect(page).toMatch(/This page is complete\. It shows \d+ entries\.[\s\S]*<\/html>\n$/)
    }
  })

  it('may load and run nothing, and needs the scopes of the lines', async () => {
    await organization.send('POST', '/v1/people', { external_id: 'dora' })
    const { headers, body } = await read('dora/dossier')
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-[\w+/=]+';/)
    const [, style] = /<style>([\s\S]*?)<\/style>/.exec(String(body.data))!
    const hash = createHash('sha256').update(style!).digest('base64')
    expect(headers.get('content-security-policy')).toContain(hash)
    const send = await service.sender(
      await service.tokenFor(organization.key, 'people:read consents:read changes:read'),
    )
    expect((await send('GET', '/v1/people/dora/dossier', undefined, { Accept: 'text/html' })).status).toBe(403)
    expect((await read('nobody/dossier')).status).toBe(404)
  })
})

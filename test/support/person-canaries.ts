import { randomBytes } from 'node:crypto'
import { searchFollower } from '../../src/entities/indexes/search-index.ts'
import { type ProfileText, profileTexts } from '../../src/values/profile-fields.ts'
import { webhookFollower } from '../../src/webhooks/deliver.ts'
import { follow } from './followers.ts'
import { sealLedgers } from './ledger.ts'
import { eachText } from './profile.ts'
import { createLoopbackSender, startReceiver } from './receiver.ts'
import { followSegments } from './segments.ts'
import type { Organization, Service } from './service.ts'
import { type Definition, declare, expectSuccess } from './shop.ts'

/** Reads the names of all tables. */
export async function readTables({ sql }: Pick<Service, 'sql'>): Promise<string[]> {
  const rows = await sql<{ name: string }>(
    `select table_name as name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'
     order by table_name`,
  )
  return rows.map(({ name }) => name)
}

/** A person with a canary in every place that can hold data of a person. */
export type PlantedPerson = {
  id: string
  external_id: string
  /** The person who was merged into this one. */
  merged_id: string
  /** The order that only this person is linked to, and the company that others are linked to. Both are `record_id`s. */
  order_id: string
  company_id: string
  /** The texts to look for, by the place where each was planted. No text contains another one. */
  canaries: Record<string, string>
}

let planted = 0

/** Letters that JSON and URLs escape, around the texts that may be in an external identifier. */
const awkward = { before: `"é\\ `, after: ` %2F'` }

/**
 * Plants canaries about one new person in every place that can hold any. Needs a service with KITH_WEBHOOK_ALLOW, and an
 * organization of its own without stacks and attributes.
 */
export async function plantCanaries(service: Service, organization: Organization): Promise<PlantedPerson> {
  const run = `${process.pid}x${++planted}`
  const canaries: Record<string, string> = {}
  const canary = (place: string) => {
    canaries[place] = `canary${Object.keys(canaries).length}q${run}z`
    return canaries[place]
  }
  const name = (place: string) => `${awkward.before}${canary(place)}${awkward.after}`
  const ok = (method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
    expectSuccess(organization.send(method, path, body, headers))
  const at = (external_id: string, stack = 'people') =>
    `/v1/${stack === 'people' ? stack : `stacks/${stack}`}/${encodeURIComponent(external_id)}`
  const receiver = await startReceiver()
  const sender = createLoopbackSender()
  const deliver = (hours: number) => {
    const nowMs = () => Date.now() + hours * 3_600_000
    return follow(service.db, [webhookFollower({ sender, nowMs, linkBase: () => service.address })], { nowMs })
  }
  try {
    await declare(organization.send, ...definitions)
    await ok('POST', '/v1/schema/consent-types/1/texts', { language: 'en', text: 'Yes, write to me.' })
    for (const field of ['external_id', ...profileTexts, 'attribute_values.city'])
      await ok('POST', '/v1/people/list', { sort: { field } })
    const channels = [{ channel: 'email', double_opt_in: true }]
    await ok('POST', '/v1/schema/consent-types', { key: 'confirmed', channels })
    await ok('POST', '/v1/webhooks', { url: receiver.url, events: ['person.*', 'record.*'], links: true })
    await ok('POST', '/v1/segments', { key: 'active', filter: { state: 'active' } })
    await ok('POST', '/v1/people', { external_id: 'bob', first_name: 'Bob' })
    await followSegments(service)
    await ok('POST', '/v1/stacks/companies', { external_id: 'acme', attribute_values: { page: 'a company' } })

    // The person, under two names and two emails.
    const firstName = name('the first external identifier')
    const external_id = name('the external identifier')
    const first = {
      external_id: firstName,
      first_name: canary('an earlier first name'),
      email: `${canary('an earlier email').toUpperCase()}@Example.com`,
      attribute_values: {
        city: canary('an earlier indexed value'),
        nested: { deep: [canary('an earlier nested value')] },
      },
      consents: [
        {
          consent_type_id: 1,
          channel: 'email',
          state: true,
          collected_at: '2021-02-03T04:05:06Z',
          method: 'web_form',
          source: canary('the source of an answer'),
          ip: '198.51.100.77',
          user_agent: canary('the user agent of an answer'),
          text_version: 1,
          reference: canary('the reference of an answer'),
        },
        { consent_type_id: 1, channel: 'sms', state: false },
      ],
    }
    canaries['the address of an answer'] = '198.51.100.77'
    canaries['the time of an answer'] = '2021-02-03T04:05:06'
    const created = (await ok('POST', '/v1/people', first, { 'Idempotency-Key': `${run} create` })).body.data
    const { id } = created
    // Between a merge and its unmerge, another person has the values of this one, and its log keeps them.
    const borrower = { external_id: 'borrower', attribute_values: { friends: ['bob'] } }
    const borrower_id = (await ok('POST', '/v1/people', borrower)).body.data.id
    await ok('POST', '/v1/people/borrower/merge', { from: firstName })
    await ok('PATCH', '/v1/people/borrower', { language: 'fr' })
    await ok('POST', '/v1/people/borrower/unmerge', { from: firstName })
    // Entities that link to the person under the first name: one goes on, one stops, one is deleted.
    await ok('POST', '/v1/people', {
      external_id: 'grace',
      attribute_values: { referrer: firstName, friends: ['bob', firstName] },
    })
    await ok('POST', '/v1/people', { external_id: 'once', attribute_values: { friends: [firstName, 'bob'] } })
    await ok('POST', '/v1/people', { external_id: 'gone', attribute_values: { referrer: firstName } })
    await ok('POST', '/v1/stacks/companies', { external_id: 'founded', attribute_values: { founder: firstName } })
    await ok('PATCH', '/v1/people/once', { attribute_values: { friends: ['bob'] } })
    await ok('PATCH', at('founded', 'companies'), { attribute_values: { founder: 'bob' } })
    await ok('DELETE', '/v1/people/gone')

    const born = '1871-03-17'
    canaries['the date of birth'] = born
    const mobile_number = `3${String(Math.floor(Math.random() * 1e9)).padStart(9, '0')}`
    canaries['the mobile number'] = mobile_number
    const language = `x-${randomBytes(4).toString('hex')}`
    canaries['the language'] = language
    // The search keeps parts of words that have letters only.
    canaries['the last name'] = `canary${run.replace(/\d/g, digit => 'abcdefghij'[Number(digit)]!)}z`
    const ruled: Partial<Record<ProfileText, string>> = {
      last_name: canaries['the last name'],
      email: `${canary('the email')}@example.com`,
      mobile_prefix: '+39',
      mobile_number,
      date_of_birth: born,
      language,
    }
    const texts = eachText(name => ruled[name] ?? canary(`the ${name.replaceAll('_', ' ')}`))
    const patch = {
      external_id,
      ...texts,
      attribute_values: {
        city: canary('an indexed value'),
        tags: [canary('an indexed element')],
        nested: { [canary('a key')]: canary('a nested value') },
        [canary('an undeclared key')]: true,
        referrer: 'bob',
        friends: ['grace'],
        employer: 'acme',
      },
    }
    await ok('PATCH', `/v1/people/internal/${id}`, patch, {
      'Idempotency-Key': `${run} patch`,
      Prefer: 'return=representation',
    })
    await ok('PATCH', at(external_id), { attribute_values: { friends: [] } })
    // Links under the second name.
    const order = {
      external_id: `order ${run}`,
      attribute_values: { buyer: external_id, note: canary('a linked record') },
    }
    const bought = (await ok('POST', '/v1/stacks/orders', order)).body.data
    await ok(
      'PATCH',
      '/v1/people/grace',
      { attribute_values: { friends: [external_id] } },
      {
        'Idempotency-Key': `${run} quote`,
        Prefer: 'return=representation',
      },
    )
    await ok('PATCH', '/v1/people/grace', { attribute_values: { friends: ['bob', external_id], city: 'Rome' } })
    await ok(
      'POST',
      '/v1/people/batch',
      {
        operations: [
          { op: 'upsert', external_id: 'batched', body: { attribute_values: { referrer: external_id } } },
          { op: 'patch', external_id, body: { language: 'it' } },
        ],
      },
      { 'Idempotency-Key': `${run} batch` },
    )

    // A merged person, and the aliases. The merged person has a log of its own.
    const mergedName = name('the identifier of the merged person')
    const merged = {
      external_id: mergedName,
      first_name: canary('the name of the merged person'),
      email: `${canary('the email of the merged person')}@example.com`,
      consents: [
        { consent_type_id: 1, channel: 'email', state: false, reference: canary('an answer of the merged person') },
      ],
    }
    const merged_id = (await ok('POST', '/v1/people', merged)).body.data.id
    await ok('POST', '/v1/people', { external_id: 'pointing', attribute_values: { referrer: mergedName } })
    const undone = canary('what a merge moved')
    await merge(service, organization, { id, merged_id, mergedName, email: merged.email, undone })
    await service.sql(
      `insert into aliases (organization_id, external_id, person_id, created_at) values ($1, $2, $3, now())`,
      [organization.id, name('an alias'), id],
    )

    // The current email, an earlier one and that of the merged person are suppressed, and a message reached the phone.
    const bounce = { channel: 'email', type: 'hard_bounce', reference: canary('the reference of a bounce') }
    const complaint = { channel: 'email', type: 'complaint', reference: canary('the reference of a complaint') }
    await ok('POST', '/v1/deliverability', {
      events: [
        { ...bounce, external_id },
        { ...bounce, address: first.email },
        { ...complaint, address: merged.email },
        { channel: 'sms', external_id, type: 'delivered' },
      ],
    })
    // A grant waits for its confirmation, and so does the delivery that has the link.
    await ok('PATCH', at(external_id), { consents: [{ consent_type_id: 2, channel: 'email', state: true }] })

    // One delivery of the person was answered, one failed, and one waits. The receiver answers to the change that gave the values of the
    // person to another one, and quotes the names in changes of those who link to it.
    const response = canary('the response of a receiver')
    const answer: typeof receiver.answer = (reply, { event }) => {
      const isAbout = event.data.id === id
      const sent = JSON.stringify(event.data.after)
      const isFilled = event.data.id === borrower_id && sent.includes(first.first_name)
      const quoted = event.data.external_id === 'grace' ? sent : ''
      reply
        .writeHead(isAbout && event.data.after?.language === 'en' ? 500 : 200)
        .end(isAbout || isFilled ? response : quoted)
    }
    receiver.answer = answer
    await deliver(0)
    await ok('PATCH', at(external_id), { language: 'en' })
    await ok('PATCH', at(external_id), { language: 'de' })
    await deliver(1)
    await service.sql(
      `update webhook_deliveries set error = $2 where organization_id = $1 and entity = $3 and status = 'waiting' and response is not null`,
      [organization.id, canary('the error of a delivery'), id],
    )
    await sealLedgers(service)
    await follow(service.db, [searchFollower()])
    await followSegments(service)
    // A hold that is over, and the notice of a rule.
    const rule = (await ok('POST', '/v1/retention-rules', { segment: 'active', after_days: 30, action: 'erase' })).body
      .data
    await service.sql(
      `insert into person_holds (organization_id, id, people, reason, until, actor, created_at)
       values ($1, 1, array[$2]::uuid[], 'Case', now() - interval '1 day', 'tests', now())`,
      [organization.id, id],
    )
    await service.sql(
      `insert into retention_notices (organization_id, rule_id, person_id, entered_at, due_at) values ($1, $2, $3, now(), now())`,
      [organization.id, rule.id, id],
    )
    await service.sql(
      `insert into job_refusals (organization_id, job_id, entity_id, error, message, details)
       values ($1, 'job', $2, 'invalid_parameter', $3, '[]')`,
      [organization.id, id, canary('the refusal of a job')],
    )
    await service.sql(
      `insert into set_aside_people (organization_id, set_aside_id, person_id, actor, at)
       select $1, $2, p.id, 'tests', now() from unnest(array[$2, $3]::uuid[]) as p(id)`,
      [organization.id, id, merged_id],
    )
    const company = (await ok('GET', '/v1/stacks/companies/acme')).body.data
    return { id, external_id, merged_id, order_id: bought.record_id, company_id: company.record_id, canaries }
  } finally {
    await sender.close()
    await receiver.close()
  }
}

/** The definitions for the canaries: stacks, indexed attributes, and relationships in every direction. */
const definitions: Definition[] = [
  { key: 'orders', kind: 'event' },
  { owner: 'people', key: 'tags', type: 'text', cardinality: 'many', indexed: true },
  { owner: 'companies', key: 'founder', type: 'person' },
  ...(['buyer', 'city', 'referrer', 'friends', 'employer'] as const),
]

type Merge = { id: string; merged_id: string; mergedName: string; email: string; undone: string }

/** Stores the rows that a merge leaves: the log of the merged person, the alias, and what undoes the merge. */
async function merge(
  { sql }: Service,
  { id: organization_id, send }: Organization,
  { id, merged_id, mergedName, email, undone }: Merge,
) {
  await expectSuccess(send('DELETE', `/v1/people/internal/${merged_id}`))
  const [last] = await sql<{ sequence: number }>(
    `update changes set operation = 'merge', after = jsonb_build_object('merged_into', $3::text)
     where organization_id = $1 and entity_id = $2 and operation = 'delete' returning sequence`,
    [organization_id, merged_id, id],
  )
  await sql(
    `insert into merges (organization_id, id, merged_id, into_id, person_id, sequence, at, undo, email_key)
     values ($1, 2, $2, $3, $3, $4, now(), jsonb_build_object('fields', $5::text), $6)`,
    [organization_id, merged_id, id, last!.sequence, undone, email],
  )
  await sql(
    'insert into aliases (organization_id, external_id, person_id, merge_id, created_at) values ($1, $2, $3, 2, now())',
    [organization_id, mergedName, id],
  )
}

/** Where a canary was found: the column as `table.column`, and the place where the canary was planted. */
export type Sighting = { column: string; place: string }

/** Looks for canaries in every column of every table, as text, in any case, and as the bytes of a `bytea`. */
export async function findCanaries(
  { sql }: Pick<Service, 'sql'>,
  canaries: PlantedPerson['canaries'],
): Promise<Sighting[]> {
  const texts = Object.entries(canaries).map(([place, text]) => ({
    place,
    forms: [text.toLowerCase(), Buffer.from(text).toString('hex')],
  }))
  const sightings = new Map<string, Sighting>()
  for (const table of await readTables({ sql })) {
    const rows = await sql<{ row: Record<string, unknown> }>(`select to_jsonb(t) as row from "${table}" t`)
    for (const { row } of rows)
      for (const [column, value] of Object.entries(row)) {
        const stored = JSON.stringify(value)?.toLowerCase() ?? ''
        for (const { place, forms } of texts)
          if (forms.some(form => stored.includes(form)))
            sightings.set(`${table}.${column} ${place}`, { column: `${table}.${column}`, place })
      }
  }
  return [...sightings.values()]
}

import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { runInProcess, useFolder } from '../test/support/command.ts'
import { useService } from '../test/support/service.ts'
import { createShop, type Shop, useShop } from '../test/support/shop.ts'

const service = useService()
const base = useFolder()
const organization = useShop(service)
let directory: string
beforeEach(async () => {
  directory = join(base, organization.key)
  await mkdir(directory)
})

const pathTo = (name: string) => join(directory, name)

async function kith(words: string[], { token }: { token: string } = organization) {
  const { code, stdout, stderr } = await runInProcess(
    ['deliverability', ...words],
    { KITH_URL: service.address, KITH_TOKEN: token },
    directory,
  )
  return { code, stdout, stderr }
}

/** Imports this text as a file of that name. */
async function importFile(name: string, content: string, ...args: string[]) {
  await writeFile(pathTo(name), content)
  const { code, stdout, stderr } = await kith(['import', name, '--json', ...args])
  return { code, stderr, result: stdout === '' ? null : JSON.parse(stdout) }
}

const recorded = async ({ client }: Pick<Shop, 'client'> = organization) => (await client.deliverability.events()).items

describe('kith deliverability import', () => {
  it('reads the list of suppressed addresses of another tool, and the same file twice changes nothing', async () => {
    const list = [
      'EmailAddress,SuppressionReason,Origin,CreatedAt',
      'Ada@Example.com,HardBounce,Recipient,2026-01-02T03:04:05-05:00',
      'bob@example.com,SpamComplaint,Recipient,2026-01-03T03:04:05Z',
    ]
    const first = await importFile('list.csv', `${list.join('\n')}\n`, '--set', 'provider=postmark')
    expect(first).toMatchObject({
      code: 0,
      result: { received: 2, stored: 2, left_out_columns: ['Origin'] },
    })
    const events = [
      { address: 'ada@example.com', type: 'hard_bounce', at: '2026-01-02T08:04:05.000Z' },
      { address: 'bob@example.com', type: 'complaint', at: '2026-01-03T03:04:05.000Z' },
    ].map(event => ({ channel: 'email', ...event, provider: 'postmark' }))
    const refusal = { ...events[1]!, type: 'unsubscribe', consent_type_id: 1, provider: undefined }
    const { channel, address, at, type, consent_type_id } = refusal
    expect(await recorded()).toEqual(
      expect.arrayContaining([...events, { channel, address, type, at, consent_type_id }]),
    )
    expect(await recorded()).toHaveLength(3)
    const again = await importFile(
      'again.csv',
      [list[0], list[2], list[1], ''].join('\n'),
      '--set',
      'provider=postmark',
    )
    expect(again).toMatchObject({ code: 0, result: { received: 2, stored: 0, unchanged: 2 } })
    expect(await recorded()).toHaveLength(3)
  })

  it('writes refused lines with their reasons to a file, which is imported when it is corrected', async () => {
    const rows = [
      'email;reason;at',
      'ada@example.com;bounce;2026-01-02T00:00:00Z',
      'nothing;bounce;2026-01-02T00:00:00Z',
      'bob@example.com;mailbox is full;2026-01-02T00:00:00Z',
      'cleo@example.com;unsubscribed;',
      'dora@example.com;bounce;yesterday',
      '+393331234567;Bounced;2026-01-02T00:00:00Z',
    ]
    const { code, result } = await importFile('list.csv', rows.join('\r\n'))
    expect({ code, result }).toMatchObject({ code: 1, result: { received: 6, stored: 2, failed: 4 } })
    expect((await recorded()).map(({ channel, address }) => [channel, address])).toEqual([
      ['email', 'ada@example.com'],
      ['sms', '+393331234567'],
    ])
    const refused = await readFile(pathTo('list.refused.csv'), 'utf8')
    expect(refused).toMatch(/line 3: [^;]*\/address is no address of the channel/)
    expect(refused).toMatch(/line 4: [^;]*\/type .*bob@example\.com/)
    expect(refused).toMatch(/line 5: .*\/at must be the time of the event/)
    expect(refused).toMatch(/line 6: .*at .*dora@example\.com/)
    const corrected = refused
      .replace('nothing', 'eve@example.com')
      .replace('mailbox is full', 'soft bounce')
      .replace('unsubscribed;', 'unsubscribed;2026-01-02T00:00:00Z')
      .replace(';yesterday', ';2026-01-02T00:00:00Z')
    expect(await importFile('corrected.csv', corrected)).toMatchObject({
      code: 0,
      result: { received: 4, stored: 4 },
    })
  })

  it('asks for what the columns do not say, and stores nothing before', async () => {
    const list = 'email,status\nada@example.com,550\n'
    const typeless = await importFile('list.csv', list)
    expect(typeless).toMatchObject({ code: 1, result: { received: 0 } })
    expect(typeless.stderr).toContain('--set type=hard_bounce')
    const bounced = ['--set', 'type=hard_bounce']
    expect((await importFile('list.csv', list, ...bounced)).stderr).toContain('--set at=2026-01-31T09:00:00Z')
    expect((await importFile('list.csv', 'name\nAda\n', ...bounced)).stderr).toContain('--map "<column>=address"')
    expect(await recorded()).toEqual([])
    const at = ['--set', 'at=2026-01-31T09:00:00Z']
    expect(await importFile('list.csv', list, ...bounced, ...at)).toMatchObject({ code: 0, result: { stored: 1 } })
    const mapped = await importFile(
      'mapped.csv',
      'Konto\nbob@example.com\n',
      ...bounced,
      ...at,
      '--map',
      'Konto=address',
    )
    expect(mapped).toMatchObject({ code: 0, result: { stored: 1 } })
  })

  it('takes events as JSON lines, more than a request has, and continues after a line', async () => {
    const lines = Array.from({ length: 2_500 }, (_, index) =>
      JSON.stringify({
        channel: 'email',
        address: `${index}@example.com`,
        type: 'delivered',
        at: '2026-01-01T00:00:00Z',
      }),
    )
    lines[1_200] = 'not JSON'
    lines[1_300] = '{"channel": "email", "external_id": "nobody", "type": "delivered", "at": "2026-01-01T00:00:00Z"}'
    const { code, result } = await importFile('events.ndjson', lines.slice(0, 2_400).join('\n'))
    expect({ code, result }).toMatchObject({ code: 1, result: { received: 2_400, stored: 2_398, failed: 2 } })
    const reasons = (await readFile(pathTo('events.refused.ndjson'), 'utf8')).split('\n')
    expect(reasons[0]).toMatch(/^\{"refused_because":"line 1201: /)
    expect(reasons[1]).toContain('line 1301: not_found: /external_id leads to no person')
    const rest = await importFile('all.ndjson', lines.join('\n'), '--skip-lines', '2400')
    expect(rest).toMatchObject({ code: 0, result: { received: 100, stored: 100 } })
  })
})

describe('kith deliverability export', () => {
  /** Imports the people and the events into another organization, people first unless `isReversed`. */
  async function carry(isReversed: boolean) {
    const other = await createShop(service)
    const file = `${other.key}.ndjson`
    expect(await kith(['export', '--output', file])).toMatchObject({ code: 0 })
    const environment = (token: string) => ({ KITH_URL: service.address, KITH_TOKEN: token })
    const people = `people-${other.key}.ndjson`
    await runInProcess(['export', 'people', '--output', people], environment(organization.token), directory)
    const steps = [
      ['import', 'people', people],
      ['deliverability', 'import', file],
    ]
    for (const words of isReversed ? steps.toReversed() : steps)
      expect(await runInProcess(words, environment(other.token), directory)).toMatchObject({ code: 0 })
    return other
  }

  /** Reads whether the people may be contacted, and the states of their addresses. */
  async function statesOf({ ok, client }: Shop, names: string[]) {
    const { items } = await ok('POST', '/v1/people/contactable', {
      external_ids: names,
      consent_type_id: 1,
      channel: 'email',
    })
    const addresses = await Promise.all(names.map(async name => (await client.deliverability.of(name)).items))
    return {
      contactable: items.map(({ external_id, allowed, reasons }: Record<string, unknown>) => [
        external_id,
        allowed,
        reasons,
      ]),
      addresses,
    }
  }

  it('lets another installation decide about each address in the same way, also of people who are gone', async () => {
    const { ok, client } = organization
    const now = Date.now()
    const daysAgo = (days: number) => new Date(now - days * 86_400_000).toISOString()
    const names = ['hard', 'soft', 'twice', 'lifted', 'complained', 'fine']
    const consents = [{ consent_type_id: 1, channel: 'email', state: true, collected_at: daysAgo(300) }]
    for (const name of names)
      await ok('POST', '/v1/people', { external_id: name, email: `${name}@example.com`, consents })
    const gone = { consent_type_id: 1, channel: 'email', state: false, collected_at: daysAgo(200) }
    await ok('POST', '/v1/people', { external_id: 'gone', email: 'gone@example.com', consents: [gone] })
    await ok('DELETE', '/v1/people/gone')
    const event = (name: string, type: string, days: number) => ({
      ...{
        channel: 'email',
        address: `${name}@example.com`,
        type,
        at: daysAgo(days),
        provider: 'ses',
        reference: `${type}-1`,
      },
    })
    await ok('POST', '/v1/deliverability', {
      events: [
        event('hard', 'hard_bounce', 10),
        ...[1, 2, 3].map(days => event('soft', 'soft_bounce', days)),
        ...[1, 2].map(days => event('twice', 'soft_bounce', days)),
        event('lifted', 'hard_bounce', 5),
        event('complained', 'complaint', 5),
        event('fine', 'delivered', 1),
        event('nobody', 'hard_bounce', 4),
      ],
    })
    await client.deliverability.lift('email', 'lifted@example.com')
    const visitors = async (shop: Shop) => {
      for (const name of ['gone', 'nobody'])
        await shop.ok('POST', '/v1/people', { external_id: `new-${name}`, email: `${name}@example.com`, consents })
      // The third soft bounce suppresses an address.
      await shop.ok('POST', '/v1/deliverability', { events: [event('twice', 'soft_bounce', 0)] })
    }
    const copies = [await carry(false), await carry(true)]
    const states = []
    for (const shop of [organization, ...copies]) {
      await visitors(shop)
      states.push(await statesOf(shop, [...names, 'new-gone', 'new-nobody']))
    }
    const [original, ...carried] = states.map(({ contactable, addresses }) => ({
      allowed: contactable.map(([name, allowed, reasons]: [string, boolean, { rule: string }[]]) => [
        ...[name, allowed, reasons.map(({ rule }) => rule)],
      ]),
      states: addresses.map(([address]) => [address!.state, address!.suppression]),
    }))
    expect(original!.allowed).toEqual([
      ['hard', false, ['suppressed']],
      ['soft', false, ['suppressed']],
      ['twice', false, ['suppressed']],
      ['lifted', true, ['answer']],
      ['complained', false, expect.arrayContaining(['answer', 'suppressed'])],
      ['fine', true, ['answer']],
      ['new-gone', false, ['address_answer']],
      ['new-nobody', false, ['suppressed']],
    ])
    for (const copy of carried) expect(copy).toEqual(original)
  })

  it('writes pages as lines to standard output, and nothing of an address whose person was erased', async () => {
    const { ok, client } = organization
    await ok('POST', '/v1/people', { external_id: 'ada', email: 'ada@example.com' })
    const at = '2026-01-01T00:00:00.000Z'
    const events = Array.from({ length: 1_000 }, (_, index) => ({
      ...{ channel: 'email' as const, address: `${index}@example.com`, type: 'hard_bounce' as const, at },
    }))
    await client.deliverability.record([...events.slice(1), { ...events[0]!, address: 'ada@example.com' }])
    await client.deliverability.record([{ ...events[0]!, type: 'unsubscribe' }, events[0]!])
    await ok('POST', '/v1/people/ada/erase', { reason: 'Request', records: 'keep' })
    const { code, stdout, stderr } = await kith(['export'])
    const lines = stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
    expect({ code, stderr, lines: lines.length }).toEqual({ code: 0, stderr: '1,001 events\n', lines: 1_001 })
    expect(lines.filter(({ type }) => type === 'unsubscribe')).toEqual([
      { channel: 'email', address: '0@example.com', type: 'unsubscribe', at, consent_type_id: 1 },
    ])
    expect(stdout).not.toContain('ada@')
    expect((await organization.send('GET', '/v1/deliverability/events?cursor=x')).status).toBe(400)
  })
})

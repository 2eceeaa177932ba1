import { describe, expect, it } from 'vitest'
import { exportAll, importLines, linesFrom, ndjsonHeaders } from '../../test/support/lines.ts'
import { useOwnService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'

const service = useOwnService({ KITH_LIMIT_BODY_BYTES: '4096' })
const people = '/v1/people/import'

const organization = useShop(service)

const none = { received: 0, created: 0, updated: 0, unchanged: 0, failed: 0 }
const get = async (name: string) => (await organization.send('GET', `/v1/people/${name}`)).body.data
const named = (count: number, prefix = 'p') =>
  Array.from({ length: count }, (_, n) => ({ external_id: `${prefix}${n}`, first_name: `First ${n}` }))

describe('an import of people', () => {
  it('creates new people, merges into existing ones, and counts them separately', async () => {
    await organization.send('POST', '/v1/people', {
      external_id: 'ada',
      last_name: 'Lovelace',
      attribute_values: { a: 1 },
    })
    const { counts, refused } = await importLines(
      organization,
      people,
      linesFrom([
        { external_id: 'ada', first_name: ' Ada ', attribute_values: { b: 2 } },
        { external_id: 'bo', first_name: 'Bo' },
        { first_name: 'Nameless' },
      ]),
    )
    expect({ counts, refused }).toEqual({ counts: { ...none, received: 3, created: 2, updated: 1 }, refused: [] })
    expect(await get('ada')).toMatchObject({
      first_name: 'Ada',
      last_name: 'Lovelace',
      attribute_values: { a: 1, b: 2 },
      version: 2,
    })
    expect(await get('bo')).toMatchObject({ first_name: 'Bo', version: 1 })
  })

  it('ends with the number of a change, up to which the log includes all lines', async () => {
    const head = async () => {
      const [row] = await service.sql('select sequence from change_heads where organization_id = $1', [organization.id])
      return Number(row!.sequence)
    }
    const lines = linesFrom(Array.from({ length: 1_000 }, (_, n) => ({ external_id: `p${n}` })))
    const dryRun = await importLines(organization, `${people}?dry_run=true`, lines)
    expect([dryRun.counts.created, dryRun.sequence]).toEqual([1_000, undefined])
    expect((await importLines(organization, people, lines)).sequence).toBe(await head())
    expect((await importLines(organization, people, lines)).sequence).toBe(await head())
    expect((await importLines(organization, people, linesFrom([{ birthday: 'no' }]))).sequence).toBeUndefined()
    await organization.send('POST', '/v1/people', {})
    for await (const _ of organization.client.people.import([{ external_id: 'p1', first_name: 'Ada' }]));
    expect(organization.client.sequence()).toBe(await head())
  })

  it('with create_only refuses changes of existing entities, and can be sent again', async () => {
    await organization.send('POST', '/v1/schema/attributes', { key: 'friend', owner: 'people', type: 'person' })
    await organization.send('POST', '/v1/people', { external_id: 'ada', first_name: 'Ada' })
    const lines = linesFrom([
      { external_id: 'ada', first_name: 'Other' },
      { external_id: 'bo', attribute_values: { friend: 'cy' } },
      { external_id: 'cy', consents: [{ consent_type_id: 1, channel: 'email', state: true }] },
    ])
    const path = `${people}?create_only=true`
    const first = await importLines(organization, path, lines)
    expect(first.counts).toEqual({ ...none, received: 3, created: 2, failed: 1 })
    expect(first.refused).toMatchObject([
      { line: 1, error: 'duplicate_entry', message: 'The entity already exists, and the import has `create_only`.' },
    ])
    const second = await importLines(organization, path, lines)
    expect(second.counts).toEqual({ ...none, received: 3, unchanged: 2, failed: 1 })
    expect(await get('ada')).toMatchObject({ first_name: 'Ada', version: 1 })
    const merged = await importLines(organization, people, lines)
    expect(merged.counts).toEqual({ ...none, received: 3, updated: 1, unchanged: 2 })
  })

  it('applies lines of the same entity in order across sets', async () => {
    const lines = linesFrom(
      Array.from({ length: 6_000 }, (_, n) => ({
        external_id: `p${n % 700}`,
        first_name: `First ${n}`,
        attribute_values: { [`k${Math.floor(n / 700)}`]: n },
      })),
    )
    const { counts } = await importLines(organization, people, lines)
    expect(counts).toEqual({ ...none, received: 6_000, created: 700, updated: 5_300 })
    const shown = await exportAll(organization, '/v1/people/export')
    for (const { external_id, first_name, version, attribute_values } of shown) {
      const own = Number(String(external_id).slice(1))
      const linesOf = Array.from({ length: 9 }, (_, k) => own + 700 * k).filter(n => n < 6_000)
      expect({ first_name, version }).toEqual({ first_name: `First ${linesOf.at(-1)}`, version: linesOf.length })
      expect(attribute_values).toEqual(Object.fromEntries(linesOf.map((n, k) => [`k${k}`, n])))
    }
  })

  it('links across sets, in both directions, and to placeholders that several sets create at once', async () => {
    const declare = (body: object) => organization.send('POST', '/v1/schema/attributes', { owner: 'people', ...body })
    await declare({ key: 'next', type: 'person' })
    await declare({ key: 'shared', type: 'person', cardinality: 'many' })
    const count = 5_000
    const lines = Array.from({ length: count }, (_, n) => ({
      external_id: `p${n}`,
      attribute_values: { next: `p${(n * 7 + 1) % count}`, shared: [`hub${n % 3}`, `rim${n % 400}`] },
    }))
    const { counts, refused } = await importLines(organization, people, linesFrom(lines))
    expect({ counts, refused }).toEqual({ counts: { ...none, received: count, created: count }, refused: [] })
    const shown = await exportAll(organization, '/v1/people/export')
    expect(shown.filter(({ state }) => state === 'placeholder')).toHaveLength(403)
    const stored = new Map(shown.map(({ external_id, attribute_values }) => [external_id, attribute_values]))
    for (const { external_id, attribute_values } of lines) expect(stored.get(external_id)).toEqual(attribute_values)
  })

  it('that is sent again changes nothing, including consent answers', async () => {
    await organization.send('POST', '/v1/schema/attributes', { owner: 'people', key: 'referrer', type: 'person' })
    const lines = linesFrom(
      named(300).map((person, n) => ({
        ...person,
        email_consent: n % 2 === 0,
        consents: [{ consent_type_id: 1, channel: 'sms', state: true }],
        attribute_values: { referrer: `p${n + 1}`, tags: ['x', n] },
      })),
    )
    expect((await importLines(organization, people, lines)).counts).toEqual({ ...none, received: 300, created: 300 })
    const before = await exportAll(organization, '/v1/people/export')
    expect((await importLines(organization, people, lines)).counts).toEqual({ ...none, received: 300, unchanged: 300 })
    expect(await exportAll(organization, '/v1/people/export')).toEqual(before)
    expect(before.filter(({ state }) => state === 'placeholder')).toHaveLength(1)
    const [stored] = await service.sql(
      'select count(*)::integer as answers from consent_history where organization_id = $1',
      [organization.id],
    )
    expect(stored).toEqual({ answers: 600 })
  })

  it('completes a placeholder, even by a line with nothing but the external_id', async () => {
    await organization.send('POST', '/v1/schema/attributes', { owner: 'people', key: 'referrer', type: 'person' })
    await importLines(organization, people, linesFrom([{ external_id: 'a', attribute_values: { referrer: 'b' } }]))
    expect(await get('b')).toMatchObject({ state: 'placeholder', version: 1 })
    const { counts } = await importLines(organization, people, linesFrom([{ external_id: 'b' }]))
    expect(counts).toEqual({ ...none, received: 1, created: 1 })
    expect(await get('b')).toMatchObject({ state: 'active', version: 2 })
  })

  it('whose lines link to each other, even in circles, leaves no placeholder for later lines', async () => {
    await organization.send('POST', '/v1/schema/attributes', { owner: 'people', key: 'referrer', type: 'person' })
    const lines = Array.from({ length: 900 }, (_, n) => ({
      external_id: `p${n}`,
      attribute_values: { referrer: `p${(n + 1) % 900}` },
    }))
    expect((await importLines(organization, people, linesFrom(lines))).counts).toEqual({
      ...none,
      received: 900,
      created: 900,
    })
    const all = await exportAll(organization, '/v1/people/export')
    expect(all.every(({ state }) => state === 'active')).toBe(true)
    for (const { external_id, attribute_values } of all)
      expect(attribute_values).toEqual(lines.find(line => line.external_id === external_id)!.attribute_values)
  })

  it('leaves a placeholder for a refused line that others link to, or with references=strict refuses those too', async () => {
    await organization.send('POST', '/v1/schema/attributes', { owner: 'people', key: 'referrer', type: 'person' })
    const wrong = [{ consent_type_id: 9, channel: 'email', state: true }]
    const lines = (prefix: string) =>
      linesFrom([
        { external_id: `${prefix}a`, attribute_values: { referrer: `${prefix}b` } },
        { external_id: `${prefix}b`, attribute_values: { referrer: `${prefix}c` } },
        { external_id: `${prefix}c`, consents: wrong },
      ])
    const strict = await importLines(organization, people, lines('x'), { Prefer: 'references=strict' })
    expect(strict.refused.map(({ line }) => line)).toEqual([1, 2, 3])
    expect(await exportAll(organization, '/v1/people/export')).toEqual([])
    const { counts } = await importLines(organization, people, lines('y'))
    expect(counts).toEqual({ ...none, received: 3, created: 2, failed: 1 })
    expect(await get('yc')).toMatchObject({ state: 'placeholder' })
    expect(await get('ya')).toMatchObject({ attribute_values: { referrer: 'yb' } })
  })

  it('applies lines of the same entity in order within a set', async () => {
    const lines = linesFrom([
      { external_id: 'a', first_name: 'one', attribute_values: { x: 1 } },
      { external_id: 'a', first_name: 'two' },
      { external_id: 'a', first_name: null, attribute_values: { y: 2 } },
    ])
    expect((await importLines(organization, people, lines)).counts).toEqual({
      ...none,
      received: 3,
      created: 1,
      updated: 2,
    })
    expect(await get('a')).toMatchObject({ first_name: null, attribute_values: { x: 1, y: 2 }, version: 3 })
  })

  it('refuses lines individually, with error code and path, and writes the others', async () => {
    const lines = [
      '\ufeff{"external_id":"good"}',
      '{"external_id":"half"',
      '[]',
      { first_name: 7 },
      { nope: 1 },
      '{"external_id":"x","external_id":"y"}',
      { external_id: 'x', first_name: 'n'.repeat(5_000) },
      { external_id: 'x', consents: [{ consent_type_id: 9, channel: 'email', state: true }] },
      '{"external_id":"x","attribute_values":{"n":1e400}}',
      '\ufeff\ufeff{"external_id":"marked"}',
      '',
      ' \t',
      '{"external_id":"crlf"}\r',
    ]
    const { counts, refused } = await importLines(organization, people, linesFrom(lines))
    expect(counts).toEqual({ ...none, received: 11, created: 2, failed: 9 })
    expect(refused.map(({ line, error, details }) => [line, error, details[0]?.path])).toEqual([
      [2, 'failed_binding_json', undefined],
      [3, 'invalid_json', ''],
      [4, 'invalid_json', '/first_name'],
      [5, 'invalid_parameter', '/nope'],
      [6, 'invalid_json', '/external_id'],
      [7, 'invalid_parameter', undefined],
      [8, 'invalid_parameter', '/consents/0/consent_type_id'],
      [9, 'invalid_parameter', '/attribute_values/n'],
      [10, 'failed_binding_json', undefined],
    ])
    expect((await exportAll(organization, '/v1/people/export')).map(({ external_id }) => external_id)).toEqual([
      'good',
      'crlf',
    ])
  })

  it('takes a match of a line in place of that of the query, and refuses a wrong one', async () => {
    const ada = { email: 'ada@example.com' }
    const lines = [
      ada,
      { ...ada, match: ['email'] },
      { ...ada, match: ['external_id'] },
      { ...ada, match: [] },
      { ...ada, match: ['email', 'email'] },
    ]
    const { counts, refused } = await importLines(organization, `${people}?match=email`, linesFrom(lines))
    expect(counts).toMatchObject({ received: 5, created: 2, unchanged: 1, failed: 2 })
    expect(refused.map(({ line, details }) => [line, details[0]?.path])).toEqual([
      [4, '/match'],
      [5, '/match/1'],
    ])
  })

  it('refuses a line that is not UTF-8, and a line of any length without buffering it', async () => {
    const long = Buffer.alloc(3_000_000, 'x')
    const body = Buffer.concat([
      Buffer.from('{"external_id":"\xff"}\n', 'latin1'),
      long,
      Buffer.from('\n{"external_id":"last"}'),
    ])
    const { counts, refused } = await importLines(organization, people, body)
    expect(counts).toEqual({ ...none, received: 3, created: 1, failed: 2 })
    expect(refused.map(({ line, error }) => [line, error])).toEqual([
      [1, 'failed_binding_json'],
      [2, 'invalid_parameter'],
    ])
  })

  it('of an empty body counts no lines', async () => {
    expect(await importLines(organization, people, '')).toEqual({ counts: none, refused: [] })
    expect(await importLines(organization, people, '\n\r\n')).toEqual({ counts: none, refused: [] })
  })

  it('with references=strict refuses links to entities that do not exist, and creates no placeholder', async () => {
    await organization.send('POST', '/v1/schema/attributes', { owner: 'people', key: 'referrer', type: 'person' })
    const lines = linesFrom([{ external_id: 'a', attribute_values: { referrer: 'b' } }, { external_id: 'c' }])
    const { counts, refused } = await importLines(organization, people, lines, { Prefer: 'references=strict' })
    expect(counts).toEqual({ ...none, received: 2, created: 1, failed: 1 })
    expect(refused[0]?.details[0]?.path).toBe('/attribute_values/referrer')
  })

  it('with dry_run counts and refuses the same lines, and stores nothing', async () => {
    await organization.send('POST', '/v1/people', { external_id: 'p0' })
    const lines = linesFrom([...named(3), { nope: 1 }])
    const { counts, refused } = await importLines(organization, `${people}?dry_run=true`, lines)
    expect(counts).toEqual({ ...none, received: 4, created: 2, updated: 1, failed: 1 })
    expect(refused.map(({ line }) => line)).toEqual([4])
    expect(await exportAll(organization, '/v1/people/export')).toMatchObject([{ external_id: 'p0', first_name: null }])
    const [log] = await service.sql(
      'select count(*)::integer as changes from changes where organization_id = $1 and subject = $2',
      [organization.id, 'entity'],
    )
    expect(log).toEqual({ changes: 1 })
  })

  it('writes the change log', async () => {
    await importLines(organization, people, linesFrom(named(2)), { 'X-Request-Id': 'the-import' })
    const log = await service.sql(
      `select sequence::integer, operation, actor, request_id, after->>'external_id' as name from changes
       where organization_id = $1 and subject = 'entity' order by sequence`,
      [organization.id],
    )
    expect(log).toMatchObject([
      { operation: 'create', actor: 'tests', request_id: 'the-import', name: 'p0' },
      { operation: 'create', actor: 'tests', request_id: 'the-import', name: 'p1' },
    ])
  })

  it('of the same file twice at once stores each entity once', async () => {
    const lines = linesFrom(named(1_500))
    const both = await Promise.all([importLines(organization, people, lines), importLines(organization, people, lines)])
    const sum = (of: 'created' | 'unchanged') => both.reduce((total, { counts }) => total + counts[of], 0)
    expect({ created: sum('created'), unchanged: sum('unchanged') }).toEqual({ created: 1_500, unchanged: 1_500 })
    expect(await exportAll(organization, '/v1/people/export')).toHaveLength(1_500)
  })
})

describe('an import of records', () => {
  const events = [
    { external_id: 'e1', attribute_values: { n: 1 } },
    { external_id: 'e2', attribute_values: { n: 2 } },
  ]

  it('of an event stack counts equal events as unchanged and refuses different ones', async () => {
    await organization.send('POST', '/v1/schema/stacks', { key: 'visits', kind: 'event' })
    const path = '/v1/stacks/visits/import'
    expect((await importLines(organization, path, linesFrom(events))).counts).toEqual({
      ...none,
      received: 2,
      created: 2,
    })
    const again = [events[0], { external_id: 'e2', attribute_values: { n: 3 } }]
    const { counts, refused } = await importLines(organization, path, linesFrom(again))
    expect(counts).toEqual({ ...none, received: 2, unchanged: 1, failed: 1 })
    expect(refused).toMatchObject([{ line: 2, error: 'duplicate_entry' }])
  })

  it('of an item stack merges', async () => {
    await organization.send('POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' })
    const path = '/v1/stacks/orders/import'
    await importLines(organization, path, linesFrom(events))
    const { counts } = await importLines(
      organization,
      path,
      linesFrom([{ external_id: 'e1', attribute_values: { m: 1 } }]),
    )
    expect(counts).toEqual({ ...none, received: 1, updated: 1 })
    expect(await exportAll(organization, '/v1/stacks/orders/export')).toMatchObject([
      { external_id: 'e1', stack_key: 'orders', attribute_values: { n: 1, m: 1 } },
      { external_id: 'e2' },
    ])
  })

  it('of a missing stack is 404', async () => {
    expect((await organization.send('POST', '/v1/stacks/nowhere/import', '{}', ndjsonHeaders)).status).toBe(404)
  })
})

describe('the request of an import', () => {
  it.each([['application/json'], ['text/csvx'], ['application/x-ndjsonx']])(
    'is refused with the content type %s',
    async type => {
      const { status, body } = await organization.send('POST', people, '{}', { 'Content-Type': type })
      expect({ status, error: body.error }).toEqual({ status: 400, error: 'invalid_parameter' })
    },
  )

  it('is refused with a compressed body, an unknown query parameter or the wrong scope', async () => {
    expect(
      (await organization.send('POST', people, '{}', { ...ndjsonHeaders, 'Content-Encoding': 'gzip' })).status,
    ).toBe(415)
    for (const query of ['dry_run=maybe', 'dryrun=true'])
      expect((await organization.send('POST', `${people}?${query}`, '{}', ndjsonHeaders)).status).toBe(400)
    const reader = service.sender(await service.tokenFor(organization.key, 'people:read records:write'))
    expect((await reader('POST', people, '{}', ndjsonHeaders)).status).toBe(403)
    const writer = service.sender(await service.tokenFor(organization.key, 'people:write records:write'))
    expect((await writer('POST', '/v1/people/export')).status).toBe(403)
    for (const scope of ['people:read', 'exports:read'])
      expect(
        (await service.sender(await service.tokenFor(organization.key, scope))('POST', '/v1/people/export')).status,
      ).toBe(403)
  })

  it('ignores an Idempotency-Key', async () => {
    const headers = { 'Idempotency-Key': 'again' }
    const lines = linesFrom(named(1))
    expect((await importLines(organization, people, lines, headers)).counts.created).toBe(1)
    expect((await importLines(organization, people, lines, headers)).counts.unchanged).toBe(1)
  })
})

describe('during an import', () => {
  it('single writes of the same organization succeed, and no update is lost', async () => {
    await importLines(organization, people, linesFrom(named(2_000)))
    const lines = linesFrom(named(2_000).map(person => ({ ...person, last_name: 'imported' })))
    const importing = importLines(organization, people, lines)
    const patched = await Promise.all(
      Array.from({ length: 50 }, (_, n) => organization.send('PATCH', `/v1/people/p${n * 40}`, { language: 'it' })),
    )
    expect(new Set(patched.map(({ status }) => status))).toEqual(new Set([200]))
    expect((await importing).counts).toEqual({ ...none, received: 2_000, updated: 2_000 })
    const all = await exportAll(organization, '/v1/people/export')
    expect(all.filter(({ language }) => language === 'it')).toHaveLength(50)
    expect(all.every(({ last_name }) => last_name === 'imported')).toBe(true)
  })

  it('another organization sees none of its entities', async () => {
    const other = await service.organization()
    await importLines(organization, people, linesFrom(named(3)))
    expect(await exportAll(other, '/v1/people/export')).toEqual([])
    expect((await importLines(other, people, linesFrom(named(3)))).counts.created).toBe(3)
  })
})

describe('an import of many bad lines', () => {
  it('reports the first 10,000 in full and the others by number, so that the response stays small', async () => {
    // Each line has two bytes. Every 5,000th line is valid, and line 25,001 is blank.
    const good = (number: number) => number % 5_000 === 0
    const numbers = Array.from({ length: 30_000 }, (_, index) => index + 1)
    const body = numbers.map(number => (good(number) ? '{}' : number === 25_001 ? '' : '1')).join('\n')
    const path = `${people}?max_refused=5000`
    const responseLines = (await organization.send('POST', path, body, ndjsonHeaders)).body.data as Record<
      string,
      unknown
    >[]
    const reported = responseLines.flatMap(line => ('line' in line ? [line.line as number] : []))
    const ranges = responseLines.flatMap(line => (line.refused_lines ?? []) as [number, number][])
    const further = ranges.flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, at) => first + at))
    expect([...reported, ...further]).toEqual(numbers.filter(number => !good(number) && number !== 25_001))
    expect(reported.length).toBeLessThanOrEqual(10_000)
    expect(responseLines.at(-1)).toMatchObject({ ...none, received: 29_999, created: 6, failed: 29_993 })
    expect(JSON.stringify(responseLines).length).toBeLessThan(1_500_000)
  })

  it('lets other requests through', async () => {
    let turns = 0
    let hasEnded = false
    const countTurns = () => {
      turns += 1
      if (!hasEnded) setImmediate(countTurns)
    }
    countTurns()
    await organization.send('POST', `${people}?max_refused=100000`, 'x\n'.repeat(30_000), ndjsonHeaders)
    hasEnded = true
    // All lines are in one chunk of the body, and a set has 128.
    expect(turns).toBeGreaterThan(30_000 / 128 / 4)
  })

  it.each([
    ['1,000', people, 1_000],
    ['as many as max_refused says', `${people}?max_refused=7`, 7],
  ])('ends after %s refused lines in a row, and reports what it did until then', async (_, path, max) => {
    const body = `{"external_id":"first"}\n${'1\n'.repeat(max - 1)}{"external_id":"second"}\n${'1\n'.repeat(20_000)}{"external_id":"last"}\n`
    const lines = (await organization.send('POST', path, body, ndjsonHeaders)).body.data as Record<string, unknown>[]
    const refused = lines.filter(line => 'line' in line)
    const { progress, ...fault } = lines.at(-1)!
    expect(fault).toMatchObject({
      error: 'invalid_parameter',
      message: `${max} lines in a row were refused, up to line ${2 * max + 1}, so the import ended. Correct the file, or set max_refused to a higher number.`,
    })
    expect(progress).toMatchObject({ created: 2, failed: refused.length, received: refused.length + 2 })
    expect(refused.length).toBeLessThan(10_000)
    expect((await organization.send('GET', '/v1/people/second')).status).toBe(200)
    expect((await organization.send('GET', '/v1/people/last')).status).toBe(404)
  })
})

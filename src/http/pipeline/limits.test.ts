import { once } from 'node:events'
import { beforeAll, describe, expect, it } from 'vitest'
import { limitVariable } from '../../../test/support/limit-variable.ts'
import { exchange, openSocket, parseResponse } from '../../../test/support/process.ts'
import { startService, useOwnService } from '../../../test/support/service.ts'
import { useSharedShop } from '../../../test/support/shop.ts'
import { type Limits, loadConfig } from '../../process/config.ts'

/** Limits that a test can reach, each with a different number. */
const small = {
  bodyBytes: 3_000,
  batchBytes: 4_000,
  jsonDepth: 5,
  requestKeys: 3,
  entityKeys: 4,
  keyBytes: 10,
  stringBytes: 300,
  entityBytes: 500,
  profileCharacters: 10,
  emailCharacters: 15,
  urlBytes: 200,
  headerBytes: 4_096,
  tokenBytes: 680,
  consents: 1,
  links: 3,
  placeholders: 2,
  stacks: 1,
  attributes: 2,
  consentTypes: 2,
  page: 7,
  requestMs: 1_000,
  inFlight: 40,
  inFlightBytes: 1_048_576,
  answerBytes: 1_048_576,
  connections: 40,
  changeStreams: 2,
  jsonMembers: 10_000,
} satisfies Limits

const environment = Object.fromEntries(
  Object.entries(small).map(([name, value]) => [limitVariable(name), String(value)]),
)

const service = useOwnService(environment)
const organization = useSharedShop(service, { key: 'p', owner: 'people', type: 'person', cardinality: 'many' })
const { send } = organization
beforeAll(async () => {
  for (const external_id of ['l1', 'l2', 'l3', 'l4', 'kept', 'keys']) await send('POST', '/v1/people', { external_id })
  await send('PATCH', '/v1/people/keys', values({ a: 1, b: 2, c: 3 }))
})

/** Limits that other files test (gate.test.ts, fair-pool.test.ts, event-stream.test.ts, json.test.ts). */
const testedElsewhere = ['jsonMembers', 'inFlight', 'inFlightBytes', 'answerBytes', 'connections', 'changeStreams']

type Request = [method: string, path: string, body?: unknown, headers?: Record<string, string>]

const values = (attribute_values: object) => ({ attribute_values })
const create = (body: unknown): Request => ['POST', '/v1/people', body]
const answers = (count: number) => ({
  consents: ['email', 'sms'].slice(0, count).map(channel => ({ consent_type_id: 1, channel, state: true })),
})
const padded = (text: string, bytes: number) => `${text}${' '.repeat(bytes - text.length)}`
/** The size of an entity is that of its attribute values as JSON, with their keys. */
const entity = (bytes: number) => {
  const filled = (length: number) => ({ a: 'x'.repeat(240), b: 'y'.repeat(length) })
  return values(filled(bytes - JSON.stringify(filled(0)).length))
}
const address = (bytes: number) => `/v1/people/nobody?${'x'.repeat(bytes - '/v1/people/nobody?'.length)}`
const nested = (depth: number): unknown => (depth === 0 ? 1 : [nested(depth - 1)])

type Row = { at: Request; past: Request; statuses: [number, number]; path?: string }

/** A request at each limit and one past it, with their statuses. Separate tests below cover the other limits. */
const table: Partial<Record<keyof Limits, Row>> = {
  bodyBytes: {
    at: create(padded('{"first_name":"x"}', 3_000)),
    past: create(padded('{"first_name":"x"}', 3_001)),
    statuses: [201, 413],
  },
  batchBytes: {
    at: ['POST', '/v1/people/batch', padded('{"operations":[{"op":"create","body":{}}]}', 4_000)],
    past: ['POST', '/v1/people/batch', padded('{"operations":[{"op":"create","body":{}}]}', 4_001)],
    statuses: [200, 413],
  },
  jsonDepth: {
    at: create(values({ a: nested(3) })),
    past: create(values({ a: nested(4) })),
    statuses: [201, 400],
    path: '/attribute_values/a/0/0/0',
  },
  requestKeys: {
    at: create(values({ a: 1, b: 2, c: 3 })),
    past: create(values({ a: 1, b: 2, c: 3, d: 4 })),
    statuses: [201, 400],
    path: '/attribute_values',
  },
  entityKeys: {
    at: ['PATCH', '/v1/people/keys', values({ d: 4 })],
    past: ['PATCH', '/v1/people/keys', values({ e: 5 })],
    statuses: [200, 400],
    path: '/attribute_values',
  },
  keyBytes: {
    at: create(values({ ['ü'.repeat(5)]: 1 })),
    past: create(values({ ['x'.repeat(11)]: 1 })),
    statuses: [201, 400],
    path: `/attribute_values/${'x'.repeat(11)}`,
  },
  stringBytes: {
    at: create(values({ a: 'ü'.repeat(150) })),
    past: create(values({ a: 'x'.repeat(301) })),
    statuses: [201, 400],
    path: '/attribute_values/a',
  },
  entityBytes: { at: create(entity(500)), past: create(entity(501)), statuses: [201, 400], path: '/attribute_values' },
  profileCharacters: {
    at: create({ first_name: '🎈'.repeat(10) }),
    past: create({ first_name: 'x'.repeat(11) }),
    statuses: [201, 400],
    path: '/first_name',
  },
  emailCharacters: {
    at: create({ email: 'abcd@example.de' }),
    past: create({ email: 'abcde@example.de' }),
    statuses: [201, 400],
    path: '/email',
  },
  urlBytes: { at: ['GET', address(200)], past: ['GET', address(201)], statuses: [404, 414] },
  consents: { at: create(answers(1)), past: create(answers(2)), statuses: [201, 400], path: '/consents' },
  links: {
    at: create(values({ p: ['l1', 'l2', 'l3'] })),
    past: create(values({ p: ['l1', 'l2', 'l3', 'l4'] })),
    statuses: [201, 400],
    path: '/attribute_values/p',
  },
  placeholders: {
    at: create(values({ p: ['n1', 'n2'] })),
    past: create(values({ p: ['n3', 'n4', 'n5'] })),
    statuses: [201, 400],
    path: '/attribute_values',
  },
  stacks: {
    at: ['POST', '/v1/schema/stacks', { key: 'first', kind: 'item' }],
    past: ['POST', '/v1/schema/stacks', { key: 'second', kind: 'item' }],
    statuses: [201, 400],
    path: '',
  },
  attributes: {
    at: ['POST', '/v1/schema/attributes', { key: 'second', owner: 'people', type: 'text' }],
    past: ['POST', '/v1/schema/attributes', { key: 'third', owner: 'people', type: 'text' }],
    statuses: [201, 400],
    path: '',
  },
  consentTypes: {
    at: ['POST', '/v1/schema/consent-types', { key: 'second', channels: [{ channel: 'email' }] }],
    past: ['POST', '/v1/schema/consent-types', { key: 'third', channels: [{ channel: 'email' }] }],
    statuses: [201, 400],
    path: '',
  },
  page: {
    at: ['POST', '/v1/people/list', { cursor_configuration: { size: 7 } }],
    past: ['POST', '/v1/people/list', { cursor_configuration: { size: 8 } }],
    statuses: [200, 400],
    path: '/cursor_configuration/size',
  },
}

/** All stored data of the organization, as one text. */
const stored = async () =>
  JSON.stringify(
    await service.sql('select id, version, attributes from entities where organization_id = $1 order by id', [
      organization.id,
    ]),
  )

describe('a limit', () => {
  it('exists for each documented name and has a test', () => {
    const tested = [...Object.keys(table), 'headerBytes', 'tokenBytes', 'requestMs', ...testedElsewhere].sort()
    expect(tested).toEqual(Object.keys(loadConfig({}).limits).sort())
    expect(Object.keys(small).sort()).toEqual(tested)
  })

  it.each(Object.entries(table))('%s accepts a request at the limit and refuses one past it', async (_name, row) => {
    expect((await send(...row.at)).status).toBe(row.statuses[0])
    const before = await stored()
    const { status, body } = await send(...row.past)
    expect([status, body.error]).toEqual([row.statuses[1], 'invalid_parameter'])
    if (row.path !== undefined) expect(body.details!.map(({ path }) => path)).toEqual([row.path])
    expect(await stored()).toBe(before)
  })

  it('page applies in every list, also without a given size', async () => {
    for (const [path, body] of [
      ['/v1/people/list', {}],
      ['/v1/people/filter', { filter: {} }],
      ['/v1/people/l1/related', { target: 'people' }],
    ] as const) {
      const reply = await send('POST', path, body)
      expect(reply.status).toBe(200)
      expect(reply.body.data.items.length).toBeLessThanOrEqual(7)
      const past = await send('POST', path, { ...body, cursor_configuration: { size: 8 } })
      expect(past.status).toBe(400)
    }
  })

  it.each(['/v1/people/kept', address(small.urlBytes)])(
    'headerBytes counts the lines of the headers alone: %s',
    async path => {
      const statusWith = async (bytes: number) => {
        const lines = (fill: string) =>
          `Host: kith\r\nAuthorization: Bearer ${organization.token}\r\nConnection: close\r\nX-Fill: ${fill}\r\n`
        const head = `GET ${path} HTTP/1.1\r\n${lines('x'.repeat(bytes - lines('').length))}\r\n`
        return parseResponse(await exchange(service.address, head)).status
      }
      const found = await statusWith(1_000)
      expect([200, 404]).toContain(found)
      expect(await statusWith(small.headerBytes)).toBe(found)
      expect(await statusWith(small.headerBytes + 1)).toBe(431)
      expect(await statusWith(small.headerBytes + small.urlBytes + 1)).toBe(431)
    },
  )

  it('tokenBytes accepts a token at the limit and returns 401 past it', async () => {
    const makeToken = async (minLength: number) => {
      for (let length = 1; length < minLength; length++) {
        const token = await service.tokenFor(organization.key, 'people:read', 's'.repeat(length))
        if (token.length >= minLength) return token
      }
      throw new Error('no subject makes a token of this length')
    }
    // Base64 cannot produce every length.
    const past = await makeToken(small.tokenBytes + 1)
    let at = await makeToken(small.tokenBytes - 2)
    for (let minLength = small.tokenBytes; minLength > small.tokenBytes - 2; minLength--) {
      const token = await makeToken(minLength)
      if (token.length <= small.tokenBytes) {
        at = token
        break
      }
    }
    expect(at.length).toBeLessThanOrEqual(small.tokenBytes)
    expect(past.length - at.length).toBeLessThanOrEqual(2)
    expect((await service.sender(at)('GET', '/v1/people/kept')).status).toBe(200)
    expect((await service.sender(past)('GET', '/v1/people/kept')).status).toBe(401)
  })
})

describe('an early refusal', () => {
  const readRefusal = async (head: string) => {
    const socket = await openSocket(service.address)
    const answer = new Promise<string>(resolve => socket.once('data', data => resolve(String(data))))
    // The body is never sent.
    socket.write(`${head}\r\n`)
    const { status, body } = parseResponse(await answer)
    socket.destroy()
    return [status, body.error]
  }
  const head = (rest: string, path = '/v1/people') =>
    `POST ${path} HTTP/1.1\r\nHost: kith\r\nContent-Type: application/json\r\n${rest}`

  it('does not wait for the body if its length, its encoding, the URL or the token is refused', async () => {
    const bearer = `Authorization: Bearer ${organization.token}\r\n`
    expect(await readRefusal(head(`${bearer}Content-Length: 3001\r\n`))).toEqual([413, 'invalid_parameter'])
    for (const coding of ['gzip', 'br', 'deflate, gzip', 'identity, gzip'])
      expect(await readRefusal(head(`${bearer}Content-Length: 100\r\nContent-Encoding: ${coding}\r\n`))).toEqual([
        415,
        'invalid_parameter',
      ])
    expect(await readRefusal(head(`${bearer}Transfer-Encoding: gzip, chunked\r\n`))).toEqual([415, 'invalid_parameter'])
    expect(await readRefusal(head(`${bearer}Content-Length: 100\r\n`, `/v1/people?${'x'.repeat(190)}`))).toEqual([
      414,
      'invalid_parameter',
    ])
    expect(await readRefusal(head('Content-Length: 100\r\n'))).toEqual([401, 'unauthorized'])
  })

  it('reads the rest of a body that is too large, so that a client that still sends gets the response', async () => {
    const socket = await openSocket(service.address)
    const body = 'x'.repeat(small.bodyBytes + 1)
    const authorization = `Authorization: Bearer ${organization.token}\r\n`
    socket.write(`${head(`${authorization}Content-Length: ${body.length}\r\n`)}\r\n`)
    expect(parseResponse(String((await once(socket, 'data'))[0])).status).toBe(413)
    socket.write(`${body}GET /healthz HTTP/1.1\r\nHost: kith\r\n\r\n`)
    expect(parseResponse(String((await once(socket, 'data'))[0])).status).toBe(200)
    socket.destroy()
  })

  it('refuses a hundred thousand levels, also in keys, queries and broken JSON', async () => {
    const large = await startService({ KITH_LIMIT_BODY_BYTES: '1048576', KITH_LIMIT_URL_BYTES: '65536' })
    const { send: sendLarge } = await large.organization()
    const levels = 100_000
    for (const text of [
      `{"attribute_values":{"a":${'['.repeat(levels)}${']'.repeat(levels)}}}`,
      `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`,
      `{"attribute_values":{"a":${'['.repeat(levels)}`,
    ]) {
      const { status, body } = await sendLarge('POST', '/v1/people', text)
      expect([status, ['invalid_parameter', 'failed_binding_json'].includes(body.error!)]).toEqual([400, true])
    }
    const query = await sendLarge('POST', `/v1/people?attribute_values${'[a]'.repeat(4_000)}=1`)
    expect([query.status, query.body.error]).toEqual([400, 'invalid_parameter'])
    await large.stop()
  })
})

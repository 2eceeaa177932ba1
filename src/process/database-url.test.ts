import fc from 'fast-check'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { DatabaseUrlError, parseDatabaseUrl, sessionAttributes } from './database-url.ts'

/** The addresses that the driver connects to, in order. */
const addressesOf = (url: string) =>
  parseDatabaseUrl(url).urls.map(connectionString => {
    const { host, port, user, password, database } = new pg.Client({ connectionString })
    expect([user, password, database]).toEqual(['kith', 's3,cr@t', 'kith'])
    return `${host} ${port}`
  })

const login = 'postgresql://kith:s3%2Ccr%40t@'

describe('a URL of several hosts', () => {
  it.each([
    [`${login}h1:5432,h2:5433/kith`, ['h1 5432', 'h2 5433']],
    [`${login}h1,h2:5433/kith`, ['h1 5432', 'h2 5433']],
    [`${login}[::1]:5434,10.0.0.2/kith?sslmode=disable`, ['::1 5434', '10.0.0.2 5432']],
    [`${login}/kith?host=/run/a,/run/b`, ['/run/a 5432', '/run/b 5432']],
    [`${login}localhost/kith?host=%2Frun%2Fa%2C%2Frun%2Fb&port=5433`, ['/run/a 5433', '/run/b 5433']],
    [`${login}localhost/kith?host=/run/a,h2&port=5433,5434`, ['/run/a 5433', 'h2 5434']],
    [`${login}x:5433,y:5434/kith?host=/run/a,/run/b`, ['/run/a 5433', '/run/b 5434']],
    [`${login}h1,h2/kith?port=5433`, ['h1 5433', 'h2 5433']],
    [`${login}h1:5433/kith`, ['h1 5433']],
  ])('%s', (url, addresses) => expect(addressesOf(url)).toEqual(addresses))

  it.each([
    ['h1,h2/kith?host=a,b&port=1,2,3', 'one port, or one for each host: it has 2 hosts and 3 ports'],
    ['h1,/kith', 'name a host'],
    [',h2/kith', 'name a host'],
    ['localhost/kith?host=/run/a,', 'name a host'],
    ['h1:0,h2/kith', 'ports from 1 to 65535'],
    ['h1:65536,h2/kith', 'ports from 1 to 65535'],
    ['h1:x,h2/kith', 'ports from 1 to 65535'],
    ['::1,::2/kith', 'brackets'],
    ['h1,h2/kith?target_session_attrs=writable', 'target_session_attrs one of any, read-write'],
    ['h1/kith?target_session_attrs=', 'target_session_attrs one of any, read-write'],
  ])('%s is refused, and not quoted', (rest, problem) => {
    const refusal = () => parseDatabaseUrl(login + rest)
    expect(refusal).toThrow(DatabaseUrlError)
    expect(refusal).toThrow(problem)
    expect(refusal).not.toThrow(/s3|cr@t|writable/)
  })
})

it('wants any server of one host, a server for writes of several, or what the URL says', () => {
  const wantsOf = (rest: string) => parseDatabaseUrl(login + rest).wants
  expect(wantsOf('h1/kith')).toBe('any')
  expect(wantsOf('h1,h2/kith')).toBe('read-write')
  for (const wants of sessionAttributes)
    for (const hosts of ['h1', 'h1,h2']) {
      const { urls, ...parsed } = parseDatabaseUrl(`${login}${hosts}/kith?a=b&target_session_attrs=${wants}&c=%26d`)
      expect(parsed.wants).toBe(wants)
      for (const url of urls) expect(url.slice(url.indexOf('?'))).toBe('?a=b&c=%26d')
    }
})

it('takes the options of the session out of the URL', () => {
  const { urls, options } = parseDatabaseUrl(
    'postgresql://h1,h2/kith?options=-c%20a%3Db&sslmode=disable&options=-c+c=d',
  )
  expect(options).toEqual(['-c a=b', '-c c=d'])
  expect(urls).toEqual(['postgresql://h1/kith?sslmode=disable', 'postgresql://h2/kith?sslmode=disable'])
})

const hostArbitrary = fc.oneof(
  fc.stringMatching(/^[a-z][a-z0-9-]{0,9}(\.[a-z]{2,5})?$/),
  fc.ipV4(),
  fc.ipV6().map(address => `[${address}]`),
)
const portArbitrary = fc.option(fc.integer({ min: 1, max: 65_535 }), { nil: undefined })

it('gives the driver every host with its port, whatever the login', () => {
  const hosts = fc.array(fc.tuple(hostArbitrary, portArbitrary), { minLength: 1, maxLength: 5 })
  fc.assert(
    fc.property(hosts, fc.string({ minLength: 1 }), fc.string({ minLength: 1 }), (listed, user, secret) => {
      const authority = listed.map(([host, port]) => (port === undefined ? host : `${host}:${port}`)).join()
      const url = `postgres://${encodeURIComponent(user)}:${encodeURIComponent(secret)}@${authority}/kith`
      const clients = parseDatabaseUrl(url).urls.map(connectionString => new pg.Client({ connectionString }))
      expect(clients.map(({ port }) => port)).toEqual(listed.map(([, port = 5432]) => port))
      for (const [index, client] of clients.entries()) {
        expect(client).toMatchObject({ user, database: 'kith' })
        expect(client.password).toBe(secret)
        const [host] = listed[index]!
        if (!host.startsWith('[')) expect(client.host).toBe(host)
      }
    }),
  )
})

import { once } from 'node:events'
import { createServer } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestDatabase } from '../../../test/support/database.ts'
import { urlOfDatabase } from '../embedded.ts'
import { probe, versionProblem } from './probe.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>

beforeEach(async () => {
  database = await createTestDatabase()
})

afterEach(() => database.drop())

/** The message of the error with which a probe fails. */
async function refusal(url: string): Promise<string> {
  const error = await probe(url).catch(error => error)
  expect(error).toBeInstanceOf(Error)
  expect(error.message).not.toContain('\n')
  return error.message
}

/** A free port of this machine. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

describe('the probe of DATABASE_URL', () => {
  it('accepts a usable database', async () => {
    await expect(probe(database.url)).resolves.toBeUndefined()
  })

  it('fails with the address if no server answers', async () => {
    const port = await freePort()
    expect(await refusal(`postgresql://kith:s3cret@127.0.0.1:${port}/kith`)).toBe(
      `No PostgreSQL responds at 127.0.0.1:${port} (ECONNREFUSED). Check DATABASE_URL.`,
    )
    expect(await refusal('postgresql://kith:s3cret@localhost/kith?host=/nowhere')).toBe(
      'No PostgreSQL responds at /nowhere/.s.PGSQL.5432 (ENOENT). Check DATABASE_URL.',
    )
    expect(await refusal('postgresql://kith:s3cret@nobody.invalid/kith')).toMatch(
      /^No PostgreSQL responds at nobody\.invalid:5432 \((ENOTFOUND|EAI_AGAIN)\)\. Check DATABASE_URL\.$/,
    )
  })

  it('fails with the name of a missing database', async () => {
    const missing = await refusal(urlOfDatabase(database.url, 'nowhere_to_be_found'))
    expect(missing).toMatch(/^The PostgreSQL at .* has no database "nowhere_to_be_found"\. Create it/)
  })

  it('fails with the user of a rejected login, without the password', async () => {
    const url = new URL(database.url)
    url.username = 'nobody_known'
    url.password = 's3cret-in-the-url'
    const refused = await refusal(url.href)
    expect(refused).toMatch(/^The PostgreSQL at .* rejects the login of "nobody_known"/)
    expect(refused).not.toContain('s3cret')
  })

  it('hides a password that is a common word in the messages of PostgreSQL alone', async () => {
    const port = await freePort()
    expect(await refusal(`postgresql://kith:kith@localhost:${port}/kith`)).toMatch(
      new RegExp(`^No PostgreSQL responds at localhost:${port} `),
    )
    const url = new URL(urlOfDatabase(database.url, 'kith'))
    url.username = 'kith'
    url.password = 'kith'
    expect(await refusal(url.href)).toMatch(/ rejects the login of "kith" \(.* "…"\)/)
    url.password = ''
    expect(await refusal(url.href)).toMatch(/ rejects the login of "kith" \(there is no password\)/)
  })

  it('refuses a server older than PostgreSQL 15', () => {
    expect(versionProblem(140_022)).toBe('The server of DATABASE_URL is PostgreSQL 14; kith needs 15 or newer.')
    expect([150_000, 150_018, 180_004].map(versionProblem)).toEqual([undefined, undefined, undefined])
  })
})

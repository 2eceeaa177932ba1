import { open, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isActorName } from '../../src/values/actor-names.ts'
import { useOwnService } from '../support/service.ts'
import { hostileStrings, positions } from './positions.ts'
import { createSender, type Sender } from './sender.ts'
import { createTestTenant, type TestTenant } from './test-tenant.ts'
import { trimStrings } from './texts.ts'

const service = useOwnService()
let sender: Sender
let tenant: TestTenant
beforeAll(async () => {
  sender = createSender(service)
  tenant = await createTestTenant(service, sender)
  await sender.send(tenant.token, { method: 'POST', path: '/v1/people', body: '{"external_id":"ada"}' })
})
afterAll(async () => {
  sender.close()
})

const markerOf = (nth: number) => `zqk${nth}kqz`
const markerPattern = /zqk\d+kqz/g

/** Sends every hostile text at every position. Returns the number of requests, and how many were accepted. */
async function attack(): Promise<{ requests: number; accepted: number }> {
  let [requests, accepted] = [0, 0]
  const entries = [...positions.entries()]
  // Requests that change definitions run first, one at a time. While definitions change, concurrent writes may get 503.
  const changesDefinitions = ([, { buildRequest }]: (typeof entries)[number]) =>
    /^\/v1\/(schema|segments)/.test(buildRequest('').path)
  const attackAll = async (remaining: Iterable<(typeof entries)[number]>) => {
    for (const [nth, { name, buildRequest }] of remaining)
      for (const text of hostileStrings(markerOf(nth))) {
        const response = await sender.send(tenant.token, buildRequest(text))
        requests += 1
        if (response.status < 300) accepted += 1
        const isServerError = response.status >= 500 && response.body.error !== 'not_found'
        if (isServerError) throw new Error(`${name}: ${JSON.stringify(text.slice(0, 200))} → ${response.text}`)
      }
  }
  await attackAll(entries.filter(changesDefinitions))
  const remaining = entries.filter(entry => !changesDefinitions(entry)).values()
  await Promise.all(Array.from({ length: 8 }, () => attackAll(remaining)))
  return { requests, accepted }
}

/** Makes new connections log every statement, with its parameters in a log entry of their own. */
async function logStatements() {
  const [{ name }] = (await service.sql<{ name: string }>('select current_database() as name')) as [{ name: string }]
  for (const setting of [`log_statement = 'all'`, `log_error_verbosity = 'default'`, 'log_parameter_max_length = 2000'])
    await service.sql(`alter database ${name} set ${setting}`)
  await service.sql(
    'select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
  )
  // The backend that ran this ends itself. The pool notices a closed connection only when it uses it.
  await service.sql('select pg_terminate_backend(pg_backend_pid())').catch(() => {})
  for (let successes = 0; successes < 10; )
    successes = await service.sql('select 1').then(
      () => successes + 1,
      () => 0,
    )
}

type Entry = { kind: string; text: string }

/** Splits the log into entries. PostgreSQL starts a continued line with a tab, so a value cannot forge an entry. */
function entriesOf(log: string): Entry[] {
  return log.split(/^(?=\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \w+ \[\d+\] )/m).map(entry => {
    const [, kind = '', text = ''] = /^\S+ \S+ \w+ \[\d+\] (\w+): {2}(.*)/s.exec(entry) ?? []
    return { kind, text }
  })
}

async function readFrom(path: string, start: number): Promise<string> {
  const file = await open(path)
  const { size } = await file.stat()
  const { buffer } = await file.read(Buffer.alloc(size - start), 0, size - start, start)
  await file.close()
  return buffer.toString()
}

describe('a hostile text at any position of a request', () => {
  // The log of a server given by KITH_TEST_DATABASE_URL cannot be read.
  it.skipIf(process.env.KITH_TEST_DATABASE_URL)(
    'causes no server error and reaches PostgreSQL only as a bound parameter',
    { timeout: 120_000 },
    async () => {
      const [{ folder }] = (await service.sql<{ folder: string }>(
        `select current_setting('data_directory') as folder`,
      )) as [{ folder: string }]
      const path = join(folder, '..', 'server.log')
      const { size } = await stat(path)
      await logStatements()
      const { requests, accepted } = await attack()
      const entries = entriesOf(await readFrom(path, size))
      const bound = entries.filter(({ kind, text }) => kind === 'DETAIL' && /^parameters:/i.test(text))
      const statements = entries.filter(({ kind }) => kind === 'LOG')
      const loggedMarkers = new Set(bound.flatMap(({ text }) => text.match(markerPattern) ?? []))
      const outside = entries.filter(entry => !bound.includes(entry) && /zqk\d+/.test(entry.text))
      console.log(
        `hostile texts: ${requests} requests at ${positions.length} positions (${accepted} accepted), ${statements.length} statements ` +
          `logged, ${bound.length} with parameters, texts of ${loggedMarkers.size} positions among them, ${outside.length} outside`,
      )
      expect(outside.map(({ text }) => text.slice(0, 300))).toEqual([])
      expect(loggedMarkers.size).toBeGreaterThan(30)
      expect(requests).toBe(positions.length * hostileStrings('').length)
    },
  )

  it('is trimmed and stored exactly, or refused', async () => {
    let stored = 0
    for (const text of hostileStrings(markerOf(0))) {
      const trimmedText = trimStrings(text) as string
      const body = JSON.stringify({ attribute_values: { v: text, n: { [`k${text}`]: [text] } } })
      const response = await sender.send(tenant.token, { method: 'POST', path: '/v1/people', body })
      const isStorable = text.isWellFormed() && !text.includes('\0') && Buffer.byteLength(trimmedText) <= 65_536
      expect([text.slice(0, 80), response.status]).toEqual([text.slice(0, 80), isStorable ? 201 : 400])
      if (!isStorable) continue
      stored += 1
      const read = await sender.send(tenant.token, {
        method: 'GET',
        path: `/v1/people/internal/${response.body.data.id}`,
      })
      expect(read.body.data.attribute_values).toEqual({ v: trimmedText, n: { [`k${text}`]: [trimmedText] } })
    }
    expect(stored).toBeGreaterThan(15)
  })

  it('is stored as the actor of a change if it is the subject of the token', async () => {
    const [{ key }] = (await service.sql<{ key: string }>('select key from organizations where id = $1', [
      tenant.id,
    ])) as [{ key: string }]
    const subjects = hostileStrings(markerOf(0)).filter(isActorName)
    expect(subjects.length).toBeGreaterThan(10)
    for (const text of subjects) {
      const token = await service.tokenFor(key, undefined, text)
      const response = await sender.send(token, { method: 'POST', path: '/v1/people', body: '{}' })
      expect([text, response.status]).toEqual([text, 201])
      const written = 'select actor from changes where organization_id = $1 order by sequence desc limit 1'
      expect(await service.sql(written, [tenant.id])).toEqual([{ actor: text }])
    }
  })
})

import { once } from 'node:events'
import { connect } from 'node:net'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { query } from '../../test/support/embedded-service.ts'
import { importLines, linesFrom } from '../../test/support/lines.ts'
import { readMetrics } from '../../test/support/metrics.ts'
import { lockPerson } from '../../test/support/process.ts'
import { useOwnService } from '../../test/support/service.ts'
import { useSharedShop } from '../../test/support/shop.ts'
import { urlOfDatabase } from '../db/embedded.ts'

const service = useOwnService()
const organization = useSharedShop(service)

const metrics = () => readMetrics(service.address)

/** The growth of samples while `work` ran. */
async function growth(samples: string[], work: () => Promise<unknown>): Promise<number[]> {
  const before = await metrics()
  await work()
  const after = await metrics()
  return samples.map(sample => after.value(sample) - before.value(sample))
}

const person = (metric: string, method = 'GET', status = '') =>
  `${metric}{method="${method}",route="/v1/people/{external_id}"${status && `,status="${status}"`}}`

describe('/metrics', () => {
  it('serves the text format without a token', async () => {
    const response = await fetch(`${service.address}/metrics`)
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
    expect(await response.text()).toMatch(/^# HELP kith_/)
  })

  it('accepts only GET and HEAD, and answers HEAD with the headers alone', async () => {
    const posted = await fetch(`${service.address}/metrics`, { method: 'POST' })
    expect([posted.status, posted.headers.get('Allow')]).toEqual([405, 'GET, HEAD'])
    const head = await fetch(`${service.address}/metrics`, { method: 'HEAD' })
    expect([head.status, await head.text()]).toEqual([200, ''])
  })

  it('counts responses by route and status, and measures their duration', async () => {
    const [found, missing, count, refused] = await growth(
      [
        person('kith_http_requests_total', 'GET', '200'),
        person('kith_http_requests_total', 'GET', '404'),
        person('kith_http_request_duration_seconds_count'),
        'kith_http_refusals_total{error="not_found"}',
      ],
      async () => {
        await organization.send('POST', '/v1/people', { external_id: 'ada' })
        await organization.send('GET', '/v1/people/ada')
        await organization.send('GET', '/v1/people/nobody')
        await organization.send('GET', '/v1/people/nobody')
      },
    )
    expect([found, missing, count, refused]).toEqual([1, 2, 3, 2])
  })

  it('has cumulative buckets, the last of which counts all requests', async () => {
    const { value, text } = await metrics()
    const buckets = [
      ...text.matchAll(
        /^kith_http_request_duration_seconds_bucket\{method="POST",route="\/v1\/people",le="(.+)"\} (\d+)$/gm,
      ),
    ]
    const counts = buckets.map(([, , count]) => Number(count))
    expect(buckets.at(-1)?.[1]).toBe('+Inf')
    expect(counts).toEqual(counts.toSorted((a, b) => a - b))
    expect(counts.at(-1)).toBe(value('kith_http_request_duration_seconds_count{method="POST",route="/v1/people"}'))
  })

  it('puts no unknown path and no unknown method into a label', async () => {
    const [unknown, other] = await growth(
      [
        'kith_http_requests_total{method="GET",route="unknown",status="401"}',
        'kith_http_requests_total{method="other",route="unknown",status="404"}',
      ],
      async () => {
        await fetch(`${service.address}/v1/zqsecret`)
        await fetch(`${service.address}/zqsecret`, { method: 'PROPFIND' })
      },
    )
    expect([unknown, other]).toEqual([1, 1])
    expect((await metrics()).text).not.toContain('zqsecret')
  })

  it('does not grow with the endpoints that requests without a token name', async () => {
    const seriesOf = (text: string) => text.split('\n').filter(line => line.startsWith('kith_http_request')).length
    const ask = async (path: string) => {
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])
        await (await fetch(`${service.address}${path}`, { method })).text()
    }
    await ask('/v1/people')
    const before = seriesOf((await metrics()).text)
    for (const path of [
      '/v1/stacks',
      '/v1/consent_types',
      '/v1/people/ada/consents',
      '/v1/webhooks',
      '/v1/organization',
    ])
      await ask(path)
    expect(seriesOf((await metrics()).text)).toBe(before)
  })

  it('counts requests in flight, and requests whose client disconnected', async () => {
    await organization.send('POST', '/v1/people', { external_id: 'held' })
    const lock = await lockPerson(service.databaseUrl, 'held')
    const leaving = new AbortController()
    const before = await metrics()
    const going = fetch(`${service.address}/v1/people/held`, {
      method: 'PATCH',
      signal: leaving.signal,
      headers: { Authorization: `Bearer ${organization.token}`, 'Content-Type': 'application/json' },
      body: '{"first_name":"x"}',
    }).catch(() => {})
    await expect.poll(lock.waiting).toBe(1)
    const during = await metrics()
    // The scrape itself counts as one of the requests.
    expect(during.value('kith_http_requests_in_flight')).toBe(2)
    expect(during.value('kith_db_pool_connections{pool="main",state="used"}')).toBeGreaterThan(0)
    leaving.abort()
    await going
    const aborted = async () => (await metrics()).value('kith_http_aborted_total')
    await expect.poll(aborted).toBe(before.value('kith_http_aborted_total') + 1)
    await lock.release()
  })

  it('counts requests that wait for a batch, and requests per batch', async () => {
    for (let index = 0; index < 6; index += 1)
      await organization.send('POST', '/v1/people', { external_id: `w${index}` })
    const lock = await lockPerson(service.databaseUrl, 'w0')
    const before = await metrics()
    const patch = (index: number) => organization.send('PATCH', `/v1/people/w${index}`, { first_name: 'x' })
    const first = patch(0)
    await expect.poll(lock.waiting).toBe(1)
    const others = [1, 2, 3, 4, 5].map(patch)
    await expect.poll(async () => (await metrics()).value('kith_queue_waiting{work="write"}')).toBe(5)
    await lock.release()
    await Promise.all([first, ...others])
    const after = await metrics()
    const grown = (sample: string) => after.value(sample) - before.value(sample)
    expect(after.value('kith_queue_waiting{work="write"}')).toBe(0)
    // The first request is a batch of one, repeated after each 250 ms without the lock. The other requests form one
    // batch.
    const [batches, items] = [
      grown('kith_batch_items_count{work="write"}'),
      grown('kith_batch_items_sum{work="write"}'),
    ]
    expect([batches >= 2, items - batches]).toEqual([true, 4])
  })

  it('measures statements by name', async () => {
    const names = ['read_by_external_id', 'commit'].map(
      name => `kith_db_statement_duration_seconds_count{statement="${name}"}`,
    )
    const [reads, commits] = await growth(names, async () => {
      await organization.send('GET', '/v1/people/ada')
      await organization.send('PATCH', '/v1/people/ada', { first_name: 'Ada' })
    })
    expect([reads, commits]).toEqual([1, 1])
  })

  it('counts cache hits and misses', async () => {
    const token = await service.tokenFor(organization.key)
    const cache = (name: string, outcome: string) => `kith_cache_requests_total{cache="${name}",outcome="${outcome}"}`
    const samples = [
      cache('token', 'miss'),
      cache('token', 'hit'),
      cache('definitions', 'hit'),
      cache('statement', 'miss'),
      cache('statement', 'hit'),
    ]
    const grown = await growth(samples, async () => {
      for (let index = 0; index < 3; index += 1) await service.sender(token)('GET', '/v1/people/ada')
      for (const name of ['ada', 'bob', 'eve'])
        await service.sender(token)('POST', '/v1/people/filter', { filter: { email: `${name}@example.org` } })
    })
    expect(grown.slice(0, 2)).toEqual([1, 5])
    expect(grown[2]).toBeGreaterThanOrEqual(3)
    // All requests use one statement of a shape, which each connection plans once.
    expect(grown[3]! + grown[4]!).toBe(3)
    expect(grown[4]).toBeGreaterThanOrEqual(1)
  })

  it('counts imported lines by outcome, and none of a dry run', async () => {
    const lines = ['created', 'unchanged', 'failed'].map(
      outcome => `kith_import_lines_total{kind="people",outcome="${outcome}"}`,
    )
    const body = linesFrom([{ external_id: 'one' }, { external_id: 'one' }, { nope: 1 }])
    expect(await growth(lines, () => importLines(organization, '/v1/people/import?dry_run=true', body))).toEqual([
      0, 0, 0,
    ])
    expect(await growth(lines, () => importLines(organization, '/v1/people/import', body))).toEqual([1, 1, 1])
  })

  it('counts the request that exceeds the limit of its connection', async () => {
    const [refused] = await growth(['kith_overload_refusals_total{reason="connection"}'], async () => {
      const { hostname, port } = new URL(service.address)
      const socket = connect({ host: hostname, port: Number(port) })
      await once(socket, 'connect')
      socket.resume()
      socket.write('GET /healthz HTTP/1.1\r\nHost: kith\r\n\r\n'.repeat(40))
      await once(socket, 'close')
    })
    expect(refused).toBe(1)
  })

  it('reports the database as up, the rows of the change log, and the lag of the event loop', async () => {
    await service.sql('analyze changes')
    const [{ rows }] = (await service.sql<{ rows: number }>('select count(*)::integer as rows from changes')) as [
      { rows: number },
    ]
    const changeLogRows = async () => (await metrics()).value('kith_change_log_rows')
    await expect.poll(changeLogRows, { timeout: 5_000 }).toBeGreaterThanOrEqual(rows)
    // The statistics may include rows that were written just before the table was counted.
    expect(await changeLogRows()).toBeLessThanOrEqual(2 * rows)
    const { value, text } = await metrics()
    expect(value('kith_db_up')).toBe(1)
    expect(text).toContain('kith_event_loop_lag_seconds{quantile="0.99"}')
    expect(value('process_resident_memory_bytes')).toBeGreaterThan(10_000_000)
  })

  it('reports the age of the oldest transaction, and of none 0', async () => {
    const age = async () => (await metrics()).value('kith_db_oldest_transaction_seconds')
    const holder = new pg.Client({ connectionString: service.databaseUrl })
    await holder.connect()
    try {
      await holder.query('begin')
      await expect.poll(age, { timeout: 10_000 }).toBeGreaterThan(1)
    } finally {
      await holder.end()
    }
    await expect.poll(age, { timeout: 10_000 }).toBeLessThan(1)
  })

  it('reports when the last backup of the database was made, and nothing before the first', async () => {
    expect((await metrics()).text).not.toMatch(/^kith_last_backup_timestamp_seconds/m)
    await service.sql(`insert into backups (at) values ('2027-01-15T08:00:00Z'), ('2027-01-14T08:00:00Z')`)
    const last = async () => (await metrics()).value('kith_last_backup_timestamp_seconds')
    await expect.poll(last, { timeout: 15_000 }).toBe(Date.UTC(2027, 0, 15, 8) / 1_000)
  })

  it('reports the database as down, and as up again', async () => {
    const admin = urlOfDatabase(service.databaseUrl, 'postgres')
    const name = new URL(service.databaseUrl).pathname.slice(1)
    const up = async () => (await metrics()).value('kith_db_up')
    await query(admin, `alter database ${name} with allow_connections false`)
    await query(admin, `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`)
    await expect.poll(up, { timeout: 10_000 }).toBe(0)
    await query(admin, `alter database ${name} with allow_connections true`)
    await expect.poll(up, { timeout: 10_000 }).toBe(1)
  })

  it('has no sample of the embedded server if there is none', async () => {
    const { text, types } = await metrics()
    expect(types.kith_embedded_database_up).toBe('gauge')
    expect(text).not.toMatch(/^kith_(embedded_database_up|disk_free_bytes) /m)
  })
})

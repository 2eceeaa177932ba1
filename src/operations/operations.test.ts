import { describe, expect, it } from 'vitest'
import { runInProcess } from '../../test/support/command.ts'
import { readMetrics } from '../../test/support/metrics.ts'
import { useOwnService } from '../../test/support/service.ts'
import type { Finding } from './doctor/finding.ts'
import { parseSamples, reportOf } from './metrics-report.ts'
import { recordBackupSql } from './sql.ts'

const paths = ['/v1/operations/doctor', '/v1/operations/metrics']

describe('GET /v1/operations/doctor', () => {
  const service = useOwnService()

  it('runs the checks of kith doctor once for all requests of five seconds', async () => {
    const { query } = service.db
    const names: string[] = []
    service.db.query = (statement, values, signal) => {
      names.push(statement.name)
      return query(statement, values, signal)
    }
    const { client } = await service.organization()
    const reports = await Promise.all(Array.from({ length: 5 }, () => client.operations.doctor()))
    for (const report of [...reports, await client.operations.doctor()]) expect(report).toEqual(reports[0])
    expect(names.filter(name => name === 'read_clock')).toEqual(['read_clock'])
    service.db.query = query
    const { healthy, findings } = reports[0]!
    expect(healthy).toBe(true)
    const { stdout } = await runInProcess(['doctor', '--json'], { DATABASE_URL: service.databaseUrl })
    const printed: Finding[] = JSON.parse(stdout).findings
    // The command uses an external database: it has no data folder, and does not warn about a missing backup. Clocks
    // and free connections vary.
    const isSame = ({ check }: { check: string }) =>
      !/^(data folder|master key|backup|disk|permissions|clock|connections)$/.test(check)
    expect(findings.filter(isSame)).toEqual(
      printed.filter(isSame).map(({ advice = null, ...finding }) => ({ ...finding, advice })),
    )
    expect(findings.map(({ check }) => check)).toEqual(expect.arrayContaining(['clock', 'connections']))
  })
})

describe('the report of the doctor', () => {
  const service = useOwnService()

  it('names the webhooks and followers of the caller’s organization, and counts those of others', async () => {
    const [one, other] = [await service.organization(), await service.organization()]
    const insertWebhook = (organization_id: number, id: number) =>
      service.sql(
        `insert into webhooks (organization_id, id, url, events, payload, active, secrets, created_at, updated_at, failing_since)
         values ($1, $2, 'https://receiver.example/secret', '[]', 'full', true, '[]', now(), now(), '2027-01-15T08:00:00Z')`,
        [organization_id, id],
      )
    await insertWebhook(one.id, 1)
    for (const id of [1, 2]) await insertWebhook(other.id, id)
    await service.sql(
      `insert into followers (organization_id, name, id, sequence, failures, failure, not_before)
       values ($1, 'segments', 0, 41, 3, 'error 23514', '2027-01-15T08:00:00Z')`,
      [other.id],
    )
    await service.sql(recordBackupSql.text, ['2027-01-15T08:00:00Z'])
    const { healthy, last_backup_at, findings } = await one.client.operations.doctor()
    expect([healthy, last_backup_at]).toEqual([true, '2027-01-15T08:00:00.000Z'])
    const messagesOf = (check: string) =>
      findings.filter(finding => finding.check === check).map(({ message }) => message)
    expect(messagesOf('webhooks')).toEqual([
      `webhook 1 of ${one.key} (receiver.example) has delivered nothing since 2027-01-15T08:00:00.000Z`,
      '2 findings concern other organizations',
    ])
    expect(messagesOf('followers')).toEqual(['1 finding concerns another organization'])
    expect(JSON.stringify(findings)).not.toContain(`${other.key} `)
    const seenByOther = await other.client.operations.doctor()
    expect(seenByOther.findings.filter(({ message }) => message.includes(` of ${other.key} `))).toHaveLength(3)
    expect(JSON.stringify(seenByOther)).not.toContain(` ${one.key} `)
  })
})

describe('GET /v1/operations/metrics', () => {
  const service = useOwnService()

  it('has the numbers of /metrics', async () => {
    const { key, client, send } = await service.organization()
    await client.people.create({ external_id: 'ada' })
    for (const _ of [1, 2, 3]) await client.people.get('ada')
    expect((await send('GET', '/v1/people/nobody')).status).toBe(404)
    const metrics = await client.operations.metrics()
    const { requests, database, memory } = metrics
    expect(requests.routes).toContainEqual({
      method: 'GET',
      route: '/v1/people/{external_id}',
      count: 4,
      sum_seconds: expect.any(Number),
    })
    expect(requests.by_status).toContainEqual({ status: 201, count: 1 })
    expect(requests.by_error).toEqual([{ error: 'not_found', count: 1 }])
    expect(requests.durations.counts.reduce((sum, count) => sum + count, 0)).toBe(requests.durations.count)
    expect(requests.durations.counts).toHaveLength(requests.durations.bounds.length + 1)
    expect(requests.durations.count).toBe(requests.routes.reduce((sum, { count }) => sum + count, 0))
    expect(requests.in_flight).toBeGreaterThan(0)
    expect(database).toMatchObject({ up: true, standby: null, pools: [{ pool: 'main' }] })
    expect(database.statements.count).toBeGreaterThan(0)
    expect(memory.resident_bytes).toBeGreaterThan(memory.heap_used_bytes)
    expect(metrics.overload.map(({ reason }) => reason)).toContain('share')
    expect(metrics.followers.map(({ follower }) => follower)).toContain('ledger')
    expect(metrics.webhooks).toEqual({
      active: 0,
      failing: 0,
      disabled: 0,
      retries_waiting: 0,
      deliveries_waiting: 0,
      lag_seconds: 0,
    })
    expect(JSON.stringify(metrics)).not.toContain(key)
    const { text } = await readMetrics(service.address)
    const later = reportOf(parseSamples(text), new Date())
    expect([later.version, later.started_at]).toEqual([metrics.version, metrics.started_at])
    expect(later.requests.durations.bounds).toEqual(requests.durations.bounds)
  })

  it.each(paths)('is refused without the scope operations:read: %s', async path => {
    const { key } = await service.organization()
    const send = service.sender(await service.tokenFor(key, 'people:read access:read access:write'))
    expect((await send('GET', path)).status).toBe(403)
  })
})

it('reads labels with escaped characters, and sums samples by a label', () => {
  const samples = parseSamples(
    ['# TYPE a counter', 'a{x="q\\"\\\\\\n,}",y="1"} 2', 'a{x="r",y="1"} 3e2', 'a{x="r",y="2"} 1', 'b 0.5', ''].join(
      '\n',
    ),
  )
  expect(samples.of('a')[0]).toEqual({ labels: { x: 'q"\\\n,}', y: '1' }, value: 2 })
  expect(samples.sumBy('a', 'x')).toEqual([
    ['q"\\\n,}', 2],
    ['r', 301],
  ])
  expect([samples.sum('a', { y: '1' }), samples.find('b'), samples.find('c'), samples.sum('c')]).toEqual([
    302,
    0.5,
    undefined,
    0,
  ])
})

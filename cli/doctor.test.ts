import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Finding } from '../src/operations/doctor/finding.ts'
import { selfSigned } from '../test/support/certificate.ts'
import { runInProcess } from '../test/support/command.ts'
import { createTestDatabase } from '../test/support/database.ts'
import { query } from '../test/support/embedded-service.ts'
import { endProcesses, makeFolder } from '../test/support/process.ts'

type Report = { code: number | null; healthy: boolean; findings: Finding[]; output: string }

async function doctor(environment: Record<string, string>): Promise<Report> {
  const { code, stdout, stderr } = await runInProcess(['doctor', '--json'], environment)
  expect(stderr).toBe('')
  return { code, ...(JSON.parse(stdout) as Pick<Report, 'healthy' | 'findings'>), output: stdout }
}

const findingsOf = ({ findings }: Report, check: string) => findings.filter(finding => finding.check === check)

describe('kith doctor, on a server of its own', () => {
  let database: Awaited<ReturnType<typeof createTestDatabase>>
  let environment: Record<string, string>
  beforeEach(async () => {
    database = await createTestDatabase()
    environment = { DATABASE_URL: database.url }
  })
  afterEach(async () => {
    await endProcesses()
    await database.drop()
  })

  /** Expects a finding of the check with this message and with advice, and the exit code 1. */
  async function expectWrong(check: string, message: RegExp, more: Record<string, string> = {}) {
    const report = await doctor({ ...environment, ...more })
    expect([report.code, report.healthy]).toEqual([1, false])
    const found = findingsOf(report, check).filter(({ verdict }) => verdict === 'wrong')
    expect(found.map(finding => finding.message).join('\n')).toMatch(message)
    for (const { advice } of found) expect(advice).toBeTruthy()
    return report
  }

  async function expectWarning(check: string, message: RegExp, more: Record<string, string> = {}) {
    const report = await doctor({ ...environment, ...more })
    const [found] = findingsOf(report, check).filter(({ verdict }) => verdict === 'warning')
    expect(found?.message).toMatch(message)
    expect(found?.advice).toBeTruthy()
  }

  it('names every invalid variable and runs no other check', async () => {
    const report = await expectWrong('configuration', /KITH_X is not a setting of kith\nPORT must be integer/, {
      PORT: 'abc',
      KITH_X: '1',
      AUTH_SECRET: 'a secret of at least thirty-two bytes',
    })
    expect(report.output).not.toContain('a secret of')
    expect(new Set(report.findings.map(({ check }) => check))).toEqual(new Set(['configuration']))
  })

  it('reports why a database cannot be reached, without its password', async () => {
    const url = new URL(database.url)
    url.password = 'zqpassword'
    url.pathname = '/zqnothing'
    url.searchParams.delete('host')
    url.host = '127.0.0.1:1'
    const { output } = await expectWrong('database', /No PostgreSQL responds at 127\.0\.0\.1:1/, {
      DATABASE_URL: url.href,
    })
    expect(output).not.toContain('zqpassword')
  })

  it('reports pending and unknown migrations, and runs none', async () => {
    await query(database.url, `delete from migrations where name = '0006_ledger'`)
    await expectWarning('migrations', /these are missing: 0006_ledger$/)
    expect(await query(database.url, `select from migrations where name = '0006_ledger'`)).toEqual([])
    await query(database.url, `insert into migrations (name, run_on) values ('9999_later', now())`)
    await expectWrong('migrations', /9999_later, which this version does not know/)
    await query(database.url, `update migrations set name = '0001_house' where name = '0001_organizations'`)
    await expectWrong('migrations', /an earlier beta of kith made the database/)
  })

  it('warns of a missing or old signing key, and creates none', async () => {
    await query(database.url, 'delete from signing_keys')
    await expectWarning('keys', /there is no signing key/)
    expect(await query(database.url, 'select from signing_keys')).toEqual([])
    await runInProcess(['migrate'], environment)
    await query(database.url, `update signing_keys set created_at = created_at - interval '400 days'`)
    await expectWarning('keys', /days since the signing key was made: 400/)
  })

  it('warns of a last backup that is older than two days', async () => {
    expect(findingsOf(await doctor(environment), 'backup')).toMatchObject([{ verdict: 'ok' }])
    await query(database.url, `insert into backups (at) values ('2026-01-15T08:00:00Z')`)
    await expectWarning('backup', /the last kith backup is of 2026-01-15T08:00:00\.000Z, more than 2 days ago/)
    await query(database.url, `insert into backups (at) values (now())`)
    expect(findingsOf(await doctor(environment), 'backup')).toMatchObject([{ verdict: 'ok' }])
  })

  it('names the transaction that has been open for longer than ten minutes', async () => {
    expect(findingsOf(await doctor(environment), 'transactions')).toMatchObject([{ verdict: 'ok' }])
    // The view makes every transaction eleven minutes older.
    const name = new URL(database.url).pathname.slice(1)
    await query(database.url, `alter database ${name} set search_path = public, pg_catalog`)
    await query(
      database.url,
      `create view public.pg_stat_activity as select datname, backend_type, pid, application_name,
         xact_start - interval '11 minutes' as xact_start from pg_catalog.pg_stat_activity`,
    )
    const holder = new pg.Client({ connectionString: database.url, application_name: 'forgotten' })
    await holder.connect()
    try {
      await holder.query('begin')
      await expectWarning('transactions', /the process \d+ \(forgotten\) has had a transaction open for 11 minutes/)
    } finally {
      await holder.end()
    }
  })

  it('names followers of the change log whose work fails', async () => {
    await query(database.url, `insert into organizations (key) values ('acme')`)
    const insert = (name: string, id: number, failures: number, paused: boolean) =>
      query(
        database.url,
        `insert into followers (organization_id, name, id, sequence, failures, failure, not_before, paused)
         select id, '${name}', ${id}, 41, ${failures}, 'error 23514', '2027-01-15T08:00:00Z', ${paused}
         from organizations where key = 'acme'`,
      )
    await insert('segments', 0, 3, false)
    await insert('webhooks', 7, 1, false)
    await insert('webhooks', 8, 0, false)
    await insert('webhooks', 9, 1, true)
    const found = findingsOf(await doctor(environment), 'followers')
    expect(found.map(({ verdict, message }) => [verdict, message])).toEqual([
      ['warning', 'segments of acme fails after change 41: error 23514 (failures: 3)'],
      ['warning', 'webhooks 7 of acme fails after change 41: error 23514 (failures: 1)'],
    ])
    expect(found[0]!.advice).toContain('kith retries at 2027-01-15T08:00:00.000Z.')
    // The resumption of a webhook clears `not_before`.
    await query(database.url, `update followers set not_before = null`)
    const [due] = findingsOf(await doctor(environment), 'followers')
    expect(due!.advice).toContain('kith retries at once.')
  })

  it('names an index that lacks a value of an entity, or has one that its entity does not have', async () => {
    await query(database.url, `insert into organizations (key) values ('acme')`)
    const [{ id }] = (await query(database.url, `select id from organizations where key = 'acme'`)) as [{ id: number }]
    const ids = [1, 2].map(n => `00000000-0000-7000-8000-00000000000${n}`)
    await query(
      database.url,
      `insert into attributes (organization_id, id, owner_stack_id, key, name, type, cardinality, state, indexed, index_id, index_ready, version, created_at, updated_at)
       values (${id}, 1, 0, 'city', 'City', 'text', 'one', 'active', true, 7, true, 1, now(), now())`,
    )
    for (const [index, city] of ['Rome', 'Oslo'].entries()) {
      await query(
        database.url,
        `insert into entities (organization_id, stack_id, id, active, version, attributes, created_at, updated_at)
         values (${id}, 0, '${ids[index]}', true, 1, '{"city": "${city}"}', now(), now())`,
      )
      await query(database.url, `insert into terms values (${id}, 7, 's${city}', '${ids[index]}')`)
    }
    const [agreeing] = findingsOf(await doctor(environment), 'indexes')
    expect(agreeing).toMatchObject({ verdict: 'ok' })
    await query(database.url, `delete from terms where value = 'sRome'`)
    await query(database.url, `insert into terms values (${id}, 7, 'sBern', '${ids[1]}')`)
    const [found] = findingsOf(await doctor(environment), 'indexes')
    expect(found!.verdict).toBe('wrong')
    expect(found!.message).toContain('the index of the attribute city of acme differs')
    for (const one of ids) expect(found!.message).toContain(one)
    expect(found!.advice).toContain('"indexed": false')
  })

  it('names webhooks that fail, and those that were disabled', async () => {
    await query(database.url, `insert into organizations (key) values ('acme')`)
    const insert = (id: number, state: string) =>
      query(
        database.url,
        `insert into webhooks (organization_id, id, url, events, payload, active, secrets, created_at, updated_at,
           failing_since, disabled_reason, disabled_at)
         select id, ${id}, 'https://receiver.example/secret', '[]', 'full', ${state} from organizations where key = 'acme'`,
      )
    await insert(1, `true, '[]', now(), now(), '2027-01-15T08:00:00Z', null, null`)
    await insert(2, `false, '[]', now(), now(), null, 'gone', '2027-01-15T08:00:00Z'`)
    await insert(3, `true, '[]', now(), now(), null, null, null`)
    const report = await doctor(environment)
    expect(findingsOf(report, 'webhooks').map(({ verdict, message }) => [verdict, message])).toEqual([
      ['warning', 'webhook 1 of acme (receiver.example) has delivered nothing since 2027-01-15T08:00:00.000Z'],
      [
        'warning',
        'webhook 2 of acme (receiver.example) was disabled at 2027-01-15T08:00:00.000Z: its receiver responded with 410',
      ],
    ])
    // The path of a URL may hold a secret.
    expect(report.output).not.toContain('secret')
  })

  it('finds a database setting that can lose data', async () => {
    const name = new URL(database.url).pathname.slice(1)
    await query(database.url, `alter database ${name} set synchronous_commit = off`)
    await expectWrong('durability', /synchronous_commit is off/)
  })

  it('compares the size of the pool with the free connections of the server', () =>
    expectWrong('connections', /needs 207 connections/, { KITH_DATABASE_CONNECTIONS: '200' }))

  it('checks the TLS files: existence, matching key, expiry and permissions', async () => {
    const folder = await makeFolder()
    const files = { TLS_CERT_FILE: join(folder, 'cert.pem'), TLS_KEY_FILE: join(folder, 'key.pem') }
    await expectWrong('tls', /cannot be read/, files)
    const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const other = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const write = async (hours: number, key = pair.privateKey) => {
      await writeFile(files.TLS_CERT_FILE, selfSigned(pair.publicKey, pair.privateKey, hours))
      await writeFile(files.TLS_KEY_FILE, key.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
    }
    await write(24 * 90)
    expect(findingsOf(await doctor({ ...environment, ...files }), 'tls')).toMatchObject([{ verdict: 'ok' }])
    await chmod(files.TLS_KEY_FILE, 0o644)
    await expectWarning('tls', /key\.pem can be read by every user/, files)
    await write(24)
    await expectWarning('tls', /expires on/, files)
    await write(-1)
    await expectWrong('tls', /expired on/, files)
    await write(24 * 90, other.privateKey)
    await expectWrong('tls', /cannot be used/, files)
  })

  it('fetches the keys of an external issuer', async () => {
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const answers = [
      { status: 200, body: { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'one', alg: 'ES256' }] } },
      { status: 200, body: { keys: [] } },
      { status: 500, body: {} },
    ]
    const server = createServer((_request, response) => {
      const { status, body } = answers.shift()!
      response.writeHead(status).end(JSON.stringify(body))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const issuer = {
      AUTH_ISSUER: 'https://issuer.example',
      AUTH_AUDIENCE: 'contacts',
      AUTH_JWKS_URL: `http://127.0.0.1:${port}/jwks`,
    }
    expect(findingsOf(await doctor({ ...environment, ...issuer }), 'issuer')).toMatchObject([{ verdict: 'ok' }])
    await expectWrong('issuer', /has no usable key/, issuer)
    await expectWrong('issuer', /status 500/, issuer)
    server.close()
  })

  it('refuses unknown options', async () => {
    expect(await runInProcess(['doctor', '--thoroughly'], environment)).toMatchObject({ code: 2, stdout: '' })
  })
})

it('does not take a data folder that it cannot look into, or whose link leads nowhere, for one without data', async () => {
  const folder = await makeFolder()
  const [file, linked] = [join(folder, 'file'), join(folder, 'linked')]
  await writeFile(file, '')
  await mkdir(linked)
  await symlink('/nowhere', join(linked, 'postgresql'))
  for (const [dataDir, message] of [
    [file, /^The data folder .* cannot be read \(ENOTDIR\)\. Run the command as the user of the service/],
    [linked, /points to data that no longer exist/],
  ] as const) {
    const report = await doctor({ KITH_DATA_DIR: dataDir })
    expect(findingsOf(report, 'database')).toMatchObject([
      { verdict: 'wrong', message: expect.stringMatching(message) },
    ])
    const backup = await runInProcess(['backup', join(folder, 'kith.backup')], { KITH_DATA_DIR: dataDir })
    expect(backup).toMatchObject({ code: 1, stderr: expect.stringMatching(message) })
  }
})

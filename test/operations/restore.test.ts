import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { query } from '../support/embedded-service.ts'
import { endProcesses, launch, senderTo, terminate, tokenFrom } from '../support/process.ts'
import type { Send } from '../support/service.ts'
import { blocksOf } from './manual.ts'
import {
  type ClusterFolder,
  crash,
  createCluster,
  createClusterFolder,
  endServers,
  programFolder,
  runLines,
  startServer,
} from './postgresql.ts'

let clusters: ClusterFolder
let backups: string

beforeEach(async () => {
  if (!programFolder) return
  clusters = await createClusterFolder()
  backups = join(clusters.folder, 'backups')
  await runLines(clusters, 'mkdir -p backups/wal')
})

afterEach(async () => {
  await endServers()
  await endProcesses()
})

/** The shell lines below a heading of the manual, which has one block of them. */
const readShellBlock = (title: string) => {
  const blocks = blocksOf(title, 'sh')
  expect(blocks).toHaveLength(1)
  return blocks[0]!
}

/** Starts the service on a database. Returns it with a token and a client. */
async function serve(url: string, token?: string) {
  const environment = { DATABASE_URL: url, LOG_LEVEL: 'warn' }
  const kith = launch(environment)
  const address = await kith.ready
  const usedToken = token ?? (await tokenFrom(environment))
  return { kith, address, environment, token: usedToken, send: senderTo(address, usedToken) }
}

async function declare(send: Send, url: string) {
  const referrer = { key: 'referrer', owner: 'people', type: 'person' }
  expect((await send('POST', '/v1/schema/attributes', referrer)).status).toBe(201)
  // kith fills the index in the background. That would change the row between two reads that a test compares.
  await expect
    .poll(() => query(url, 'select index_ready from attributes'), { timeout: 10_000 })
    .toEqual([{ index_ready: true }])
}

/**
 * Writes a person: a create in turn 0, then a PATCH with a consent and a link. Asserts that the write is acknowledged.
 */
async function write(send: Send, external_id: string, turn: number) {
  const body = {
    first_name: `turn ${turn}`,
    email_consent: turn % 2 === 0,
    attribute_values: { turn, referrer: `hub_${turn % 3}` },
  }
  const { status } =
    turn === 0
      ? await send('POST', '/v1/people', { external_id, ...body })
      : await send('PATCH', `/v1/people/${external_id}`, body)
  expect(status).toBe(turn === 0 ? 201 : 200)
}

async function writeMany(send: Send, prefix: string, turns: number) {
  for (let turn = 0; turn < turns; turn++)
    await Promise.all(['a', 'b', 'c', 'd'].map(name => write(send, `${prefix}_${name}`, turn)))
}

/** The tables that a restore must bring back unchanged, with the order in which they are compared. */
const tableOrders = {
  entities: 'organization_id, stack_id, id',
  links: 'organization_id, source_id, attribute_id, target_id',
  changes: 'organization_id, sequence',
  consent_history: 'organization_id, person_id, version, consent_type_id, channel',
  change_heads: 'organization_id',
  attributes: 'organization_id, id',
  consent_types: 'organization_id, id',
  signing_keys: 'kid',
  clients: 'organization_id, id',
}

type Table = keyof typeof tableOrders

async function readTables(url: string, tables = Object.keys(tableOrders) as Table[], where = 'true') {
  const contents: Partial<Record<Table, unknown[]>> = {}
  for (const table of tables)
    contents[table] = await query(
      url,
      `select to_jsonb(t) from ${table} t where ${where} order by ${tableOrders[table]}`,
    )
  return contents
}

/**
 * Asserts that a database is consistent: change numbers have no gaps, and versions, consents and links match the logs.
 */
async function expectConsistent(url: string) {
  const faults = await query(
    url,
    `select 'a number is missing' as fault, h.organization_id::text as which from change_heads h
       left join changes c using (organization_id)
       group by h.organization_id, h.sequence having h.sequence <> count(c.sequence)
     union all select 'a version is not the number of its changes', e.id::text from entities e
       left join changes c on c.entity_id = e.id group by e.id, e.version having e.version <> count(c.sequence)
     union all select 'an answer is not the last of its history', e.id::text
       from entities e cross join lateral jsonb_each(e.answers) a
       where (a.value ->> 'state')::boolean is distinct from (
         select h.state from consent_history h where h.person_id = e.id and a.key = h.consent_type_id || ':' || h.channel
         order by h.version desc limit 1)
     union all select 'a link leads to nothing', l.source_id::text from links l
       where not exists (select from entities e where e.id = l.target_id)`,
  )
  expect(faults).toEqual([])
}

async function readHead(url: string): Promise<number> {
  const [row] = await query(url, 'select sequence::integer from change_heads where organization_id = 1')
  return row!.sequence as number
}

/** Asserts that the next write takes the next change number. */
async function expectNextNumber(url: string, send: Send) {
  const before = await readHead(url)
  expect((await send('POST', '/v1/people', { external_id: 'afterwards' })).status).toBe(201)
  expect(await readHead(url)).toBe(before + 1)
  await expectConsistent(url)
}

const needs = "needs the server and client programs of Debian's package postgresql"

describe.skipIf(!programFolder)(`the backups of the manual (${needs})`, { timeout: 90_000 }, () => {
  it('restore a dump that was taken during writes, with its keys, tokens and clients, on an empty server', async () => {
    const first = await startServer(clusters, await createCluster(clusters, 'first'))
    await runLines(clusters, 'createdb --maintenance-db="$ADMIN_URL" kith', { ADMIN_URL: first.adminUrl })
    const origin = await serve(first.url)
    await declare(origin.send, first.url)
    const made = launch(origin.environment, ['client', 'create', '--org', 'default', '--scope', 'people:read'])
    expect(await made.ended).toBe(0)
    await writeMany(origin.send, 'before', 4)
    const acknowledged = await readHead(first.url)

    let dumping = true
    const writing = (async () => {
      for (let turn = 0; dumping; turn++) await write(origin.send, 'meanwhile', turn)
    })()
    await runLines(clusters, readShellBlock('A dump'), { DATABASE_URL: first.url, BACKUPS: backups })
    dumping = false
    await writing

    const second = await startServer(clusters, await createCluster(clusters, 'second'))
    const restoreEnvironment = { ADMIN_URL: second.adminUrl, RESTORED_URL: second.url, BACKUPS: backups }
    await runLines(clusters, readShellBlock('Restore a dump'), restoreEnvironment)
    const head = await readHead(second.url)
    expect(head).toBeGreaterThanOrEqual(acknowledged)
    const changesToHead = [['changes'], `sequence <= ${head}`] as [Table[], string]
    expect(await readTables(second.url, ...changesToHead)).toEqual(await readTables(first.url, ...changesToHead))
    const unchangedTables: Table[] = ['attributes', 'consent_types', 'signing_keys', 'clients']
    expect(await readTables(second.url, unchangedTables)).toEqual(await readTables(first.url, unchangedTables))
    await expectConsistent(second.url)

    const restored = await serve(second.url, origin.token)
    const { body } = await restored.send('GET', '/v1/people/before_a')
    expect(body.data).toMatchObject({ first_name: 'turn 3', version: 4, attribute_values: { referrer: 'hub_0' } })
    expect((await fetchToken(restored.address, made.output.stdout)).status).toBe(200)
    await expectNextNumber(second.url, restored.send)
    expect(await terminate(restored.kith)).toBe(0)
  })

  it('recover to a point between two writes, with the first and without the second', async () => {
    const settings = blocksOf('Archive the log', 'ini').join('').replaceAll('/var/backups/kith', backups)
    const first = await startServer(clusters, await createCluster(clusters, 'first', settings))
    await runLines(clusters, 'createdb --maintenance-db="$ADMIN_URL" kith', { ADMIN_URL: first.adminUrl })
    const origin = await serve(first.url)
    await declare(origin.send, first.url)
    await writeMany(origin.send, 'before_backup', 3)
    await runLines(clusters, readShellBlock('A base backup'), { DATABASE_URL: first.url, BACKUPS: backups })
    await writeMany(origin.send, 'after_backup', 3)

    const [point] = await query(first.url, `select clock_timestamp()::text as now`)
    const contentsAtPoint = await readTables(first.url)
    await writeMany(origin.send, 'after_point', 2)
    expect((await origin.send('DELETE', '/v1/people/before_backup_a')).status).toBe(200)
    await archiveAll(first.url)
    origin.kith.child.kill('SIGKILL')
    await crash(first)

    const data = join(clusters.folder, 'second')
    const target = { PGDATA: data, BACKUPS: backups, TARGET: point!.now as string }
    await runLines(clusters, readShellBlock('Restore to a point in time'), target)
    const second = await startServer(clusters, data)
    expect(await readTables(second.url)).toEqual(contentsAtPoint)
    await expectConsistent(second.url)

    const restored = await serve(second.url, origin.token)
    const status = async (external_id: string) => (await restored.send('GET', `/v1/people/${external_id}`)).status
    expect(await Promise.all(['before_backup_a', 'after_backup_d'].map(status))).toEqual([200, 200])
    const { body } = await restored.send('GET', '/v1/people/after_point_a')
    expect(body).toMatchObject({ error: 'not_found' })
    await expectNextNumber(second.url, restored.send)
    expect(await terminate(restored.kith)).toBe(0)
  })
})

/** Requests a token with the credentials that `kith client create` printed. */
function fetchToken(address: string, printed: string): Promise<Response> {
  const [client_id, client_secret] = ['client_id', 'client_secret'].map(
    name => new RegExp(`^${name}=(.*)$`, 'm').exec(printed)![1]!,
  )
  const body = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: client_id!,
    client_secret: client_secret!,
  })
  return fetch(`${address}/oauth/token`, { method: 'POST', body })
}

/** Waits until PostgreSQL has archived everything written so far. */
async function archiveAll(url: string) {
  const [segment] = await query(url, 'select pg_walfile_name(pg_switch_wal()) as name')
  await expect
    .poll(async () => (await query(url, 'select last_archived_wal from pg_stat_archiver'))[0]!.last_archived_wal, {
      timeout: 20_000,
    })
    .toSatisfy((archived: string) => archived >= (segment!.name as string))
}

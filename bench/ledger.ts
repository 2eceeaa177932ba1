import { setTimeout } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type Database, openDatabase, statement } from '../src/db/db.ts'
import { urlOfDatabase } from '../src/db/embedded.ts'
import { migrate } from '../src/db/migrate.ts'
import { createFollowers } from '../src/followers/followers.ts'
import { auditLedger } from '../src/ledger/audit.ts'
import { ensureLedgerKey, readLedgerSigner } from '../src/ledger/keys.ts'
import { proveInclusion, readStoredLedger, signCheckpoint } from '../src/ledger/ledger.ts'
import { ledgerFollower } from '../src/ledger/seal.ts'
import { GrowingTree, hashBytes } from '../src/ledger/tree.ts'
import { prepareCleanup } from './cleanup.ts'
import { serverVersion } from './database.ts'
import { startPostgres } from './environment.ts'
import { percentile } from './measure.ts'
import { printPlatform } from './report.ts'

const maxLagMs = 1_000
const maxProofMs = 5
const minVerified = 200_000

const print = (line = '') => process.stdout.write(`${line}\n`)
const count = (number: number) => Math.round(number).toLocaleString('en')

/** Changes with one answer each, of people with ten answers, as the write path stores them. $2 to $3: the numbers. */
const answersSql = `
with change as (
  insert into changes (organization_id, sequence, at, subject, stack_id, entity_id, operation, version, before, after, actor,
    request_id)
  select $1, n, clock_timestamp(), 'entity', 0,
    ('01900000-0000-7000-8000-' || lpad(to_hex(n / 10), 12, '0'))::uuid, 'update', 1 + n % 10,
    '{"consents": {}}', '{"consents": {}}', 'form', '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e50'
  from generate_series($2::bigint, $3::bigint) n
  returning sequence, entity_id, version, at, actor, request_id
)
insert into consent_history (organization_id, person_id, version, consent_type_id, channel, previous_state, state, source, at,
  actor, request_id, collected_at, evidence)
select $1, entity_id, version, 1, case when sequence % 2 = 0 then 'email' else 'sms' end, null, sequence % 3 > 0, 'entry', at,
  actor, request_id, at, jsonb_build_object('method', 'web_form', 'source', 'https://shop.example/newsletter', 'ip',
    '203.0.113.7', 'user_agent', 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0')
from change`

type Organization = { id: number; key: string }

async function createOrganization(db: Database, key: string): Promise<Organization> {
  const [row] = await db.query<{ id: number }>(
    statement('', 'insert into organizations (key) values ($1) returning id'),
    [key],
  )
  await db.query(statement('', 'insert into change_heads (organization_id) values ($1)'), [row!.id])
  return { id: row!.id, key }
}

/** Appends answers, and moves the head as the write path does. */
async function appendAnswers(db: Database, { id }: Organization, from: number, until: number) {
  await db.transaction(async tx => {
    await tx.query(statement('', answersSql), [id, from, until])
    await tx.query(statement('', 'update change_heads set sequence = $2 where organization_id = $1'), [id, until])
  })
}

/** Measures how fast a history is sealed that was there before. */
async function measureHistory(db: Database, organization: Organization, answers: number) {
  for (let from = 1; from <= answers; from += 100_000)
    await appendAnswers(db, organization, from, Math.min(answers, from + 99_999))
  await db.query(statement('', 'vacuum (analyze) changes, consent_history'), [])
  const startedMs = performance.now()
  const startedCpu = process.cpuUsage()
  const following = createFollowers(db, [ledgerFollower({ originName: 'bench' })], { report: console.error })
  await following.settle()
  await following.stop()
  const seconds = (performance.now() - startedMs) / 1_000
  const { user, system } = process.cpuUsage(startedCpu)
  const micros = (user + system) / answers
  print(`  history: ${count(answers / seconds)} answers/s sealed, ${micros.toFixed(1)} µs of kith's CPU for an answer`)
}

/** Measures how late answers are sealed that arrive at a rate, and what that costs. */
async function measureLag(
  db: Database,
  organization: Organization,
  { rate, seconds }: { rate: number; seconds: number },
) {
  const [head] = await db.query<{ sequence: number }>(
    statement('', 'select sequence from change_heads where organization_id = $1'),
    [organization.id],
  )
  const first = head!.sequence
  const following = createFollowers(db, [ledgerFollower({ originName: 'bench' })], { report: console.error })
  following.start()
  const written: { sequence: number; atMs: number }[] = []
  const lags: number[] = []
  const cpu = process.cpuUsage()
  const startedMs = performance.now()
  let sealed = first
  const look = async () => {
    const [row] = await db.query<{ sequence: number }>(
      statement('', `select sequence from followers where organization_id = $1 and name = 'ledger'`),
      [organization.id],
    )
    sealed = row!.sequence
    const nowMs = performance.now()
    while (written.length > 0 && written[0]!.sequence <= sealed) lags.push(nowMs - written.shift()!.atMs)
  }
  let until = first
  const stepMs = 10
  while (performance.now() - startedMs < seconds * 1_000) {
    const due = first + Math.floor(((performance.now() - startedMs) / 1_000) * rate)
    if (due > until) {
      await appendAnswers(db, organization, until + 1, due)
      until = due
      written.push({ sequence: due, atMs: performance.now() })
    }
    await look()
    await setTimeout(stepMs)
  }
  const achieved = (until - first) / ((performance.now() - startedMs) / 1_000)
  while (sealed < until) {
    await setTimeout(stepMs)
    await look()
  }
  await following.stop()
  const { user, system } = process.cpuUsage(cpu)
  const p99 = percentile(lags, 0.99)
  print(
    `  lag beside ${count(achieved)} answers/s: p50 ${percentile(lags, 0.5).toFixed(0)} ms, p99 ${p99.toFixed(0)} ms (at most ${maxLagMs}): ` +
      `${p99 <= maxLagMs ? 'met' : 'NOT MET'}; CPU of this process ${(((user + system) / 1e6 / seconds) * 100).toFixed(0)} %`,
  )
}

/** Measures an audit of everything that was sealed. */
async function measureAudit(db: Database, { id }: Organization, connections: number) {
  const startedMs = performance.now()
  const { size, findings } = await auditLedger(db, id, { concurrency: connections })
  if (findings.length > 0) throw new Error(findings[0]!.message)
  const rate = size / ((performance.now() - startedMs) / 1_000)
  const peakMb = process.resourceUsage().maxRSS / 1_024
  print(
    `  verify with ${connections} connections: ${count(rate)} entries/s of ${count(size)} (at least ${count(minVerified)}): ` +
      `${rate >= minVerified ? 'met' : 'NOT MET'}; this process at most ${peakMb.toFixed(0)} MB`,
  )
}

const tilesPerStatement = 1_000

/** Stores the tree of so many leaves without answers: a proof reads only tiles. */
async function fillTree(db: Database, { id, key }: Organization, size: number) {
  const tree = new GrowingTree()
  const leaf = Buffer.alloc(hashBytes)
  const tiles: { level: number; index: number; data: Buffer }[] = []
  const insert = statement(
    '',
    `insert into ledger_tiles (organization_id, level, index, data)
     select $1, v.level, v.index, substr($4::bytea, (v.position::integer - 1) * 8192 + 1, 8192)
     from unnest($2::integer[], $3::bigint[]) with ordinality as v(level, index, position)`,
  )
  const flush = async () => {
    const batch = tiles.splice(0)
    const values = [
      batch.map(each => each.level),
      batch.map(each => each.index),
      Buffer.concat(batch.map(each => each.data)),
    ]
    await db.query(insert, [id, ...values])
  }
  for (let index = 0; index < size; index++) {
    leaf.writeDoubleBE(index)
    tiles.push(...tree.append(leaf))
    if (tiles.length >= tilesPerStatement) await flush()
  }
  await flush()
  const checkpoint = signCheckpoint(`bench/${key}/none`, tree, await readLedgerSigner(db))
  await db.query(
    statement(
      '',
      'insert into ledgers (organization_id, size, edge, checkpoint, sealed_at) values ($1, $2, $3, $4, now())',
    ),
    [id, size, tree.edge(), checkpoint],
  )
  await db.query(statement('', 'vacuum (analyze) ledger_tiles'), [])
}

async function measureProofs(db: Database, { id }: Organization, proofs: number) {
  const times: number[] = []
  for (let made = 0; made < proofs; made++) {
    const startedMs = performance.now()
    const ledger = (await readStoredLedger(db, id))!
    const index = Math.floor(Math.random() * ledger.size)
    await proveInclusion(db, id, { ledger, index })
    times.push(performance.now() - startedMs)
  }
  const [p50, p99] = [percentile(times, 0.5), percentile(times, 0.99)]
  const { size } = (await readStoredLedger(db, id))!
  print(
    `  inclusion proof among ${count(size)} entries: first ${times[0]!.toFixed(1)} ms, p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms ` +
      `(p50 at most ${maxProofMs}): ${p50 <= maxProofMs ? 'met' : 'NOT MET'}`,
  )
}

/** Measures sealing, audits and proofs. */
async function main() {
  const { values } = parseArgs({
    options: {
      answers: { type: 'string', default: '1000000' },
      entries: { type: 'string', default: '10000000' },
      rate: { type: 'string', default: '5000' },
      seconds: { type: 'string', default: '10' },
      connections: { type: 'string', default: '2' },
    },
  })
  const [answers, entries, rate, seconds] = [values.answers, values.entries, values.rate, values.seconds].map(Number)
  const connections = Number(values.connections)
  const cleanup = prepareCleanup()
  try {
    const postgres = await cleanup.acquire(startPostgres, started => started.stop())
    await postgres.createDatabase('bench')
    const url = urlOfDatabase(postgres.url, 'bench')
    await migrate(url)
    printPlatform(await serverVersion({ url }))
    const open = async () => openDatabase(url, { connections: 2 + connections, statementTimeoutMs: 600_000 })
    const db = await cleanup.acquire(open, opened => opened.close())
    await ensureLedgerKey(db)
    const organization = await createOrganization(db, 'answers')
    await measureHistory(db, organization, answers!)
    await measureAudit(db, organization, connections)
    await measureLag(db, organization, { rate: rate!, seconds: seconds! })
    const large = await createOrganization(db, 'large')
    await fillTree(db, large, entries!)
    await measureProofs(db, large, 1_000)
  } finally {
    await cleanup.close()
  }
}

await main()

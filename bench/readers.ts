// How long a reader lets a read wait that must show a write, at a rate of writes. The README describes it.

import { loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { Pool } from 'undici'
import { migrate } from '../src/db/migrate.ts'
import { startOwnPostgres, startStandby } from '../test/faults/own-postgres.ts'
import { endProcesses, launch, senderTo, tokenFrom } from '../test/support/process.ts'
import { percentile } from './measure.ts'
import { patchAtRate } from './paced.ts'

const { values } = parseArgs({
  options: {
    rate: { type: 'string', default: '1000' },
    seconds: { type: 'string', default: '20' },
    people: { type: 'string', default: '10000' },
  },
})
const [perSecond, seconds, people] = [values.rate, values.seconds, values.people].map(Number) as [
  number,
  number,
  number,
]
const sampled = 10
const goalP99Ms = 50
const print = (line: string) => process.stdout.write(`${line}\n`)

const primary = await startOwnPostgres({ shared_buffers: '256MB' })
let standby: Awaited<ReturnType<typeof startStandby>> | undefined
try {
  await migrate(primary.url)
  const preparing = launch({ DATABASE_URL: primary.url })
  await populate(await preparing.ready)
  preparing.child.kill('SIGTERM')
  await preparing.ended
  standby = await startStandby(primary)
  const writer = launch({ DATABASE_URL: primary.url })
  const reader = launch({ DATABASE_URL: standby.url, KITH_ROLE: 'reader' })
  await measure(await writer.ready, await reader.ready)
} finally {
  await standby?.stop()
  await primary.stop()
  await endProcesses()
}

async function populate(address: string): Promise<void> {
  const send = senderTo(address, await tokenFrom({ DATABASE_URL: primary.url }))
  for (let first = 1; first <= people; first += 1_000) {
    const operations = Array.from({ length: Math.min(1_000, people - first + 1) }, (_, index) => ({
      op: 'create',
      body: { external_id: `p${first + index}` },
    }))
    const { status, body } = await send('POST', '/v1/people/batch', { operations })
    if (status !== 200 || body.data.failed > 0) throw new Error(`The people could not be created: ${status}`)
  }
}

async function measure(writer: string, reader: string): Promise<void> {
  const token = await tokenFrom({ DATABASE_URL: primary.url })
  const pool = new Pool(reader, { connections: 64 })
  const times: Record<'waiting' | 'plain', number[]> = { waiting: [], plain: [] }
  const reads: Promise<void>[] = []
  const read = async (kind: keyof typeof times, headers: Record<string, string>) => {
    const startedMs = performance.now()
    const path = `/v1/people/p${1 + Math.floor(Math.random() * people)}`
    const answer = await pool.request({
      method: 'GET',
      path,
      headers: { Authorization: `Bearer ${token}`, ...headers },
    })
    await answer.body.dump()
    if (answer.statusCode !== 200) throw new Error(`A read was answered with ${answer.statusCode}.`)
    times[kind].push(performance.now() - startedMs)
  }
  let answers = 0
  const patched = await patchAtRate({ address: writer, token }, { people, perSecond, seconds }, (_, __, sequence) => {
    answers += 1
    if (answers % sampled === 0) reads.push(read('waiting', { 'If-Sequence': sequence }))
    else if (answers % sampled === sampled / 2) reads.push(read('plain', {}))
  })
  await Promise.all(reads)
  await pool.destroy()
  const inMs = (list: number[]) =>
    `p50 ${percentile(list, 0.5).toFixed(1)} ms, p99 ${percentile(list, 0.99).toFixed(1)} ms`
  print(
    `load average: ${loadavg()
      .map(load => load.toFixed(1))
      .join(' ')}`,
  )
  print(`PATCH: ${patched.rate.toFixed(0)}/s, p50 ${patched.p50Ms.toFixed(1)} ms, p99 ${patched.p99Ms.toFixed(1)} ms`)
  print(`reads without a number: ${times.plain.length}, ${inMs(times.plain)}`)
  print(`reads with If-Sequence: ${times.waiting.length}, ${inMs(times.waiting)}`)
  print(`goal: p99 of at most ${goalP99Ms} ms with If-Sequence`)
}

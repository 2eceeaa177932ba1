import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Pool } from 'undici'
import { runProgram } from './measure.ts'
import { type BenchRequest, formatRequest, headersOf, type Target, UnexpectedResponse } from './requests.ts'

// wrk sends closed loads: it takes 20 µs of CPU a request, a client in Node 50, of two cores that it shares with the service.
// undici sends what wrk cannot: requests at a rate, and a certain number of them.

/** The figures of a load. `done` is the number of requests, or of items. */
export type Load = { done: number; rate: number; p50Ms: number; p99Ms: number }

const script = fileURLToPath(new URL('requests.lua', import.meta.url))

type Closed = { folder: string; next: () => BenchRequest; connections: number; seconds: number; maxRate: number }

/**
 * Sends requests over this number of connections, each as soon as its connection is free. `around` runs the load
 * without its preparation. Throws if a response is no success.
 */
export async function loadClosed<T = Load>(
  target: Target,
  { folder, next, connections, seconds, maxRate }: Closed,
  around: (work: () => Promise<Load>) => Promise<T> = work => work() as Promise<T>,
): Promise<T> {
  const path = join(folder, 'requests')
  await writeRequests(path, Math.ceil(maxRate * seconds) + 100, () => formatRequest(target, next()))
  const words = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '10s', '-s', script, target.address]
  try {
    return await around(async () =>
      parseWrk(await runProgram('wrk', words, { PATH: process.env.PATH, REQUESTS: path })),
    )
  } finally {
    await rm(path, { force: true })
  }
}

async function writeRequests(path: string, count: number, next: () => string) {
  const file = createWriteStream(path)
  for (let written = 0; written < count; written += 1) {
    const text = next()
    if (!file.write(`${Buffer.byteLength(text)}\n${text}`)) await once(file, 'drain')
  }
  file.end()
  await once(file, 'close')
}

/** Parses the line that requests.lua writes. Throws if a request was unsuccessful. */
export function parseWrk(out: string): Load {
  const { requests, duration, p50, p99, refused, broken } = JSON.parse(out.trim().split('\n').at(-1)!)
  if (refused + broken > 0)
    throw new Error(`${refused} responses were unsuccessful, ${broken} requests got no response:\n${out}`)
  return { done: requests, rate: (requests / duration) * 1e6, p50Ms: p50 / 1e3, p99Ms: p99 / 1e3 }
}

/**
 * Sends requests at a rate, each when it is due, over 64 connections. Times count from when a request was due, so a stall counts for each
 * request that it delays.
 */
export async function loadAtRate(
  target: Target,
  { next, perSecond, seconds }: { next: () => BenchRequest; perSecond: number; seconds: number },
): Promise<Load> {
  const count = Math.floor(perSecond * seconds)
  return withPool(target, 64, async (send, histogram) => {
    const sent: Promise<void>[] = []
    const startedMs = performance.now()
    while (sent.length < count) {
      const dueCount = Math.min(count, ((performance.now() - startedMs) / 1_000) * perSecond)
      while (sent.length < dueCount) sent.push(send(next(), startedMs + (sent.length / perSecond) * 1_000))
      await setTimeout(1)
    }
    await Promise.all(sent)
    return summarize(histogram, count, startedMs)
  })
}

/** Sends this number of requests over several connections. */
export async function loadCounted(
  target: Target,
  { next, count, connections }: { next: () => BenchRequest; count: number; connections: number },
): Promise<Load> {
  return withPool(target, connections, async (send, histogram) => {
    let left = count
    const startedMs = performance.now()
    await Promise.all(
      Array.from({ length: connections }, async () => {
        while (left > 0) {
          left -= 1
          await send(next(), performance.now())
        }
      }),
    )
    return summarize(histogram, count, startedMs)
  })
}

async function withPool(
  target: Target,
  connections: number,
  work: (
    send: (request: BenchRequest, dueMs: number) => Promise<void>,
    histogram: RecordableHistogram,
  ) => Promise<Load>,
): Promise<Load> {
  const pool = new Pool(target.address, { connections })
  const histogram = createHistogram()
  const send = async (request: BenchRequest, dueMs: number) => {
    const { method, path, body } = request
    const headers = headersOf(target, request)
    const response = await pool.request({ method, path, headers, body: body ? JSON.stringify(body) : null })
    if (response.statusCode >= 300)
      throw new UnexpectedResponse(request, response.statusCode, await response.body.text())
    await response.body.dump()
    histogram.record(Math.max(1, Math.round((performance.now() - dueMs) * 1e3)))
  }
  return work(send, histogram).finally(() => pool.destroy())
}

function summarize(histogram: RecordableHistogram, done: number, startedMs: number): Load {
  const rate = done / ((performance.now() - startedMs) / 1_000)
  return { done, rate, p50Ms: histogram.percentile(50) / 1e3, p99Ms: histogram.percentile(99) / 1e3 }
}

/** The variables of a pgbench script, and the database that it runs in. */
type Statement = { folder: string; url: string; sql: string; variables: Record<string, number>; seconds: number }

/** Runs a statement with pgbench over 16 connections. Throws if a transaction fails. */
export async function loadStatement({ folder, url, sql, variables, seconds }: Statement): Promise<Load> {
  const path = join(folder, 'statement.sql')
  await writeFile(path, sql)
  const { username, password, pathname, searchParams, hostname, port } = new URL(url)
  const environment = {
    PATH: process.env.PATH,
    PGHOST: searchParams.get('host') ?? hostname,
    PGPORT: port,
    PGUSER: decodeURIComponent(username),
    PGPASSWORD: decodeURIComponent(password),
    PGDATABASE: pathname.slice(1),
  }
  const defined = Object.entries(variables).flatMap(([name, value]) => ['-D', `${name}=${value}`])
  const words = ['-n', '-M', 'prepared', '-c16', '-j2', `-T${seconds}`, ...defined, '-f', path]
  return parsePgbench(await runProgram('pgbench', words, environment), seconds)
}

/** Parses the output of pgbench, which reports no percentiles. Throws if a transaction failed. */
export function parsePgbench(out: string, seconds: number): Load {
  const rate = Number(/^tps = ([\d.]+)/m.exec(out)?.[1])
  const meanMs = Number(/^latency average = ([\d.]+) ms/m.exec(out)?.[1])
  const failed = Number(/number of failed transactions: (\d+)/.exec(out)?.[1] ?? 0)
  if (Number.isNaN(rate + meanMs) || failed > 0) throw new Error(`pgbench reported no figures, or failed:\n${out}`)
  return { done: rate * seconds, rate, p50Ms: meanMs, p99Ms: Number.NaN }
}

import type pg from 'pg'
import type { BenchPostgres, Service } from '../environment.ts'
import { percentile } from '../measure.ts'

/** Sends a request. Returns `data` of the response. Throws unless it succeeds; a 503 with Retry-After is sent again. */
export type Ask = (method: string, path: string, body?: unknown) => Promise<never>

export type QuestionsContext = {
  service: Service
  postgres: BenchPostgres
  token: string
  ask: Ask
  print: (line?: string) => void
  /** The number of requests to measure of each kind. */
  requests: number
  organization_id: number
  people: number
}

/** The part of a topic: prints its figures and whether each meets its bound. */
export type QuestionsPart = (context: QuestionsContext) => Promise<void>

export function createAsk(address: string, token: string): Ask {
  return async function ask(method, path, body) {
    const response = await fetch(`${address}${path}`, {
      method,
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    const retryAfter = response.headers.get('Retry-After')
    if (response.status === 503 && retryAfter) {
      await new Promise(resolve => setTimeout(resolve, Number(retryAfter) * 1_000))
      return ask(method, path, body)
    }
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return JSON.parse(text).data as never
  }
}

export type Times = { p50: number; p99: number; most: number }

/** Runs `work` so many times, one after the other, after a few runs that do not count. Returns the times in milliseconds. */
export async function timeEach(count: number, work: (run: number) => Promise<unknown>): Promise<Times> {
  for (let run = 0; run < Math.min(count, 20); run += 1) await work(run)
  const times: number[] = []
  for (let run = 0; run < count; run += 1) {
    const began = performance.now()
    await work(run)
    times.push(performance.now() - began)
  }
  return { p50: percentile(times, 0.5), p99: percentile(times, 0.99), most: Math.max(...times) }
}

/** Runs several kinds of work in turn, so often each, after a few turns that do not count. Returns the times of each in ms. */
export async function alternate(count: number, works: readonly (() => Promise<unknown>)[]): Promise<number[][]> {
  const times = works.map((): number[] => [])
  for (let run = -20; run < count; run += 1)
    for (const [index, work] of works.entries()) {
      const began = performance.now()
      await work()
      if (run >= 0) times[index]!.push(performance.now() - began)
    }
  return times
}

export const formatTimes = ({ p50, p99, most }: Times): string =>
  `p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms, at most ${most.toFixed(2)} ms`

type Plan = { 'Planning Time': number; 'Execution Time': number }

/**
 * Explains a statement with the settings of kith's sessions, in a transaction with more settings. Returns PostgreSQL's time to plan
 * and run it in milliseconds.
 */
export async function explainTime(
  client: pg.Client,
  { text, values }: { text: string; values: unknown[] },
  settings: readonly string[] = [],
): Promise<number> {
  await client.query('begin')
  for (const setting of ['enable_seqscan = off', 'jit = off', 'plan_cache_mode = force_custom_plan', ...settings])
    await client.query(`set local ${setting}`)
  const { rows } = await client.query<{ 'QUERY PLAN': [Plan] }>(
    `explain (analyze, timing off, format json) ${text}`,
    values,
  )
  await client.query('rollback')
  const [plan] = rows[0]!['QUERY PLAN']
  return plan['Planning Time'] + plan['Execution Time']
}

import { setTimeout } from 'node:timers/promises'
import { Pool } from 'undici'
import type { Service } from './environment.ts'
import { percentile, type Run } from './measure.ts'

type PacedLoad = { people: number; perSecond: number; seconds: number }

const connections = 16
const random = (max: number) => 1 + Math.floor(Math.random() * max)
const languages = ['en', 'it', 'de', 'fr']

const bodyOf = () =>
  JSON.stringify({
    first_name: `F${random(1e9)}`,
    last_name: `L${random(1e9)}`,
    language: languages[random(languages.length) - 1],
    attribute_values: { city: `c${random(1e9)}`, score: random(1e9) },
  })

/**
 * Sends PATCHes of random people, each when it is due, as the row `patch` sends them. Returns the rate of the answers, and their time
 * since they were due. `onAnswer` receives the request id, the time and the change number of each acknowledged write. Throws if one is refused.
 */
export async function patchAtRate(
  { address, token }: Pick<Service, 'address' | 'token'>,
  { people, perSecond, seconds }: PacedLoad,
  onAnswer: (requestId: string, atMs: number, sequence: string) => void = () => {},
): Promise<Run & { p99Ms: number }> {
  const pool = new Pool(address, { connections })
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
  const times: number[] = []
  const patch = async (dueMs: number) => {
    const path = `/v1/people/p${random(people)}`
    const answer = await pool.request({ method: 'PATCH', path, headers, body: bodyOf() })
    const atMs = performance.now()
    await answer.body.dump()
    if (answer.statusCode !== 200) throw new Error(`A PATCH was answered with ${answer.statusCode}.`)
    onAnswer(String(answer.headers['x-request-id']), atMs, String(answer.headers['x-kith-sequence']))
    times.push(atMs - dueMs)
  }
  const startedMs = performance.now()
  const sent: Promise<void>[] = []
  let failure: Error | undefined
  const countDue = () => Math.min(seconds, (performance.now() - startedMs) / 1_000) * perSecond
  try {
    while (sent.length < Math.floor(perSecond * seconds) && !failure) {
      while (sent.length < countDue())
        sent.push(
          patch(startedMs + (sent.length / perSecond) * 1_000).catch((error: Error) => {
            failure ??= error
          }),
        )
      await setTimeout(1)
    }
    await Promise.all(sent)
    if (failure) throw failure
    const rate = times.length / ((performance.now() - startedMs) / 1_000)
    return { rate, p50Ms: percentile(times, 0.5), p99Ms: percentile(times, 0.99) }
  } finally {
    await pool.destroy()
  }
}

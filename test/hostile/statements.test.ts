import { open, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Service, startService } from '../support/service.ts'
import { hostileStrings, positions } from './positions.ts'
import { createSender, type Sender } from './sender.ts'
import { makeLane, type TestTenant } from './test-tenant.ts'
import { trimmed } from './texts.ts'

let service: Service
let sender: Sender
let lane: TestTenant
beforeAll(async () => {
  service = await startService()
  sender = createSender(service)
  lane = await makeLane(service, sender)
  await sender.ask(lane.token, { method: 'POST', path: '/v1/people', body: '{"external_id":"ada"}' })
})
afterAll(async () => {
  sender.close()
  await service.stop()
})

const mark = (nth: number) => `zqk${nth}kqz`
const marks = /zqk\d+kqz/g

/** Every hostile text at every place; answers what was answered. */
async function attack(): Promise<{ requests: number; accepted: number }> {
  let [requests, accepted] = [0, 0]
  const entries = [...positions.entries()]
  // Definitions are made one after the other: while they change, writes may be answered 503.
  const defines = ([, { ask }]: (typeof entries)[number]) => ask('').path.startsWith('/v1/schema')
  const worker = async (queue: Iterable<(typeof entries)[number]>) => {
    for (const [nth, { where, ask }] of queue)
      for (const text of hostileStrings(mark(nth))) {
        const answer = await sender.ask(lane.token, ask(text))
        requests += 1
        if (answer.status < 300) accepted += 1
        const isFault = answer.status >= 500 && answer.body.error !== 'not_found'
        if (isFault) throw new Error(`${where}: ${JSON.stringify(text.slice(0, 200))} → ${answer.text}`)
      }
  }
  await worker(entries.filter(defines))
  const queue = entries.filter(entry => !defines(entry)).values()
  await Promise.all(Array.from({ length: 8 }, () => worker(queue)))
  return { requests, accepted }
}

/** Connections made from now on log every statement, and its parameters apart from it. */
async function logStatements() {
  const [{ name }] = (await service.sql<{ name: string }>('select current_database() as name')) as [{ name: string }]
  for (const setting of [`log_statement = 'all'`, `log_error_verbosity = 'default'`, 'log_parameter_max_length = 2000'])
    await service.sql(`alter database ${name} set ${setting}`)
  await service.sql(
    'select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
  )
  // The last of the old ones ends itself; a pool notices when it uses them.
  await service.sql('select pg_terminate_backend(pg_backend_pid())').catch(() => {})
  for (let answered = 0; answered < 10; )
    answered = await service.sql('select 1').then(
      () => answered + 1,
      () => 0,
    )
}

type Entry = { kind: string; text: string }

/** Continued lines begin with a tab, whatever a value holds. */
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

describe('a hostile text, wherever in a request it stands,', () => {
  // Another server's log is not ours to read.
  test.skipIf(process.env.KITH_TEST_DATABASE_URL)(
    'is no fault, and reaches PostgreSQL as a bound parameter alone',
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
      const seen = new Set(bound.flatMap(({ text }) => text.match(marks) ?? []))
      const outside = entries.filter(entry => !bound.includes(entry) && /zqk\d+/.test(entry.text))
      console.log(
        `hostile texts: ${requests} requests at ${positions.length} places (${accepted} accepted), ${statements.length} statements ` +
          `logged, ${bound.length} with parameters, texts of ${seen.size} places among them, ${outside.length} outside`,
      )
      expect(outside.map(({ text }) => text.slice(0, 300))).toEqual([])
      expect(seen.size).toBeGreaterThan(30)
      expect(requests).toBe(positions.length * hostileStrings('').length)
    },
  )

  test('is stored as it is, once trimmed, or refused', async () => {
    let stored = 0
    for (const text of hostileStrings(mark(0))) {
      const whole = trimmed(text) as string
      const body = JSON.stringify({ attribute_values: { v: text, n: { [`k${text}`]: [text] } } })
      const answer = await sender.ask(lane.token, { method: 'POST', path: '/v1/people', body })
      const isStorable = text.isWellFormed() && !text.includes('\0') && Buffer.byteLength(whole) <= 65_536
      expect([text.slice(0, 80), answer.status]).toEqual([text.slice(0, 80), isStorable ? 201 : 400])
      if (!isStorable) continue
      stored += 1
      const read = await sender.ask(lane.token, { method: 'GET', path: `/v1/people/internal/${answer.body.data.id}` })
      expect(read.body.data.attribute_values).toEqual({ v: whole, n: { [`k${text}`]: [whole] } })
    }
    expect(stored).toBeGreaterThan(15)
  })

  test('as the subject of a token is stored as the author of what it writes', async () => {
    const [{ key }] = (await service.sql<{ key: string }>('select key from organizations where id = $1', [
      lane.id,
    ])) as [{ key: string }]
    const subjects = hostileStrings(mark(0)).filter(text => text.length < 256 && text.isWellFormed())
    for (const text of subjects.filter(text => !/\p{Cc}/u.test(text))) {
      const token = await service.tokenFor(key, undefined, text)
      const answer = await sender.ask(token, { method: 'POST', path: '/v1/people', body: '{}' })
      expect([text, answer.status]).toEqual([text, 201])
      const written = 'select actor from changes where organization_id = $1 order by sequence desc limit 1'
      expect(await service.sql(written, [lane.id])).toEqual([{ actor: text }])
    }
  })
})

import { afterEach, describe, expect, it, vi } from 'vitest'
import type { Change, ChangeStream } from '../index.ts'
import type { ClientOptions } from '../src/options.ts'
import { networkError, refusal, type Step, scriptedClient } from './scripted-fetch.ts'

afterEach(() => {
  vi.useRealTimers()
})

const eventOf = (sequence: number) => `id: ${sequence}\nevent: person.updated\ndata: {"sequence":${sequence}}\n\n`
const logHeaders = { 'content-type': 'text/event-stream', 'Kith-Log-Id': 'log-1' }

/** A response with these pieces of text, which then ends, breaks, or stays silent. */
function events(pieces: string[], ending: 'end' | 'break' | 'silence' = 'end', headers: object = logHeaders): Response {
  const encoder = new TextEncoder()
  const rest = ['retry: 1000\n\n', ...pieces]
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const piece = rest.shift()
      if (piece !== undefined) return controller.enqueue(encoder.encode(piece))
      if (ending === 'end') return controller.close()
      if (ending === 'break') return controller.error(networkError('ECONNRESET'))
      return new Promise(() => {})
    },
  })
  return new Response(body, { headers: headers as Record<string, string> })
}

const stop = () => refusal('unauthorized', 401)

/** Follows until the script ends with a refusal. Returns the numbers of the changes, and the error. */
async function followScript(steps: Step[], options: Partial<ClientOptions> = {}, after = 0) {
  const { client, sent, pauses } = scriptedClient(steps, options)
  const stream = client.changes.follow({ after })
  const seen: number[] = []
  let error: unknown
  try {
    for await (const { sequence } of stream) seen.push(sequence)
  } catch (caught) {
    error = caught
  }
  return { seen, error, sent, pauses, stream }
}

const queryOf = ({ url }: { url: string }) => new URL(url).search.slice(1)

describe('following', () => {
  it('delivers each change as it arrives, wherever the response is cut into chunks', async () => {
    const text = [1, 2, 3].map(eventOf).join('')
    const pieces = text.match(/.{1,7}/gs)!
    const { seen } = await followScript([events(pieces), stop()])
    expect(seen).toEqual([1, 2, 3])
  })

  it('sends the filter and asks for server-sent events', async () => {
    const { client, sent } = scriptedClient([stop()])
    const filter = { subject: ['person', 'record'], stack: 'orders', operation: 'delete' } as const
    const stream = client.changes.follow({ after: 7, logId: 'log-1', ...filter })
    await expect(stream[Symbol.asyncIterator]().next()).rejects.toMatchObject({ status: 401 })
    expect(queryOf(sent[0]!)).toBe('after=7&log_id=log-1&subject=person&subject=record&stack=orders&operation=delete')
    expect([sent[0]!.method, sent[0]!.headers.get('accept')]).toEqual(['GET', 'text/event-stream, application/json'])
  })

  it('reports a warning of the service once, and again after a connection without it', async () => {
    const warned = () => events([], 'end', { ...logHeaders, 'X-Kith-Warning': '/subject no scope' })
    const { client } = scriptedClient([warned(), warned(), events([eventOf(1)]), warned(), stop()])
    const warnings: string[] = []
    const stream = client.changes.follow({ onWarning: warning => warnings.push(warning) })
    const readAll = async () => {
      for await (const _ of stream);
    }
    await expect(readAll()).rejects.toMatchObject({ status: 401 })
    expect(warnings).toEqual(['/subject no scope', '/subject no scope'])
  })

  it('connects again after the last change, under the log_id of the first response', async () => {
    const { seen, sent } = await followScript(
      [
        events([eventOf(5), eventOf(6).slice(0, 20)], 'break'),
        networkError('ECONNREFUSED'),
        events([eventOf(6), eventOf(9)]),
        stop(),
      ],
      {},
      4,
    )
    expect(seen).toEqual([5, 6, 9])
    expect(sent.map(queryOf)).toEqual([
      'after=4',
      'after=5&log_id=log-1',
      'after=5&log_id=log-1',
      'after=9&log_id=log-1',
    ])
  })

  it('continues after the number of a comment, which may be past changes that do not match', async () => {
    const { seen, sent, stream } = await followScript([events([eventOf(2), ': alive\nid: 900\n\n']), stop()])
    expect([seen, stream.last]).toEqual([[2], 900])
    expect(queryOf(sent[1]!)).toBe('after=900&log_id=log-1')
  })

  it('knows how far the loop has come', async () => {
    const { client } = scriptedClient([events([eventOf(1), eventOf(2)]), events([eventOf(2)]), stop()])
    const stream = client.changes.follow()
    const numbers: number[][] = []
    for await (const { sequence } of stream) {
      numbers.push([sequence, stream.last])
      if (sequence === 2) break
    }
    // The loop ended during change 2, so this change comes again.
    await expect(async () => {
      for await (const { sequence } of stream) numbers.push([sequence, stream.last])
    }).rejects.toMatchObject({ status: 401 })
    expect(numbers).toEqual([
      [1, 0],
      [2, 1],
      [2, 1],
    ])
    expect([stream.last, stream.logId]).toEqual([2, 'log-1'])
  })
})

describe('a follower that was connected', () => {
  const transient: [string, () => Step][] = [
    ['503', () => refusal('operation_failed', 503)],
    ['500', () => refusal('operation_failed', 500)],
    ['504 of the service', () => refusal('operation_failed', 504)],
    ['429', () => refusal('rate_limit_exceeded', 429)],
    ['502 of a proxy', () => new Response('<h1>bad gateway</h1>', { status: 502 })],
    ['a refused connection', () => networkError('ECONNREFUSED')],
    ['an unknown host', () => networkError('ENOTFOUND')],
    ['a broken connection', () => networkError('ECONNRESET')],
    ['a timeout', () => 'silence'],
  ]
  it.each(transient)('connects again however often it meets %s', async (_, step) => {
    const failures = Array.from({ length: 20 }, step)
    const steps = [events([eventOf(1)]), ...failures, events([eventOf(2)]), stop()]
    const { seen, pauses } = await followScript(steps, { timeoutMs: 5 })
    expect(seen).toEqual([1, 2])
    expect(pauses.slice(0, 8)).toEqual([100, 200, 400, 800, 1_600, 2_500, 2_500, 2_500])
    // A change resets the pause.
    expect(pauses.at(-1)).toBe(100)
  })

  it('waits as long as Retry-After says, also for longer than other calls', async () => {
    const { pauses } = await followScript([
      events([eventOf(1)]),
      refusal('operation_failed', 503, { 'Retry-After': '10' }),
      new Response('busy', { status: 503, headers: { 'Retry-After': '120' } }),
      stop(),
    ])
    expect(pauses).toEqual([100, 10_200, 120_400])
  })

  it('reports each attempt to connect again', async () => {
    const { client } = scriptedClient([events([eventOf(1)]), networkError('ECONNREFUSED'), stop()])
    const reported: string[] = []
    const onRetry = (error: Error, pauseMs: number) => void reported.push(`${error.message} ${pauseMs}`)
    await expect(async () => {
      for await (const _ of client.changes.follow({ onRetry }));
    }).rejects.toMatchObject({ status: 401 })
    expect(reported).toEqual([
      'The service ended the stream. 100',
      'kith.test cannot be reached, or the connection broke (ECONNREFUSED). 200',
    ])
  })

  it('connects again after 40 seconds of silence', async () => {
    vi.useFakeTimers()
    const { client, sent } = scriptedClient([events([eventOf(1)], 'silence'), stop()])
    const following = (async () => {
      for await (const _ of client.changes.follow());
    })().catch(error => error)
    await vi.advanceTimersByTimeAsync(39_000)
    expect(sent).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(2_000)
    expect(await following).toMatchObject({ status: 401 })
    expect(sent.map(queryOf)).toEqual(['after=0', 'after=1&log_id=log-1'])
  })

  it('fetches another token if the service refuses the one of its client credentials', async () => {
    let tokens = 0
    const streams = [events([eventOf(1)]), stop(), events([eventOf(2)]), stop(), stop()]
    const authorizations: (string | null)[] = []
    const { client } = scriptedClient([], {
      token: undefined,
      clientCredentials: { clientId: 'a', clientSecret: 'b' },
      fetch: async (url: string, init: RequestInit) => {
        if (url.endsWith('/oauth/token')) return Response.json({ access_token: `token${++tokens}`, expires_in: 300 })
        authorizations.push(new Headers(init.headers).get('authorization'))
        return streams.shift()!
      },
    } as never)
    const seen: number[] = []
    await expect(async () => {
      for await (const { sequence } of client.changes.follow()) seen.push(sequence)
    }).rejects.toMatchObject({ status: 401 })
    expect(seen).toEqual([1, 2])
    expect(authorizations).toEqual(['token1', 'token1', 'token2', 'token2', 'token3'].map(token => `Bearer ${token}`))
  })
})

describe('a follower is refused', () => {
  it.each([
    ['400', () => refusal('invalid_parameter', 400)],
    ['401', () => refusal('unauthorized', 401)],
    ['403', () => refusal('forbidden', 403)],
    ['404 of a wrong url', () => refusal('not_found', 404, {}, [{ path: '', message: 'no such endpoint' }])],
    ['410', () => refusal('invalid_parameter', 410, {}, [{ path: '/log_id', message: 'the log is log-2 now' }])],
  ])('by %s at once, also if it was connected', async (text, step) => {
    for (const before of [[], [events([eventOf(1)])]]) {
      const { error, sent } = await followScript([...before, step()])
      expect(error).toMatchObject({ status: Number(text.split(' ')[0]) })
      expect(sent).toHaveLength(before.length + 1)
    }
  })

  it('by a response that is not from kith', async () => {
    const { error } = await followScript([new Response('<h1>hello</h1>', { headers: { 'content-type': 'text/html' } })])
    expect((error as Error).message).toContain('not from kith')
  })

  it('by an address that has never answered, after the retries of the client', async () => {
    const down = Array.from({ length: 3 }, () => networkError('ECONNREFUSED'))
    const { error, sent } = await followScript(down, { retries: 2 })
    expect(error).toMatchObject({ name: 'KithConnectionError', attempts: 3 })
    expect(sent).toHaveLength(3)
  })
})

it('a follower waits for an address that has answered, also before its first connection', async () => {
  const starting = () => [refusal('rate_limit_exceeded', 429), new Response('no upstream', { status: 502 })]
  const { seen, error } = await followScript([...starting(), ...starting(), events([eventOf(1)]), stop()], {
    retries: 1,
  })
  expect([seen, error]).toMatchObject([[1], { status: 401 }])
})

describe('the signal ends a follower', () => {
  const numbersOf = async (stream: ChangeStream, onChange: (change: Change) => void = () => {}) => {
    const seen: number[] = []
    for await (const change of stream) {
      seen.push(change.sequence)
      onChange(change)
    }
    return seen
  }

  it('before a request is sent', async () => {
    const { client, sent } = scriptedClient([])
    expect(await numbersOf(client.changes.follow({ signal: AbortSignal.abort() }))).toEqual([])
    expect(sent).toHaveLength(0)
  })

  it.each<[string, Step[]]>([
    ['while it connects', ['silence']],
    ['while it waits for a change', [events([], 'silence')]],
  ])('%s', async (_, steps) => {
    const { client, sent } = scriptedClient(steps)
    const stopping = new AbortController()
    const following = numbersOf(client.changes.follow({ signal: stopping.signal }))
    await expect.poll(() => sent.length).toBe(1)
    await new Promise(setImmediate)
    stopping.abort()
    expect(await following).toEqual([])
  })

  it('while it waits for a token', async () => {
    const stopping = new AbortController()
    const { client } = scriptedClient([], { token: undefined, getToken: () => new Promise(() => {}) } as never)
    const following = numbersOf(client.changes.follow({ signal: stopping.signal }))
    stopping.abort()
    expect(await following).toEqual([])
  })

  it('while it pauses', async () => {
    const stopping = new AbortController()
    const busy = refusal('operation_failed', 503, { 'Retry-After': '30' })
    const { client } = scriptedClient([busy], { sleep: undefined } as never)
    const onRetry = () => queueMicrotask(() => stopping.abort())
    expect(await numbersOf(client.changes.follow({ signal: stopping.signal, onRetry }))).toEqual([])
  })

  it('while changes that have arrived are not delivered yet', async () => {
    const { client } = scriptedClient([events([[1, 2, 3].map(eventOf).join('')], 'silence')])
    const stopping = new AbortController()
    const stream = client.changes.follow({ signal: stopping.signal })
    const seen = await numbersOf(stream, ({ sequence }) => {
      if (sequence === 2) stopping.abort()
    })
    expect([seen, stream.last]).toEqual([[1, 2], 2])
  })
})

it('leaving the loop ends the request', async () => {
  let signal: AbortSignal | null | undefined
  const fetch = async (_: unknown, init?: RequestInit) => {
    signal = init?.signal
    return events([eventOf(1)], 'silence')
  }
  const { client } = scriptedClient([], { fetch: fetch as never })
  for await (const _ of client.changes.follow()) break
  expect(signal?.aborted).toBe(true)
})

import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorStatuses } from '../src/errors.ts'
import { type Send, type Service, startService } from './support/service.ts'

const document = readFileSync(new URL('../docs/api.md', import.meta.url), 'utf8')

type Example = {
  request: string
  method: string
  path: string
  headers: Record<string, string>
  body: unknown
  status: number
  answer: unknown
}

/** An example is a request line, headers, a JSON body, and behind the arrow a status and a part of the answer. */
function parseExample(text: string): Example {
  const [asked = '', answered = ''] = text.split('\n→ ')
  const [request = '', ...lines] = asked.split('\n')
  const [method = '', path = ''] = request.split(' ')
  const headerCount = lines.findIndex(line => !/^[\w-]+: /.test(line))
  const headers = lines.slice(0, headerCount === -1 ? lines.length : headerCount)
  const body = lines.slice(headers.length).join('\n')
  const [status = '', ...answer] = answered.split('\n')
  const parse = (json: string) => (json.trim() === '' ? undefined : JSON.parse(json))
  return {
    request,
    method,
    path,
    headers: Object.fromEntries(headers.map(line => line.split(/: (.*)/s, 2) as [string, string])),
    body: parse(body),
    status: Number(status),
    answer: parse(answer.join('\n')),
  }
}

const examples = [...document.matchAll(/```http\n([\s\S]*?)```/g)].map(match => parseExample(match[1]!.trimEnd()))

describe('docs/api.md', () => {
  let service: Service
  let send: Send
  beforeAll(async () => {
    service = await startService()
    send = (await service.organization()).send
  })
  afterAll(() => service.stop())

  test('has examples', () => {
    expect(examples.length).toBeGreaterThan(20)
  })

  test.each(examples.map((example, index) => ({ ...example, index })))(
    'tells the truth in example $index: $request',
    async ({ method, path, headers, body, status, answer }) => {
      const reply = await send(method, path, body, headers)
      expect(reply.status, JSON.stringify(reply.body)).toBe(status)
      if (answer !== undefined) expect(reply.body).toMatchObject(answer as object)
    },
  )

  test('lists every error word with every status it may have', () => {
    const rows = [...document.matchAll(/^\| `(\w+)` \| ([\d, ]+) \|/gm)]
    const documented = Object.fromEntries(rows.map(([, word, statuses]) => [word, statuses!.split(', ').map(Number)]))
    expect(documented).toEqual(errorStatuses)
  })
})

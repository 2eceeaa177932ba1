import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { searchFollower } from '../src/entities/indexes/search-index.ts'
import { errorStatuses } from '../src/values/errors.ts'
import { follow } from './support/followers.ts'
import { useOwnService } from './support/service.ts'
import { useSharedShop } from './support/shop.ts'

const read = (name: string) => readFileSync(new URL(`../docs/${name}`, import.meta.url), 'utf8')

/** The pages on the API: the examples of each build on those before it. */
const document = ['api', 'api-people', 'api-consents', 'queries', 'api-writes', 'api-access']
  .map(name => read(`${name}.md`))
  .join('\n')

type Example = {
  request: string
  method: string
  path: string
  headers: Record<string, string>
  body: unknown
  status: number
  answer: unknown
}

/** Parses an example: a request line, headers, a JSON body, and after the arrow a status and a part of the response. */
function parseExample(text: string): Example {
  const [requestText = '', responseText = ''] = text.split('\n→ ')
  const [request = '', ...lines] = requestText.split('\n')
  const [method = '', path = ''] = request.split(' ')
  const headerCount = lines.findIndex(line => !/^[\w-]+: /.test(line))
  const headers = lines.slice(0, headerCount === -1 ? lines.length : headerCount)
  const body = lines.slice(headers.length).join('\n')
  const [status = '', ...answer] = responseText.split('\n')
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

describe('the pages on the API', () => {
  const service = useOwnService()
  const { send } = useSharedShop(service)

  it('has examples', () => {
    expect(examples.length).toBeGreaterThan(20)
  })

  it.each(examples.map((example, index) => ({ ...example, index })))(
    'shows the real response in example $index: $request',
    async ({ method, path, headers, body, status, answer }) => {
      // Searches are behind the writes by a follower.
      if (path.endsWith('/search')) await follow(service.db, [searchFollower()])
      const reply = await send(method, path, body, headers)
      expect(reply.status, JSON.stringify(reply.body)).toBe(status)
      if (answer !== undefined) expect(reply.body).toMatchObject(answer as object)
    },
  )

  it('lists every error code with every status it may have', () => {
    const rows = [...document.matchAll(/^\| `(\w+)` \| ([\d, ]+) \|/gm)]
    const documented = Object.fromEntries(rows.map(([, word, statuses]) => [word, statuses!.split(', ').map(Number)]))
    expect(documented).toEqual(errorStatuses)
  })
})

import fc from 'fast-check'
import type { OpenApiDocument } from '../../src/openapi/document.ts'
import { broken } from './invariants.ts'
import { type Break, breaksOf, breaksOfText } from './mutations.ts'
import type { Operation } from './operations.ts'
import { resolved } from './operations.ts'
import { askOf, type Plan, planOf } from './requests.ts'
import type { Answer, Ask } from './sender.ts'
import type { TestTenant } from './test-tenant.ts'

/** A request that breaks one rule. `word`, `status` and `path` are what it must be refused with. */
export type Refused = {
  rule: string
  asked: Ask
  token: string
  status: number
  word: string
  path: string | undefined
}

/** Plans, each with a number that chooses the rule which will be broken. */
export function brokenPlanOf(
  operation: Operation,
  document: OpenApiDocument,
): fc.Arbitrary<{ plan: Plan; nth: number }> {
  return fc.record({ plan: planOf(operation, document), nth: fc.nat({ max: 1_000_000 }) }, { noNullPrototype: true })
}

/** The request of a plan with one rule broken: in the body, in the address, in the headers, or in the query. */
export function breakPlan(plan: Plan, nth: number, lane: TestTenant, document: OpenApiDocument): Refused {
  const asked = askOf({ ...plan, asQuery: false }, lane)
  const around = [...addressBreaks(plan, asked), ...headerBreaks(plan, asked, lane), ...queryBreaks(plan, asked)]
  const { body: schema } = plan.operation
  if (!schema || !plan.body || nth % 4 === 0) return around[Math.floor(nth / 4) % around.length]!
  const die = Math.floor(nth / 4)
  const breaks = die % 3 === 0 ? breaksOfText(plan.body, schema, document) : breaksOf(schema, plan.body, document)
  const ofItem = plan.operation.template.endsWith('/batch') && die % 3 === 1
  const some = ofItem ? breaksOfItem(plan, document) : breaks
  const { rule, word, path, body } = some[Math.floor(die / 3) % some.length]!
  const named = word === 'failed_binding_json' ? undefined : path
  const sent = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
  return { rule, word, path: named, status: 400, token: lane.token, asked: { ...asked, body: sent } }
}

/** All or nothing, and the one operation breaks a rule: its refusal is the answer, its path led from the request's root. */
function breaksOfItem({ operation }: Plan, document: OpenApiDocument): Break[] {
  const name = operation.template.startsWith('/v1/people') ? 'PersonBody' : 'RecordBody'
  const schema = { $ref: `#/components/schemas/${name}` }
  const good = { external_id: 'nobody yet', attribute_values: { a: 1 } }
  return breaksOf(schema, good, document)
    .filter(({ path }) => path !== '')
    .map(({ path, body, ...rest }) => ({
      ...rest,
      path: `/operations/1/body${path}`,
      body: {
        atomic: true,
        operations: [
          { op: 'create', body: good },
          { op: 'create', body },
        ],
      },
    }))
}

const wrongParams: Record<string, string[]> = {
  external_id: ['%00', '%C0%80', '%FF', '%ED%A0%80', '%zz', '%2E', '%2e%2E', 'a%0Ab', 'x'.repeat(256), '%F0%9F%98'],
  stack_key: ['%00', '%C0%80', 'orders%FF', '%'],
  uuid: [
    'x',
    '%00',
    '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4',
    "'%20or%20'1'='1",
    '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f%00',
  ],
  record_id: ['x', '%00', 'g'.repeat(24), 'f'.repeat(25), '..%2F..%2Fx'],
  id: ['0', '-1', '1.0', '01', '1e3', '1000000000', 'x', '%31%00', '٣'.replace('٣', '%D9%A3')],
}

/** Words that are addresses of their own where an identifier might stand. */
function addressBreaks({ operation }: Plan, asked: Ask): Refused[] {
  const names = operation.params
  return names.flatMap(name =>
    wrongParams[name]!.map(wrong => {
      const segments = operation.template.split('/')
      const at = segments.indexOf(`{${name}}`)
      const path = asked.path.split('/').with(at, wrong).join('/')
      return {
        rule: `the parameter ${name}`,
        asked: { ...asked, path },
        token: '',
        status: 400,
        word: 'invalid_parameter',
        path: `/${name}`,
      }
    }),
  )
}

function headerBreaks({ operation }: Plan, asked: Ask, lane: TestTenant): Refused[] {
  const { scope, versioned, method } = operation
  if (scope === undefined) return [wrongMethod(asked, 405, 'invalid_parameter', 'PATCH')]
  const found: Refused[] = []
  const add = (rule: string, status: number, word: string, token: string, headers: Record<string, string> = {}) =>
    found.push({
      rule,
      asked: { ...asked, headers: { ...asked.headers, ...headers } },
      token,
      status,
      word,
      path: undefined,
    })
  add('no token', 401, 'unauthorized', '', {})
  add('a token cut short', 401, 'unauthorized', lane.token.slice(0, -2))
  add('a token of another kind', 401, 'unauthorized', '', { Authorization: `Basic ${lane.token}` })
  add('the scope', 403, 'forbidden', lane.tokenWithout.get(scope)!)
  add('a Content-Encoding', 415, 'invalid_parameter', lane.token, { 'Content-Encoding': 'gzip' })
  if (versioned && method !== 'GET')
    for (const tag of ['1', '"1', '"1" "2"', "'1'", '"a"b"', ','])
      add('If-Match', 400, 'invalid_parameter', lane.token, { 'If-Match': tag })
  found.push({ ...wrongMethod(asked, 405, 'invalid_parameter', 'OPTIONS'), token: lane.token })
  const long = { ...asked, path: `${asked.path}?${'x'.repeat(8_192)}` }
  found.push({
    rule: 'the length of the address',
    asked: long,
    token: lane.token,
    status: 414,
    word: 'invalid_parameter',
    path: undefined,
  })
  return found
}

const wrongMethod = (asked: Ask, status: number, word: string, method: string): Refused => ({
  rule: 'the method',
  asked: { ...asked, method },
  token: '',
  status,
  word,
  path: undefined,
})

const wrongQueries: [query: string, path: string | undefined][] = [
  ['a=1&a=2', '/a'],
  ['a[=1', undefined],
  ['a]=1', undefined],
  ['a[]=1', undefined],
  ['a[0]=1&a[2]=1', '/a'],
  ['a=1&a[b]=1', '/a/b'],
  ['a=%00', '/a'],
  ['a=%FF', '/a'],
  ['%00=1', undefined],
  ['__proto__=1', '/__proto__'],
  ['a[__proto__]=1', '/a/__proto__'],
  [`a${'[b]'.repeat(36)}=1`, undefined],
  ['nothing_of_the_kind=1', '/nothing_of_the_kind'],
]

/** The query string counts where there is no body. */
function queryBreaks({ operation }: Plan, asked: Ask): Refused[] {
  if (!operation.body) return []
  return wrongQueries.map(([query, path]) => ({
    rule: 'the query',
    asked: { method: asked.method, path: `${asked.path}?${query}`, headers: asked.headers },
    token: '',
    status: 400,
    word: 'invalid_parameter',
    path,
  }))
}

/** Sends it, and throws unless it is refused as it should be. What it left untouched, the caller looks after. */
export async function refuses(lane: TestTenant, { rule, asked, token, status, word, path }: Refused): Promise<Answer> {
  const authorized = token === '' && status !== 401 ? lane.token : token
  const answer = await lane.sender.ask(authorized, asked)
  const said = answer.body
  if (answer.status !== status || said.error !== word)
    broken(asked, answer, `broke ${rule}: should be ${status} ${word}`)
  if (path !== undefined && !said.details?.some(detail => detail.path === path))
    broken(asked, answer, `broke ${rule}: should name ${path}`)
  if ((said.errorstack === null) !== status < 500 || said.request_id !== answer.headers['x-request-id'])
    broken(asked, answer, 'the envelope of the error is not whole')
  return answer
}

/** Whether the document has anything to break in the body of an operation. */
export const hasBody = (operation: Operation, document: OpenApiDocument) =>
  operation.body !== undefined && resolved(operation.body, document).properties !== undefined

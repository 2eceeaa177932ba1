import fc from 'fast-check'
import type { OpenApiDocument } from '../../src/openapi/document.ts'
import { throwViolation } from './invariants.ts'
import { type Mutation, mutationsOf, textMutationsOf } from './mutations.ts'
import { type Operation, resolveSchema } from './operations.ts'
import { type Plan, planOf, requestOf } from './requests.ts'
import type { RawRequest, RawResponse } from './sender.ts'
import type { TestTenant } from './test-tenant.ts'

/** A request that breaks one rule, with the status, error code and path that the response must have. */
export type InvalidRequest = {
  rule: string
  request: RawRequest
  token: string
  status: number
  code: string
  path: string | undefined
}

/** Generates plans, each with a number that selects the rule to break. */
export function invalidPlanOf(
  operation: Operation,
  document: OpenApiDocument,
): fc.Arbitrary<{ plan: Plan; choice: number }> {
  return fc.record({ plan: planOf(operation, document), choice: fc.nat({ max: 1_000_000 }) }, { noNullPrototype: true })
}

/** Builds the request of a plan with one rule broken in the body, the path, the headers or the query. */
export function buildInvalidRequest(
  plan: Plan,
  choice: number,
  tenant: TestTenant,
  document: OpenApiDocument,
): InvalidRequest {
  const request = requestOf({ ...plan, asQuery: false }, tenant)
  const outsideBody = [
    ...addressMutations(plan, request),
    ...headerMutations(plan, request, tenant),
    ...queryMutations(plan, request),
  ]
  const { body: schema } = plan.operation
  if (!schema || !plan.body || choice % 4 === 0) return outsideBody[Math.floor(choice / 4) % outsideBody.length]!
  const draw = Math.floor(choice / 4)
  const mutations =
    draw % 3 === 0 ? textMutationsOf(plan.body, schema, document) : mutationsOf(schema, plan.body, document)
  const isItemMutation = /\/(people|{stack_key})\/batch$/.test(plan.operation.template) && draw % 3 === 1
  const candidates = isItemMutation ? itemMutationsOf(plan, document) : mutations
  const { rule, code, path, body } = candidates[Math.floor(draw / 3) % candidates.length]!
  const expectedPath = code === 'failed_binding_json' ? undefined : path
  const rawBody = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
  return { rule, code, path: expectedPath, status: 400, token: tenant.token, request: { ...request, body: rawBody } }
}

/** Returns mutations of one operation of an atomic batch. The batch is refused with that operation's error, at a path from the root. */
function itemMutationsOf({ operation }: Plan, document: OpenApiDocument): Mutation[] {
  const name = operation.template.startsWith('/v1/people') ? 'PersonBody' : 'RecordBody'
  const schema = { $ref: `#/components/schemas/${name}` }
  const validBody = { external_id: 'not created', attribute_values: { a: 1 } }
  return mutationsOf(schema, validBody, document)
    .filter(({ path }) => path !== '')
    .map(({ path, body, ...rest }) => ({
      ...rest,
      path: `/operations/1/body${path}`,
      body: {
        atomic: true,
        operations: [
          { op: 'create', body: validBody },
          { op: 'create', body },
        ],
      },
    }))
}

const wrongParams: Record<string, string[]> = {
  external_id: ['%00', '%C0%80', '%FF', '%ED%A0%80', '%zz', '%2E', '%2e%2E', 'a%0Ab', 'x'.repeat(256), '%F0%9F%98'],
  stack_key: ['%00', '%C0%80', 'orders%FF', '%'],
  segment_key: ['%00', '%C0%80', 'in_rome%FF', '%'],
  role_key: ['%00', '%C0%80', 'reader%FF', '%'],
  uuid: [
    'x',
    '%00',
    '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4',
    "'%20or%20'1'='1",
    '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f%00',
  ],
  session_id: ['x', '%00', '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4', '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f%00'],
  jti: ['x', '%00', '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4', '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f%00'],
  account_id: ['x', '%00', '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4', '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f%00'],
  key: ['%00', '%C0%80', 'newsletter%FF', '%'],
  address: ['%00', '%C0%80', '%FF', 'x'.repeat(256)],
  record_id: ['x', '%00', 'g'.repeat(24), 'f'.repeat(25), '..%2F..%2Fx'],
  consent_type_id: ['0', '-1', '1.0', '01', '1000000000', 'x', '%31%00'],
  channel: ['post', 'Email', 'email%20sms', '%00', '%FF'],
  tile: ['0', '0/0', '64/000', '0/000.p/0', '0/000.p/256', '%00', '0/%FF', 'entries', '..%2F..%2Fx'],
  index: ['-1', '1.0', '01', '1e3', 'x', '1000000000000000', '%31%00'],
  old_size: ['-1', '1.0', '00', '1e3', 'x', '9'.repeat(20)],
  import_id: ['%00', '%C0%80', '%FF', '%'],
  mapping_id: ['%00', '%C0%80', '%FF', '%'],
  job_id: ['%00', '%C0%80', '%FF', '%'],
  client_id: ['x', 'x.', '.Zm9v', 'X.Zm9v', 'x.Zm9v%20', 'x.%31%00'],
  version: ['0', '-1', '1.0', '1000000000', 'x'],
  id: ['0', '-1', '1.0', '01', '1e3', '1000000000', 'x', '%31%00', '٣'.replace('٣', '%D9%A3')],
}

/** Requests with an invalid path parameter. */
function addressMutations({ operation }: Plan, request: RawRequest): InvalidRequest[] {
  const names = operation.params
  return names.flatMap(name =>
    wrongParams[name]!.map(invalidValue => {
      const segments = operation.template.split('/')
      const index = segments.indexOf(`{${name}}`)
      const path = request.path.split('/').with(index, invalidValue).join('/')
      return {
        rule: `the parameter ${name}`,
        request: { ...request, path },
        token: '',
        status: 400,
        code: 'invalid_parameter',
        path: `/${name}`,
      }
    }),
  )
}

function headerMutations({ operation }: Plan, request: RawRequest, tenant: TestTenant): InvalidRequest[] {
  const { scope, isVersioned, method } = operation
  if (scope === undefined) return [wrongMethod(request, 405, 'invalid_parameter', 'PATCH')]
  const mutations: InvalidRequest[] = []
  const addMutation = (
    rule: string,
    status: number,
    code: string,
    token: string,
    headers: Record<string, string> = {},
  ) =>
    mutations.push({
      rule,
      request: { ...request, headers: { ...request.headers, ...headers } },
      token,
      status,
      code,
      path: undefined,
    })
  addMutation('no token', 401, 'unauthorized', '', {})
  addMutation('a truncated token', 401, 'unauthorized', tenant.token.slice(0, -2))
  addMutation('another authentication scheme', 401, 'unauthorized', '', { Authorization: `Basic ${tenant.token}` })
  addMutation('a missing scope', 403, 'forbidden', tenant.tokenWithout.get(scope)!)
  addMutation('a Content-Encoding', 415, 'invalid_parameter', tenant.token, { 'Content-Encoding': 'gzip' })
  if (isVersioned && method !== 'GET')
    for (const tag of ['1', '"1', '"1" "2"', "'1'", '"a"b"', ','])
      addMutation('If-Match', 400, 'invalid_parameter', tenant.token, { 'If-Match': tag })
  mutations.push({ ...wrongMethod(request, 405, 'invalid_parameter', 'OPTIONS'), token: tenant.token })
  const longRequest = { ...request, path: `${request.path}?${'x'.repeat(8_192)}` }
  mutations.push({
    rule: 'the length of the path',
    request: longRequest,
    token: tenant.token,
    status: 414,
    code: 'invalid_parameter',
    path: undefined,
  })
  return mutations
}

const wrongMethod = (request: RawRequest, status: number, code: string, method: string): InvalidRequest => ({
  rule: 'the method',
  request: { ...request, method },
  token: '',
  status,
  code,
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

/** Requests with an invalid query and no body. kith reads the query only if there is no body. */
function queryMutations({ operation }: Plan, request: RawRequest): InvalidRequest[] {
  if (!operation.body) return []
  const wrong = operation.hasDryRun ? [...wrongQueries, ...wrongDryRuns] : wrongQueries
  return wrong.map(([query, path]) => ({
    rule: 'the query',
    request: { method: request.method, path: `${request.path}?${query}`, headers: request.headers },
    token: '',
    status: 400,
    code: 'invalid_parameter',
    path,
  }))
}

const wrongDryRuns: typeof wrongQueries = [
  ['dry_run=maybe', '/dry_run'],
  ['dry_run=true&dry_run=true', '/dry_run'],
  ['dry_run[0]=true', '/dry_run[0]'],
  ['dryRun=true', '/dryRun'],
]

/** Sends the request and throws unless it is refused as expected. The caller checks that the stored data are unchanged. */
export async function assertRefused(
  tenant: TestTenant,
  { rule, request, token, status, code, path }: InvalidRequest,
): Promise<RawResponse> {
  const authorized = token === '' && status !== 401 ? tenant.token : token
  const response = await tenant.sender.send(authorized, request)
  const responseBody = response.body
  if (response.status !== status || responseBody.error !== code)
    throwViolation(request, response, `broke ${rule}: expected ${status} ${code}`)
  if (path !== undefined && !responseBody.details?.some(detail => detail.path === path))
    throwViolation(request, response, `broke ${rule}: expected a detail with path ${path}`)
  if (
    (responseBody.errorstack === null) !== status < 500 ||
    responseBody.request_id !== response.headers['x-request-id']
  )
    throwViolation(request, response, 'the error envelope is incomplete')
  return response
}

/** Returns whether the body of an operation has properties that can be mutated. */
export const hasBody = (operation: Operation, document: OpenApiDocument) =>
  operation.body !== undefined && resolveSchema(operation.body, document).properties !== undefined

import { describe, expect, it } from 'vitest'
import { createAjv, documentedCodes } from '../../test/support/contract.ts'
import { openApiDocument, routeTable } from '../process/app.ts'
import { loadConfig } from '../process/config.ts'
import { scopes } from '../route/scopes.ts'
import { errorStatuses } from '../values/errors.ts'
import { Type } from '../values/json-schema.ts'
import { documentOf } from './document.ts'
import type { JsonSchema } from './shapes.ts'

const services = { config: loadConfig({}) }
const rows = routeTable(services)
const document = openApiDocument(services)

type Media = { schema: JsonSchema; example?: unknown; examples?: Record<string, { value: unknown }> }
type Content = { content: Record<string, Media> }
type Operation = {
  operationId: string
  tags: string[]
  description?: string
  security: Record<string, string[]>[]
  parameters?: { $ref: string }[]
  requestBody?: Content & { required: boolean }
  responses: Record<string, Partial<Content> & { $ref?: string; headers?: object }>
}
type OperationEntry = { address: string; pointer: string; operation: Operation }

const operations: OperationEntry[] = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    address: `${method.toUpperCase()} ${path}`,
    pointer: `/paths/${path.replaceAll('/', '~1')}/${method}`,
    operation: operation as Operation,
  })),
)
const operationAt = (address: string) => operations.find(entry => entry.address === address)!.operation

/** The error codes that a response documents. */
function codesAt(operation: Operation, status: number): string[] {
  const name = operation.responses[status]?.$ref?.split('/').at(-1)
  if (name === undefined) return []
  return documentedCodes(document.components.responses![name]!)
}

describe('the OpenAPI document', () => {
  it('has every row of the route table, and no other path below /v1', () => {
    const documented = operations.map(({ address }) => address)
    expect(documented.filter(address => address.includes(' /v1')).sort()).toEqual(
      // This endpoint has the signature of a mail provider instead of the token.
      [...rows.map(({ method, path }) => `${method} ${path}`), 'POST /v1/deliverability/in/{key}'].sort(),
    )
    expect(documented.filter(address => !address.includes(' /v1')).sort()).toEqual([
      'GET /.well-known/jwks.json',
      'GET /asyncapi.json',
      'GET /healthz',
      'GET /metrics',
      'GET /openapi.json',
      'GET /readyz',
      'POST /oauth/token',
    ])
  })

  it('gives each operation a unique name in camelCase', () => {
    const names = operations.map(({ operation }) => operation.operationId)
    expect(new Set(names).size).toBe(names.length)
    for (const name of names) expect(name).toMatch(/^[a-z]+([A-Z][a-z]+)*$/)
  })

  it('puts every operation under one described tag, and describes no other', () => {
    const described = (document.tags as { name: string }[]).map(({ name }) => name)
    expect(new Set(operations.flatMap(({ operation }) => operation.tags))).toEqual(new Set(described))
    for (const { operation } of operations) expect(operation.tags).toHaveLength(1)
  })

  it('names the scope of every row, and requires no token elsewhere', () => {
    for (const row of rows) {
      const { security, description } = operationAt(`${row.method} ${row.path}`)
      expect(security).toEqual([{ bearer: [row.scope] }])
      expect(description).toContain(`\`${row.scope}\``)
      expect(scopes).toContain(row.scope)
    }
    expect(operationAt('GET /healthz').security).toEqual([])
  })

  it('has every error code with each of its statuses', () => {
    const documented = operations.flatMap(({ operation }) =>
      Object.keys(operation.responses).flatMap(status =>
        codesAt(operation, Number(status)).map(code => `${code} ${status}`),
      ),
    )
    const all = Object.entries(errorStatuses).flatMap(([code, statuses]) => statuses.map(status => `${code} ${status}`))
    expect([...new Set(documented)].sort()).toEqual(all.sort())
  })

  it('has the special statuses of PATCH by external identifier, and only there', () => {
    const quirky = operationAt('PATCH /v1/people/{external_id}')
    expect(quirky.responses[404]).toBeUndefined()
    expect(codesAt(quirky, 409)).toEqual(['invalid_parameter'])
    expect(codesAt(quirky, 500)).toEqual(['not_found', 'operation_failed'])
    expect(codesAt(quirky, 400)).toContain('duplicate_entry')
    const usual = operationAt('PATCH /v1/people/internal/{uuid}')
    expect([codesAt(usual, 404), codesAt(usual, 409), codesAt(usual, 500)]).toEqual([
      ['not_found'],
      ['duplicate_entry', 'invalid_parameter'],
      ['operation_failed'],
    ])
  })

  it('has 405 for records of event stacks, 412 for writes of one entity, and the headers of responses', () => {
    const patch = operationAt('PATCH /v1/stacks/{stack_key}/{external_id}')
    expect(codesAt(patch, 405)).toEqual(['invalid_parameter'])
    expect(codesAt(patch, 412)).toEqual(['invalid_parameter'])
    expect(patch.parameters).toContainEqual({ $ref: '#/components/parameters/If-Match' })
    expect(Object.keys(patch.responses[200]!.headers!)).toEqual([
      'X-Request-Id',
      'ETag',
      'Preference-Applied',
      'Idempotency-Replayed',
      'X-Kith-Sequence',
      'X-Kith-Warning',
    ])
    const create = operationAt('POST /v1/people')
    expect(Object.keys(create.responses[201]!.headers!)).toEqual([
      'X-Request-Id',
      'ETag',
      'Idempotency-Replayed',
      'X-Kith-Sequence',
      'X-Kith-Warning',
      'Location',
    ])
    expect(operationAt('GET /v1/people/{external_id}').responses[412]).toBeUndefined()
  })

  it('has the Idempotency-Key parameter on every write except DELETE, imports and those that show a secret', () => {
    const offered = { $ref: '#/components/parameters/Idempotency-Key' }
    for (const { method, path, scope, streams = false, showsSecret = false } of rows) {
      const { parameters, responses } = operationAt(`${method} ${path}`)
      const takes = scope.endsWith(':write') && !['GET', 'DELETE'].includes(method) && !streams && !showsSecret
      expect([path, parameters?.some(each => JSON.stringify(each) === JSON.stringify(offered))]).toEqual([path, takes])
      expect([path, responses[422] !== undefined]).toEqual([path, takes])
    }
  })

  it('has no response under an Idempotency-Key that shows a secret', () => {
    const shows = ({ answer }: (typeof rows)[number]) => /"(client_)?(secret|token)":\{/.test(JSON.stringify(answer))
    const showing = rows.filter(row => row.method !== 'GET' && shows(row))
    expect(showing.map(({ operationId }) => operationId).sort()).toEqual([
      'createClient',
      'createToken',
      'createWebhook',
      'rotateWebhookSecret',
    ])
    for (const row of showing) expect(row).toMatchObject({ showsSecret: true })
  })

  it('has the pattern of a channel in a path, and of If-Match', () => {
    const patternOf = (name: string) => (document.components.parameters![name]!.schema as { pattern: string }).pattern
    expect(['email', 'sms', 'fax', 'email '].filter(text => new RegExp(patternOf('channel')).test(text))).toEqual([
      'email',
      'sms',
    ])
    expect(
      ['*', '"3"', 'W/"3"', '"1", "2"', '3', ''].filter(text => new RegExp(patternOf('If-Match')).test(text)),
    ).toEqual(['*', '"3"', 'W/"3"', '"1", "2"'])
  })

  it('makes a body optional only if a request without one has defaults', () => {
    expect(operationAt('PATCH /v1/people/{external_id}').requestBody!.required).toBe(true)
    expect(operationAt('POST /v1/people/list').requestBody!.required).toBe(false)
  })

  it('names schemas by their titles, and writes nullable types as OpenAPI 3.1 does', () => {
    const { schemas } = document.components
    expect(Object.keys(schemas!)).toEqual(
      expect.arrayContaining(['Person', 'PersonBody', 'ConsentAssignment', 'StackRecord', 'RecordBody', 'Error']),
    )
    const body = schemas!.PersonBody!.properties as Record<string, JsonSchema>
    expect(body.first_name!.type).toEqual(['string', 'null'])
    expect(JSON.stringify(document)).not.toContain('"nullable"')
    const request = operationAt('PUT /v1/people/{external_id}').requestBody!.content['application/json']
    expect(request!.schema).toEqual({ $ref: '#/components/schemas/PersonBody' })
  })
})

/** The media types of responses that are not JSON. */
const plainTypes = ['text/plain; charset=utf-8', 'application/octet-stream']

describe('the examples of the document', () => {
  const ajv = createAjv(document)
  const refuse = (pointer: string, value: unknown) => {
    const validate = ajv.compile({ $ref: `contract#${pointer}` })
    return validate(value) ? [] : [`${pointer}: ${ajv.errorsText(validate.errors)}`]
  }
  const refuseMedia = (pointer: string, { schema, example, examples = {} }: Media) => {
    const values = [...Object.values(examples).map(({ value }) => value), ...(example === undefined ? [] : [example])]
    const inLines = values.flatMap(value => String(value).trimEnd().split('\n'))
    return 'contentSchema' in schema
      ? inLines.flatMap(line => refuse(`${pointer}/schema/contentSchema`, JSON.parse(line)))
      : values.flatMap(value => refuse(`${pointer}/schema`, value))
  }
  const typeOf = (part: Partial<Content> | undefined) =>
    ['application/json', 'application/x-ndjson', ...plainTypes].find(type => part?.content?.[type])
  const media = (part: Partial<Content> | undefined) => part?.content?.[typeOf(part) ?? '']
  const innerOf = (part: Partial<Content> | undefined) => `/content/${typeOf(part)?.replace('/', '~1')}`

  it('are valid for the schemas that contain them', () => {
    const faults = Object.entries(document.components.schemas!).flatMap(([name, { examples = [] }]) =>
      (examples as unknown[]).flatMap(example => refuse(`/components/schemas/${name}`, example)),
    )
    expect(faults).toEqual([])
  })

  it('exist for every request and response of a row, and are valid', () => {
    for (const { operation, pointer, address } of operations.filter(entry => entry.address.includes(' /v1'))) {
      const request = media(operation.requestBody)
      if (request) {
        expect(request.example, address).toBeDefined()
        expect(refuseMedia(`${pointer}/requestBody${innerOf(operation.requestBody)}`, request)).toEqual([])
      }
      for (const [status, response] of Object.entries(operation.responses).filter(([, { $ref }]) => !$ref)) {
        if (status === '304') continue
        expect(media(response)!.example, `${address} ${status}`).toBeDefined()
        expect(refuseMedia(`${pointer}/responses/${status}${innerOf(response)}`, media(response)!)).toEqual([])
      }
    }
  })

  it('exist for every error response, and are valid', () => {
    for (const [name, response] of Object.entries(document.components.responses!)) {
      const { examples } = media(response as Content)!
      expect(Object.keys(examples!).length).toBeGreaterThan(0)
      expect(
        refuseMedia(`/components/responses/${name}${innerOf(response as Content)}`, media(response as Content)!),
      ).toEqual([])
    }
  })
})

const oapiCodegenNames = [
  'client',
  'clientinterface',
  'clientoption',
  'clientwithresponses',
  'httprequestdoer',
  'requesteditorfn',
]

/**
 * Names of types and functions that generators create besides the models. They are in lower case, because file systems
 * and C# ignore case.
 */
const reservedNames = new Set([
  ...oapiCodegenNames,
  // The names of openapi-generator for python, go, java and csharp.
  ...['apiclient', 'apiresponse', 'apiexception', 'apitypeerror', 'apivalueerror', 'apikeyerror', 'apiattributeerror'],
  ...[
    'configuration',
    'openapiexception',
    'rest',
    'baseapi',
    'apicallback',
    'pair',
    'json',
    'stringutil',
    'authentication',
  ],
  ...['serverconfiguration', 'serverconfigurations', 'servervariable', 'genericopenapierror', 'basicauth', 'apikey'],
  ...[
    'cacheexpires',
    'mappednullable',
    'isnil',
    'progressrequestbody',
    'progressresponsebody',
    'gzipresponseinterceptor',
  ],
  ...['abstractopenapischema', 'httpbearerauth', 'httpbasicauth', 'apikeyauth', 'oauth', 'oauthflow'],
  ...['apifactory', 'bearertoken', 'clientutils', 'cookiecontainer', 'exceptioneventargs', 'apiresponseeventargs'],
  ...[
    'fileparameter',
    'hostconfiguration',
    'option',
    'ratelimitprovider',
    'tokenbase',
    'tokencontainer',
    'tokenprovider',
  ],
  ...['version', 'task', 'exception', 'object', 'string', 'list', 'map', 'set', 'file', 'date', 'enum'],
  // The names of Kiota.
  ...['baserequestbuilder', 'requestinformation', 'requestconfiguration', 'requestadapter', 'parsable', 'parsenode'],
  ...['serializationwriter', 'additionaldataholder', 'backingstore', 'untypednode', 'models'],
])

/** The prefixes of functions and types that Go generators derive from a model. */
const constructors = ['New', 'Nullable', 'NewNullable', 'Ptr', 'As']

describe('the models of a generated client', () => {
  const isReference = (schema: JsonSchema) => typeof schema.$ref === 'string'
  const contents = (part: Partial<Content> | undefined) =>
    Object.values(part?.content ?? {}).map(({ schema }) => schema)

  /** The object schemas within a schema that are not components. */
  function inlineObjects(value: unknown, place: string): string[] {
    if (typeof value !== 'object' || value === null) return []
    const { examples: _, example: __, ...rest } = value as JsonSchema
    const isInline = [rest.type].flat().includes('object') || (rest.additionalProperties ?? false) !== false
    const inner = Object.entries(rest).flatMap(([key, part]) => inlineObjects(part, `${place}/${key}`))
    return isInline ? [place, ...inner] : inner
  }

  it('have names: every object in a request, a response and a component is a component', () => {
    const bodies = operations.flatMap(({ address, operation: { requestBody, responses } }) =>
      [requestBody, ...Object.values(responses)].flatMap(part => inlineObjects(contents(part), address)),
    )
    const errors = Object.entries(document.components.responses!).flatMap(([name, response]) =>
      inlineObjects(contents(response as Content), name),
    )
    const components = Object.entries(document.components.schemas!).flatMap(([name, { type: _, ...schema }]) =>
      Object.entries(schema).flatMap(([keyword, part]) =>
        keyword === 'properties'
          ? Object.entries(part as object).flatMap(([key, inner]) => inlineObjects(inner, `${name}.${key}`))
          : inlineObjects(part, `${name}/${keyword}`),
      ),
    )
    expect([...bodies, ...errors, ...components]).toEqual([])
  })

  it('have names that are different also as the names of classes and files', () => {
    const names = Object.keys(document.components.schemas!)
    expect(new Set(names.map(name => name.toLowerCase())).size).toBe(names.length)
    for (const name of names) expect(name).toMatch(/^[A-Z][A-Za-z]*$/)
  })

  it('have names that the generators use for nothing else', () => {
    const { schemas, parameters, responses } = document.components
    const names = Object.keys(schemas!)
    const words = (name: string) => name.split(/[-_ ]/).map(word => word.charAt(0).toUpperCase() + word.slice(1))
    const isOf = (name: string) =>
      operations.some(({ operation: { operationId } }) => {
        const prefix = words(operationId)[0]!
        return ['Response', 'Params', 'JSONBody', 'JSONRequestBody', 'FormdataBody', 'FormdataRequestBody'].some(
          suffix => name === prefix + suffix,
        )
      })
    const others = new Set([...Object.keys(parameters!), ...Object.keys(responses!)].map(name => words(name).join('')))
    const isMadeOf = (name: string) =>
      constructors.some(prefix => name.startsWith(prefix) && names.includes(name.slice(prefix.length)))
    const isApi = (name: string) => /^Api\w*Request$|Api(Service)?$|RequestBuilder$/.test(name)
    expect(names.filter(name => reservedNames.has(name.toLowerCase()))).toEqual([])
    expect(names.filter(name => others.has(name))).toEqual([])
    expect(names.filter(name => isOf(name) || isMadeOf(name) || isApi(name))).toEqual([])
  })

  it('have no value of an enum that oapi-codegen would name as its own types', () => {
    const valuesOf = (value: unknown): unknown[] => {
      if (typeof value !== 'object' || value === null) return []
      const { examples: _, example: __, enum: values = [], 'x-enum-varnames': named, ...rest } = value as JsonSchema
      const own = Array.isArray(value) ? value.flatMap(valuesOf) : Object.values(rest).flatMap(valuesOf)
      return Array.isArray(values) ? [...own, ...((named ?? values) as unknown[])] : [...own, ...valuesOf(values)]
    }
    const values = valuesOf(document).map(value => String(value).toLowerCase())
    expect(values.filter(value => oapiCodegenNames.includes(value))).toEqual([])
  })

  it('have integers of 64 bits, unless the maximum fits into 32', () => {
    const integersOf = (value: unknown): JsonSchema[] => {
      if (typeof value !== 'object' || value === null) return []
      const { examples: _, example: __, ...rest } = value as JsonSchema
      const isInteger = [rest.type].flat().includes('integer') && !('enum' in rest) && !('const' in rest)
      return [...(isInteger ? [rest] : []), ...Object.values(rest).flatMap(integersOf)]
    }
    const isWide = ({ format, maximum = Infinity }: JsonSchema) => format === 'int64' || Number(maximum) < 2 ** 31
    const { headers: _, ...components } = document.components
    expect(integersOf({ components, paths: document.paths }).filter(schema => !isWide(schema))).toEqual([])
  })

  it('have one for all errors: every error response is a reference to a response with the schema Error', () => {
    for (const { address, operation } of operations)
      for (const [status, response] of Object.entries(operation.responses)) {
        const isOwn = address === 'POST /oauth/token' && ['400', '401'].includes(status)
        expect([address, status, isReference(response)]).toEqual([address, status, Number(status) >= 400 && !isOwn])
      }
    for (const response of Object.values(document.components.responses!))
      expect(contents(response as Content)).toEqual([{ $ref: '#/components/schemas/Error' }])
  })

  it('have a stream as text, with the schema of a line', () => {
    const isNamed = (line: JsonSchema) =>
      isReference(line) || Boolean((line.anyOf as JsonSchema[] | undefined)?.every(isReference))
    const streams = operations.flatMap(({ address, operation: { requestBody, responses } }) =>
      [requestBody, ...Object.values(responses)].flatMap(part => {
        const schema = part?.content?.['application/x-ndjson']?.schema
        return schema ? [[address, schema.type, isNamed(schema.contentSchema as JsonSchema)]] : []
      }),
    )
    expect(streams.length).toBeGreaterThan(0)
    for (const [address, type, hasNames] of streams)
      expect([address, type, hasNames]).toEqual([address, 'string', true])
  })
})

it('building a document fails if two different schemas have the same title', () => {
  const info = { title: 'a', version: '1', summary: 'b', description: 'c' }
  const open = (operationId: string, answer: ReturnType<typeof Type.Object>) =>
    ({ path: `/${operationId}`, operationId, summary: '', tag: 'a', answer, enveloped: true }) as const
  const [one, other] = [Type.Object({ a: Type.String() }, { title: 'A' }), Type.Object({}, { title: 'A' })]
  expect(() => documentOf({ info, tags: [], rows: [], openRows: [open('a', one), open('b', other)] })).toThrow(
    'two different schemas have the title A',
  )
})

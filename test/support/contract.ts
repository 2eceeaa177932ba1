import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { formats } from '../../src/formats.ts'
import type { OpenApiDocument } from '../../src/openapi/document.ts'

/** One answer of the service, as a test received it. */
export type Answered = { method: string; path: string; status: number; body: unknown }

/** An Ajv that knows the formats of the house and holds a document, whose parts are `contract#/…`. */
export function ajvOf(document: OpenApiDocument): Ajv2020 {
  const ajv = new Ajv2020({ strict: true, strictTypes: false, allowUnionTypes: true, allErrors: true })
  for (const [name, { holds }] of Object.entries(formats)) ajv.addFormat(name, { type: 'string', validate: holds })
  const words = ['openapi', 'info', 'servers', 'tags', 'paths', 'components']
  return ajv.addVocabulary(words).addSchema({ ...(close(document) as OpenApiDocument), $id: 'contract' })
}

/** Answers of today hold what is documented and nothing else; only clients must be ready for more. */
function close(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(close)
  if (typeof value !== 'object' || value === null) return value
  const closed = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, close(inner)]))
  const isOpen = closed.type === 'object' && closed.properties && !('additionalProperties' in closed)
  return isOpen ? { ...closed, additionalProperties: false } : closed
}

/** Throws an Error that tells what an answer has that the document does not. */
export function contractOf(makeDocument: () => OpenApiDocument): (answered: Answered) => void {
  let held: { document: OpenApiDocument; ajv: Ajv2020; validators: Map<string, ValidateFunction> } | undefined
  return answered => {
    if (answered.method === 'HEAD') return
    if (!held) {
      const document = makeDocument()
      held = { document, ajv: ajvOf(document), validators: new Map() }
    }
    const { document, ajv, validators } = held
    const reference = referenceTo(document, answered)
    const validate = validators.get(reference) ?? ajv.compile({ $ref: `contract#${reference}` })
    validators.set(reference, validate)
    if (validate(answered.body)) return
    const { method, path, status, body } = answered
    const faults = ajv.errorsText(validate.errors, { dataVar: 'body' })
    throw new Error(
      `${method} ${path} answered ${status} with what the document does not say: ${faults}\n${JSON.stringify(body)}`,
    )
  }
}

const errorSchema = '/components/schemas/Error'

/** A JSON Pointer to the schema of an answer. What is no operation is refused, and a refusal is an error. */
function referenceTo({ paths, components }: OpenApiDocument, { method, path, status }: Answered): string {
  // A method that a literal address does not have may be the parameter's: GET /v1/people/list reads a person.
  const withMethod = Object.keys(paths).filter(template => paths[template]![method.toLowerCase()])
  const template = templateOf(withMethod, path)
  const operation = template === undefined ? undefined : paths[template]![method.toLowerCase()]
  if (template === undefined || operation === undefined) {
    if (status >= 400) return errorSchema
    throw new Error(`${method} ${path} answered ${status}, but the document has no such operation`)
  }
  const response = (operation.responses as Record<number, { $ref?: string; content?: object }>)[status]
  if (!response) throw new Error(`${method} ${path} answered ${status}, which ${template} does not document`)
  const [contentType = 'application/json'] = Object.keys(response.content ?? {})
  const inner = `/content/${contentType.replace('/', '~1')}/schema`
  if (response.$ref === undefined)
    return `/paths/${template.replaceAll('~', '~0').replaceAll('/', '~1')}/${method.toLowerCase()}/responses/${status}${inner}`
  const name = response.$ref.slice('#/components/responses/'.length)
  if (!components.responses?.[name]) throw new Error(`the document refers to ${response.$ref}, which is not there`)
  return `/components/responses/${name}${inner}`
}

/** The template that an address is of: where two fit, a literal segment goes before a parameter. */
export function templateOf(templates: string[], address: string): string | undefined {
  const segments = address.split('?')[0]!.split('/')
  const isParameter = (segment: string) => segment.startsWith('{')
  const fitting = templates.filter(template => {
    const own = template.split('/')
    return (
      own.length === segments.length &&
      own.every((segment, index) => (isParameter(segment) ? segments[index] !== '' : segment === segments[index]))
    )
  })
  const rank = (template: string) =>
    template
      .split('/')
      .map(segment => (isParameter(segment) ? '1' : '0'))
      .join('')
  return fitting.sort((a, b) => rank(a).localeCompare(rank(b)))[0]
}

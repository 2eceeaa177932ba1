// Finds parts of a release's OpenAPI document that a client may rely on and that a later document no longer has.

type Schema = { [keyword: string]: unknown }
type Document = { paths: Record<string, Record<string, Operation>>; components: Record<string, Record<string, Schema>> }
type Operation = {
  operationId: string
  parameters?: Schema[]
  requestBody?: { required?: boolean; content: Content }
  responses: Record<string, { $ref?: string; content?: Content }>
}
type Content = Record<string, { schema: Schema }>
type Direction = 'request' | 'response'

/**
 * Returns a line for each change between two documents that can break a client of the first: an operation, a parameter, a member or a
 * media type that is gone, a request that is refused now, a response of another shape. A value that an enum of a response gains is none,
 * because docs/promise.md lets the service add it.
 */
export function findBreakingChanges(before: Document, after: Document): string[] {
  const found: string[] = []
  for (const [path, operations] of Object.entries(before.paths))
    for (const [method, operation] of Object.entries(operations)) {
      const now = after.paths[path]?.[method]
      const place = `${method.toUpperCase()} ${path}`
      if (now) found.push(...compareOperations(place, { before, after }, operation, now))
      else found.push(`${place} is gone`)
    }
  return found
}

type Documents = { before: Document; after: Document }

function compareOperations(place: string, documents: Documents, before: Operation, after: Operation): string[] {
  const found: string[] = []
  if (before.operationId !== after.operationId)
    found.push(`${place}: operationId ${before.operationId} is now ${after.operationId}`)
  const compare = (where: string, direction: Direction, a: Schema, b: Schema) =>
    found.push(...new Comparison(documents, direction).compare(`${place} ${where}`, a, b))
  const compareContents = (where: string, direction: Direction, a: Content, b: Content = {}) => {
    for (const [type, { schema }] of Object.entries(a))
      if (b[type]) compare(`${where} ${type}`, direction, schema, b[type].schema)
      else found.push(`${place}: ${where} has no ${type}`)
  }
  const parametersOf = (document: Document, { parameters = [] }: Operation) =>
    new Map(parameters.map(each => resolve(document, each)).map(each => [`${each.in} parameter ${each.name}`, each]))
  const earlier = parametersOf(documents.before, before)
  const later = parametersOf(documents.after, after)
  for (const [name, parameter] of earlier) {
    const now = later.get(name)
    if (!now) found.push(`${place}: the ${name} is gone`)
    else compare(name, 'request', parameter.schema as Schema, now.schema as Schema)
  }
  for (const [name, { required }] of later)
    if (required && !earlier.get(name)?.required) found.push(`${place}: the ${name} is required now`)
  if (after.requestBody?.required && !before.requestBody?.required) found.push(`${place}: the body is required now`)
  compareContents('body', 'request', before.requestBody?.content ?? {}, after.requestBody?.content)
  for (const [status, response] of Object.entries(before.responses).filter(([status]) => status.startsWith('2'))) {
    if (after.responses[status])
      compareContents(status, 'response', response.content ?? {}, after.responses[status].content)
    else found.push(`${place}: the status ${status} is gone`)
  }
  return found
}

function resolve(document: Document, schema: Schema): Schema {
  if (typeof schema.$ref !== 'string') return schema
  const [, kind, name] = /^#\/components\/(\w+)\/(.+)$/.exec(schema.$ref)!
  return document.components[kind!]![name!]!
}

const typesOf = ({ type }: Schema): string[] => [type ?? []].flat() as string[]
const limits = [
  ['maxLength', 1],
  ['maximum', 1],
  ['maxItems', 1],
  ['maxProperties', 1],
  ['minLength', -1],
  ['minimum', -1],
  ['minItems', -1],
  ['minProperties', -1],
] as const

/** Compares the schemas of one place, and of all places below it. */
class Comparison {
  readonly documents: Documents
  readonly direction: Direction
  /** The pairs of named schemas on the way here, because a schema may contain itself. */
  private readonly open = new Set<string>()

  constructor(documents: Documents, direction: Direction) {
    this.documents = documents
    this.direction = direction
  }

  compare(place: string, a: Schema, b: Schema): string[] {
    const pair = `${a.$ref} ${b.$ref}`
    if (a.$ref && b.$ref) {
      if (this.open.has(pair)) return []
      this.open.add(pair)
    }
    const found = this.compareResolved(place, resolve(this.documents.before, a), resolve(this.documents.after, b))
    this.open.delete(pair)
    return found
  }

  private compareResolved(place: string, a: Schema, b: Schema): string[] {
    if (a.anyOf || b.anyOf) return this.compareChoices(place, alternativesOf(a), alternativesOf(b))
    return [
      ...this.compareValues(place, a, b),
      ...this.compareMembers(place, a, b),
      ...(a.items && b.items ? this.compare(`${place}[]`, a.items as Schema, b.items as Schema) : []),
    ]
  }

  /** Every choice that a client may send must be accepted by a later one, and every one that it may get must be an earlier one. */
  private compareChoices(place: string, a: Schema[], b: Schema[]): string[] {
    const isRequest = this.direction === 'request'
    const fits = (x: Schema, y: Schema) => this.compare(place, x, y).length === 0
    const lost = isRequest ? a.filter(x => !b.some(y => fits(x, y))) : b.filter(y => !a.some(x => fits(x, y)))
    return lost.map(each => `${place}: ${isRequest ? 'no longer takes' : 'may now be'} ${nameOf(each)}`)
  }

  private compareValues(place: string, a: Schema, b: Schema): string[] {
    const isRequest = this.direction === 'request'
    const [narrow, wide] = isRequest ? [a, b] : [b, a]
    const found: string[] = []
    const types = typesOf(wide)
    const others = typesOf(narrow).filter(
      type => types.length > 0 && !types.includes(type) && !(type === 'integer' && types.includes('number')),
    )
    if (others.length > 0 || (typesOf(narrow).length === 0 && types.length > 0))
      found.push(`${place}: type ${typesOf(a)} is now ${typesOf(b)}`)
    if (!isRequest) return found
    if (b.enum && (!a.enum || (a.enum as unknown[]).some(value => !(b.enum as unknown[]).includes(value))))
      found.push(`${place}: no longer takes all of ${JSON.stringify(a.enum ?? typesOf(a))}`)
    if (b.const !== undefined && b.const !== a.const) found.push(`${place}: must be ${JSON.stringify(b.const)} now`)
    if (b.pattern !== undefined && b.pattern !== a.pattern) found.push(`${place}: has another pattern`)
    for (const [limit, sign] of limits) {
      const [was, is] = [a[limit], b[limit]] as [number | undefined, number | undefined]
      if (is !== undefined && (was === undefined || sign * (was - is) > 0))
        found.push(`${place}: ${limit} is now ${is}`)
    }
    return found
  }

  private compareMembers(place: string, a: Schema, b: Schema): string[] {
    const [earlier, later] = [a.properties ?? {}, b.properties ?? {}] as [
      Record<string, Schema>,
      Record<string, Schema>,
    ]
    const [was, is] = [a.required ?? [], b.required ?? []] as [string[], string[]]
    const found: string[] = []
    for (const [name, schema] of Object.entries(earlier))
      if (later[name]) found.push(...this.compare(`${place}.${name}`, schema, later[name]))
      else if (this.direction === 'response' || b.additionalProperties === false) found.push(`${place}.${name} is gone`)
    if (this.direction === 'request')
      found.push(...is.filter(name => !was.includes(name)).map(name => `${place}.${name} is required now`))
    else
      found.push(
        ...was.filter(name => later[name] && !is.includes(name)).map(name => `${place}.${name} may be absent now`),
      )
    return found
  }
}

const alternativesOf = (schema: Schema): Schema[] => (schema.anyOf as Schema[] | undefined) ?? [schema]
const nameOf = ({ $ref, type, const: value }: Schema) => String($ref ?? value ?? type).replace(/^.*\//, '')

import { pointer, refuse } from '../../values/errors.ts'
import { coerceText } from '../../values/scalars.ts'
import { decodePercent, isAscii, keyFault, textFault } from './trim.ts'

type Node = Map<string, Node | string>

/**
 * Parses a query string (without its question mark) in bracket form: `attribute_values[city]=Rome`, `tags[0]=a`. Every
 * leaf is a string. Keys 0 … n-1 make an array, unless the schema requires an object there. A name may also be repeated
 * if its value is an array of plain values: `tag=a&tag=b`. Throws a Fault of 400 for an ambiguous query: any other
 * duplicate name, a value that is also an object, a gap in the indexes, unbalanced or empty brackets. Malformed
 * escapes, NUL, `__proto__` and nesting deeper than `jsonDepth` are refused too.
 */
export function parseQuery(
  queryString: string,
  limits: { jsonDepth: number },
  schema: unknown,
): Record<string, unknown> {
  const root: Node = new Map()
  const counts = new Map<string, number>()
  for (const pair of queryString.split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const encodedName = equals === -1 ? pair : pair.slice(0, equals)
    const name = decode(encodedName, pointer(encodedName))
    const segments = segmentsOf(name)
    if (segments.length > limits.jsonDepth)
      throwMalformedParameter(pointer(name), `must not be nested deeper than ${limits.jsonDepth} levels`)
    if (segments.length === 1 && isRepeatable(schema as Schema, name)) {
      const count = counts.get(name) ?? 0
      segments.push(String(count))
      counts.set(name, count + 1)
    }
    const value = decode(equals === -1 ? '' : pair.slice(equals + 1), pointer(...segments))
    insert(root, segments, value)
  }
  return readMembers(root, [], branchesOf(schema as Schema))
}

/**
 * Decodes a name or a value. `+` is a space. Non-ASCII characters must be percent-encoded UTF-8, because Node decodes
 * raw bytes as Latin-1.
 */
function decode(encoded: string, path: string): string {
  if (!isAscii(encoded)) throwMalformedParameter(path, 'must be percent-encoded')
  return decodeForm(encoded) ?? throwMalformedParameter(path, 'must be percent-encoded UTF-8')
}

const decodeForm = (encoded: string) => decodePercent(encoded.replaceAll('+', ' '))

/** Splits `a[b][c]` into a, b and c. Most clients percent-encode the brackets. */
function segmentsOf(name: string): string[] {
  const [root = '', ...rest] = name.split('[')
  const segments = [root, ...rest.map(segment => segment.slice(0, -1))]
  if (rest.some(segment => !segment.endsWith(']')) || segments.some(segment => segment.includes(']')))
    throwMalformedParameter(pointer(name), 'the brackets of the name are unbalanced')
  if (segments.includes('')) throwMalformedParameter(pointer(name), 'the name has an empty part')
  for (const segment of segments) {
    const message = keyFault(segment)
    if (message) throwMalformedParameter(pointer(...segments), message)
  }
  return segments
}

function insert(root: Node, segments: string[], value: string) {
  const path = pointer(...segments)
  const message = textFault(value)
  if (message) throwMalformedParameter(path, message)
  let node = root
  for (const segment of segments.slice(0, -1)) {
    const next = node.get(segment) ?? new Map()
    node.set(segment, next)
    if (typeof next === 'string')
      throwMalformedParameter(path, 'the parameter is given both as a value and as an object')
    node = next
  }
  const last = segments.at(-1)!
  const existing = node.get(last)
  if (typeof existing === 'string') throwMalformedParameter(path, 'the parameter occurs twice')
  if (existing) throwMalformedParameter(path, 'the parameter is given both as a value and as an object')
  node.set(last, value)
}

function readNode(node: Node | string, segments: string[], schema: Schema): unknown {
  if (typeof node === 'string') return node
  const branches = branchesOf(schema)
  const types = branches.flatMap(({ type }) => type ?? [])
  // If the schema names no type, as within an attribute value, the keys decide on an array.
  const isMap = types.includes('object') && !types.includes('array')
  if (isMap || ![...node.keys()].every(key => /^(0|[1-9]\d*)$/.test(key))) return readMembers(node, segments, branches)
  const items = itemsOf(branches) ?? {}
  return inOrder(node, segments).map((member, index) => readNode(member, [...segments, String(index)], items))
}

function readMembers(node: Node, segments: string[], branches: Schema[]): Record<string, unknown> {
  const schemas = propertiesOf(branches)
  const members = [...node].map(([key, member]) => {
    const schema = Object.hasOwn(schemas, key) ? schemas[key]! : {}
    return [key, readNode(member, [...segments, key], schema)]
  })
  return Object.fromEntries(members)
}

function inOrder(node: Node, segments: string[]): (Node | string)[] {
  const ordered = [...node].toSorted(([a], [b]) => Number(a) - Number(b))
  if (ordered.some(([key], index) => key !== String(index)))
    throwMalformedParameter(pointer(...segments), 'the indexes must run from 0 without a gap')
  return ordered.map(([, member]) => member)
}

function throwMalformedParameter(path: string, message: string): never {
  refuse('invalid_parameter', 'The query string has a malformed parameter.', { details: [{ path, message }] })
}

/** The keywords of a schema that matter for binding a query. */
type Schema = {
  type?: string | string[]
  properties?: Record<string, Schema>
  items?: Schema
  anyOf?: Schema[]
}

const branchesOf = (schema: Schema): Schema[] => (schema.anyOf ? schema.anyOf.flatMap(branchesOf) : [schema])
const itemsOf = (branches: Schema[]) => branches.find(({ items }) => items)?.items
const propertiesOf = (branches: Schema[]) => branches.find(({ properties }) => properties)?.properties ?? {}

/** Whether the schema of a root parameter is an array of plain values. */
function isRepeatable(schema: Schema, name: string): boolean {
  const properties = propertiesOf(branchesOf(schema))
  if (!Object.hasOwn(properties, name)) return false
  const { type, items } = properties[name]!
  return type === 'array' && items !== undefined && branchesOf(items).every(each => !each.properties && !each.items)
}

/**
 * Converts the strings of declared boolean, integer and number fields to their types, at every depth. Returns a copy. A
 * string that cannot be converted stays a string, and validation refuses it. A field that may be a string stays a
 * string.
 */
export function coerce(schema: unknown, value: unknown): unknown {
  const branches = branchesOf(schema as Schema)
  if (typeof value === 'string') return coerceField(value, new Set(branches.flatMap(({ type }) => type ?? 'string')))
  if (Array.isArray(value)) {
    const items = itemsOf(branches)
    return items ? value.map(element => coerce(items, element)) : value
  }
  if (typeof value !== 'object' || value === null) return value
  const properties = propertiesOf(branches)
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [
      key,
      Object.hasOwn(properties, key) ? coerce(properties[key], member) : member,
    ]),
  )
}

/** Converts a field. Validation refuses a number that is not an integer, as in a body. */
function coerceField(text: string, types: Set<string>): unknown {
  if (types.has('string')) return text
  const asBoolean = types.has('boolean') ? coerceText(text, 'boolean') : text
  if (typeof asBoolean === 'boolean') return asBoolean
  return types.has('number') || types.has('integer') ? coerceText(text, 'number') : text
}

const dryRunName = 'dry_run'

/**
 * Removes `dry_run` from a query string. Returns whether it requests a dry run, and the rest. Throws a Fault of 400 for
 * a misspelt name and for any value but `true` and `false`, because such a request would write.
 */
export function takeDryRun(queryString: string): { isDryRun: boolean; queryString: string } {
  const pairs = queryString.split('&')
  const [first, second] = pairs.filter(isDryRunPair)
  if (first === undefined) return { isDryRun: false, queryString }
  const [encodedName = '', value] = first.split('=', 2)
  const name = decodeForm(encodedName)!
  if (name !== dryRunName) throwInvalidDryRun(`is not the name of a parameter. Write ${dryRunName}=true`, name)
  if (second !== undefined) throwInvalidDryRun('the parameter occurs twice')
  if (value !== 'true' && value !== 'false') throwInvalidDryRun('must be true or false')
  return { isDryRun: value === 'true', queryString: pairs.filter(pair => !isDryRunPair(pair)).join('&') }
}

/** Throws a Fault of 400 for a dry run, in the query or the body, with an Idempotency-Key. */
export function throwKeyedDryRun(): never {
  const message = 'cannot be combined with an Idempotency-Key: a dry run stores nothing, so it needs none'
  return refuse('invalid_parameter', 'A dry run takes no Idempotency-Key.', {
    details: [{ path: pointer(dryRunName), message }],
  })
}

/** Throws a Fault of 400 for the query parameter `dry_run` or a misspelling of it. */
export function throwInvalidDryRun(message: string, name = dryRunName): never {
  return throwMalformedParameter(pointer(name), message)
}

// The binding of the query refuses a malformed name later.
const isDryRunPair = (pair: string) => /^dry[-_]?run(\[|$)/i.test(decodeForm(pair.split('=', 1)[0]!) ?? '')

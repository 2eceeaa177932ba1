import { Ajv2020, type ErrorObject, type Options, type ValidateFunction } from 'ajv/dist/2020.js'
import type { DataValidateFunction } from 'ajv/dist/types/index.js'
import type { TSchema } from 'typebox'
import { didYouMean, maxHints } from '../../values/did-you-mean.ts'
import { type ErrorCode, invalidValues, pointer, refuse } from '../../values/errors.ts'
import { formats } from '../../values/formats.ts'
import { withUnseen } from '../../values/invisible-characters.ts'
import { mapSchema } from '../../values/json-schema.ts'

const maxDetails = 100

/**
 * Compiles a schema into a validator, which throws a Fault of 400. Its details name each invalid value once, at most
 * 100. Its code is `invalid_json` if a value bound from a body has the wrong JSON type, otherwise `invalid_parameter`.
 * The validator coerces and removes nothing. Throws an Error if the schema has an unknown keyword, type or format.
 */
export function compile(schema: TSchema): (value: unknown, boundFrom: 'body' | 'query') => void {
  const merged = mapSchema(schema, mergeUnion)
  const isValid = quick.compile(merged)
  let explain: ValidateFunction | undefined
  return (value, boundFrom) => {
    if (isValid(value)) return
    // Only refused requests need the list of all errors, so its validator is compiled on demand.
    explain ??= thorough.compile(merged)
    // It is rare that all errors are in the omitted elements. The whole value is checked then.
    if (explain(leaveOutExcess(merged as Schema, value, { unknownKeys: maxDetails }))) explain(value)
    throwValidationFault(explain.errors ?? [], boundFrom)
  }
}

function createAjv(options: Options): Ajv2020 {
  const ajv = new Ajv2020({
    strict: true,
    allowUnionTypes: true,
    addUsedSchema: false,
    // The check by the meta-schema delayed the first request by 0.1 s. A test does it instead. Unknown keywords are
    // refused without it.
    validateSchema: false,
    ...options,
  })
  for (const [name, { holds }] of Object.entries(formats)) ajv.addFormat(name, { type: 'string', validate: holds })
  return ajv.addKeyword({
    keyword: 'distinctBy',
    type: 'array',
    schemaType: 'array',
    compile: distinctBy,
    errors: true,
  })
}

/**
 * A keyword of kith for an array of objects: no two objects have the same values of these keys. The fault is reported
 * at the first of the keys, in the later object.
 */
function distinctBy(keys: string[]): DataValidateFunction {
  const check: DataValidateFunction = (elements: unknown[], context) => {
    const seen = new Set<string>()
    const errors: Partial<ErrorObject>[] = []
    for (const [index, element] of elements.entries()) {
      if (typeof element !== 'object' || element === null) continue
      const values = JSON.stringify(keys.map(key => (element as Record<string, unknown>)[key]))
      if (seen.has(values)) {
        const instancePath = `${context?.instancePath ?? ''}${pointer(index, keys[0]!)}`
        errors.push({ keyword: 'distinctBy', params: { keys }, instancePath })
      } else seen.add(values)
    }
    check.errors = errors
    return errors.length === 0
  }
  return check
}

const quick = createAjv({ messages: false })
const thorough = createAjv({ allErrors: true, verbose: true })

type Schema = {
  [keyword: string]: unknown
  type?: string | string[]
  enum?: unknown[]
  anyOf?: Schema[]
  items?: Schema
  maxItems?: number
  properties?: Record<string, Schema>
  additionalProperties?: unknown
  maxProperties?: number
}

/** In an array without `maxItems`, errors are searched in this many elements. */
const maxExplained = 1_000

/** The number of unknown keys of the whole value that details may still name. */
type Left = { unknownKeys: number }

/**
 * Returns the value without the elements and unknown keys that no detail would name: those after one element too many,
 * and after too many unknown keys. The list of all errors of a batch with four million operations took 1.7 s and 0.8
 * GB.
 */
function leaveOutExcess(schema: Schema, value: unknown, left: Left): unknown {
  if (typeof value !== 'object' || value === null) return value
  const { items, maxItems = maxExplained, properties = {}, additionalProperties, maxProperties } = schema
  if (Array.isArray(value)) {
    const first = value.slice(0, Math.max(maxItems, maxDetails) + 1)
    return items ? first.map(element => leaveOutExcess(items, element, left)) : first
  }
  const rest: Record<string, unknown> = {}
  let freeKeys = maxProperties ?? Number.POSITIVE_INFINITY
  for (const [key, member] of Object.entries(value)) {
    const known = Object.hasOwn(properties, key) ? properties[key] : undefined
    if (known) rest[key] = leaveOutExcess(known, member, left)
    else if (additionalProperties === false ? left.unknownKeys-- >= 0 : freeKeys-- >= 0) rest[key] = member
  }
  return rest
}

/**
 * Merges a union into one schema with several types, if it consists of bare types, of literals, or of one schema and
 * bare types of other values, such as null. That is faster to check, and a wrong value causes one error. An enumeration
 * gets the type of its values.
 */
function mergeUnion(schema: Schema): Schema {
  if (isAnyMember(schema.patternProperties)) delete schema.patternProperties
  if ('uniqueItems' in schema) throw new Error('uniqueItems compares every pair: half a million elements take hours')
  return mergeBranches(typed(schema))
}

/** Whether the members of a record are unrestricted. Matching the keys of a batch with a pattern took 50 ms. */
const isAnyMember = (patterns: unknown) =>
  typeof patterns === 'object' && patterns !== null && JSON.stringify(patterns) === '{"^.*$":{}}'

const typeOf = (value: unknown) =>
  value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value === 'object' ? 'object' : typeof value

function typed(schema: Schema): Schema {
  if (schema.type !== undefined || !Array.isArray(schema.enum)) return schema
  return { type: [...new Set(schema.enum.map(typeOf))], ...schema }
}

function mergeBranches({ anyOf, ...rest }: Schema): Schema {
  if (!Array.isArray(anyOf)) return rest
  const allTypes = anyOf.flatMap(({ type }) => type ?? [])
  const types = [...new Set(allTypes)]
  const unmerged = { ...rest, anyOf }
  if (rest.type !== undefined || rest.enum !== undefined || anyOf.some(({ type }) => type === undefined))
    return unmerged
  const values = anyOf.map(literalsOf)
  if (values.every(literals => literals !== undefined)) return { ...rest, type: types, enum: values.flat() }
  const constrained = anyOf.filter(branch => Object.keys(branch).some(keyword => keyword !== 'type'))
  if (constrained.length === 0) return { ...rest, type: types }
  const isTyped = constrained.length === 1 && !untypedKeywords.some(keyword => keyword in constrained[0]!)
  const isDistinct = types.length === allTypes.length
  return isTyped && isDistinct ? { ...rest, ...constrained[0], type: types } : unmerged
}

// These keywords apply to values of every type, so no other type can be added beside them.
const untypedKeywords = ['anyOf', 'oneOf', 'allOf', 'not', 'if', 'const', 'enum', '$ref', '$dynamicRef']

/** The values of a schema of literals, or undefined for any other schema. */
function literalsOf(schema: Schema): unknown[] | undefined {
  if (schema.enum) return schema.enum
  if ('const' in schema) return [schema.const]
  return schema.type === 'null' ? [null] : undefined
}

function throwValidationFault(errors: ErrorObject[], boundFrom: 'body' | 'query'): never {
  const found = new Map<string, string>()
  let code: ErrorCode = 'invalid_parameter'
  let unknown = 0
  for (const error of errors) {
    // The branches of an unmerged union contradict each other, so only the union's own error is reported.
    if (error.keyword === 'if' || /\/(?:anyOf|oneOf)\/\d/.test(error.schemaPath)) continue
    const isType = isTypeError(error)
    if (isType && boundFrom === 'body') code = 'invalid_json'
    if (found.size === maxDetails) continue
    const path = pathOf(error)
    const isUnknown = error.keyword === 'additionalProperties'
    if (isUnknown) unknown += 1
    const hint = isUnknown && unknown <= maxHints ? hintOf(error) : ''
    if (isType || !found.has(path)) found.set(path, messageOf(error) + hint)
  }
  const details = [...found].map(([path, message]) => ({ path, message }))
  refuse(code, invalidValues, { details })
}

/** The end of the message about an unknown key: the known key that was probably meant. */
const hintOf = ({ params, parentSchema }: ErrorObject): string =>
  didYouMean(params.additionalProperty, Object.keys((parentSchema as Schema).properties ?? {}))

/** The path of an error. For a missing or unknown key it names the key itself, not its object. */
function pathOf({ instancePath, params, propertyName }: ErrorObject): string {
  const { missingProperty, additionalProperty, unevaluatedProperty } = params
  const key = missingProperty ?? additionalProperty ?? unevaluatedProperty ?? propertyName ?? params.propertyName
  return key === undefined ? instancePath : instancePath + pointer(key)
}

function isTypeError({ keyword, schema, data }: ErrorObject): boolean {
  if (keyword !== 'anyOf' && keyword !== 'oneOf') return keyword === 'type'
  const types = (schema as Schema[]).map(({ type }) => type)
  return types.every(type => type !== undefined) && !types.flat().some(type => isOfType(type, data))
}

function isOfType(type: string | undefined, data: unknown): boolean {
  return type === 'integer' ? Number.isInteger(data) : type === typeOf(data)
}

const typeNames: Record<string, string> = {
  string: 'a string',
  number: 'a number',
  integer: 'an integer',
  boolean: 'a boolean',
  array: 'an array',
  object: 'an object',
}

function typeMessage(types: string | string[]): string {
  return `must be ${[types]
    .flat()
    .map(type => typeNames[type] ?? type)
    .join(' or ')}`
}

const formatCount = (count: number, unit: string) => `${count} ${unit}${count === 1 ? '' : 's'}`
const formatList = (values: unknown[]) =>
  values.map(value => (typeof value === 'string' ? value : String(value))).join(', ')

const messages: Record<string, (params: ErrorObject['params']) => string> = {
  required: () => 'is required',
  dependentRequired: () => 'is required',
  additionalProperties: () => 'unknown key',
  unevaluatedProperties: () => 'unknown key',
  propertyNames: () => 'this key is not allowed',
  type: ({ type }) => typeMessage(type),
  enum: ({ allowedValues }) => `must be one of: ${formatList(allowedValues)}`,
  const: ({ allowedValue }) => `must be ${formatList([allowedValue])}`,
  format: ({ format }) => formats[format]!.message,
  minLength: ({ limit }) => (limit === 1 ? 'must not be empty' : `must be at least ${formatCount(limit, 'character')}`),
  maxLength: ({ limit }) => `must be at most ${formatCount(limit, 'character')}`,
  minItems: ({ limit }) => `must have at least ${formatCount(limit, 'element')}`,
  maxItems: ({ limit }) => `must have at most ${formatCount(limit, 'element')}`,
  minProperties: ({ limit }) => `must have at least ${formatCount(limit, 'key')}`,
  maxProperties: ({ limit }) => `must have at most ${formatCount(limit, 'key')}`,
  minimum: ({ limit }) => `must be at least ${limit}`,
  maximum: ({ limit }) => `must be at most ${limit}`,
  exclusiveMinimum: ({ limit }) => `must be more than ${limit}`,
  exclusiveMaximum: ({ limit }) => `must be less than ${limit}`,
  distinctBy: ({ keys }) => `repeats the ${keys.join(' and ')} of an earlier element`,
  multipleOf: ({ multipleOf }) => `must be a multiple of ${multipleOf}`,
  pattern: ({ pattern }) => {
    const words = /^\^\(([\w|]+)\)\$$/.exec(pattern)?.[1]
    return words ? `must be one of: ${words.replaceAll('|', ', ')}` : `must match ${pattern}`
  },
}

function messageOf(error: ErrorObject): string {
  const { keyword, params, schema, data } = error
  if ((keyword === 'anyOf' || keyword === 'oneOf') && isTypeError(error))
    return typeMessage([...new Set((schema as Schema[]).flatMap(({ type }) => type!))])
  const message = messages[keyword]?.(params) ?? 'must have one of its documented forms'
  return textKeywords.has(keyword) ? withUnseen(message, data) : message
}

/** The keywords whose message may have to name an invisible character. */
const textKeywords = new Set(['type', 'enum', 'const', 'format', 'maxLength', 'pattern'])

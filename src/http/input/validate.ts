import { Ajv2020, type ErrorObject, type Options, type ValidateFunction } from 'ajv/dist/2020.js'
import type { TSchema } from 'typebox'
import { type ErrorWord, fail, pointer } from '../../errors.ts'
import { formats } from '../../formats.ts'

const detailsCap = 100

/**
 * Makes the validator of a schema. It throws a Fault of 400 whose details name each offending value once, at most 100:
 * `invalid_json` where a value bound from a body has the wrong JSON type, else `invalid_parameter`. It coerces and
 * removes nothing. Throws an Error where the schema itself is faulty or names an unknown format.
 */
export function compile(schema: TSchema): (value: unknown, boundFrom: 'body' | 'query') => void {
  const merged = mergeUnions(schema) as Schema
  const holds = quick.compile(merged)
  let explain: ValidateFunction | undefined
  return (value, boundFrom) => {
    if (holds(value)) return
    // Only refused requests pay for the list of all errors, and most routes never need it.
    explain ??= thorough.compile(merged)
    explain(value)
    refuseErrors(explain.errors ?? [], boundFrom)
  }
}

function createAjv(options: Options): Ajv2020 {
  const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, addUsedSchema: false, ...options })
  for (const [name, { holds }] of Object.entries(formats)) ajv.addFormat(name, { type: 'string', validate: holds })
  return ajv
}

const quick = createAjv({ messages: false })
const thorough = createAjv({ allErrors: true, verbose: true })

type Schema = { [keyword: string]: unknown; type?: string | string[]; enum?: unknown[]; anyOf?: Schema[] }

/**
 * The same schema, in which a union of one schema with null, of literals, or of bare types is one schema with several
 * types. It is quicker to check, and one wrong value is one error. An enumeration gets the type of its values.
 */
function mergeUnions(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(mergeUnions)
  if (typeof schema !== 'object' || schema === null) return schema
  if ('uniqueItems' in schema) throw new Error('uniqueItems compares every pair: half a million elements take hours')
  return mergeBranches(typed(mapValues(schema, mergeKeyword)))
}

const dataKeywords = ['const', 'enum', 'default', 'examples']
const namedKeywords = ['properties', 'patternProperties', '$defs', 'dependentSchemas']

function mergeKeyword(value: unknown, keyword: string): unknown {
  if (dataKeywords.includes(keyword)) return value
  return namedKeywords.includes(keyword) ? mapValues(value as object, mergeUnions) : mergeUnions(value)
}

function mapValues(values: object, change: (value: unknown, key: string) => unknown): Schema {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, change(value, key)]))
}

const typeOf = (value: unknown) =>
  value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value === 'object' ? 'object' : typeof value

function typed(schema: Schema): Schema {
  if (schema.type !== undefined || !Array.isArray(schema.enum)) return schema
  return { type: [...new Set(schema.enum.map(typeOf))], ...schema }
}

function mergeBranches({ anyOf, ...rest }: Schema): Schema {
  if (!Array.isArray(anyOf)) return rest
  const types = [...new Set(anyOf.flatMap(({ type }) => type ?? []))]
  const kept = { ...rest, anyOf }
  if (rest.type !== undefined || rest.enum !== undefined || anyOf.some(({ type }) => type === undefined)) return kept
  const values = anyOf.map(literalsOf)
  if (values.every(literals => literals !== undefined)) return { ...rest, type: types, enum: values.flat() }
  const ruled = anyOf.filter(branch => Object.keys(branch).some(keyword => keyword !== 'type'))
  if (ruled.length === 0) return { ...rest, type: types }
  const isNullable = anyOf.length === 2 && anyOf.some(({ type }) => type === 'null')
  const isOfType = ruled.length === 1 && !untypedKeywords.some(keyword => keyword in ruled[0]!)
  return isNullable && isOfType ? { ...rest, ...ruled[0], type: types } : kept
}

// These speak of null too, so null cannot join the type beside them.
const untypedKeywords = ['anyOf', 'oneOf', 'allOf', 'not', 'if', 'const', 'enum', '$ref', '$dynamicRef']

/** The values a schema of literals allows; undefined where it allows others. */
function literalsOf(schema: Schema): unknown[] | undefined {
  if (schema.enum) return schema.enum
  if ('const' in schema) return [schema.const]
  return schema.type === 'null' ? [null] : undefined
}

function refuseErrors(errors: ErrorObject[], boundFrom: 'body' | 'query'): never {
  const found = new Map<string, string>()
  let word: ErrorWord = 'invalid_parameter'
  for (const error of errors) {
    // The branches of a union that could not be merged contradict each other: the union speaks for them.
    if (error.keyword === 'if' || /\/(?:anyOf|oneOf)\/\d/.test(error.schemaPath)) continue
    const isType = isTypeError(error)
    if (isType && boundFrom === 'body') word = 'invalid_json'
    if (found.size === detailsCap) continue
    const path = pathOf(error)
    if (isType || !found.has(path)) found.set(path, messageOf(error))
  }
  const details = [...found].map(([path, message]) => ({ path, message }))
  fail(word, 'The request has values that do not fit; the details name them.', { details })
}

/** A key that is missing or unknown is named itself, not the object around it. */
function pathOf({ instancePath, params, propertyName }: ErrorObject): string {
  const { missingProperty, additionalProperty, unevaluatedProperty } = params
  const key = missingProperty ?? additionalProperty ?? unevaluatedProperty ?? propertyName ?? params.propertyName
  return key === undefined ? instancePath : instancePath + pointer(key)
}

function isTypeError({ keyword, schema, data }: ErrorObject): boolean {
  if (keyword !== 'anyOf' && keyword !== 'oneOf') return keyword === 'type'
  const types = (schema as Schema[]).map(({ type }) => type)
  return types.every(type => type !== undefined) && !types.flat().some(type => fits(type, data))
}

function fits(type: string | undefined, data: unknown): boolean {
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

const counted = (count: number, unit: string) => `${count} ${unit}${count === 1 ? '' : 's'}`
const listed = (values: unknown[]) =>
  values.map(value => (typeof value === 'string' ? value : String(value))).join(', ')

const messages: Record<string, (params: ErrorObject['params']) => string> = {
  required: () => 'is required',
  dependentRequired: () => 'is required',
  additionalProperties: () => 'unknown key',
  unevaluatedProperties: () => 'unknown key',
  propertyNames: () => 'this key is not allowed',
  type: ({ type }) => typeMessage(type),
  enum: ({ allowedValues }) => `must be one of: ${listed(allowedValues)}`,
  const: ({ allowedValue }) => `must be ${listed([allowedValue])}`,
  format: ({ format }) => formats[format]!.message,
  minLength: ({ limit }) => (limit === 1 ? 'must not be empty' : `must be at least ${counted(limit, 'character')}`),
  maxLength: ({ limit }) => `must be at most ${counted(limit, 'character')}`,
  minItems: ({ limit }) => `must have at least ${counted(limit, 'element')}`,
  maxItems: ({ limit }) => `must have at most ${counted(limit, 'element')}`,
  minProperties: ({ limit }) => `must have at least ${counted(limit, 'key')}`,
  maxProperties: ({ limit }) => `must have at most ${counted(limit, 'key')}`,
  minimum: ({ limit }) => `must be at least ${limit}`,
  maximum: ({ limit }) => `must be at most ${limit}`,
  exclusiveMinimum: ({ limit }) => `must be more than ${limit}`,
  exclusiveMaximum: ({ limit }) => `must be less than ${limit}`,
  multipleOf: ({ multipleOf }) => `must be a multiple of ${multipleOf}`,
  pattern: ({ pattern }) => `must match ${pattern}`,
}

function messageOf(error: ErrorObject): string {
  const { keyword, params, schema } = error
  if ((keyword === 'anyOf' || keyword === 'oneOf') && isTypeError(error))
    return typeMessage([...new Set((schema as Schema[]).flatMap(({ type }) => type!))])
  return messages[keyword]?.(params) ?? 'must have one of its documented forms'
}

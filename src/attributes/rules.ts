import type { Attribute } from '../organizations/definitions.ts'
import {
  type AttributeRules,
  attributeRules,
  noRules,
  type RuleName,
  ruleNames,
  typesText,
} from '../values/attribute-rules.ts'
import { instantOf } from '../values/instant.ts'
import { withUnseen } from '../values/invisible-characters.ts'
import { type PatternTime, patternFault, patternMismatch } from './pattern.ts'
import { coerceValue, type ValueFault, valueFault } from './values.ts'

type Ruled = Pick<Attribute, 'type' | 'cardinality' | 'indexed'> & Partial<AttributeRules>

/** The names of the rules that an attribute has. */
export const namesOfRules = (attribute: Partial<AttributeRules>): RuleName[] =>
  ruleNames.filter(name => (attribute[name] ?? noRules[name]) !== noRules[name])

/** The rules that an attribute has. */
export const rulesOf = (attribute: Partial<AttributeRules>): Partial<AttributeRules> =>
  Object.fromEntries(namesOfRules(attribute).map(name => [name, attribute[name]]))

/** Finds the faults of the rules of an attribute. The paths begin with the name of the rule. */
export function findRuleFaults(attribute: Ruled): ValueFault[] {
  const faults = namesOfRules(attribute).flatMap(name => {
    const { types } = attributeRules[name]
    if (types.includes(attribute.type)) return []
    const message = `applies only to ${types.length === 1 ? 'type' : 'the types'} ${typesText(name)}`
    return [{ path: [name], message }]
  })
  if (faults.length > 0) return faults
  const operandFaults = namesOfRules(attribute).flatMap(name => typeFaults(attribute, name))
  return [
    ...uniqueFaults(attribute),
    ...patternFaults(attribute),
    ...(operandFaults.length > 0 ? operandFaults : [...enumFaults(attribute), ...boundFaults(attribute)]),
  ]
}

/**
 * Returns the values of an operand that do not have the type of the attribute. Some rules have an operand of another
 * type, which is not checked here.
 */
function typeFaults(attribute: Ruled, name: RuleName): ValueFault[] {
  if (!attributeRules[name].hasTypedOperand) return []
  const operand: unknown = attribute[name]
  return (Array.isArray(operand) ? operand : [operand]).flatMap((value, index): ValueFault[] => {
    const message = valueFault({ ...attribute, cardinality: 'one' }, value)?.message
    return message ? [{ path: Array.isArray(operand) ? [name, index] : [name], message }] : []
  })
}

function uniqueFaults({ unique, cardinality, indexed }: Ruled): ValueFault[] {
  if (!unique) return []
  if (cardinality === 'many') return [{ path: ['unique'], message: 'applies only to cardinality `one`' }]
  return indexed ? [] : [{ path: ['unique'], message: 'needs `indexed: true`' }]
}

/** The maximum number of bytes of an enum's values as JSON. They stay in memory while the organization is in use. */
const maxEnumBytes = 32_768

function enumFaults({ enum: values }: Ruled): ValueFault[] {
  if (!values) return []
  const faults = values.flatMap((value, index): ValueFault[] =>
    values.indexOf(value) < index ? [{ path: ['enum', index], message: 'is given twice' }] : [],
  )
  if (faults.length > 0 || Buffer.byteLength(JSON.stringify(values)) <= maxEnumBytes) return faults
  return [{ path: ['enum'], message: `must have at most ${maxEnumBytes} bytes as JSON` }]
}

function patternFaults({ pattern }: Ruled): ValueFault[] {
  const message = pattern == null ? undefined : patternFault(pattern)
  return message ? [{ path: ['pattern'], message }] : []
}

function boundFaults({ type, minimum, maximum }: Ruled): ValueFault[] {
  if (minimum == null || maximum == null || compareValues(type, minimum, maximum) <= 0) return []
  return [{ path: ['minimum'], message: 'must not be more than `maximum`' }]
}

/** Compares two values of an ordered type. Negative if the first value is less. */
function compareValues(type: Attribute['type'], one: number | string, other: number | string): number {
  if (typeof one === 'number' || typeof other === 'number') return Number(one) - Number(other)
  if (type === 'date') return compareTexts(one, other)
  const [first, second] = [instantOf(one), instantOf(other)]
  return first.seconds - second.seconds || compareTexts(first.fraction, second.fraction)
}

const compareTexts = (one: string, other: string) => (one < other ? -1 : Number(one > other))

/** Converts the rules of a query string, whose values are texts, to the type of the attribute. */
export function coerceRules<Rules extends Partial<AttributeRules>>(type: Attribute['type'], rules: Rules): Rules {
  const coerce = (value: unknown) => coerceValue({ type, cardinality: 'one' }, value)
  const coerced = Object.entries(rules).flatMap(([name, operand]) => {
    if (operand == null || !attributeRules[name as RuleName]?.hasTypedOperand) return []
    return [[name, Array.isArray(operand) ? operand.map(coerce) : coerce(operand)]]
  })
  return { ...rules, ...Object.fromEntries(coerced) }
}

type ValueRule = Exclude<RuleName, 'required' | 'unique'>
type Scalar = string | number | boolean
type Check<Operand> = (
  operand: Operand,
  value: Scalar,
  attribute: Attribute,
  time: () => PatternTime,
) => string | undefined

/**
 * The rules that check a single value, in the order of the checks. Each completes "the value …" if the value breaks it.
 */
const valueChecks: { [Name in ValueRule]: Check<NonNullable<AttributeRules[Name]>> } = {
  enum: (values, value, attribute) =>
    allowedValues(attribute).has(value) ? undefined : `must be one of: ${listOf(values)}`,
  pattern: (pattern, value, _, time) => patternMismatch(pattern, value as string, time()),
  minimum: (minimum, value, { type }) =>
    compareValues(type, value as string, minimum) < 0 ? `must be at least ${minimum}` : undefined,
  maximum: (maximum, value, { type }) =>
    compareValues(type, value as string, maximum) > 0 ? `must be at most ${maximum}` : undefined,
}
const valueRules = Object.keys(valueChecks) as ValueRule[]

/**
 * Checks a value of the attribute's type against the rules for single values. Returns the first fault. `time` is the
 * time that the patterns of the request have taken.
 */
export function ruleFault(attribute: Attribute, value: unknown, time: () => PatternTime): ValueFault | undefined {
  if (valueRules.every(rule => attribute[rule] == null)) return undefined
  const isMany = attribute.cardinality === 'many'
  for (const [index, element] of elementsOf(attribute, value).entries())
    for (const rule of valueRules) {
      const message = messageOf(rule, attribute, element, time)
      if (message) return { path: isMany ? [index] : [], message: withUnseen(message, element) }
    }
  return undefined
}

/** The rules that a value of the attribute's type breaks. */
export function brokenRules(attribute: Attribute, value: unknown, time: () => PatternTime): ValueRule[] {
  const elements = elementsOf(attribute, value)
  return valueRules.filter(rule => elements.some(element => messageOf(rule, attribute, element, time)))
}

const elementsOf = ({ cardinality }: Attribute, value: unknown) =>
  (cardinality === 'many' ? value : [value]) as readonly Scalar[]

function messageOf(rule: ValueRule, attribute: Attribute, value: Scalar, time: () => PatternTime): string | undefined {
  const operand = attribute[rule]
  return operand == null ? undefined : (valueChecks[rule] as Check<unknown>)(operand, value, attribute, time)
}

const enums = new WeakMap<Attribute, ReadonlySet<unknown>>()

function allowedValues(attribute: Attribute): ReadonlySet<unknown> {
  const values = enums.get(attribute) ?? new Set(attribute.enum)
  enums.set(attribute, values)
  return values
}

const maxListed = 20

const listOf = (values: readonly Scalar[]) =>
  values.length <= maxListed ? values.join(', ') : `${values.slice(0, maxListed).join(', ')}, …`

/** Whether a value satisfies `required`. A list without elements does not. */
export const isPresent = (value: unknown): boolean =>
  value !== null && value !== undefined && !(Array.isArray(value) && value.length === 0)

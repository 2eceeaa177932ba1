import type { Attribute, AttributeRules } from '../organizations/definitions.ts'
import { instantOf } from './instant.ts'
import { type PatternTime, patternFault, patternMismatch } from './pattern.ts'
import { attributeTypes, type RuleName, ruleNames } from './schema.ts'
import { coerceValue, type ValueFault, valueFault } from './values.ts'

/** The rules of an attribute that has none. */
export const noRules: AttributeRules = {
  required: false,
  unique: false,
  enum: null,
  pattern: null,
  minimum: null,
  maximum: null,
}

type Ruled = Pick<Attribute, 'type' | 'cardinality' | 'indexed'> & Partial<AttributeRules>

/** The names of the rules that an attribute has. */
export const namesOfRules = (attribute: Partial<AttributeRules>): RuleName[] =>
  ruleNames.filter(name => (attribute[name] ?? noRules[name]) !== noRules[name])

/** The rules that an attribute has. */
export const rulesOf = (attribute: Partial<AttributeRules>): Partial<AttributeRules> =>
  Object.fromEntries(namesOfRules(attribute).map(name => [name, attribute[name]]))

/** The types of attributes that a rule applies to. */
export const typesOfRules: Record<RuleName, readonly Attribute['type'][]> = {
  required: attributeTypes,
  unique: ['text', 'number', 'date', 'datetime'],
  enum: ['text', 'number', 'boolean', 'date', 'datetime'],
  pattern: ['text'],
  minimum: ['number', 'date', 'datetime'],
  maximum: ['number', 'date', 'datetime'],
}

/** Finds what is wrong with the rules of an attribute. The paths begin with the name of the rule. */
export function findRuleFaults(attribute: Ruled): ValueFault[] {
  const faults = namesOfRules(attribute).flatMap(name => {
    const types = typesOfRules[name]
    if (types.includes(attribute.type)) return []
    const message = `applies only to ${types.length === 1 ? 'type' : 'the types'} ${types.map(type => `\`${type}\``).join(', ')}`
    return [{ path: [name], message }]
  })
  if (faults.length > 0) return faults
  return [...uniqueFaults(attribute), ...enumFaults(attribute), ...patternFaults(attribute), ...boundFaults(attribute)]
}

function uniqueFaults({ unique, cardinality, indexed }: Ruled): ValueFault[] {
  if (!unique) return []
  if (cardinality === 'many') return [{ path: ['unique'], message: 'applies only to cardinality `one`' }]
  return indexed ? [] : [{ path: ['unique'], message: 'needs `indexed: true`' }]
}

/** The most bytes of the values of an enum as JSON. They stay in memory while the organization is in use. */
const maxEnumBytes = 32_768

function enumFaults(attribute: Ruled): ValueFault[] {
  const values = attribute.enum ?? []
  const known = new Set<unknown>()
  const faults = values.flatMap((value, index): ValueFault[] => {
    const message = typeMessage(attribute, value) ?? (known.has(value) ? 'is given twice' : undefined)
    known.add(value)
    return message ? [{ path: ['enum', index], message }] : []
  })
  if (faults.length > 0 || Buffer.byteLength(JSON.stringify(values)) <= maxEnumBytes) return faults
  return [{ path: ['enum'], message: `must have at most ${maxEnumBytes} bytes as JSON` }]
}

/** Why a value is not one of the type of the attribute. */
const typeMessage = (attribute: Ruled, value: unknown): string | undefined =>
  valueFault({ ...attribute, cardinality: 'one' }, value)?.message

function patternFaults({ pattern }: Ruled): ValueFault[] {
  const message = pattern == null ? undefined : patternFault(pattern)
  return message ? [{ path: ['pattern'], message }] : []
}

function boundFaults(attribute: Ruled): ValueFault[] {
  const { type, minimum = null, maximum = null } = attribute
  const faults = Object.entries({ minimum, maximum }).flatMap(([name, value]): ValueFault[] => {
    const message = value === null ? undefined : typeMessage(attribute, value)
    return message ? [{ path: [name], message }] : []
  })
  if (faults.length > 0 || minimum === null || maximum === null) return faults
  return compareValues(type, minimum, maximum) > 0
    ? [{ path: ['minimum'], message: 'must not be more than `maximum`' }]
    : []
}

/** Compares two values of a type that has an order. Negative if the first one is less. */
function compareValues(type: Attribute['type'], one: number | string, other: number | string): number {
  if (typeof one === 'number' || typeof other === 'number') return Number(one) - Number(other)
  if (type === 'date') return compareTexts(one, other)
  const [first, second] = [instantOf(one), instantOf(other)]
  return first.seconds - second.seconds || compareTexts(first.fraction, second.fraction)
}

const compareTexts = (one: string, other: string) => (one < other ? -1 : Number(one > other))

/** Converts the rules of a query string, whose values are texts, to the type of the attribute. */
export function coerceRules<Rules extends Partial<AttributeRules>>(type: Attribute['type'], rules: Rules): Rules {
  const coerce = <V>(value: V) => coerceValue({ type, cardinality: 'one' }, value) as V
  const { minimum, maximum, enum: values } = rules
  return {
    ...rules,
    ...(minimum !== undefined && { minimum: coerce(minimum) }),
    ...(maximum !== undefined && { maximum: coerce(maximum) }),
    ...(values != null && { enum: values.map(coerce) }),
  }
}

/** The rules that a value is checked by alone, in the order of the checks. */
const valueRules = ['enum', 'pattern', 'minimum', 'maximum'] as const
type ValueRule = (typeof valueRules)[number]

/**
 * Checks a value, which is of the type of its attribute, against the enum, the pattern and the bounds. Returns the first fault. `time`
 * is what the patterns of the request have taken.
 */
export function ruleFault(attribute: Attribute, value: unknown, time: () => PatternTime): ValueFault | undefined {
  if ((attribute.enum ?? attribute.pattern ?? attribute.minimum ?? attribute.maximum) == null) return undefined
  const isMany = attribute.cardinality === 'many'
  for (const [index, element] of elementsOf(attribute, value).entries())
    for (const rule of valueRules) {
      const message = messageOf(rule, attribute, element, time)
      if (message) return { path: isMany ? [index] : [], message }
    }
  return undefined
}

/** The rules that a value, which is of the type of its attribute, breaks. */
export function brokenRules(attribute: Attribute, value: unknown, time: () => PatternTime): ValueRule[] {
  const elements = elementsOf(attribute, value)
  return valueRules.filter(rule => elements.some(element => messageOf(rule, attribute, element, time)))
}

type Scalar = string | number | boolean

const elementsOf = ({ cardinality }: Attribute, value: unknown) =>
  (cardinality === 'many' ? value : [value]) as readonly Scalar[]

/** Completes "the value …" if the value breaks the rule. */
function messageOf(rule: ValueRule, attribute: Attribute, value: Scalar, time: () => PatternTime): string | undefined {
  const operand = attribute[rule]
  if (operand == null) return undefined
  switch (rule) {
    case 'enum':
      return allowedValues(attribute).has(value) ? undefined : `must be one of: ${listOf(attribute.enum!)}`
    case 'pattern':
      return patternMismatch(attribute.pattern!, value as string, time())
    case 'minimum':
      return compareValues(attribute.type, value as string, attribute.minimum!) < 0
        ? `must be at least ${attribute.minimum}`
        : undefined
    case 'maximum':
      return compareValues(attribute.type, value as string, attribute.maximum!) > 0
        ? `must be at most ${attribute.maximum}`
        : undefined
  }
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

/** Whether a value counts as one for `required`. A list without elements does not. */
export const isPresent = (value: unknown): boolean =>
  value !== null && value !== undefined && !(Array.isArray(value) && value.length === 0)

import { didYouMean } from '../../values/did-you-mean.ts'
import { coerceText } from '../../values/scalars.ts'
import { comparisons, filterLimits, isComparison, isRange, isSearch, type Test } from './grammar.ts'
import type { OperandFault, OperandType } from './operand-types.ts'
import { anniversaryDays, type Clock, isRelativeTime, timeFrom } from './relative-time.ts'

type Invalid = { fault: OperandFault }

const invalid = (message: string, ...path: (string | number)[]): Invalid => ({ fault: { path, message } })

/**
 * Makes a test of a field, or returns a fault if the operator is unknown or the field does not accept the operand.
 * Relative times are resolved by the clock.
 */
export function testFrom(type: OperandType, operator: string, given: unknown, clock: Clock): Test | Invalid {
  if (!isComparison(operator)) return invalid(`is not an operator${didYouMean(operator, comparisons)}`)
  if (operator === '$anniversary') return anniversary(type, given, clock)
  const isList = operator === '$in' || operator === '$nin'
  if (isList && Array.isArray(given) && given.length > filterLimits.listElements)
    return invalid(`must have at most ${filterLimits.listElements} elements`)
  const absolute = absoluteOf(type, operator, given, clock)
  if ('fault' in absolute) return absolute
  const { operand } = absolute
  if (operator === '$exists')
    return typeof operand === 'boolean' ? { operator, operand } : invalid('must be true or false')
  if (isList) {
    if (!Array.isArray(operand)) return invalid('must be an array')
    for (const [index, element] of operand.entries()) {
      const fault = element === null ? undefined : type.equality(element)
      if (fault) return invalid(fault.message, index, ...fault.path)
    }
    return { operator, operand }
  }
  if (isSearch(operator)) {
    const fault = typeof operand === 'string' ? type.search(operator, operand) : 'must be a string'
    return fault === undefined ? { operator, operand: operand as string } : invalid(fault)
  }
  if (isRange(operator)) {
    const fault = operand === null ? 'must not be null: it has no order' : type.bound(operand)
    return fault === undefined ? { operator, operand: operand as string | number } : invalid(fault)
  }
  const fault = operand === null ? undefined : type.equality(operand)
  return fault ? { fault } : { operator, operand }
}

const equalities: readonly string[] = ['$eq', '$neq', '$in', '$nin']

/** Resolves the relative times of an operand, which may be elements of an array. */
function absoluteOf(
  { time, equalsTexts }: OperandType,
  operator: string,
  given: unknown,
  clock: Clock,
): { operand: unknown } | Invalid {
  const elements = Array.isArray(given) ? given : [given]
  if (!elements.some(isRelativeTime)) return { operand: given }
  const times: unknown[] = []
  for (const [index, element] of elements.entries()) {
    const path = Array.isArray(given) ? [index] : []
    if (!isRelativeTime(element)) {
      times.push(element)
      continue
    }
    if (!time) return invalid('is a relative time, but the field is no date or time: declare its key as one', ...path)
    if (equalsTexts && equalities.includes(operator)) {
      const message = `is a relative time, but ${operator} compares a datetime as it was written: use $gte and $lt`
      return invalid(message, ...path)
    }
    const resolved = timeFrom(element, time, clock)
    if (typeof resolved !== 'string') return invalid(resolved.message, ...path, ...resolved.path)
    times.push(resolved)
  }
  return { operand: Array.isArray(given) ? times : times[0] }
}

function anniversary({ time }: OperandType, given: unknown, clock: Clock): Test | Invalid {
  if (time !== 'date') return invalid('applies only to dates: compare times by $gte and $lt')
  const days = anniversaryDays(given, clock)
  return Array.isArray(days) ? { operator: '$anniversary', operand: days } : { fault: days }
}

/** Converts an operand of a query string, where all values are texts, to the field's type. */
export function operandFromQuery({ coercedTo }: OperandType, operator: string, operand: unknown): unknown {
  if (operator === '$anniversary') return anniversaryFromQuery(operand)
  const type = operator === '$exists' ? 'boolean' : coercedTo
  const convert = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(convert)
    return type && typeof value === 'string' ? coerceText(value, type) : value
  }
  return convert(operand)
}

function anniversaryFromQuery(operand: unknown): unknown {
  if (typeof operand !== 'object' || operand === null) return operand
  const entries = Object.entries(operand)
  return Object.fromEntries(entries.map(([key, value]) => [key, isText(value) ? coerceText(value, 'number') : value]))
}

const isText = (value: unknown) => typeof value === 'string'

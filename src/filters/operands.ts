import { coerceText } from '../scalars.ts'
import { filterLimits, isComparison, isRange, isSearch, type Test } from './grammar.ts'
import type { OperandFault, OperandType } from './operand-types.ts'

type Invalid = { fault: OperandFault }

const invalid = (message: string, ...path: (string | number)[]): Invalid => ({ fault: { path, message } })

/** Makes a test of a field, or returns a fault if the operator is unknown or the field does not accept the operand. */
export function testFrom(type: OperandType, operator: string, operand: unknown): Test | Invalid {
  if (!isComparison(operator)) return invalid('is not an operator')
  if (operator === '$exists')
    return typeof operand === 'boolean' ? { operator, operand } : invalid('must be true or false')
  if (operator === '$in' || operator === '$nin') {
    if (!Array.isArray(operand)) return invalid('must be an array')
    if (operand.length > filterLimits.listElements)
      return invalid(`must have at most ${filterLimits.listElements} elements`)
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

/** Converts an operand of a query string, in which all values are texts, to the field's type. */
export function operandFromQuery({ coercedTo }: OperandType, operator: string, operand: unknown): unknown {
  const type = operator === '$exists' ? 'boolean' : coercedTo
  const convert = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(convert)
    return type && typeof value === 'string' ? coerceText(value, type) : value
  }
  return convert(operand)
}

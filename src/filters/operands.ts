import { coerceText } from '../scalars.ts'
import { filterLimits, isComparison, isRange, isSearch, type Test } from './grammar.ts'
import type { OperandFault, OperandType } from './operand-types.ts'

type Refused = { refused: OperandFault }

const refused = (message: string, ...path: (string | number)[]): Refused => ({ refused: { path, message } })

/** A test of a field, if the operator is one and the field takes this operand; else what is wrong, with a path below the operand. */
export function testFrom(type: OperandType, operator: string, operand: unknown): Test | Refused {
  if (!isComparison(operator)) return refused('is no operator')
  if (operator === '$exists')
    return typeof operand === 'boolean' ? { operator, operand } : refused('must be true or false')
  if (operator === '$in' || operator === '$nin') {
    if (!Array.isArray(operand)) return refused('must be an array')
    if (operand.length > filterLimits.list) return refused(`must have at most ${filterLimits.list} elements`)
    for (const [index, element] of operand.entries()) {
      const fault = element === null ? undefined : type.equality(element)
      if (fault) return refused(fault.message, index, ...fault.path)
    }
    return { operator, operand }
  }
  if (isSearch(operator)) {
    const fault = typeof operand === 'string' ? type.search(operator, operand) : 'must be a string'
    return fault === undefined ? { operator, operand: operand as string } : refused(fault)
  }
  if (isRange(operator)) {
    const fault = operand === null ? 'must not be null: it has no order' : type.bound(operand)
    return fault === undefined ? { operator, operand: operand as string | number } : refused(fault)
  }
  const fault = operand === null ? undefined : type.equality(operand)
  return fault ? { refused: fault } : { operator, operand }
}

/** An operand of a query string, whose leaves are all texts, as the field's type has them. */
export function operandFromQuery({ coerced }: OperandType, operator: string, operand: unknown): unknown {
  const type = operator === '$exists' ? 'boolean' : coerced
  const read = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(read)
    return type && typeof value === 'string' ? coerceText(value, type) : value
  }
  return read(operand)
}

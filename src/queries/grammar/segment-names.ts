import { isQuantifier } from './grammar.ts'

/** Whether a filter names a segment, not by way of another segment. */
export function namesSegment(filter: unknown, key: string): boolean {
  if (Array.isArray(filter)) return filter.some(each => namesSegment(each, key))
  if (typeof filter !== 'object' || filter === null) return false
  return Object.entries(filter).some(([name, operand]) => {
    if (name === '$segment') return operand === key
    if (name === '$and' || name === '$or' || name === '$not') return namesSegment(operand, key)
    const operators = typeof operand === 'object' && operand !== null ? Object.entries(operand) : []
    return operators.some(
      ([operator, inner]) => (isQuantifier(operator) || operator === '$where') && namesSegment(inner, key),
    )
  })
}

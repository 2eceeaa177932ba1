import { isDateTime } from '../formats.ts'
import { type Field, filter_limits, isComparison, isRange, isSearch, type Test } from './grammar.ts'

type Refused = { refused: { path: (string | number)[]; message: string } }

const refused = (message: string, ...path: (string | number)[]): Refused => ({ refused: { path, message } })

const isTime = (value: unknown) => typeof value === 'string' && isDateTime(value)
const time_message = 'must be a date and time with its offset, as RFC 3339 has it'

/** A test of a field, if the operator is one and takes this operand; else what is wrong, with a path below the operand. */
export function testFrom({ kind }: Field, operator: string, operand: unknown): Test | Refused {
  if (!isComparison(operator)) return refused('is no operator')
  if (operator === '$exists')
    return typeof operand === 'boolean' ? { operator, operand } : refused('must be true or false')
  if (operator === '$in' || operator === '$nin') {
    if (!Array.isArray(operand)) return refused('must be an array')
    if (operand.length > filter_limits.list) return refused(`must have at most ${filter_limits.list} elements`)
    const wrong = kind === 'time' ? operand.findIndex(value => value !== null && !isTime(value)) : -1
    return wrong === -1 ? { operator, operand } : refused(time_message, wrong)
  }
  if (isSearch(operator)) {
    if (kind === 'time') return refused('searches texts, and this is a moment')
    return typeof operand === 'string' ? { operator, operand } : refused('must be a string')
  }
  if (kind === 'time' && !isTime(operand) && (isRange(operator) || operand !== null)) return refused(time_message)
  if (!isRange(operator)) return { operator, operand }
  if (typeof operand === 'string' || typeof operand === 'number') return { operator, operand }
  return refused('must be a string or a number')
}

import { isEqual } from '../entity/equal.ts'
import { type FieldType, type Filter, isTime, type Operator, type Test } from './filter-tree.ts'

const letters = { hours: 'H', days: 'D', weeks: 'W', months: 'M', years: 'Y' } as const
export type DurationUnit = keyof typeof letters
export const durationUnits = Object.keys(letters) as DurationUnit[]

/** A duration of one unit. The count is empty while it is typed. */
export type Duration = { count: string; unit: DurationUnit }

/** A duration in ISO 8601, such as `P30D`. */
export const textOfDuration = ({ count, unit }: Duration): string =>
  `${unit === 'hours' ? 'PT' : 'P'}${count}${letters[unit]}`

/** Reads a duration of one unit. Undefined for any other value. */
export function durationOf(text: unknown): Duration | undefined {
  const [, count, letter] = /^PT?(\d*)([A-Z])$/.exec(String(text)) ?? []
  const unit = durationUnits.find(each => letters[each] === letter)
  const duration = unit && { count: count!, unit }
  return duration && textOfDuration(duration) === text ? duration : undefined
}

const isComplete = (text: unknown) => Boolean(durationOf(text)?.count)

/** The operands that the service computes from the time of the request. */
export const relativeOperands = ['$ago', '$from_now', '$today'] as const
export type RelativeOperand = (typeof relativeOperands)[number]

/** The text of a relative operand in its condition. */
export const textOfRelative = (name: RelativeOperand, operand: string): string => JSON.stringify({ [name]: operand })

/** Reads the text of a relative operand. Undefined for a date or a time. */
export function relativeOfText(text: string): { name: RelativeOperand; operand: string } | undefined {
  if (!text.startsWith('{')) return undefined
  const [name, operand] = Object.entries(JSON.parse(text) as Record<RelativeOperand, string>)[0]!
  return { name: name as RelativeOperand, operand }
}

/** Whether a value is a relative operand that is complete and that the builder has controls for. */
export function isRelative(value: unknown): boolean {
  const [[name, operand] = [], ...others] = Object.entries(value ?? {})
  if (others.length > 0) return false
  return name === '$today' ? operand === 'start' : (name === '$ago' || name === '$from_now') && isComplete(operand)
}

/** The operators for a span of time, each with its initial operand. */
const periods = { in_last: 'P30D', in_next: 'P7D', before_today: '', anniversary: '7' } as const
type Period = keyof typeof periods
export const isPeriod = (operator: Operator): operator is Period => Object.hasOwn(periods, operator)

/** The test with another operator. It keeps the operand if both operators take it. */
export function changeOperator({ operator: before, operand }: Test, operator: Operator): Test {
  if (!isPeriod(operator)) return { operator, operand: isPeriod(before) ? '' : operand }
  const isKept = durationOf(operand) !== undefined && durationOf(periods[operator]) !== undefined
  return { operator, operand: isKept ? operand : periods[operator] }
}

/** Times that are never in the future, so that "in the last" needs no second bound. */
const pastFields = ['created_at', 'updated_at']

/** The operators of the API for a span of time. Undefined for any other operator, or an incomplete operand. */
export function writePeriod(field: string, type: FieldType, { operator, operand }: Test): Filter | undefined {
  const now = type === 'date' ? { $today: 'start' } : { $ago: 'PT0S' }
  if (operator === 'before_today') return { $lt: { $today: 'start' } }
  if (operator === 'anniversary')
    return /^\d+$/.test(operand) ? { $anniversary: { within_days: Number(operand) } } : undefined
  if (!isPeriod(operator) || !isComplete(operand)) return undefined
  if (operator === 'in_next') return { $gte: now, $lte: { $from_now: operand } }
  return { $gte: { $ago: operand }, ...(!pastFields.includes(field) && { $lte: now }) }
}

/** The span of time that the operators on a field express. Undefined if they express none. */
export function readPeriod(field: string, type: FieldType, operators: Filter): Test | undefined {
  if (!isTime(type)) return undefined
  const { $gte, $lte, $anniversary } = operators as Record<string, Record<string, unknown> | undefined>
  const operands = {
    in_last: $gte?.$ago,
    in_next: $lte?.$from_now,
    before_today: '',
    anniversary: $anniversary?.within_days,
  }
  return Object.entries(operands)
    .map(([operator, operand]) => ({ operator: operator as Period, operand: String(operand) }))
    .find(test => isEqual(writePeriod(field, type, test), operators))
}

import { DateTime, Duration } from 'luxon'
import type { OperandFault, TimeType } from './operand-types.ts'

/** The moment that relative times count from, and the time zone that bounds the days. */
export type Clock = { nowMs: number; timeZone: string }

const operators = ['$ago', '$from_now', '$today'] as const
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Whether an operand is a relative time: `{"$ago": "P30D"}`, `{"$from_now": "PT12H"}` or `{"$today": "start"}`. */
export const isRelativeTime = (operand: unknown): operand is Record<string, unknown> =>
  isObject(operand) && operators.some(operator => Object.hasOwn(operand, operator))

const duration =
  /^P(?=[\dT])(?:\d{1,5}Y)?(?:\d{1,5}M)?(?:\d{1,5}W)?(?:\d{1,6}D)?(?:T(?=\d)(?:\d{1,7}H)?(?:\d{1,8}M)?(?:\d{1,9}S)?)?$/

/** Resolves a relative time to RFC 3339. Years, months, weeks and days follow the calendar. */
export function timeFrom(relative: Record<string, unknown>, type: TimeType, clock: Clock): string | OperandFault {
  const [operator, ...others] = Object.keys(relative) as (typeof operators)[number][]
  if (others.length > 0) return { path: [], message: `must have a single member: ${operators.join(', ')}` }
  const now = DateTime.fromMillis(clock.nowMs, { zone: clock.timeZone })
  const value = relative[operator!]
  if (operator === '$today')
    return value === 'start' ? print(now.startOf('day'), type) : { path: [operator], message: 'must be "start"' }
  if (typeof value !== 'string' || !duration.test(value))
    return { path: [operator!], message: 'must be an ISO 8601 duration, such as P30D, P1M or PT12H' }
  const distance = Duration.fromISO(value)
  const time = operator === '$ago' ? now.minus(distance) : now.plus(distance)
  if (!time.isValid || time.toUTC().year < 1 || time.toUTC().year > 9_999)
    return { path: [operator!], message: 'must lead to a year from 1 to 9999' }
  return print(time, type)
}

const print = (time: DateTime, type: TimeType): string => (type === 'date' ? time.toISODate()! : time.toUTC().toISO()!)

const maxDays = 365

/**
 * The days of the year, `MM-DD`, from today until `within_days` later. Outside leap years, 29 February counts as 1
 * March.
 */
export function anniversaryDays(operand: unknown, clock: Clock): string[] | OperandFault {
  if (!isObject(operand)) return { path: [], message: 'must be an object: {"within_days": 7}' }
  const unknown = Object.keys(operand).find(key => key !== 'within_days')
  if (unknown !== undefined) return { path: [unknown], message: 'is unknown: use within_days' }
  const { within_days } = operand
  if (!Number.isInteger(within_days) || Number(within_days) < 0 || Number(within_days) > maxDays)
    return { path: ['within_days'], message: `must be a whole number from 0, which is today, to ${maxDays}` }
  const today = DateTime.fromMillis(clock.nowMs, { zone: clock.timeZone })
  return Array.from({ length: Number(within_days) + 1 }, (_, days) => today.plus({ days })).flatMap(day => {
    const name = day.toFormat('MM-dd')
    return name === '03-01' && !day.isInLeapYear ? ['02-29', name] : [name]
  })
}

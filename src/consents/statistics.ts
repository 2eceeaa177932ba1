import { DateTime } from 'luxon'
import type { Context } from '../db/context.ts'
import type { ConsentType } from '../organizations/definitions.ts'
import type { Signal } from '../process/signal.ts'
import { type Channel, channels } from '../values/channels.ts'
import { throwBrokenRule } from '../values/errors.ts'
import { instantOf } from '../values/instant.ts'
import { answerKey, configuredFor, type Question } from './answers.ts'
import { type ConsentStatisticsBody, type ConsentStatisticsShape, maxIntervals } from './statistics-schema.ts'
import { readConsentStatisticsSql } from './statistics-sql.ts'

type Kind = 'granted' | 'refused' | 'pending'
type Type = Pick<ConsentType, 'id' | 'state' | 'mandatory' | 'default_state' | 'channels'>

/** The change of the counts in the interval with this position, counted from 0. */
type Step = Question & { position: number } & Record<Kind, number>

/**
 * The number of people with an address on the channel who have answered a question, and of those who have granted it.
 */
type Answered = { key: string; answered: number; granted: number }

/** `people` is the number of people with an address, by channel. */
type Facts = {
  sequence: number
  types: Type[]
  steps: Step[]
  people: Record<Channel, number>
  answered: Answered[]
  /** The number of people who may not be written to only because of a refusal for their address. */
  refused: (Question & { people: number })[]
}

const defaultIntervals = 30

/**
 * Counts the answers in force at the end of each interval, and the people who may be written to now. Throws a Fault of
 * 400 for times that are out of order, too many intervals, and a question that the organization does not have.
 */
export async function readConsentStatistics(
  { db, organization_id }: Context,
  body: ConsentStatisticsBody,
  signal: Signal,
): Promise<ConsentStatisticsShape> {
  const { consent_type_id, channel, interval } = body
  const { ends, isUntilNow } = endsOf(body, Date.now())
  const labels = ends.map(endMs => new Date(endMs).toISOString())
  // The bound `infinity` includes an answer of another process whose clock is ahead.
  const bounds = isUntilNow ? [...labels.slice(0, -1), 'infinity'] : labels
  const values = [organization_id, bounds, consent_type_id ?? null, channel ?? null]
  const [facts] = await db.query<Facts>(readConsentStatisticsSql, values, signal)
  if (consent_type_id !== undefined) requireQuestion(facts!, body)
  const items = questionsOf(facts!, channel).map(question => itemOf(question, facts!, ends.length))
  return { sequence: facts!.sequence, interval, ends: labels, items }
}

/** The ends of the intervals, ascending, in Unix time in milliseconds. The last one is the time `to`, or now. */
export function endsOf(
  { from, to, interval }: Pick<ConsentStatisticsBody, 'from' | 'to' | 'interval'>,
  nowMs: number,
): { ends: number[]; isUntilNow: boolean } {
  const toMs = Math.min(timeOf('/to', to) ?? nowMs, nowMs)
  const fromMs = timeOf('/from', from)
  if (fromMs !== undefined && fromMs >= toMs) throwBrokenRule('/from', 'must be before `to`, and in the past')
  const startOf = (timeMs: number) => DateTime.fromMillis(timeMs, { zone: 'utc' }).startOf(interval)
  // By default, the last interval ends with `to`, if `to` is the end of an interval.
  let start = fromMs === undefined ? startOf(toMs - 1).plus({ [interval]: 1 - defaultIntervals }) : startOf(fromMs)
  const ends: number[] = []
  while (start.toMillis() < toMs) {
    if (ends.length === maxIntervals)
      throwBrokenRule('/from', `leads to more than ${maxIntervals} intervals: choose a later time, or longer intervals`)
    start = start.plus({ [interval]: 1 })
    ends.push(Math.min(start.toMillis(), toMs))
  }
  return { ends, isUntilNow: toMs === nowMs }
}

/** Unix time in milliseconds. Throws a Fault of 400 for a time before 1970, because no answer is that old. */
function timeOf(path: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const { seconds, fraction } = instantOf(text)
  if (seconds < 0) throwBrokenRule(path, 'must not be before 1970')
  return seconds * 1_000 + Number(fraction.slice(0, 3).padEnd(3, '0'))
}

function requireQuestion({ types }: Facts, { channel }: ConsentStatisticsBody): void {
  if (types.length === 0) throwBrokenRule('/consent_type_id', 'is not a consent type of the organization')
  if (channel !== undefined && !configuredFor(types[0]!, channel))
    throwBrokenRule('/channel', 'is a channel that the consent type is not configured for')
}

/** The questions of the consent types: their channels, and removed channels that have answers. */
function questionsOf({ types, steps }: Facts, channel: Channel | undefined): (Question & { type: Type })[] {
  const answered = new Set(steps.map(({ consent_type_id, channel }) => answerKey(consent_type_id, channel)))
  return types.flatMap(type =>
    channels
      .filter(each => channel === undefined || each === channel)
      .filter(each => configuredFor(type, each) || answered.has(answerKey(type.id, each)))
      .map(each => ({ consent_type_id: type.id, channel: each, type })),
  )
}

function itemOf(
  { type, ...question }: Question & { type: Type },
  facts: Facts,
  count: number,
): ConsentStatisticsShape['items'][number] {
  const { consent_type_id, channel } = question
  const steps = facts.steps.filter(step => step.consent_type_id === consent_type_id && step.channel === channel)
  const countsOf = (kind: Kind) => {
    const counts = new Array<number>(count).fill(0)
    // A step after the last end has the position `count`.
    for (const step of steps) if (step.position < count) counts[step.position]! += step[kind]
    for (let index = 1; index < count; index++) counts[index]! += counts[index - 1]!
    return counts
  }
  return {
    ...question,
    granted: countsOf('granted'),
    refused: countsOf('refused'),
    pending: countsOf('pending'),
    contactable: countContactable(type, channel, facts),
  }
}

/** The number of people that a decision (contact-decision.ts) allows to write to. */
function countContactable({ id, ...type }: Type, channel: Channel, { people, answered, refused }: Facts): number {
  if (type.state === 'archived' || !configuredFor(type, channel)) return 0
  if (type.mandatory) return people[channel]
  const given = answered.find(({ key }) => key === answerKey(id, channel)) ?? { answered: 0, granted: 0 }
  const granted = type.default_state ? people[channel] - given.answered + given.granted : given.granted
  const ofAddress = refused.find(each => each.consent_type_id === id && each.channel === channel)
  return granted - (ofAddress?.people ?? 0)
}

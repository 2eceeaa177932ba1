import type { Static } from 'typebox'
import { channels } from '../values/channels.ts'
import { closedObject, count, number, storedNumber, Type, time } from '../values/json-schema.ts'

/** The maximum number of intervals of one request. */
export const maxIntervals = 400

const counts = (description: string) => Type.Array(count(), { description })

/** Body of POST /v1/consents/statistics. */
export const statisticsBody = closedObject(
  {
    consent_type_id: Type.Optional(storedNumber('Only this consent type. The default is all.')),
    channel: Type.Optional(Type.Enum(channels, { description: 'Only this channel. The default is all.' })),
    from: Type.Optional(time('The first interval contains this time. By default there are 30 intervals.')),
    to: Type.Optional(time('The end of the last interval. The default is now, and so is a time in the future.')),
    interval: Type.Enum(['day', 'week', 'month'], {
      description: 'Days, weeks from Monday, and months in UTC.',
    }),
  },
  { title: 'ConsentStatisticsBody', examples: [{ interval: 'day' }] },
)
export type ConsentStatisticsBody = Static<typeof statisticsBody>

/** The response of POST /v1/consents/statistics. */
export const consentStatistics = Type.Object(
  {
    sequence: count('The number of the newest change that is counted.'),
    interval: Type.Enum(['day', 'week', 'month']),
    ends: Type.Array(time(), {
      description:
        'The ends of the intervals, ascending. An answer counts if it was recorded before. The last one is `to`, or now.',
    }),
    items: Type.Array(
      Type.Object(
        {
          consent_type_id: number(),
          channel: Type.Enum(channels),
          granted: counts(
            'How many answers in force granted the purpose, at each of `ends`. Each is of a person who was there then.',
          ),
          refused: counts('How many refused it.'),
          pending: counts('How many granted it and waited for their confirmation.'),
          contactable: count('How many people may be written to now, by the rules of contact decisions.'),
        },
        { title: 'ConsentStatisticsItem' },
      ),
      { description: 'One item for each consent type and each of its channels.' },
    ),
  },
  {
    title: 'ConsentStatistics',
    description: 'How many answers were in force over time, and how many people may be written to now.',
    examples: [
      {
        sequence: 1_204,
        interval: 'day',
        ends: ['2026-01-01T00:00:00.000Z', '2026-01-01T12:00:00.000Z'],
        items: [
          { consent_type_id: 1, channel: 'email', granted: [3, 4], refused: [1, 1], pending: [0, 1], contactable: 4 },
        ],
      },
    ],
  },
)
export type ConsentStatisticsShape = Static<typeof consentStatistics>

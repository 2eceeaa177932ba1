import type { ConsentStatistics, ConsentType, Filter } from '@kith/client'

type Counts = ConsentStatistics['items'][number]

/** The filters that find exactly the people of the counts. A count that no filter expresses has none. */
export type PeopleFilters = Partial<Record<'contactable' | 'granted' | 'refused' | 'pending', Filter>>

/** The filters on people for the counts of a consent type on a channel. */
export function peopleFiltersOf(type: ConsentType | undefined, { channel, pending }: Counts): PeopleFilters {
  // Filters accept active consent types only, and the channels that they have.
  if (type?.state !== 'active' || !type.channels.some(each => each.channel === channel)) return {}
  const contactable = { contactable: { consent_type_id: type.id, channel } }
  // A mandatory purpose takes no answers, and a filter does not see those from before.
  if (type.mandatory) return { contactable } as PeopleFilters
  const consents = (tests: object) => ({ consents: { $some: { consent_type_id: type.id, channel, ...tests } } })
  // A state that is not the default one is always an answer.
  const answered = (state: boolean) => ({
    state,
    ...(state === type.default_state && { answered_at: { $exists: true } }),
  })
  // A grant that waits for its confirmation has the state of a refusal.
  const confirmed = (pending.at(-1) ?? 0) > 0 && { pending: false }
  return {
    contactable,
    granted: consents(answered(true)),
    refused: consents({ ...answered(false), ...confirmed }),
    pending: consents({ pending: true }),
  } as PeopleFilters
}

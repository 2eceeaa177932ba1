import type { ConsentStatistics, ConsentType, Filter } from '@kith/client'

type Counts = ConsentStatistics['items'][number]

/** The filters that find exactly the people of the counts. A count that no filter expresses has none. */
export type PeopleFilters = Partial<Record<'contactable' | 'granted' | 'refused', Filter>>

/** The filters on people for the counts of a consent type on a channel. */
export function peopleFiltersOf(type: ConsentType | undefined, { channel, pending }: Counts): PeopleFilters {
  // Filters accept active consent types only, and the channels that they have.
  if (type?.state !== 'active' || !type.channels.some(each => each.channel === channel)) return {}
  const consents = (state: boolean, tests = {}) => ({
    consents: { $some: { consent_type_id: type.id, channel, state, ...tests } },
  })
  const contactable = { contactable: { consent_type_id: type.id, channel } }
  // A mandatory purpose takes no answers, and a filter does not see those from before.
  if (type.mandatory) return { contactable } as PeopleFilters
  // A state that is not the default one is always an answer.
  const answered = (state: boolean) =>
    state === type.default_state ? consents(state, { answered_at: { $exists: true } }) : consents(state)
  // For a filter, a grant that waits for its confirmation is refused.
  const hasPending = (pending.at(-1) ?? 0) > 0
  return { contactable, granted: answered(true), ...(!hasPending && { refused: answered(false) }) } as PeopleFilters
}

import { channelNames, type Suppression } from '@kith/client'
import { addressReader, oneOf, text } from '../app/search-params.ts'

export const reasons: Suppression['reason'][] = ['hard_bounce', 'complaint', 'soft_bounce']

/** What the address of the page says: the open tab, and which suppressed addresses are shown, such as those with a part of a text. */
export const validateDeliverabilitySearch = addressReader({
  tab: oneOf(['sources']),
  text,
  reason: oneOf(reasons),
  channel: oneOf(channelNames),
})
export type DeliverabilitySearch = ReturnType<typeof validateDeliverabilitySearch>

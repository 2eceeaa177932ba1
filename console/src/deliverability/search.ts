import { channelNames } from '@kith/client'
import { addressReader, oneOf, text } from '../app/search-params.ts'

/** What the address of the page says: the open tab, and which suppressed addresses are shown, such as those with a part of a text. */
export const validateDeliverabilitySearch = addressReader({
  tab: oneOf(['sources']),
  text,
  reason: oneOf(['hard_bounce', 'complaint', 'soft_bounce']),
  channel: oneOf(channelNames),
})
export type DeliverabilitySearch = ReturnType<typeof validateDeliverabilitySearch>

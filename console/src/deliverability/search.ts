import { channelNames } from '@kith/client'
import { addressReader, oneOf, text } from '../app/search-params.ts'

/** The open tab and the suppressed addresses of the page, from its address. `text` is a part of the addresses. */
export const validateDeliverabilitySearch = addressReader({
  tab: oneOf(['sources']),
  text,
  reason: oneOf(['hard_bounce', 'complaint', 'soft_bounce']),
  channel: oneOf(channelNames),
})
export type DeliverabilitySearch = ReturnType<typeof validateDeliverabilitySearch>

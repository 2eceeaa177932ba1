import { type Channel, channelNames, type Suppression } from '@kith/client'

export const reasons: Suppression['reason'][] = ['hard_bounce', 'complaint', 'soft_bounce']

/** What the address of the page says: the open tab, and which suppressed addresses are shown. */
export type DeliverabilitySearch = {
  tab?: 'sources'
  /** A part of the address. */
  text?: string
  reason?: Suppression['reason']
  channel?: Channel
}

export function validateDeliverabilitySearch(search: Record<string, unknown>): DeliverabilitySearch {
  const { tab, text } = search
  const reason = reasons.find(each => each === search.reason)
  const channel = channelNames.find(each => each === search.channel)
  return {
    ...(tab === 'sources' && { tab }),
    ...(typeof text === 'string' && text !== '' && { text }),
    ...(reason && { reason }),
    ...(channel && { channel }),
  }
}

import { emailKey } from '../entities/match-keys.ts'
import { erasableText } from '../entities/write/decide/erasable-values.ts'
import { type Channel, channelTable } from '../values/channels.ts'
import { formats } from '../values/formats.ts'
import { mobileKey } from '../values/phone-numbers.ts'

/** The address on a channel as people have it in their key; null for a text that is none. */
export function addressKey(channel: Channel, address: string, country: string | null): string | null {
  const text = address.trim()
  if (channelTable[channel].key === 'mobile_key') return mobileKey(null, text, country)
  return formats.email!.holds(text) ? emailKey(text) : null
}

/** The key of an address as its hash is made of it, such as `email:ada@example.com`. */
export const hashedValue = (channel: Channel, key: string): string =>
  erasableText(channelTable[channel].key === 'mobile_key' ? 'mobile' : 'email', key)

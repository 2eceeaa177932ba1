/**
 * The channels on which people are written to. `address` is the field of a person with the address on the channel, `key` the column of
 * match-keys.ts that a valid one has, `flag` the summary of the answers on it, and `term` its personal data in the Data Privacy Vocabulary. `linkNumber` is the channel in the links that are
 * already sent: a new channel gets a new number, and no number changes or is used again.
 */
const table = {
  email: { address: 'email', key: 'email_key', flag: 'email_consent', term: 'pd:EmailAddress', linkNumber: 1 },
  sms: { address: 'mobile_number', key: 'mobile_key', flag: 'sms_consent', term: 'pd:TelephoneNumber', linkNumber: 2 },
} as const

export type Channel = keyof typeof table
export type SummaryFlag = (typeof table)[Channel]['flag']

export const channels = Object.keys(table) as Channel[]
export const channelTable: Readonly<Record<Channel, (typeof table)[Channel]>> = table

export const isChannel = (text: string): text is Channel => Object.hasOwn(table, text)

export const channelOfLinkNumber = (number: number): Channel | undefined =>
  channels.find(channel => table[channel].linkNumber === number)

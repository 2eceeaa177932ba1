/**
 * The channels on which organizations write to people. `address` is the field of a person with the address, `key` the
 * column of match-keys.ts that a valid address has, `flag` the summary of the answers on the channel, and `term` its
 * personal data in the Data Privacy Vocabulary. `linkNumber` is the channel in links that have been sent: a new channel
 * gets a new number, and numbers are never changed or reused.
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

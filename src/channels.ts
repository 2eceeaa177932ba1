/**
 * The channels on which people are written to. `address` is the field of a person with the address on the channel, `flag` the summary of
 * the answers on it, and `term` its personal data in the Data Privacy Vocabulary.
 */
const table = {
  email: { address: 'email', flag: 'email_consent', term: 'pd:EmailAddress' },
  sms: { address: 'mobile_number', flag: 'sms_consent', term: 'pd:TelephoneNumber' },
} as const

export type Channel = keyof typeof table
export type SummaryFlag = (typeof table)[Channel]['flag']

export const channels = Object.keys(table) as Channel[]
export const channelTable: Readonly<Record<Channel, (typeof table)[Channel]>> = table

export const isChannel = (text: string): text is Channel => Object.hasOwn(table, text)

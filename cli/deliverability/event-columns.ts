import { type Columns, columnsOf } from '../../transfer/columns.ts'
import { normalize } from '../../transfer/normalize-name.ts'
import type { Target } from '../../transfer/target.ts'
import type { FileCommandOptions } from '../import/file-options.ts'

/** The fields of an event, and the names that lists of suppressed addresses give to them, the first ones first. */
const names = {
  channel: ['channel'],
  address: ['address', 'email', 'emailaddress', 'recipient', 'phone', 'phonenumber', 'mobile'],
  external_id: ['externalid'],
  type: ['type', 'event', 'reason', 'suppressionreason'],
  at: ['at', 'date', 'time', 'timestamp', 'createdat', 'suppressedat', 'lastupdatetime'],
  provider: ['provider'],
  reference: ['reference', 'messageid'],
  consent_type_id: ['consenttypeid'],
} as const

/** Providers write names and words in one, as in `EmailAddress`, or with spaces or underscores. */
const inOne = (name: string) => normalize(name).replaceAll(' ', '')

const typeOf = (key: string) => (key === 'at' ? 'datetime' : key === 'consent_type_id' ? 'number' : 'text')
const targets = new Map(
  Object.keys(names).map((key): [string, Target] => [key, { to: 'field', name: key, key, type: typeOf(key) }]),
)

/**
 * Finds the columns of a list of addresses, by their names or as the options say. The others are left out. Throws an Error if nothing says
 * the addresses, the types of the events or their times.
 */
export function eventColumnsOf(
  header: string[],
  { map, ignore, prefix, set }: FileCommandOptions,
): Columns & { leftOut: string[] } {
  const columns = header.map(name => name.trim())
  const all = new Map(map)
  for (const [key, known] of Object.entries(names)) {
    if (set.has(key) || [...map.values()].includes(key)) continue
    const free = columns.filter(name => !map.has(name) && !ignore.includes(name))
    const name = known.map(each => free.find(name => inOne(name) === each)).find(Boolean)
    if (name !== undefined) all.set(name, key)
  }
  const has = (key: string) => set.has(key) || [...all.values()].includes(key)
  if (!has('address') && !has('external_id'))
    throw new Error(`No column has the addresses. Name it with --map "<column>=address". ${listOf(columns)}`)
  if (!has('type'))
    throw new Error(
      `No column has the types of the events. Name them all, as by --set type=hard_bounce. ${listOf(columns)}`,
    )
  if (!has('at'))
    throw new Error(
      'No column has the times of the events. Name the time of the export, as by --set at=2026-01-31T09:00:00Z: the events count from then. ' +
        listOf(columns),
    )
  const leftOut = columns.filter(name => !all.has(name) && !ignore.includes(name))
  const options = { map: all, ignore: [...ignore, ...leftOut], prefixes: prefix, constants: set }
  return {
    ...columnsOf(header, targets, { ...options, unknownAsAttributes: false }),
    leftOut: leftOut.filter(name => name !== ''),
  }
}

const listOf = (columns: string[]) => `The columns are ${columns.join(', ')}.`

/** What providers call the types. */
const typeNames = {
  hard_bounce: ['hardbounce', 'bounce', 'bounced', 'cleaned', 'invalidemail'],
  soft_bounce: ['softbounce'],
  complaint: ['complaint', 'spamcomplaint', 'spamreport', 'spam'],
  unsubscribe: ['unsubscribe', 'unsubscribed'],
  delivered: ['delivered'],
}
const typeByName = new Map(
  Object.entries(typeNames).flatMap(([type, all]) => all.map((name): [string, string] => [name, type])),
)

/** An event as the API takes it. The service refuses a type that it does not know. Without a channel, the address tells it. */
export function eventOf(record: { type?: string; channel?: string; address?: string }): object {
  const { type, channel, address } = record
  return {
    ...record,
    ...(type !== undefined && { type: typeByName.get(inOne(type)) ?? type }),
    ...(channel === undefined && address !== undefined && { channel: address.includes('@') ? 'email' : 'sms' }),
  }
}

import type { OffsetOf } from '../../transfer/cell-parser.ts'
import { UsageError } from '../command.ts'

/** Loads a time zone by its name, such as `Europe/Berlin`. Throws a UsageError if there is none. */
export async function loadTimeZone(name: string): Promise<OffsetOf> {
  const { DateTime, IANAZone } = await import('luxon')
  if (!IANAZone.isValidZone(name))
    throw new UsageError(`There is no time zone ${name}. Give a name such as Europe/Berlin or UTC.`)
  return localTime => DateTime.fromISO(localTime, { zone: name }).toFormat('ZZ')
}

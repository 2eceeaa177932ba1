import { UsageError } from '../command.ts'

/** Returns the offset of a time zone at a local time `YYYY-MM-DDTHH:MM:SS`, such as `+01:00`. */
export type OffsetOf = (localTime: string) => string

/** Loads a time zone by its name, such as `Europe/Berlin`. Throws a UsageError if there is none. */
export async function loadTimeZone(name: string): Promise<OffsetOf> {
  const { DateTime, IANAZone } = await import('luxon')
  if (!IANAZone.isValidZone(name))
    throw new UsageError(`There is no time zone ${name}. Give a name such as Europe/Berlin or UTC.`)
  return localTime => DateTime.fromISO(localTime, { zone: name }).toFormat('ZZ')
}

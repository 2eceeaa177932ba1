import type { OffsetOf } from '../../transfer/cell-parser.ts'
import { UsageError } from '../command.ts'

/** Loads a time zone by its name, such as `Europe/Berlin`. Throws a UsageError if there is none. */
export async function loadTimeZone(name: string): Promise<OffsetOf> {
  const { DateTime, IANAZone } = await import('luxon')
  if (!IANAZone.isValidZone(name))
    throw new UsageError(`There is no time zone ${name}. Give a name such as Europe/Berlin or UTC.`)
  return localTime => {
    const time = DateTime.fromISO(localTime, { zone: name })
    // luxon moves a local time that clocks skip.
    const isMoved = time.toFormat("yyyy-MM-dd'T'HH:mm:ss") !== localTime.slice(0, 19)
    return isMoved ? null : time.getPossibleOffsets()[0]!.toFormat('ZZ')
  }
}

import type { Config } from '../../process/config.ts'
import { type Finding, ok, runCheck, warning, wrong } from './finding.ts'

const maxAgeSeconds = 300
const maxBaseAgeMs = 2 * 86_400_000

/** Checks that the archive responds, and the range of times to which it can restore. */
export function checkArchive({ archive }: Config): Promise<Finding[]> {
  const advice = 'Check KITH_ARCHIVE, and that this machine reaches it.'
  return runCheck('restore point', advice, async () => {
    if (!archive) return []
    // The libraries of archives are loaded only if an archive is configured.
    const { openStore } = await import('../../db/archive/store.ts')
    const { listReach, readOwner, readPosition } = await import('../../db/archive/archive.ts')
    const store = openStore(archive.address)
    const owner = await readOwner(store)
    const position = owner && (await readPosition(store, owner.timeline))
    if (!position)
      return wrong('restore point', `${store.label} has nothing yet`, 'Start the service, and see its log.')
    const ageSeconds = Math.max(0, Math.round((Date.now() - Date.parse(position.until)) / 1_000))
    const message = `the last second that ${store.label} can restore is ${position.until}`
    if (ageSeconds > maxAgeSeconds + archive.seconds)
      return wrong('restore point', message, 'See the log of the service: it archives while it runs.')
    const reaches = (await listReach(store)).filter(({ until }) => until !== undefined)
    const base = reaches.at(-1)
    if (!base)
      return wrong('restore point', `${store.label} has no copy of the data yet`, 'See the log of the service.')
    if (Date.parse(base.stopped_at) < Date.now() - maxBaseAgeMs)
      return warning(
        'restore point',
        `the last copy of the data in ${store.label} is of ${base.stopped_at}`,
        'See the log of the service.',
      )
    return ok('restore point', `${message}, and the first one is ${reaches[0]!.stopped_at}`)
  })
}

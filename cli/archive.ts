import { listReach } from '../src/db/archive/archive.ts'
import { copyBase } from '../src/db/archive/base.ts'
import { openStore } from '../src/db/archive/store.ts'
import { startEmbedded } from '../src/db/embedded.ts'
import { type Config, loadConfig } from '../src/process/config.ts'
import { UsageError } from './command.ts'
import { hasData } from './doctor/storage.ts'
import { newPlainCommand } from './kith-command.ts'

/** A running service archives the log that a copy needs within its interval. */
const gracePatienceMs = 60_000

export function archiveCommand(environment: NodeJS.ProcessEnv) {
  const archive = newPlainCommand(
    environment,
    'archive',
    'Shows and fills the archive of the embedded database (KITH_ARCHIVE).',
  ).examples('archive list', 'archive base')
  archive
    .addList(
      ['base', 'timeline', 'from', 'until', 'bytes'],
      'list',
      'Prints a row for each copy of the data in the archive, with the first and the last moment that a restore from it reaches. ' +
        'A copy without a last moment lacks a segment of the log.',
    )
    .examples('archive list')
    .action(async () => {
      const reaches = await listReach(openStore(requireArchive(loadConfig(environment)).address))
      return reaches.map(({ id, timeline, stopped_at, until, parts }) => ({
        base: id,
        timeline,
        from: stopped_at,
        until: until ?? null,
        bytes: parts.reduce((sum, { bytes }) => sum + bytes, 0),
      }))
    })
  archive
    .add('base', 'Copies the data to the archive, while the service runs. The service itself does so once a day.')
    .examples('archive base')
    .action(async () => {
      const config = loadConfig(environment)
      const archive = requireArchive(config)
      if (!(await hasData(config))) throw new UsageError(`There are no data in ${config.dataDir}. Set KITH_DATA_DIR.`)
      const database = await startEmbedded({ dataDir: config.dataDir, purpose: 'command', log: () => {} })
      try {
        const { url, dataDir: path } = database
        const patienceMs = archive.seconds * 1_000 + gracePatienceMs
        const { id, stopped_at } = await copyBase({ url, path, store: openStore(archive.address), patienceMs })
        return { value: { base: id, from: stopped_at }, lines: [`${id} restores ${stopped_at} and later`] }
      } finally {
        await database.stop()
      }
    })
  return archive
}

function requireArchive({ archive }: Config): NonNullable<Config['archive']> {
  if (!archive) throw new UsageError('Set KITH_ARCHIVE to the archive.')
  return archive
}

import { startEmbedded } from '../../src/db/embedded.ts'

// A process with an embedded PostgreSQL that tests can query and kill: node embedded-process.ts <dataDir> <serve|command>.
// It reports by IPC, and stops on the message 'stop'.
const [dataDir = '', purpose = 'serve'] = process.argv.slice(2)
const log = (line: string) => process.send?.({ log: line })

// The IPC channel closes when the parent process is gone, or when this process is done.
process.once('disconnect', () => process.exit())

try {
  const database = await startEmbedded({ dataDir, purpose: purpose === 'command' ? 'command' : 'serve', log })
  process.once('message', async () => {
    await database.stop()
    process.disconnect()
  })
  process.send?.({ url: database.url, dataDir: database.dataDir })
} catch (error) {
  process.send?.({ error: `${(error as Error).name}: ${(error as Error).message}` }, () => process.disconnect())
}

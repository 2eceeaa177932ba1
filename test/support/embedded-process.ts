import { startEmbedded } from '../../src/db/embedded.ts'

// A process with an embedded PostgreSQL, for the tests to talk to and to kill:
// node embedded-process.ts <data_dir> <serve|command>. It reports by IPC and stops on the message 'stop'.
const [data_dir = '', purpose = 'serve'] = process.argv.slice(2)
const log = (line: string) => process.send?.({ log: line })

// Whoever launched us is gone, or we are done.
process.once('disconnect', () => process.exit())

try {
  const database = await startEmbedded({ data_dir, purpose: purpose === 'command' ? 'command' : 'serve', log })
  process.once('message', async () => {
    await database.stop()
    process.disconnect()
  })
  process.send?.({ url: database.url, data_dir: database.data_dir })
} catch (error) {
  process.send?.({ error: `${(error as Error).name}: ${(error as Error).message}` }, () => process.disconnect())
}

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dumpSchema, withClient, withScratchDatabase } from '../../scripts/schema.ts'
import { createTestDatabase } from '../support/database.ts'
import { endProcesses, launch, terminate } from '../support/process.ts'
import { printRound } from './report.ts'
import { rounds } from './rounds.ts'
import { openWire } from './wire.ts'

const roundCount = 10

let migrated: Awaited<ReturnType<typeof createTestDatabase>>
let completeSchema: string
let totalMessages: number
beforeAll(async () => {
  migrated = await createTestDatabase()
  completeSchema = await withClient(migrated.url, dumpSchema)
  totalMessages = await withScratchDatabase(migrated.url, url => migrateUntil(url, Infinity))
})
afterAll(async () => {
  await endProcesses()
  await migrated.drop()
})

/** Runs `kith migrate` through a proxy that kills it at message `killAt`. Returns the number of messages seen. */
async function migrateUntil(url: string, killAt: number): Promise<number> {
  const wire = await openWire(url)
  const command = launch({ DATABASE_URL: wire.url }, ['migrate'])
  let messageCount = 0
  wire.plan = {
    onMessage: () => {
      messageCount += 1
      if (messageCount < killAt) return 'pass'
      command.child.kill('SIGKILL')
      return messageCount % 2 === 0 ? 'cut' : 'pass and cut'
    },
  }
  const code = await command.ended
  wire.close()
  if (killAt === Infinity && code !== 0) throw new Error(command.said.stderr)
  return messageCount
}

describe('migrations that are killed', () => {
  it.each(rounds(roundCount))(
    'leave the schema complete or empty, and the next start completes it: round %i',
    async round => {
      // The last rounds kill the command around the COMMIT.
      const killAt =
        round > roundCount - 3 ? totalMessages - (roundCount - round) : Math.ceil((round * totalMessages) / roundCount)
      await withScratchDatabase(migrated.url, async url => {
        await migrateUntil(url, killAt)
        const schemaLeft = await withClient(url, dumpSchema)
        const tables = schemaLeft.match(/^create table (?!migrations)/gm)?.length ?? 0
        printRound('migrations killed', round, { 'at message': killAt, of: totalMessages, 'tables left': tables })
        const kith = launch({ DATABASE_URL: url, LOG_LEVEL: 'warn' })
        const address = await kith.ready
        expect((await fetch(`${address}/readyz`)).status).toBe(200)
        expect(await withClient(url, dumpSchema)).toBe(completeSchema)
        expect(await terminate(kith)).toBe(0)
        if (tables > 0) expect(schemaLeft).toBe(completeSchema)
      })
    },
  )
})

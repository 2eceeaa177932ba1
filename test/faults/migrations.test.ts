import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dumpSchema, withClient, withScratchDatabase } from '../../scripts/schema.ts'
import { createTestDatabase } from '../support/database.ts'
import { endProcesses, launch, terminate } from '../support/process.ts'
import { tell } from './report.ts'
import { rounds } from './rounds.ts'
import { openWire } from './wire.ts'

const count = 10

let migrated: Awaited<ReturnType<typeof createTestDatabase>>
let whole: string
let messages: number
beforeAll(async () => {
  migrated = await createTestDatabase()
  whole = await withClient(migrated.url, dumpSchema)
  messages = await withScratchDatabase(migrated.url, url => migrateUntil(url, Infinity))
})
afterAll(async () => {
  await endProcesses()
  await migrated.drop()
})

/** Migrates through a line that kills the command at the so-many-th message; how many there were. */
async function migrateUntil(url: string, last: number): Promise<number> {
  const wire = await openWire(url)
  const command = launch({ DATABASE_URL: wire.url }, ['migrate'])
  let seen = 0
  wire.plan = {
    onMessage: () => {
      seen += 1
      if (seen < last) return 'pass'
      command.child.kill('SIGKILL')
      return seen % 2 === 0 ? 'cut' : 'pass and cut'
    },
  }
  const code = await command.ended
  wire.close()
  if (last === Infinity && code !== 0) throw new Error(command.output.stderr)
  return seen
}

describe('migrations killed half-way', () => {
  it.each(rounds(count))('leave all or nothing, and are made whole by the next start: round %i', async round => {
    // The last rounds are those around the COMMIT.
    const last = round > count - 3 ? messages - (count - round) : Math.ceil((round * messages) / count)
    await withScratchDatabase(migrated.url, async url => {
      await migrateUntil(url, last)
      const left = await withClient(url, dumpSchema)
      const tables = left.match(/^create table (?!migrations)/gm)?.length ?? 0
      tell('migrations killed', round, { 'at message': last, of: messages, 'tables left': tables })
      const kith = launch({ DATABASE_URL: url, LOG_LEVEL: 'warn' })
      const address = await kith.ready
      expect((await fetch(`${address}/readyz`)).status).toBe(200)
      expect(await withClient(url, dumpSchema)).toBe(whole)
      expect(await terminate(kith)).toBe(0)
      if (tables > 0) expect(left).toBe(whole)
    })
  })
})

import { senderTo } from '../support/process.ts'
import { compareWithJournal } from './against-journal.ts'
import { compareWithLog } from './against-log.ts'
import { compareWithReads } from './against-reads.ts'
import type { Journal } from './journal.ts'
import { type Finding, replay } from './replay.ts'
import { readStored } from './stored.ts'
import type { World } from './world.ts'

/** Compares the journal of a world with its change log, the change log with all that is stored, and that with what is shown. */
export async function check(world: World, journal: Journal, address: string): Promise<Finding[]> {
  const stored = await readStored(world.databaseUrl, world.organization_id)
  const replayed = replay(stored)
  return [
    ...compareWithJournal(stored, journal),
    ...replayed.findings,
    ...compareWithLog(stored, replayed),
    ...(await compareWithReads(senderTo(address, world.token), stored)),
  ]
}

const linesLimit = 12

/** What was found, a line each, as many as can be read. */
export const linesOf = (findings: Finding[]): string[] =>
  findings.slice(0, linesLimit).map(({ kind, text }) => `${kind}: ${text}`)

import { senderTo } from '../support/process.ts'
import { compareWithJournal } from './against-journal.ts'
import { compareWithLog } from './against-log.ts'
import { compareWithReads } from './against-reads.ts'
import type { Journal } from './journal.ts'
import { type Finding, replay } from './replay.ts'
import { readStored } from './stored.ts'
import type { World } from './world.ts'

/** Compares a world's journal with its change log, the change log with the stored rows, and the stored rows with reads. */
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

const maxLines = 12

/** Formats the first 12 findings, one per line. */
export const formatFindings = (findings: Finding[]): string[] =>
  findings.slice(0, maxLines).map(({ kind, text }) => `${kind}: ${text}`)

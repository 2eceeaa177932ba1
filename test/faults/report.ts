import type { Kith } from '../support/process.ts'
import { countOutcomes, type Journal } from './journal.ts'

/** Prints the measurements and outcomes of a round in one line. Numbers are rounded. */
export function printRound(fault: string, round: number, measured: Record<string, unknown>, journal?: Journal) {
  const values = { ...measured, ...(journal && countOutcomes(journal)) }
  const parts = Object.entries(values).map(
    ([name, value]) => `${name} ${typeof value === 'number' ? Math.round(value) : value}`,
  )
  console.log(`  ${fault}, round ${round}: ${parts.join(', ')}`)
}

const linesLimit = 5

/** Returns the last 5 error lines of kith's log, for the message of a failed test. */
export const lastErrors = ({ said }: Kith): string =>
  said.stdout
    .split('\n')
    .filter(line => /"level":(50|60|"error"|"fatal")/.test(line))
    .slice(-linesLimit)
    .join('\n')

import type { Kith } from '../support/process.ts'
import { countOutcomes, type Journal } from './journal.ts'

/** A line of what a round measured and counted: milliseconds are rounded. */
export function tell(fault: string, round: number, measured: Record<string, unknown>, journal?: Journal) {
  const all = { ...measured, ...(journal && countOutcomes(journal)) }
  const parts = Object.entries(all).map(
    ([name, value]) => `${name} ${typeof value === 'number' ? Math.round(value) : value}`,
  )
  console.log(`  ${fault}, round ${round}: ${parts.join(', ')}`)
}

const linesLimit = 5

/** The last faults in a service's log, for whoever has to find out what happened. */
export const lastFaults = ({ output }: Kith): string =>
  output.stdout
    .split('\n')
    .filter(line => /"level":(50|60|"error"|"fatal")/.test(line))
    .slice(-linesLimit)
    .join('\n')

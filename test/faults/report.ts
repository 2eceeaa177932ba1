import { countOutcomes, type Journal } from './journal.ts'

/** A line of what a round measured and counted: milliseconds are rounded. */
export function tell(fault: string, round: number, measured: Record<string, unknown>, journal?: Journal) {
  const all = { ...measured, ...(journal && countOutcomes(journal)) }
  const parts = Object.entries(all).map(
    ([name, value]) => `${name} ${typeof value === 'number' ? Math.round(value) : value}`,
  )
  console.log(`  ${fault}, round ${round}: ${parts.join(', ')}`)
}

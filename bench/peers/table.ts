import type { Duel, Outcome, Work } from './duel.ts'

const print = (line = '') => process.stdout.write(`${line}\n`)
const whole = (value: number) => Math.round(value).toLocaleString('en')
const columns = ['peer', 'version', 'work', 'kith/s', 'peer/s', 'kith to peer'] as const
const widths = [20, 10, 8, 9, 9, 12]
const tell = (cells: readonly string[]) => print(cells.map((cell, n) => cell.padStart(widths[n]!)).join(' '))

/** A line for each peer and work, and the reasons for what is missing. */
export function printOutcomes(outcomes: readonly Outcome[]): void {
  print()
  tell(columns)
  for (const outcome of outcomes) if ('duels' in outcome) printDuels(outcome)
  for (const outcome of outcomes)
    if ('reason' in outcome) print(`\n${outcome.peer.name} is left out: ${outcome.reason}`)
}

function printDuels({ peer, version, duels }: Extract<Outcome, { duels: Duel[] }>) {
  for (const duel of duels) {
    if ('failed' in duel) print(`${peer.name} ${version} ${verbs[duel.work]} FAILED: ${duel.failed}`)
    else {
      const { work, ours, theirs } = duel
      tell([peer.name, version, verbs[work], whole(ours), whole(theirs), `${(ours / theirs).toFixed(1)} times`])
    }
  }
}

const verbs: Record<Work, string> = { patch: 'PATCH', get: 'GET' }

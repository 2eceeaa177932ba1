import type { Operation, Outcome, PeerComparison } from './duel.ts'

const print = (line = '') => process.stdout.write(`${line}\n`)
const formatInteger = (value: number) => Math.round(value).toLocaleString('en')
const columns = ['peer', 'version', 'work', 'kith/s', 'peer/s', 'kith to peer'] as const
const widths = [20, 10, 8, 9, 9, 12]
const printRow = (cells: readonly string[]) => print(cells.map((cell, n) => cell.padStart(widths[n]!)).join(' '))

/** Prints a line for each peer and operation, then the reasons for the peers that were left out. */
export function printOutcomes(outcomes: readonly Outcome[]): void {
  print()
  printRow(columns)
  for (const outcome of outcomes) if ('comparisons' in outcome) printComparisons(outcome)
  for (const outcome of outcomes)
    if ('reason' in outcome) print(`\n${outcome.peer.name} is left out: ${outcome.reason}`)
}

function printComparisons({ peer, version, comparisons }: Extract<Outcome, { comparisons: PeerComparison[] }>) {
  for (const comparison of comparisons) {
    if ('failed' in comparison)
      print(`${peer.name} ${version} ${methods[comparison.operation]} FAILED: ${comparison.failed}`)
    else {
      const { operation, ours, theirs } = comparison
      printRow([
        peer.name,
        version,
        methods[operation],
        formatInteger(ours),
        formatInteger(theirs),
        `${(ours / theirs).toFixed(1)} times`,
      ])
    }
  }
}

const methods: Record<Operation, string> = { patch: 'PATCH', get: 'GET' }

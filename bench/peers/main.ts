import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { indexesOf } from '../populate.ts'
import { printMachine } from '../report.ts'
import { withPostgres } from '../run.ts'
import { directus } from './directus/peer.ts'
import { comparePeer, type Outcome } from './duel.ts'
import { parse } from './parse/peer.ts'
import { postgraphile, postgraphileLogged } from './postgraphile/peer.ts'
import { printOutcomes } from './table.ts'

const all = [postgraphile, postgraphileLogged, parse, directus]
const { values } = parseArgs({
  options: {
    people: { type: 'string', default: '100000' },
    seconds: { type: 'string', default: '10' },
    rounds: { type: 'string', default: '3' },
    only: { type: 'string', default: all.map(({ name }) => name).join(',') },
  },
})

const options = {
  people: Number(values.people),
  seconds: Number(values.seconds),
  rounds: Number(values.rounds),
  workers: 1,
  rows: [],
}
const chosenPeers = values.only.split(',').map(word => all.find(({ name }) => name === word))
const checkout = fileURLToPath(new URL('../..', import.meta.url))

if (chosenPeers.includes(undefined)) {
  process.stderr.write(`--only takes peer names: ${all.map(({ name }) => name).join(', ')}.\n`)
  process.exitCode = 2
} else if (spawnSync('wrk', ['--version']).error) {
  process.stderr.write("The benchmark needs wrk (Debian's package wrk).\n")
  process.exitCode = 2
} else {
  const outcomes = await withPostgres(options, async ({ addTarget }) => {
    const target = await addTarget(checkout, 'kith_side')
    printMachine(options, await indexesOf(target.service))
    const outcomes: Outcome[] = []
    let isStopping = false
    for (const signal of ['SIGINT', 'SIGTERM'])
      process.once(signal, () => {
        isStopping = true
      })
    for (const peer of chosenPeers) if (!isStopping) outcomes.push(await comparePeer(target, peer!))
    return outcomes
  })
  printOutcomes(outcomes)
  if (outcomes.some(outcome => 'reason' in outcome || outcome.comparisons.some(comparison => 'failed' in comparison)))
    process.exitCode = 1
}

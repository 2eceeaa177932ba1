import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { check, formatFindings } from '../faults/checker.ts'
import type { Journal } from '../faults/journal.ts'
import { resolveUnknownOutcomes, startLoad } from '../faults/load.ts'
import { lastErrors, printRound } from '../faults/report.ts'
import { createRandom, rounds } from '../faults/rounds.ts'
import { makeWorld, shortenDeadlockTimeout, type World } from '../faults/world.ts'
import { createTestDatabase } from '../support/database.ts'
import { query } from '../support/embedded-service.ts'
import { endProcesses, type Kith, launch } from '../support/process.ts'
import { type ClusterNode, nodeFolders, readNodes } from './nodes.ts'
import { moveShard, readPlacement } from './placement.ts'

const organizationsPerWorker = 2
const clients = 4
/** A busy machine needs minutes for the waits of a round. */
const roundMs = 600_000

/** The database and the service of all rounds. The service has to survive them. */
let database: Awaited<ReturnType<typeof createTestDatabase>>
let nodes: ClusterNode[]
let kith: Kith
let address: string

async function startCluster() {
  nodes = await readNodes()
  database = await createTestDatabase()
  await shortenDeadlockTimeout(database.url)
  const name = new URL(database.url).pathname.slice(1)
  await query(database.url, `select run_command_on_workers($$alter database ${name} set deadlock_timeout = '100ms'$$)`)
  kith = launch({ DATABASE_URL: database.url, LOG_LEVEL: 'warn' })
  address = await kith.ready
}

/** Organizations on every worker, each under load. `worker` is the port of the server with its rows. */
async function startLoads(...seedParts: (string | number)[]) {
  const worlds: { world: World; worker: number }[] = []
  const isFull = (port: number) => worlds.filter(({ worker }) => worker === port).length >= organizationsPerWorker
  const workers = nodes.filter(({ isCoordinator }) => !isCoordinator).map(({ port }) => port)
  while (!workers.every(isFull)) {
    const world = await makeWorld(database.url, address)
    const { port: worker } = await readPlacement(database.url, world.organization_id)
    if (!isFull(worker)) worlds.push({ world, worker })
  }
  const loads = worlds.map(({ world, worker }, index) => {
    const options = { world, addresses: [address], clients, seedParts: [...seedParts, index] }
    return { world, worker, load: startLoad(options) }
  })
  // A round that fails must not leave its load to the next one.
  onTestFinished(async () => void (await Promise.all(loads.map(({ load }) => load.stop()))))
  return loads
}

type Loads = Awaited<ReturnType<typeof startLoads>>

const waitForAll = (loads: Loads, count: number) =>
  Promise.all(loads.map(({ load }) => load.waitForAcknowledged(count)))

/** Ends the loads. Compares what each organization has stored with its journal: returns what differs. */
async function finish(loads: Loads, fault: string, round: number, measured: Record<string, unknown>) {
  await Promise.all(loads.map(({ load }) => load.stop()))
  const findings: string[] = []
  const journal: Journal = { entries: [], unexplained: [] }
  for (const { world, load } of loads) {
    await resolveUnknownOutcomes({ journal: load.journal, world, address })
    findings.push(...formatFindings(await check(world, load.journal, address)))
    journal.entries.push(...load.journal.entries)
    journal.unexplained.push(...load.journal.unexplained)
  }
  printRound(fault, round, { ...measured, findings: findings.length }, journal)
  expect(findings, errorsOf(journal)).toEqual([])
  expect(kith.child.exitCode ?? kith.child.signalCode).toBeNull()
}

/** The error lines of kith's log about unexplained responses, or else the last ones. */
function errorsOf({ unexplained }: Journal): string {
  const ids = unexplained.flatMap(text => /"request_id":"([^"]+)"/.exec(text)?.[1] ?? [])
  const lines = kith.output.stdout.split('\n').filter(line => ids.some(id => line.includes(id)))
  return lines.join('\n') || lastErrors(kith)
}

/** Sends SIGKILL to a server, and starts it again after `durationMs`. */
async function killForAWhile(node: ClusterNode, durationMs: number, meanwhile = async () => {}) {
  await node.kill()
  try {
    await meanwhile()
    await setTimeout(durationMs)
  } finally {
    await node.start()
  }
}

describe.skipIf(nodeFolders.length === 0)('a cluster under the write load of several organizations', () => {
  beforeAll(startCluster)
  afterAll(async () => {
    await endProcesses()
    await database?.drop()
  })

  it.each(rounds(6))(
    'loses no acknowledged write, does none twice, and serves the organizations of the other worker, when a worker is killed: round %i',
    async round => {
      const random = createRandom('cluster', 'worker', round)
      const worker = nodes[1 + (round % (nodes.length - 1))]!
      const loads = await startLoads('cluster', 'worker', round)
      await waitForAll(loads, 20 + random.below(40))
      const others = loads.filter(load => load.worker !== worker.port)
      await killForAWhile(worker, random.below(1_500), async () => {
        await waitForAll(others, 20)
      })
      await waitForAll(loads, 20)
      await finish(loads, 'kill -9 of a worker', round, { worker: worker.port })
    },
    roundMs,
  )

  it.each(rounds(4))(
    'loses no acknowledged write and does none twice when the coordinator is killed: round %i',
    async round => {
      const random = createRandom('cluster', 'coordinator', round)
      const loads = await startLoads('cluster', 'coordinator', round)
      await waitForAll(loads, 20 + random.below(40))
      await killForAWhile(nodes[0]!, random.below(1_500))
      await waitForAll(loads, 20)
      await finish(loads, 'kill -9 of the coordinator', round, {})
    },
    roundMs,
  )

  it.each(rounds(3))(
    'loses no acknowledged write and does none twice while organizations move between workers: round %i',
    async round => {
      const loads = await startLoads('cluster', 'move', round)
      await waitForAll(loads, 20)
      const workers = nodes.filter(({ isCoordinator }) => !isCoordinator)
      for (const { world } of [loads[0]!, loads.at(-1)!]) {
        const placement = await readPlacement(database.url, world.organization_id)
        const target = workers.find(({ port }) => port !== placement.port)!
        await moveShard(database.url, placement, target)
        expect(await readPlacement(database.url, world.organization_id)).toMatchObject({ port: target.port })
      }
      await waitForAll(loads, 20)
      await finish(loads, 'online shard moves', round, { moved: 2 })
    },
    roundMs,
  )
})

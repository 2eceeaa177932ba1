import type { Database } from '../db/db.ts'
import type { Cell } from './cell-pool.ts'
import { readCellStates } from './cell-states.ts'

type Lag = { name: string; changes: number; organizations: number; seconds: number }
type Counts<Name extends string> = Record<Name, number>

/** The sources of the metrics in one cell. */
type CellSources<Queue extends string, WebhookState extends string> = {
  queues(db: Database): Counts<Queue>
  followers(db: Database): Promise<Lag[]>
  /** Counts, and the age of the oldest delivery that waits. */
  webhooks(db: Database): Promise<Counts<WebhookState> & { seconds: number }>
  ledgerEntries(db: Database): Promise<number>
  /** When the last backup was made, Unix time in seconds, or null. */
  lastBackup(db: Database): Promise<number | null>
}

/** The sources of the metrics over all cells: sums, and of the lag in seconds the longest. A cell that is away counts as nothing. */
export function metricSourcesOf<Queue extends string, WebhookState extends string>(
  cells: readonly Cell[],
  { queues, followers, webhooks, ledgerEntries, lastBackup }: CellSources<Queue, WebhookState>,
) {
  const readAll = async <T>(read: (db: Database) => Promise<T>): Promise<T[]> => {
    const results = await Promise.allSettled(cells.filter(({ isOpen }) => isOpen).map(({ db }) => read(db)))
    const values = results.flatMap(result => (result.status === 'fulfilled' ? [result.value] : []))
    if (values.length === 0) throw new Error('no cell responds')
    return values
  }
  return {
    pools: Object.fromEntries(cells.map(({ name, db }) => [name, db])),
    queues: () => addCounts(cells.map(({ db }) => queues(db))),
    followers: async () => mergeLags((await readAll(followers)).flat()),
    webhooks: async () => {
      const all = await readAll(webhooks)
      return { ...addCounts<WebhookState>(all), seconds: Math.max(...all.map(({ seconds }) => seconds)) }
    },
    ledgerEntries: async () => (await readAll(ledgerEntries)).reduce((sum, count) => sum + count, 0),
    lastBackups: async () => {
      const open = cells.filter(({ isOpen }) => isOpen)
      const all = await Promise.all(
        open.map(async ({ name, db }) => [name, await lastBackup(db).catch(() => null)] as const),
      )
      return Object.fromEntries(all.filter((entry): entry is [string, number] => entry[1] !== null))
    },
    ...(cells.length > 1 && { cells: () => readCellStates(cells) }),
  }
}

function addCounts<Name extends string>(all: Counts<Name>[]): Counts<Name> {
  const sum = { ...all[0]! }
  for (const counts of all.slice(1)) for (const name of Object.keys(counts) as Name[]) sum[name] += counts[name]
  return sum
}

function mergeLags(lags: Lag[]): Lag[] {
  const byName = new Map<string, Lag>()
  for (const { name, changes, organizations, seconds } of lags) {
    const known = byName.get(name)
    byName.set(name, {
      name,
      changes: (known?.changes ?? 0) + changes,
      organizations: (known?.organizations ?? 0) + organizations,
      seconds: Math.max(known?.seconds ?? 0, seconds),
    })
  }
  return [...byName.values()]
}

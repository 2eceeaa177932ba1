import type { Database } from '../../db/db.ts'
import { awaitPipelined, rootOf, statement } from '../../db/db.ts'
import { perDatabase } from '../../db/per-database.ts'

// A statistics target of 10 samples 3,000 rows instead of 30,000. In a table of 2.9 million rows, that takes 0.05 s
// instead of 0.5 s. It is enough to estimate row counts and distinct values. Generic plans use nothing else.
const sampleLessSql = statement('', 'set local default_statistics_target = 10')
const analyzeSql = statement('analyze_growth', 'analyze entities, links, terms, aliases, merges')

// ANALYZE runs at the 64th, 512th, 4,096th … entity of each organization.
const firstGrowth = 64
const growthFactor = 8

type Growth = { inserted: Map<string, number>; running: Promise<void> | undefined; again: boolean }

const growths = perDatabase((): Growth => ({ inserted: new Map(), running: undefined, again: false }))

/**
 * Counts inserted rows and updates PostgreSQL's statistics as an organization grows. Without statistics, the planner
 * expects one row per organization and considers all indexes equally good. With 600 entities, a filter over two
 * relations took more than 10 s before ANALYZE and 5 ms after it. Autovacuum runs once a minute, and late for a new
 * organization in a large table. The function returns at once and reports no errors.
 */
export function countGrowth(
  share: Database,
  organization_id: number,
  table: 'entities' | 'links',
  inserted: number,
): void {
  // Statistics cover all organizations, so the query does not count against the share of one.
  const db = rootOf(share)
  const growth = growths(db)
  // Each table is counted separately. With a common count, the first links after 100,000 people went unnoticed, and the
  // planner chose the wrong index for them.
  const countKey = `${organization_id} ${table}`
  const before = growth.inserted.get(countKey) ?? 0
  growth.inserted.set(countKey, before + inserted)
  if (growthStep(before + inserted) > growthStep(before)) startAnalyzing(db, growth)
}

function growthStep(inserted: number): number {
  return inserted < firstGrowth ? 0 : 1 + Math.floor(Math.log(inserted / firstGrowth) / Math.log(growthFactor))
}

/** Runs one ANALYZE at a time. A request during a run starts another one after it. */
function startAnalyzing(db: Database, growth: Growth) {
  if (growth.running) {
    growth.again = true
    return
  }
  growth.running = db
    .transaction(tx => awaitPipelined([tx.query(sampleLessSql, []), tx.query(analyzeSql, [])]))
    // Statistics are best effort. Other code reports a database that is unavailable or shutting down.
    .catch(() => {})
    .then(() => {
      growth.running = undefined
      if (!growth.again) return
      growth.again = false
      startAnalyzing(db, growth)
    })
}

import pg from 'pg'
import { planDistribution, readDistribution } from '../src/db/distribution.ts'
import { migrate } from '../src/db/migrate.ts'
import { loadConfig } from '../src/process/config.ts'
import { newCommand } from './kith-command.ts'
import { withServer } from './session.ts'

export const distributeCommand = (environment: NodeJS.ProcessEnv) =>
  newCommand(
    environment,
    'distribute',
    'Distributes the tables over the workers of Citus, by organization. Run it with the service stopped, and again after an ' +
      'upgrade that adds tables. It does what is left to do.',
  )
    .examples('distribute --dry-run', 'distribute')
    .option('--dry-run', 'Print the statements, and run none of them.')
    .action(async ({ dryRun = false }) => {
      const { statements, database } = await withServer(loadConfig(environment), url => distribute(url, dryRun))
      const done = `${database} is distributed.`
      const messages = statements.length === 0 ? [`Nothing to do: ${done}`] : dryRun ? [] : [done]
      return { value: { statements }, lines: statements.map(text => `${text};`), messages }
    })

/**
 * Returns the statements that have not run yet, and runs them unless `dryRun` is set. Throws if the database has no
 * Citus or no workers.
 */
async function distribute(url: string, dryRun: boolean): Promise<{ statements: string[]; database: string }> {
  if (!dryRun) await migrate(url)
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query<{ database: string }>('select current_database() as database')
    const { database } = rows[0]!
    const distribution = await readDistribution(client)
    if (!distribution)
      throw new Error(
        `The database ${database} has no Citus. Run "create extension citus" on it and on every worker, as docs/cluster.md says.`,
      )
    if (!(await hasWorkers(client)))
      throw new Error(`Citus knows no workers. Add them with citus_add_node, as docs/cluster.md says.`)
    const statements = planDistribution(distribution, database)
    if (!dryRun) for (const text of statements) await client.query(text)
    return { statements, database }
  } finally {
    await client.end().catch(() => {})
  }
}

async function hasWorkers(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query('select from pg_dist_node where shouldhaveshards and isactive limit 1')
  return rows.length > 0
}

import pg from 'pg'
import { isDeadlock } from '../../src/db/pg-errors.ts'
import { query } from '../support/embedded-service.ts'

/** Where the rows of an organization are: the shard, and the server that has it. */
export type Placement = { shard: number; host: string; port: number }

/** Reads on which server the rows of an organization are. */
export async function readPlacement(url: string, organization_id: number): Promise<Placement> {
  const [placement] = await query(
    url,
    `select p.shardid::integer as shard, n.nodename as host, n.nodeport as port
     from pg_dist_placement p join pg_dist_node n on n.groupid = p.groupid
     where p.shardid = get_shard_id_for_distribution_column('change_heads', ${organization_id}::integer)`,
  )
  return placement as Placement
}

/**
 * Moves the rows of a shard, and of all shards colocated with it, to another server of the same host while they are used. A move may
 * lose a deadlock to the writes. Citus then leaves the rows where they were, and it moves again, at most five times.
 */
export async function moveShard(
  url: string,
  { shard, host, port }: Placement,
  target: { port: number },
): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  const move = () =>
    client.query(`select citus_move_shard_placement($1, $2, $3, $2, $4, shard_transfer_mode => 'force_logical')`, [
      shard,
      host,
      port,
      target.port,
    ])
  try {
    for (let attempt = 1; ; attempt += 1)
      try {
        await move()
        return
      } catch (error) {
        if (!isDeadlock(error) || attempt === 5) throw error
      }
  } finally {
    await client.end()
  }
}

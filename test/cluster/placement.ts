import pg from 'pg'
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

/** Moves the rows of a shard, and of all shards colocated with it, to another server of the same host while they are used. */
export async function moveShard(
  url: string,
  { shard, host, port }: Placement,
  target: { port: number },
): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  try {
    await client.query(
      `select citus_move_shard_placement($1, $2, $3, $2, $4, shard_transfer_mode => 'force_logical')`,
      [shard, host, port, target.port],
    )
  } finally {
    await client.end()
  }
}

import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { planDistribution, readDistribution } from '../../src/db/distribution.ts'
import { urlOfDatabase } from '../../src/db/embedded.ts'

/** A server of a cluster, as the coordinator knows it. `url` is the database of KITH_CLUSTER_URL on it. */
export type ClusterServer = { host: string; port: number; url: string; isCoordinator: boolean }

/**
 * Reads the servers of the cluster from a database of its coordinator. The coordinator comes first. Throws if Citus is missing or
 * has no workers.
 */
export async function readServers(clusterUrl: string): Promise<ClusterServer[]> {
  const { rows } = await withClient(clusterUrl, client =>
    client.query<{ host: string; port: number; isCoordinator: boolean }>(
      `select nodename as host, nodeport as port, groupid = 0 as "isCoordinator" from pg_dist_node
       where isactive and noderole = 'primary' order by groupid, nodeport`,
    ),
  ).catch(cause => {
    throw new Error(`The database of KITH_CLUSTER_URL has no Citus, or does not answer: ${cause.message}`, { cause })
  })
  if (!rows[0]?.isCoordinator || rows.length < 2)
    throw new Error('Add the coordinator and its workers to the database of KITH_CLUSTER_URL, as docs/cluster.md says.')
  return rows.map(({ host, port, isCoordinator }) => {
    if (isCoordinator) return { host, port, url: clusterUrl, isCoordinator }
    const url = new URL(clusterUrl)
    url.hostname = host
    url.port = String(port)
    return { host, port, url: url.href, isCoordinator }
  })
}

/** Creates a database without tables on every server of the cluster, with Citus. Returns its URL on the coordinator. */
export async function createOnServers(servers: ClusterServer[], name: string): Promise<string> {
  const [coordinator, ...workers] = servers as [ClusterServer, ...ClusterServer[]]
  for (const { url } of servers) {
    await withClient(url, client => client.query(`create database ${name} template template0`))
    await withClient(urlOfDatabase(url, name), client => client.query('create extension citus'))
  }
  const url = urlOfDatabase(coordinator.url, name)
  await withClient(url, async client => {
    await client.query('select citus_set_coordinator_host($1, $2)', [coordinator.host, coordinator.port])
    for (const { host, port } of workers) await client.query('select citus_add_node($1, $2)', [host, port])
  })
  return url
}

/** Four shards are created in an eighth of the time that the 32 of Citus take. Several organizations share one. */
const shards = 4

/** Distributes the tables of a migrated database, as `kith distribute` does. */
export async function distributeTables(url: string): Promise<void> {
  await withClient(url, async client => {
    await client.query(`set citus.shard_count = ${shards}`)
    const distribution = (await readDistribution(client))!
    for (const text of planDistribution(distribution, nameOf(url))) await client.query(text)
  })
}

/**
 * Copies a distributed database on every server: 0.6 s, instead of 6 s for one that is created and distributed. Each server has its part
 * of the metadata, in which databases have no names. The settings of a database are not copied.
 */
export async function copyOnServers(servers: ClusterServer[], name: string, template: string): Promise<string> {
  await Promise.all(servers.map(({ url }) => withClient(url, client => copyDatabase(client, name, template))))
  const url = urlOfDatabase(servers[0]!.url, name)
  await distributeTables(url)
  return url
}

/** Creates a database from a template, once nothing uses the template. */
export async function copyDatabase(client: pg.Client, name: string, template: string): Promise<void> {
  for (;;) {
    try {
      await client.query(`create database ${name} template ${template}`)
      return
    } catch (error) {
      // object_in_use: another connection, such as autovacuum, uses the template for a moment.
      if ((error as { code?: string }).code !== '55006') throw error
      await setTimeout(50)
    }
  }
}

/** Closes a database to connections, also to the background process of Citus, so that it can be copied. */
export async function closeOnServers(servers: ClusterServer[], name: string): Promise<void> {
  for (const { url } of servers)
    await withClient(url, async client => {
      await client.query(`alter database ${name} allow_connections false`)
      await client.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name])
    })
}

/** Returns the names of databases that begin with `prefix`. The coordinator has them all. */
export async function listOnServers([coordinator]: ClusterServer[], prefix: string): Promise<string[]> {
  const text = 'select datname from pg_database where starts_with(datname, $1)'
  const { rows } = await withClient(coordinator!.url, client => client.query<{ datname: string }>(text, [prefix]))
  return rows.map(({ datname }) => datname)
}

/** Drops a database on every server. */
export async function dropOnServers(servers: ClusterServer[], name: string): Promise<void> {
  for (const { url } of servers)
    await withClient(url, client => client.query(`drop database if exists ${name} with (force)`))
}

const nameOf = (url: string) => new URL(url).pathname.slice(1)

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  try {
    await client.connect()
    return await work(client)
  } finally {
    await client.end().catch(() => {})
  }
}

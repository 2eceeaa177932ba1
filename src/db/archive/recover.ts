import { chown, mkdir, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { shellWord } from '../embedded/archiving.ts'
import { type Cluster, makeCluster, superuser } from '../embedded/cluster.ts'
import { EmbeddedError } from '../embedded/error.ts'
import { ensureServer, serverUrl, stopServer } from '../embedded/server.ts'
import { withConnection } from '../servers/servers.ts'
import { listReach, type Reach, readOwner, readPosition, readSegment, segmentName } from './archive.ts'
import { extractBase } from './base.ts'
import type { Store } from './store.ts'

/** The result of a restore: the copy it began with, and the commit time of the last restored transaction. */
export type Recovered = { base: string; last_transaction_at: string | null }

/**
 * Restores an archive into a data folder without data, up to the time `at`, or completely without it. Throws an Error,
 * and then leaves no restored data.
 */
export async function restoreArchive(store: Store, dataDir: string, at: Date | undefined): Promise<Recovered> {
  const reaches = await listReach(store)
  const base = chooseBase(store, reaches, at)
  const segments = { first: base.first, last: await lastSegment(store, reaches, base, at) }
  const newestTimeline = Math.max((await readOwner(store))?.timeline ?? 1, ...reaches.map(({ timeline }) => timeline))
  let recovered: Recovered | undefined
  await makeCluster(dataDir, async cluster => {
    const data = join(cluster.path, 'data')
    await extractBase(store, base, data, cluster.user)
    const put = createWriter(cluster)
    await put(join(data, 'backup_label'), base.backup_label)
    await put(join(data, 'recovery.signal'), '')
    const log = join(cluster.path, 'restored-log')
    await mkdir(log, { mode: 0o700 })
    if (cluster.user) await chown(log, cluster.user.uid, cluster.user.gid)
    await fetchSegments(store, base.timeline, segments, (name, bytes) => put(join(log, name), bytes))
    // PostgreSQL continues in the first timeline without such a file. An empty file means a timeline without a parent.
    for (let timeline = base.timeline + 1; timeline <= newestTimeline; timeline += 1)
      await put(join(log, `${segmentName(timeline, 0).slice(0, 8)}.history`), '')
    // The archive has no password. Only the server's user enters the folder of the socket.
    const access = join(cluster.path, 'recovery-access.conf')
    await put(access, 'local all all trust\n')
    recovered = { base: base.id, last_transaction_at: await recover(cluster, { log, access, at }) }
    await rm(access)
    await rm(log, { recursive: true })
  })
  return recovered!
}

/**
 * The copy that a restore begins with: the newest one before `at`. Throws an Error that names the times that can be
 * restored.
 */
function chooseBase(store: Store, reaches: Reach[], at: Date | undefined): Reach {
  const base = at === undefined ? reaches.at(-1) : reaches.findLast(each => Date.parse(each.stopped_at) <= at.getTime())
  if (reaches.length === 0) throw new Error(`There is no copy of the data in ${store.label} yet.`)
  if (base && base.until === undefined)
    throw new Error(`${store.label} lacks a segment of the log after ${base.stopped_at}. See kith archive list.`)
  if (base && (at === undefined || at.getTime() <= Date.parse(base.until!))) return base
  const [from, until] = [reaches[0]!.stopped_at, reaches.at(-1)!.until ?? reaches.at(-1)!.stopped_at]
  throw new Error(
    `${at!.toISOString()} is not in ${store.label}: it has ${from} to ${base?.until ?? until}. See kith archive list.`,
  )
}

/**
 * The last segment that a restore needs: the last one of the next copy, which has a transaction after `at`, or else the
 * last stored one.
 */
async function lastSegment(store: Store, reaches: Reach[], base: Reach, at: Date | undefined): Promise<number> {
  const next = at && reaches.find(each => each.timeline === base.timeline && each.first > base.first)
  return next?.last ?? (await readPosition(store, base.timeline))!.segment
}

async function fetchSegments(
  store: Store,
  timeline: number,
  { first, last }: { first: number; last: number },
  put: (name: string, bytes: Buffer) => Promise<void>,
) {
  for (let segment = first; segment <= last; segment += 1) {
    const name = segmentName(timeline, segment)
    const bytes = await readSegment(store, timeline, segment)
    if (!bytes) throw new Error(`${store.label} lacks the segment ${name}.`)
    await put(name, bytes)
  }
}

const zeros = Buffer.alloc(2 ** 16)

/**
 * The length of the bytes without the zeros at their end. Blocks of zeros are compared as a whole: a segment of 16 MB
 * takes 5 ms, and with a function for each byte it takes 140 ms.
 */
function lengthWithoutZeros(bytes: Buffer): number {
  let end = bytes.length
  while (end >= zeros.length && bytes.subarray(end - zeros.length, end).equals(zeros)) end -= zeros.length
  return bytes.subarray(0, end).findLastIndex(byte => byte !== 0) + 1
}

/**
 * Returns a function that writes a file as the server's user. Zeros at the end take no space, and most segments end
 * with zeros.
 */
const createWriter =
  ({ user }: Cluster) =>
  async (path: string, content: string | Buffer): Promise<void> => {
    const bytes = Buffer.from(content)
    const end = lengthWithoutZeros(bytes)
    const file = await open(path, 'wx', 0o600)
    await (async () => {
      await file.writeFile(bytes.subarray(0, end))
      await file.truncate(bytes.length)
    })().finally(() => file.close())
    if (user) await chown(path, user.uid, user.gid)
  }

/** `log` is the folder of the segments, `access` the file of rules for connections. */
type Recovery = { log: string; access: string; at: Date | undefined }

/**
 * Lets PostgreSQL replay the log, gives its user the new password, and stops it. Returns the time of the last
 * transaction.
 */
async function recover(cluster: Cluster, { log, access, at }: Recovery): Promise<string | null> {
  const settings = {
    hba_file: access,
    // The server accepts connections when the recovery is complete.
    hot_standby: 'off',
    archive_mode: 'off',
    restore_command: `cp ${shellWord(log)}/%f "%p"`,
    recovery_target_timeline: 'current',
    recovery_target_action: 'promote',
    // At this point, PostgreSQL would read Z as an abbreviation of a time zone that it does not know.
    ...(at && { recovery_target_time: at.toISOString().replace('Z', '+00') }),
  }
  const recovering: Cluster = { ...cluster, settings }
  try {
    const { socketDir } = await ensureServer(recovering)
    return await withConnection(serverUrl(recovering, socketDir, 'postgres'), async client => {
      const { rows } = await client.query<{ at: Date | null }>('select pg_last_xact_replay_timestamp() as at')
      await client.query(`alter role ${superuser} password '${cluster.password}'`)
      return rows[0]?.at?.toISOString() ?? null
    })
  } catch (error) {
    if (!(error instanceof EmbeddedError)) throw error
    throw new Error(`PostgreSQL could not replay the archive: ${error.message}`, { cause: error })
  } finally {
    await stopServer(recovering)
  }
}

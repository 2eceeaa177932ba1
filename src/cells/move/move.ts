import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type pg from 'pg'
import type { Database } from '../../db/db.ts'
import { isLockTimeout, isStatementTimeout } from '../../db/pg-errors.ts'
import type { Organization } from '../../organizations/organizations.ts'
import { beginMoveSql, cancelMoveSql, readMoveSql } from '../sql.ts'
import { commandLockClass, installCapture, removeCapture, writeLockClass } from './capture.ts'
import { completeMove } from './complete-move.ts'
import {
  applyRound,
  copyRows,
  countKeys,
  deleteRows,
  forgetCaptures,
  type Round,
  readCaptures,
  type Side,
  verifyRows,
} from './rows.ts'

/** A cell that a move concerns. */
export type MoveCell = { name: string; db: Database }

export type MoveOptions = {
  first: Database
  /** How long a process may route requests by what it has read in the directory before, in milliseconds. */
  cacheMs: number
  /** Aborts a move that is not decided, and undoes it. */
  signal: AbortSignal
  /** Called with a sentence for each step. */
  report(message: string): void
}

/** Rounds end when so few rows are left that the last one takes milliseconds. */
const lastRoundKeys = 500
const maxRounds = 200
const followerLeaseMs = 15_000
const followerPatienceMs = 120_000
const followerPollMs = 50
/** A pause that cannot do its work in time ends, and another one begins later. */
const pauseLockMs = 800
const pauseWorkMs = 1_000
const pauseRetryMs = 1_000
const maxPauses = 30

/**
 * Moves an organization from one cell to another while it is used. Its rows are copied from a snapshot, with the keys of rows that change
 * meanwhile; then these rows are copied again, in rounds. The last round runs while writes wait. The commit of `has_moved` in the old
 * cell is the decision. Throws before it if anything fails, and everything is then as it was.
 */
export async function moveOrganization(
  organization: Organization,
  source: MoveCell,
  target: MoveCell,
  options: MoveOptions,
): Promise<void> {
  const { first, signal, report } = options
  const { id, key } = organization
  // The move, and the owner of the leases that it takes.
  const move_id = randomUUID()
  const movingSinceMs = await beginMove(first, organization, target)
  try {
    await withSides(id, source, target, async (from, to) => {
      await clearTarget(to, signal)
      await prepareSource(from, target.name, move_id, signal)
      await copyAll(from, to, options)
      await catchUp(from, to, options)
      report('Comparing the copy.')
      await runRound(from, to, true)
      const cachedMs = options.cacheMs - (performance.now() - movingSinceMs)
      if (cachedMs > 0) report('Waiting until every process looks for the organization before each request.')
      await pause(Math.max(0, cachedMs), undefined, { signal })
      await takeFollowers(from, move_id, signal)
      await catchUp(from, to, options)
      const pausedMs = await decide(source, from, to, move_id, signal)
      report(`Writes have waited for ${Math.ceil(pausedMs)} ms.`)
    })
  } catch (error) {
    const isDecided = await undoMove(organization, source, target, first, move_id).catch(cause => {
      throw new Error(
        `${(error as Error).message} It could not be undone: ${cause.message} Nothing is lost. Run the command again.`,
        { cause: error },
      )
    })
    if (!isDecided) throw signal.aborted ? signal.reason : error
  }
  await completeMove(first, organization, source.db, target).catch(cause => {
    throw new Error(
      `It is decided that the organization moves, but the directory could not be changed: ${cause.message} The service completes the move when both databases respond.`,
      { cause },
    )
  })
  report(`The organization ${key} lives in the cell ${target.name}.`)
}

async function beginMove(first: Database, { id, key, cell }: Organization, target: MoveCell): Promise<number> {
  const begun = await first.query(beginMoveSql, [id, cell, target.name])
  if (begun.length === 0) throw new Error(`The organization ${key} does not live in the cell ${cell} any more.`)
  return performance.now()
}

/** Opens a connection to each cell for the time of `work`. */
async function withSides<T>(
  organization_id: number,
  source: MoveCell,
  target: MoveCell,
  work: (source: Side, target: Side) => Promise<T>,
): Promise<T> {
  return withSide(organization_id, source, from => withSide(organization_id, target, to => work(from, to)))
}

// The setting kith.moving lets this session change what has moved. The others make the text of a row independent of the settings of the
// server and the role.
const sessionSettings = `set statement_timeout = 0; set lock_timeout = 0; set idle_in_transaction_session_timeout = 0;
  set enable_seqscan = on; set bytea_output = hex; set extra_float_digits = 3; set intervalstyle = 'iso_8601'`

async function withSide<T>(organization_id: number, { db }: MoveCell, work: (side: Side) => Promise<T>): Promise<T> {
  const client = await db.connect()
  try {
    await client.query(`${sessionSettings}; set kith.moving = '${organization_id}'`)
    return await work({ client, organization_id })
  } finally {
    await client.end().catch(() => {})
  }
}

/** Deletes what an earlier move of the organization has left in the cell that it moves to. */
async function clearTarget(target: Side, signal?: AbortSignal): Promise<void> {
  await endCapture(target)
  await deleteRows(target, signal)
}

async function prepareSource(source: Side, to: string, move_id: string, signal: AbortSignal): Promise<void> {
  await endCapture(source)
  await source.client.query(
    'insert into public.organization_moves (organization_id, moved_to, move_id) values ($1, $2, $3)',
    [source.organization_id, to, move_id],
  )
  await installCapture(source.client, source.organization_id, signal)
}

async function endCapture({ client, organization_id }: Side): Promise<void> {
  await removeCapture(client, organization_id)
  for (const table of ['organization_moves', 'move_captures'])
    await client.query(`delete from public.${table} where organization_id = $1`, [organization_id])
}

async function copyAll(source: Side, target: Side, { signal, report }: MoveOptions): Promise<void> {
  await inSnapshot(source.client, () => copyRows(source, target, signal, name => report(`Copying ${name}.`)))
}

/** Runs `work` in a snapshot. An error leaves the connection to be closed: a COPY that was aborted may still run on it. */
async function inSnapshot<T>(client: pg.ClientBase, work: () => Promise<T>): Promise<T> {
  await client.query('begin transaction isolation level repeatable read, read only')
  const result = await work()
  await client.query('rollback')
  return result
}

/** Copies the rows that have changed, until few change during a round. */
async function catchUp(source: Side, target: Side, { signal, report }: MoveOptions): Promise<void> {
  for (let round = 1; ; round += 1) {
    signal.throwIfAborted()
    const rows = await runRound(source, target, false)
    if (rows <= lastRoundKeys) return
    report(`Round ${round}: ${rows} rows had changed.`)
    if (round === maxRounds)
      throw new Error('The organization changes faster than its rows can be copied. Move it when fewer writes arrive.')
  }
}

/** Copies the rows that have changed, and compares all rows if asked. Returns how many rows had changed. */
async function runRound(source: Side, target: Side, verifies: boolean): Promise<number> {
  const round = await inSnapshot(source.client, async () => {
    const changed = await readCaptures(source)
    await applyRound(source, target, changed)
    if (verifies) await verifyRows(source, target)
    return changed
  })
  await forgetCaptures(source, round)
  return countKeys(round)
}

/** Takes the leases of the organization's followers, so that none works during the last round: it would do its work again later. */
async function takeFollowers({ client, organization_id }: Side, owner: string, signal: AbortSignal): Promise<void> {
  const beganMs = performance.now()
  while (!(await holdsFollowers(client, organization_id, owner))) {
    signal.throwIfAborted()
    if (performance.now() - beganMs > followerPatienceMs)
      throw new Error('A follower of the organization has been working for two minutes. Run the command again later.')
    await pause(followerPollMs)
  }
}

async function holdsFollowers(client: pg.ClientBase, organization_id: number, owner: string): Promise<boolean> {
  await client.query(
    `update public.followers set owner = $2, leased_until = now() + $3::integer * interval '1 millisecond'
     where organization_id = $1 and (owner = $2 or leased_until is null or leased_until < now())`,
    [organization_id, owner, followerLeaseMs],
  )
  return isFreeOfOthers(client, organization_id, owner)
}

async function isFreeOfOthers(client: pg.ClientBase, organization_id: number, owner: string): Promise<boolean> {
  const { rows } = await client.query(
    `select from public.followers where organization_id = $1 and owner is distinct from $2 and leased_until >= now() limit 1`,
    [organization_id, owner],
  )
  return rows.length === 0
}

/** Copies the last rows while writes wait, and decides. Tries again where that takes too long. Returns how long writes have waited. */
async function decide(
  cell: MoveCell,
  source: Side,
  target: Side,
  move_id: string,
  signal: AbortSignal,
): Promise<number> {
  const { organization_id } = source
  for (let count = 1; ; count += 1) {
    signal.throwIfAborted()
    const pausedMs = await withSide(organization_id, cell, decider => decideOnce(decider, target, move_id))
    if (pausedMs !== undefined) return pausedMs
    if (count === maxPauses)
      throw new Error(
        'The last rows could not be copied within a second. Move the organization when fewer writes arrive.',
      )
    await pause(pauseRetryMs, undefined, { signal })
    await takeFollowers(source, move_id, signal)
    await runRound(source, target, false)
  }
}

/**
 * Writes wait for the lock from the moment it is requested until this transaction ends. If the process dies, the server ends the
 * transaction, and they go on. Returns how long they have waited, or undefined if nothing is decided.
 */
async function decideOnce(decider: Side, target: Side, move_id: string): Promise<number | undefined> {
  const { client, organization_id } = decider
  const limits = `set local lock_timeout = ${pauseLockMs}; set local idle_in_transaction_session_timeout = ${2 * pauseWorkMs}`
  try {
    await client.query(`begin; ${limits}`)
    const requestedMs = performance.now()
    await client.query('select pg_advisory_xact_lock($1, $2)', [writeLockClass, organization_id])
    const lockedMs = performance.now()
    await client.query(`set local statement_timeout = ${pauseWorkMs}`)
    const round: Round = await readCaptures(decider)
    const isFree = await isFreeOfOthers(client, organization_id, move_id)
    if (isFree && countKeys(round) <= 2 * lastRoundKeys) {
      await applyRound(decider, target, round)
      await verifyRows(decider, target, round)
      if (performance.now() - lockedMs <= pauseWorkMs) {
        // From now on no follower works in the old cell. The copies of these rows are freed.
        await client.query(`update public.followers set leased_until = 'infinity' where organization_id = $1`, [
          organization_id,
        ])
        const { rowCount } = await client.query(
          'update public.organization_moves set has_moved = true where organization_id = $1 and move_id = $2',
          [organization_id, move_id],
        )
        if (rowCount !== 1) throw new Error('Another command has begun to move the organization.')
        await client.query('commit')
        return performance.now() - requestedMs
      }
    }
    await client.query('rollback')
    return undefined
  } catch (error) {
    await client.query('rollback').catch(() => {})
    if (isLockTimeout(error) || isStatementTimeout(error)) return undefined
    throw error
  }
}

/**
 * Undoes a move unless it is decided: the organization stays in its cell. With a `move_id`, throws an Error if another move has begun
 * since. Returns whether it is decided.
 */
export async function undoMove(
  { id }: Pick<Organization, 'id'>,
  source: MoveCell,
  target: MoveCell,
  first: Database,
  move_id?: string,
): Promise<boolean> {
  const [move] = await source.db.query<{ move_id: string; has_moved: boolean }>(readMoveSql, [id])
  if (move?.has_moved) return true
  if (move && move_id !== undefined && move.move_id !== move_id)
    throw new Error('Another command has begun to move the organization.')
  await withSide(id, source, async side => {
    await endCapture(side)
    // The leases of the move's own process, which has ended or is about to.
    if (move)
      await side.client.query(
        'update public.followers set owner = null, leased_until = null where organization_id = $1 and owner = $2',
        [id, move.move_id],
      )
  })
  await withSide(id, target, side => deleteRows(side))
  await first.query(cancelMoveSql, [id])
  return false
}

/**
 * Deletes the rows of an organization in the cell that it has left, and leaves a head there that refuses every write. Does nothing where
 * that has been done.
 */
export async function deleteLeftovers(
  { id, cell }: Pick<Organization, 'id' | 'cell'>,
  source: MoveCell,
  isFirst: boolean,
  signal?: AbortSignal,
): Promise<boolean> {
  return withSide(id, source, async side => {
    const { client } = side
    const { rows } = await client.query(
      `select from public.change_heads where organization_id = $1 and moved_to is null
       union all select from public.organization_moves where organization_id = $1 limit 1`,
      [id],
    )
    if (rows.length === 0) return false
    await client.query(
      `update public.change_heads set sequence = 0, log_id = $3, moved_to = $2
       where organization_id = $1 and moved_to is null`,
      [id, cell, randomUUID()],
    )
    await deleteRows(side, signal, ['change_heads'])
    if (!isFirst) await client.query('delete from public.organizations where id = $1', [id])
    await endCapture(side)
    return true
  })
}

/** Runs `work` while no other command moves the organization. Throws an Error if one does. */
export async function withCommandLock<T>(
  first: Database,
  { id, key }: Organization,
  work: () => Promise<T>,
): Promise<T> {
  const client = await first.connect()
  try {
    const { rows } = await client.query<{ locked: boolean }>('select pg_try_advisory_lock($1, $2) as locked', [
      commandLockClass,
      id,
    ])
    if (!rows[0]!.locked) throw new Error(`Another command is moving the organization ${key}.`)
    return await work()
  } finally {
    await client.end().catch(() => {})
  }
}

import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { isLockTimeout, movedCode } from '../../db/pg-errors.ts'
import { quoted, readTables } from './tables.ts'

/** The class of the advisory locks of moves; the second half of the key is the organization. Every write holds it shared. */
export const writeLockClass = 0x6b697468
/** The class of the advisory lock that the running command holds in the first cell. */
export const commandLockClass = 0x6b697469

const captureFunction = 'public.kith_capture_move'

// The trigger runs after each row of the organization that a transaction changes, in whatever table. The shared lock lets the move wait
// for these transactions, and holds back new ones. The session that moves names itself, so that it may delete what has moved.
const createFunction = `
  create or replace function ${captureFunction}() returns trigger language plpgsql as $body$
  declare
    organization integer := tg_argv[0]::integer;
    columns text[] := tg_argv[1:];
    whole jsonb;
    old_key jsonb;
    new_key jsonb;
  begin
    if current_setting('kith.moving', true) = tg_argv[0] then
      return null;
    end if;
    perform pg_advisory_xact_lock_shared(${writeLockClass}, organization);
    if exists (select from public.organization_moves m where m.organization_id = organization and m.has_moved) then
      raise exception 'organization % has moved to another cell', organization using errcode = '${movedCode}';
    end if;
    if tg_op <> 'INSERT' then
      whole := to_jsonb(old);
      select jsonb_object_agg(c, whole -> c) into old_key from unnest(columns) c;
      insert into public.move_captures (organization_id, table_name, key) values (organization, tg_table_name, old_key);
    end if;
    if tg_op <> 'DELETE' then
      whole := to_jsonb(new);
      select jsonb_object_agg(c, whole -> c) into new_key from unnest(columns) c;
      if new_key is distinct from old_key then
        insert into public.move_captures (organization_id, table_name, key) values (organization, tg_table_name, new_key);
      end if;
    end if;
    return null;
  end $body$`

/** Requests wait behind a lock that is waited for, so most attempts are short. */
const lockTimeoutMs = 100
/** Longer than deadlock_timeout, after which PostgreSQL cancels an autovacuum that is in the way. */
const longLockTimeoutMs = 1_200
const attemptsPerLongOne = 10
const lockRetryMs = 1_000

const triggersOf = (organization_id: number) => [`kith_move_${organization_id}_i`, `kith_move_${organization_id}_c`]

/**
 * From now on, each change of a row of the organization stores the row's key in `move_captures`. A transaction that began before has
 * ended when this returns.
 */
export async function installCapture(client: pg.ClientBase, organization_id: number, signal?: AbortSignal) {
  // Two moves that replace the function at once would fail.
  await client.query(`begin; select pg_advisory_xact_lock(${commandLockClass}, 0)`)
  await client.query(createFunction)
  await client.query('commit')
  for (const { name, key } of await readTables(client)) {
    const columns = [String(organization_id), ...key].map(text => pg.escapeLiteral(text)).join(', ')
    const call = `for each row when (%.organization_id = ${organization_id}) execute function ${captureFunction}(${columns})`
    const [inserted, changed] = triggersOf(organization_id)
    await withTableLock(client, signal, async () => {
      await client.query(
        `create or replace trigger ${inserted} after insert on ${quoted(name)} ${call.replace('%', 'new')}`,
      )
      await client.query(
        `create or replace trigger ${changed} after update or delete on ${quoted(name)} ${call.replace('%', 'old')}`,
      )
    })
  }
}

/** Ends the capture. The function stays for other moves. */
export async function removeCapture(client: pg.ClientBase, organization_id: number): Promise<void> {
  for (const { name } of await readTables(client)) {
    const { rows } = await client.query<{ tgname: string }>(
      'select tgname from pg_trigger where tgrelid = to_regclass($1) and tgname = any($2)',
      [quoted(name), triggersOf(organization_id)],
    )
    if (rows.length === 0) continue
    await withTableLock(client, undefined, async () => {
      for (const { tgname } of rows) await client.query(`drop trigger if exists ${tgname} on ${quoted(name)}`)
    })
  }
}

/** Runs `work` in a transaction, again until it gets its locks. It waits for exports that run. */
async function withTableLock(client: pg.ClientBase, signal: AbortSignal | undefined, work: () => Promise<void>) {
  for (let attempt = 1; ; attempt += 1) {
    signal?.throwIfAborted()
    const timeoutMs = attempt % attemptsPerLongOne === 0 ? longLockTimeoutMs : lockTimeoutMs
    try {
      await client.query(`begin; set local lock_timeout = ${timeoutMs}`)
      await work()
      await client.query('commit')
      return
    } catch (error) {
      await client.query('rollback').catch(() => {})
      if (!isLockTimeout(error)) throw error
    }
    await pause(lockRetryMs)
  }
}

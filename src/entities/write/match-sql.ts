import { statement } from '../../db/db.ts'

/**
 * $1: organization, $2: numbers of advisory locks in order. Locks them until the end of the transaction. The lock timeout applies to
 * rows, but not to these: every write waits its turn, as at the head.
 */
export const lockMatchKeysSql = statement(
  'lock_match_keys',
  `with patient as materialized (
     select current_setting('lock_timeout') as timeout, set_config('lock_timeout', '0', true) as off
     from (select $1::integer as organization_id) o
   ), locked as materialized (
     select max(p.timeout) as timeout, count(pg_advisory_xact_lock(l.number))
     from patient p cross join unnest($2::bigint[]) as l(number)
     where p.off is not null
   )
   select set_config('lock_timeout', l.timeout, true) from locked l where l.timeout is not null`,
)

/**
 * $2: [{id, email, mobile}], written people and the keys by which nobody else was found. Runs after apply, which has locked the head,
 * so it sees every commit before. If somebody else has one of the keys now, the division by zero fails the
 * transaction, and the set is decided again.
 */
export const checkMatchesSql = statement(
  'check_matches',
  `update change_heads set sequence = sequence / 0
   where organization_id = $1 and exists (
     select from jsonb_to_recordset($2::text::jsonb) as a(id uuid, email text, mobile text) cross join lateral (
       (select from entities e
       where e.organization_id = $1 and e.stack_id = 0 and e.email_key = a.email and e.id <> a.id limit 1)
       union all
       (select from entities e
       where e.organization_id = $1 and e.stack_id = 0 and e.mobile_key = a.mobile and e.id <> a.id limit 1)
     ) e
   )`,
)

/** Whether the background fill has people left to compute keys for. $1: organization. */
export const isFilling = `exists (
     select from entities e where e.organization_id = $1 and e.stack_id = 0 and not e.has_keys
   )`

/** $1: organization. Whether look-ups by email and phone would miss people of earlier releases. */
export const readIsFillingSql = statement('read_is_filling', `select ${isFilling} as is_filling`)

const person = `e.id, e.external_id, e.email, e.mobile_prefix, e.mobile_number`

const byKey = (kind: string) =>
  `(select '${kind}' as kind, ${person} from entities e
     where e.organization_id = $1 and e.stack_id = 0 and e.${kind}_key = a.${kind} order by e.id limit $3)`

/**
 * $2: [{number, external_id, email, mobile}], the keys to find people by, $3: maximum of people by one key. Returns who has each
 * key. Runs after the locks of the keys, whose statement is older than what it waited for. A row with the number -1 means that
 * the fill is not complete.
 */
export const findMatchesSql = statement(
  'find_matches',
  `select a.number, e.* from jsonb_to_recordset($2::text::jsonb) as a(number integer, external_id text, email text, mobile text)
   cross join lateral (
     (select 'external_id' as kind, ${person} from entities e
     where e.organization_id = $1 and e.stack_id = 0 and e.external_id = a.external_id offset 0)
     union all
     (select 'external_id', ${person} from (
       select s.person_id from aliases s
       where s.organization_id = $1 and s.external_id = a.external_id offset 0
     ) s cross join lateral (
       select ${person} from entities e where e.organization_id = $1 and e.stack_id = 0 and e.id = s.person_id offset 0
     ) e)
     union all
     ${byKey('email')}
     union all
     ${byKey('mobile')}
   ) e
   union all
   select -1, null, null, null, null, null, null where ${isFilling}`,
)

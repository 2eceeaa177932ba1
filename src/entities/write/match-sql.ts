import { statement } from '../../db/db.ts'

/** Whether the background fill has people left to compute keys for. $1: organization. */
export const isFilling = `exists (
     select from entities e where e.organization_id = $1 and e.stack_id = 0 and not e.has_keys
   )`

/** $1: organization. Whether look-ups by email and phone would miss people of earlier releases. */
export const readIsFillingSql = statement('read_is_filling', `select ${isFilling} as is_filling`)

const person = 'e.id, e.external_id'

const byKey = (kind: string) =>
  `(select '${kind}' as kind, ${person} from entities e
     where e.organization_id = $1 and e.stack_id = 0 and e.${kind}_key = a.${kind} order by e.id limit $3)`

/**
 * $2: [{number, external_id, email, mobile}], the keys to find people by, $3: maximum of people by one key. Returns who has each
 * key. A row with the number -1 means that the fill is not complete.
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
   select -1, null, null, null where ${isFilling}`,
)

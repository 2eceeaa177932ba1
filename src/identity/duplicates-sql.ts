import { peopleByMerge } from '../changes/people-sql.ts'
import { type Statement, statement } from '../db/db.ts'
import { timeText } from '../db/time-text.ts'
import { setAsideFrom, setAsidesOf } from './set-aside-sql.ts'

/** The keys that groups of duplicates share, in the order of the groups. */
export const sharedKeys = ['email', 'mobile', 'name'] as const
export type SharedKey = (typeof sharedKeys)[number]

const columns: Record<SharedKey, string> = { email: 'email_key', mobile: 'mobile_key', name: 'name_key' }

/** The value that all people e of a group have, or null. */
const sharedBy = (column: string) =>
  `case when count(e.${column}) = count(*) and min(e.${column}) = max(e.${column}) then min(e.${column}) end`

const keysBefore = (key: SharedKey) => sharedKeys.slice(0, sharedKeys.indexOf(key))

/** The kinds of keys before this one that all people e of a group share. */
const foundBy = (key: SharedKey) =>
  `array[${keysBefore(key).map(each => `case when (${sharedBy(columns[each])}) is not null then '${each}' end`)}]::text[]`

const earlierColumns = (key: SharedKey) => keysBefore(key).map(each => `, e.${columns[each]}`)

const own = (key: SharedKey) =>
  `select e.${columns[key]}${earlierColumns(key).join('')} from entities e
     where e.organization_id = $1 and e.stack_id = 0 and e.${columns[key]} is not null and e.${columns[key]} > $2
     order by e.${columns[key]} limit $3`

/** The people to whom a merge leads the email or phone of a merged person. */
const merged = (key: 'email' | 'mobile') =>
  `select m.${columns[key]}${earlierColumns(key).join('')} from ${peopleByMerge(`m.${columns[key]} > $2`)}
       and m.${columns[key]} is distinct from e.${columns[key]}
     order by m.${columns[key]} limit $3`

/** The people e with the key k, as their own or by a merge: `all` of them, and the `first` that are not in `o.ids`. */
const peopleOf = (key: SharedKey) => {
  const isListed = 'and e.id <> all(o.ids)'
  const own = `select e.* from entities e where e.organization_id = $1 and e.stack_id = 0 and e.${columns[key]} = k.key`
  if (key === 'name') return { all: own, first: `${own} ${isListed} order by e.id limit $3` }
  const merged = `select e.* from entities e
           where e.organization_id = $1 and e.stack_id = 0 and e.${columns[key]} is distinct from k.key and e.id in (
             select m.person_id from merges m where m.organization_id = $1 and m.${columns[key]} = k.key
           )`
  return {
    all: `${own} union all ${merged}`,
    first: `select * from ((${own} ${isListed} order by e.id limit $3) union all (${merged} ${isListed} order by e.id limit $3)) e order by e.id limit $3`,
  }
}

/** The members of a person e that a group shows. */
const shownPerson = `jsonb_build_object('id', e.id, 'external_id', e.external_id, 'first_name', e.first_name,
         'last_name', e.last_name, 'email', e.email, 'mobile_prefix', e.mobile_prefix, 'mobile_number', e.mobile_number,
         'date_of_birth', e.date_of_birth, 'created_at', ${timeText('e.created_at')}, 'updated_at', ${timeText('e.updated_at')})`

/** The keys that the people of a group share: the key k that found them, and those that all have as their own. */
const shared = (key: SharedKey) =>
  sharedKeys.map(each => `${each === key ? 'k.key' : sharedBy(columns[each])} as ${each}`).join(', ')

/**
 * $2: key to begin after, $3: limit of index entries, $4: limit of groups, $5: kinds of keys that were searched before.
 * Reads one range of the index, which is in the order of the keys. Returns the keys that occur more than once and whose
 * people do not all share an earlier key, the number of entries read, the last key, and the one before it. If the limit
 * was reached, entries of the last key may be missing.
 */
const scan = (key: SharedKey) =>
  `with scanned as materialized (
     ${key === 'name' ? own(key) : `select * from ((${own(key)}) union all (${merged(key)})) s order by s.${columns[key]} limit $3`}
   ), distinct_keys as materialized (
     select e.${columns[key]} as key, count(*) > 1 and not $5::text[] && ${foundBy(key)} as is_shared
     from scanned e group by e.${columns[key]}
   )
   select (select count(*)::integer from scanned) as scanned,
     (select max(d.key) from distinct_keys d) as last,
     (select d.key from distinct_keys d order by d.key desc offset 1 limit 1) as before_last,
     array(select d.key from distinct_keys d where d.is_shared order by d.key limit $4) as keys`

/** The set-asides of the people of a group. If the organization has none, the statement does not read the group. */
const setAsidesIn = (key: SharedKey) =>
  `(select e.id, s.set_aside_id from (${peopleOf(key).all}) e cross join lateral ${setAsidesOf('e.id')} s
           where (select true from set_aside_people s where s.organization_id = $1 limit 1))`

/** Selects the people of a group who are set aside from all others of it. */
const setAsideInGroup = (key: SharedKey) =>
  `select a.id from ${setAsidesIn(key)} a join ${setAsidesIn(key)} b on b.set_aside_id = a.set_aside_id and b.id <> a.id
         group by a.id having count(distinct b.id) = (select count(*) - 1 from (${peopleOf(key).all}) e)`

/**
 * $2: keys, $3: limit of people. Returns each group in order of $2 without the people who are set aside from all others
 * of it: its size, the keys that all of its people share, and the first of its people.
 */
const groups = (key: SharedKey) =>
  `select g.size, g.email, g.mobile, g.name, p.people
   from unnest($2::text[]) with ordinality as k(key, position)
     cross join lateral (select array(${setAsideInGroup(key)}) as ids offset 0) o
     cross join lateral (
       select count(*)::integer as size, ${shared(key)} from (${peopleOf(key).all}) e where e.id <> all(o.ids)
     ) g
     cross join lateral (
       select jsonb_agg(${shownPerson} order by e.id) as people
       from (${peopleOf(key).first}) e
     ) p
   order by k.position`

/** The other people who have a key of the person $2, as their own or by a merge, and that key. */
const withKeyOf = (key: SharedKey) => {
  const byMerge = `select m.${columns[key]} from merges m
         where m.organization_id = $1 and m.person_id = $2 and m.unmerged_sequence is null and m.${columns[key]} is not null`
  const own = `select e.${columns[key]} as key from entities e
         where e.organization_id = $1 and e.stack_id = 0 and e.id = $2 and e.${columns[key]} is not null`
  return `select f.id, '${key}' as by, k.key from (${key === 'name' ? own : `${own} union ${byMerge}`}) k cross join lateral (
         select e.id from (${peopleOf(key).all}) e where e.id <> $2 order by e.id limit $3
       ) f`
}

/**
 * $2: a person, $3: limit of people for each key. The people who may be the same as this one and are not set aside from
 * it, with the shared keys.
 */
export const readDuplicatesOfSql = statement(
  'read_duplicates_of',
  `select e.person, f.why from (
     select f.id, jsonb_agg(jsonb_build_object('by', f.by, 'value', f.key)) as why from (
       ${sharedKeys.map(withKeyOf).join('\n       union all\n       ')}
     ) f
     where f.id not in (${setAsideFrom('$2')})
     group by f.id
   ) f cross join lateral (
     select ${shownPerson} as person from entities e where e.organization_id = $1 and e.stack_id = 0 and e.id = f.id offset 0
   ) e`,
)

const ofEachKey = (name: string, textOf: (key: SharedKey) => string) =>
  Object.fromEntries(sharedKeys.map(key => [key, statement(`${name}_by_${key}`, textOf(key))])) as Record<
    SharedKey,
    Statement
  >

export const scanKeys = ofEachKey('scan_duplicates', scan)
export const readGroups = ofEachKey('read_duplicates', groups)

import { personNamed, personWithId } from '../changes/people-sql.ts'
import { statement } from '../db/db.ts'
import { channels, channelTable } from '../values/channels.ts'

const inForce = (person: string) =>
  `select h.schema_version, h.sequence, e.answers, array(
     ${channels
       .map(
         channel => `select w.consent_type_id || ':' || w.channel from address_answers w
     where w.organization_id = $1 and w.channel = '${channel}' and w.address = e.${channelTable[channel].key} and not w.state`,
       )
       .join(' union all ')}
   ) as refused
   from change_heads h left join lateral (
     select e.answers, ${channels.map(channel => `e.${channelTable[channel].key}`).join(', ')} from (select ${person} as id) p
       cross join lateral (
         select e.* from entities e where e.organization_id = $1 and e.stack_id = 0 and e.id = p.id offset 0
       ) e
   ) e on true
   where h.organization_id = $1`

/**
 * $2: external or internal identifier. Returns one row: the answers of the person, null if there is none, and the questions that the
 * addresses of the person refuse, as the keys of answers.
 */
export const readConsentsInForce = {
  external_id: statement('read_consents_in_force', inForce(personNamed('$2'))),
  id: statement(
    'read_consents_in_force_by_id',
    inForce(`coalesce((
     select m.person_id from merges m where m.organization_id = $1 and m.merged_id = $2 and m.unmerged_sequence is null
   ), ${personWithId('$2')})`),
  ),
}

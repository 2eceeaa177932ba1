import { personNamed, survivorOf } from '../changes/people-sql.ts'
import { statement } from '../db/db.ts'
import { channels, channelTable } from '../values/channels.ts'

const inForce = (person: string) =>
  `select h.schema_version, h.sequence, e.id, e.answers, array(
     ${channels
       .map(
         channel => `select w.consent_type_id || ':' || w.channel from address_answers w
     where w.organization_id = $1 and w.channel = '${channel}' and w.address = e.${channelTable[channel].key} and not w.state`,
       )
       .join(' union all ')}
   ) as refused
   from change_heads h left join entities e on e.organization_id = $1 and e.stack_id = 0 and e.id = (${person})
   where h.organization_id = $1`

/**
 * $2: external or internal identifier. Returns one row: the answers of the person, null if there is none, and the questions that the
 * addresses of the person refuse, as the keys of answers.
 */
export const readConsentsInForce = {
  external_id: statement('read_consents_in_force', inForce(personNamed('$2'))),
  id: statement('read_consents_in_force_by_id', inForce(`coalesce((${survivorOf('$2::uuid')}), $2::uuid)`)),
}

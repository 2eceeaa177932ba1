import { Fault } from '../errors.ts'
import type { Call } from '../http/route.ts'
import { writeEntities } from './sets.ts'
import type { Address, Done, EntityBody, Write } from './write.ts'

/** What a single request writes, and where. */
export type SingleWrite = Pick<Write, 'operation' | 'stack_id' | 'address' | 'represent'>

/** Runs the write of one request: an array of one. Throws the refusal, or the fault, that an array would hold. */
export async function writeOne(
  call: Call<EntityBody>,
  { operation, stack_id, address, represent }: SingleWrite,
): Promise<Done> {
  const write: Write = {
    operation,
    stack_id,
    address,
    represent,
    body: call.body,
    bound_from: call.bound_from,
    if_match: call.preferences.if_match,
    references: call.preferences.references,
    bytes: call.bytes,
    actor: call.caller.subject,
    request_id: call.request_id,
  }
  const options = { limits: call.limits, signal: call.signal }
  const [outcome] = await writeEntities(call.db, call.caller.organization.id, [write], options)
  if (!outcome) throw new Error('a write came back without an outcome')
  if ('error' in outcome) throw outcome.error
  if ('refusal' in outcome) throw new Fault(outcome.refusal)
  return outcome.done
}

/** The address a create has: the external identifier it takes, if any. */
export function addressOfCreate({ external_id }: EntityBody): Address | null {
  return external_id ? { external_id } : null
}

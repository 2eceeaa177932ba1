import { Fault } from '../errors.ts'
import type { Call } from '../http/pipeline/route.ts'
import { writeQueued } from './request-coalescing.ts'
import type { Done, EntityBody, Write } from './write-request.ts'

/** What a single request writes, and where. */
export type SingleWrite = Pick<Write, 'operation' | 'stack_id' | 'address' | 'represent'>

/** Runs the write of one request, together with those that come at the same time. Throws its refusal, or its fault. */
export async function writeOne(
  call: Call<EntityBody>,
  { operation, stack_id, address, represent }: SingleWrite,
): Promise<Done> {
  const write: Write = {
    operation,
    stack_id,
    address,
    // An answer that is kept under a key is stored with the write.
    represent: represent && (call.db.outer ? 'whole' : true),
    body: call.body,
    boundFrom: call.boundFrom,
    if_match: call.preferences.if_match,
    references: call.preferences.references,
    bytes: call.bytes,
    actor: call.caller.subject,
    request_id: call.request_id,
  }
  const outcome = await writeQueued(call.db, call.caller.organization.id, write, call)
  if ('refusal' in outcome) throw new Fault(outcome.refusal)
  return outcome.done
}

import { Fault } from '../errors.ts'
import type { Call } from '../http/pipeline/route.ts'
import { writeQueued } from './request-coalescing.ts'
import type { Done, EntityBody, Write } from './write-request.ts'

/** The operation of a single request and its target. */
export type SingleWrite = Pick<Write, 'operation' | 'stack_id' | 'address' | 'represent'>

/** Runs the write of one request, coalesced with concurrent writes. Throws its refusal as a Fault, or its error. */
export async function writeOne(
  call: Call<EntityBody>,
  { operation, stack_id, address, represent }: SingleWrite,
): Promise<Done> {
  const write: Write = {
    operation,
    stack_id,
    address,
    // The response to an Idempotency-Key is stored in the same transaction, so it needs the whole entity.
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

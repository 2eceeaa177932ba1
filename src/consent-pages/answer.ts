import type { ConsentAssignment } from '../consents/answers.ts'
import { contextOf } from '../db/context.ts'
import { writeQueued } from '../entities/write/request-coalescing.ts'
import { newWrite } from '../entities/write-request.ts'
import { peopleStackId } from '../organizations/definitions.ts'
import type { PageCall } from '../route/page.ts'
import { Fault, refuse } from '../values/errors.ts'
import { isIpAddress } from '../values/formats.ts'
import { type OpenLink, reopen } from './open-link.ts'

/** The actor that the change log and the consent history name for the changes of a page. */
const actor = 'link'

const maxUserAgentBytes = 2_048
/** A write rarely meets another write of the same person or a new definition, and hardly ever several times. */
const maxAttempts = 5

/** The state that a page gives a purpose on a channel, and the version of the text that it showed. */
export type PageAnswer = Pick<ConsentAssignment, 'consent_type_id' | 'channel' | 'state' | 'method' | 'source'> & {
  text_version?: number | undefined
}

/**
 * Writes the answers that `decide` derives from the current state, as a PATCH of the person does. If the person or the
 * definitions change meanwhile, it decides again, so that concurrent requests write an answer once. Returns the link
 * with the state after the write.
 */
export async function writeAnswers(
  call: PageCall,
  opened: OpenLink,
  decide: (open: OpenLink) => PageAnswer[],
): Promise<OpenLink> {
  let open = opened
  for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
    const answers = decide(open)
    if (answers.length === 0) return open
    const refusal = await writeOnce(call, open, answers)
    if (refusal && refusal.status >= 500) throw new Fault(refusal)
    open = await reopen(call, open)
    if (!refusal) return open
  }
  return refuse('operation_failed', 'The person kept changing meanwhile. Retry.', { status: 503 })
}

async function writeOnce({ db, limits, signal, ...call }: PageCall, { link, person }: OpenLink, answers: PageAnswer[]) {
  const evidence = evidenceOf(call)
  const write = newWrite({
    operation: 'patch',
    stack_id: peopleStackId,
    address: { id: link.person_id },
    body: {
      consents: answers.map(({ text_version, ...answer }) => ({
        ...answer,
        ...evidence,
        ...(text_version && { text_version }),
      })),
    },
    if_match: [person.version],
    bytes: call.body?.length ?? 0,
    actor,
    request_id: call.request_id,
  })
  const context = contextOf(db.shareOf(link.organization_id, 'writes'), link.organization_id)
  const outcome = await writeQueued(context, write, { limits, signal })
  return 'refusal' in outcome ? outcome.refusal : undefined
}

/** The evidence that kith itself has of the request. An invalid address, which a proxy may have sent, is left out. */
const evidenceOf = ({ address, userAgent }: Pick<PageCall, 'address' | 'userAgent'>) => ({
  ...(isIpAddress(address) && { ip: address }),
  ...(userAgent && { user_agent: cut(userAgent, maxUserAgentBytes) }),
})

/**
 * The longest beginning of a text that has at most this many bytes of UTF-8. With `stream`, the decoder leaves out a
 * last character that is cut.
 */
const cut = (text: string, maxBytes: number): string =>
  new TextDecoder('utf-8', { ignoreBOM: true }).decode(Buffer.from(text).subarray(0, maxBytes), { stream: true })

import type { Channel, ConsentType, ContactReason, Person } from '@kith/client'
import { client, readQuery } from '../app/client.ts'
import type { suppressionMessages } from '../deliverability/suppression-messages.ts'
import type { consentMessages } from './consent-messages.ts'

type Asked = { consent_type_id: number; channel: Channel }

/** A purpose on a channel. `type` is undefined if the session may not read the schema. */
export type Purpose = Asked & { name: string; type: ConsentType | undefined }

/** Whether a person may be contacted for a purpose, with the reasons. */
export const decisionQuery = ({ id, version }: Person, { consent_type_id, channel }: Asked, at?: string) =>
  readQuery(['consents', 'decision', id, version, consent_type_id, channel, at], ({ signal }) =>
    client.consents.contactable({ id }, { consent_type_id, channel }, { signal, ...(at !== undefined && { at }) }),
  )

/** A sentence for the rule that allows or forbids contact with a person. */
export function explain(
  reason: ContactReason,
  channel: Channel,
  { reasons }: (typeof consentMessages)['en'],
  format: (at: string) => string,
  events: (typeof suppressionMessages)['en']['reasons'],
): string {
  if (reason.rule === 'no_address') return reasons.no_address[channel]
  if (reason.rule === 'default') return reason.state ? reasons.allowedByDefault : reasons.forbiddenByDefault
  if (reason.rule === 'address_answer')
    return reasons.addressRefused[channel](reason.answered_at === null ? undefined : format(reason.answered_at))
  if (reason.rule === 'suppressed') {
    const { event, at, until, provider } = reason
    return reasons.suppressed(events[event], format(at), until === null ? undefined : format(until), provider)
  }
  if (reason.rule !== 'answer') return reasons[reason.rule]
  const when = format(reason.collected_at ?? reason.at)
  if (reason.pending) return reasons.pending(when)
  return reason.state ? reasons.granted(when) : reasons.refused(when)
}

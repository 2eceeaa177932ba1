import { baseUrlOf, expiryOf, type LinkSettings, prepareLinks } from '../consent-links/consent-links.ts'
import type { LinkKind } from '../consent-links/token.ts'
import { answerKey, configuredFor, questionFault } from '../consents/answers.ts'
import { throwNoPerson } from '../consents/history.ts'
import { currentDefinitions, peopleStackId } from '../organizations/definitions.ts'
import type { Call } from '../route/call.ts'
import { personOf } from '../route/person-addresses.ts'
import { channelTable } from '../values/channels.ts'
import { throwBrokenRule } from '../values/errors.ts'
import { readPerson } from './open-link.ts'
import type { ConsentLinks, ConsentLinksBody } from './schema.ts'

const mandatory = 'is a mandatory consent type, which cannot be answered: name another one'

/** Makes the links of a person. Throws a Fault of 404 or 400, or of 500 if kith does not know its own address. */
export async function createConsentLinks(call: Call<ConsentLinksBody>, config: LinkSettings): Promise<ConsentLinks> {
  const { context, body, signal } = call
  const base = baseUrlOf(call.localUrl(), config)
  const [person, { consent_types }] = await Promise.all([
    readPerson(context, personOf(call.params), signal),
    currentDefinitions(context, signal),
  ])
  if (!person) return throwNoPerson()
  call.shown.add(peopleStackId, person.id)
  const { consent_type_id, channel, expires_in } = body
  if (consent_type_id !== undefined) {
    const fault = questionFault({ consent_type_id, channel }, consent_types, mandatory)
    if (fault) throwBrokenRule(`/${fault.field}`, fault.message)
  }
  const type = consent_types.find(({ id }) => id === consent_type_id)
  const configured = type && channel && configuredFor(type, channel)
  const answer = configured && person.answers[answerKey(type!.id, configured.channel)]
  const printLink = await prepareLinks(context, base, signal)
  const urlOf = (kind: LinkKind) => {
    const isBound = kind !== 'preferences'
    return printLink({
      kind,
      person_id: person.id,
      consent_type_id: (isBound && consent_type_id) || null,
      channel: (isBound && channel) || null,
      address: channel && person[channelTable[channel].key],
      expiresAt: expiryOf(kind, Date.now(), expires_in),
    })
  }
  return {
    preferences_url: urlOf('preferences'),
    unsubscribe_url: urlOf('unsubscribe'),
    ...((configured?.double_opt_in || answer?.pending) && { confirm_url: urlOf('confirm') }),
  }
}

import { baseUrlOf, expiryOf, type LinkSettings, prepareLinks } from '../consent-links/consent-links.ts'
import type { LinkKind } from '../consent-links/token.ts'
import { throwInvalidField } from '../organizations/change-definitions.ts'
import { type ConsentType, currentDefinitions, peopleStackId } from '../organizations/definitions.ts'
import type { Call } from '../route/call.ts'
import { personOf } from '../route/person-addresses.ts'
import type { Channel } from '../values/channels.ts'
import { refuse } from '../values/errors.ts'
import { type LinkedPerson, readPerson } from './open-link.ts'
import type { ConsentLinks, ConsentLinksBody } from './schema.ts'

/** Makes the links of a person. Throws a Fault of 404 or 400, or of 500 if kith does not know its own address. */
export async function createConsentLinks(call: Call<ConsentLinksBody>, config: LinkSettings): Promise<ConsentLinks> {
  const { context, body, signal } = call
  const base = baseUrlOf(call.localUrl(), config)
  const [person, { consent_types }] = await Promise.all([
    readPerson(context, personOf(call.params), signal),
    currentDefinitions(context, signal),
  ])
  if (!person) return refuse('not_found', 'There is no such person.')
  call.shown.add(peopleStackId, person.id)
  const { consent_type_id, channel, expires_in } = body
  const type = consent_type_id === undefined ? undefined : findAnswerable(consent_types, consent_type_id, channel)
  const printLink = await prepareLinks(context, base, signal)
  const urlOf = (kind: LinkKind) => {
    const isBound = kind !== 'preferences'
    return printLink({
      kind,
      person_id: person.id,
      consent_type_id: (isBound && consent_type_id) || null,
      channel: (isBound && channel) || null,
      expiresAt: expiryOf(kind, Date.now(), expires_in),
    })
  }
  return {
    preferences_url: urlOf('preferences'),
    unsubscribe_url: urlOf('unsubscribe'),
    ...(type && channel && needsConfirmation(type, channel, person) && { confirm_url: urlOf('confirm') }),
  }
}

/** The consent type, if it can be answered on the channel. Throws a Fault of 400, like a write that answers it. */
function findAnswerable(types: readonly ConsentType[], id: number, channel: Channel | undefined): ConsentType {
  const type = types.find(candidate => candidate.id === id)
  if (!type) return throwInvalidField('/consent_type_id', 'is not a consent type of the organization')
  if (type.state === 'archived') throwInvalidField('/consent_type_id', 'is an archived consent type')
  if (type.mandatory)
    throwInvalidField('/consent_type_id', 'is a mandatory consent type, which cannot be answered: name another one')
  if (channel && !type.channels.some(entry => entry.channel === channel))
    throwInvalidField('/channel', 'is a channel that the consent type is not configured for')
  return type
}

function needsConfirmation(type: ConsentType, channel: Channel, { answers }: LinkedPerson): boolean {
  const isConfigured = type.channels.some(entry => entry.channel === channel && entry.double_opt_in)
  return isConfigured || answers[`${type.id}:${channel}`]?.pending === true
}

import { sealForm, unsealForm } from '../consent-links/token.ts'
import type { PageCall } from '../route/page.ts'
import type { Channel } from '../values/channels.ts'
import { refuse } from '../values/errors.ts'
import { type Html, html } from '../values/html.ts'
import type { ChoiceWithText, OpenLink } from './open-link.ts'

/** A choice as a page showed it. */
export type ShownChoice = {
  consent_type_id: number
  channel: Channel
  isChosen: boolean
  text_version: number | undefined
}

type Sealed = [consent_type_id: number, channel: Channel, isChosen: number, text_version: number][]

/** The hidden field with which a form sends back the choices that the page showed, in their order. */
export function shownField({ token, key }: OpenLink, choices: readonly ChoiceWithText[]): Html {
  const shown: Sealed = choices.map(({ type, channel, isChosen, text }) => [
    type.id,
    channel,
    Number(isChosen),
    text?.version ?? 0,
  ])
  return html`<input type="hidden" name="shown" value="${sealForm(shown, token, key)}">`
}

/** Reads the choices that the page of a submitted form showed. Undefined if the form does not belong to this link. */
export function readShown({ token, key }: OpenLink, form: URLSearchParams): ShownChoice[] | undefined {
  const shown = unsealForm(form.get('shown') ?? '', token, key) as Sealed | undefined
  return shown?.map(([consent_type_id, channel, isChosen, version]) => ({
    consent_type_id,
    channel,
    isChosen: isChosen === 1,
    text_version: version || undefined,
  }))
}

const mediaTypeOf = (contentType = '') => contentType.split(';')[0]!.trim().toLowerCase()

/** Parses the body of a form. Throws a Fault of 415 for a body of another type. */
export function readForm({ contentType, body }: PageCall): URLSearchParams {
  if (mediaTypeOf(contentType) !== 'application/x-www-form-urlencoded')
    refuse('invalid_parameter', 'The body must be a form: application/x-www-form-urlencoded.', { status: 415 })
  return new URLSearchParams(body?.toString() ?? '')
}

/**
 * Whether a POST of an unsubscribe link is the one-click request of RFC 8058. A mail program sends it as a form of
 * either type. Throws a Fault of 415 for a body that is no form.
 */
export function isOneClick({ contentType, body }: PageCall): boolean {
  const type = mediaTypeOf(contentType)
  const isForm = type === 'application/x-www-form-urlencoded' || type === 'multipart/form-data'
  if (body && body.length > 0 && !isForm)
    refuse('invalid_parameter', 'The body must be a form, or empty.', { status: 415 })
  return /List-Unsubscribe[\s\S]{1,200}One-Click/i.test(body?.toString('latin1') ?? '')
}

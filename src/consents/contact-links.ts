import { baseUrlOf, expiryOf, type LinkSettings, prepareLinks } from '../consent-links/consent-links.ts'
import type { LinkKind } from '../consent-links/token.ts'
import type { Call } from '../route/call.ts'
import { requireScope } from '../route/scopes.ts'
import type { ContactDecision } from './contact-decision.ts'
import type { ContactableBody, ContactableManyBody, ContactLinks } from './schema.ts'

/** Adds its links to a decision about a person, who is null if there is none. */
export type AddLinks = (decision: ContactDecision, person_id: string | null) => ContactDecision & ContactLinks

/** The rules by which no message may be sent at all, so none that asks for a confirmation either. */
const unreachable: ReadonlySet<string> = new Set(['no_address', 'suppressed', 'archived'])

/**
 * Prepares the links of decisions, if the request asks for them. Throws a Fault of 403 if the token may not make links, or of 500 if kith
 * does not know its own address.
 */
export async function prepareContactLinks(
  { context, caller, body, signal, localUrl }: Call<ContactableBody | ContactableManyBody>,
  config: LinkSettings,
): Promise<AddLinks> {
  if (!body.links) return decision => decision
  requireScope(caller, 'people:write', ', which makes links')
  const { consent_type_id, channel } = body
  const printLink = await prepareLinks(context, baseUrlOf(localUrl(), config), signal)
  const nowMs = Date.now()
  return (decision, person_id) => {
    const kind = linkKindOf(decision)
    if (person_id === null || kind === undefined) return decision
    const url = printLink({ kind, person_id, consent_type_id, channel, expiresAt: expiryOf(kind, nowMs) })
    return { ...decision, [kind === 'confirm' ? 'confirm_url' : 'one_click_url']: url }
  }
}

/** The link that a message to the person carries. A mandatory purpose cannot be refused. */
function linkKindOf({ allowed, reasons }: ContactDecision): LinkKind | undefined {
  if (allowed) return reasons.some(({ rule }) => rule === 'mandatory') ? undefined : 'unsubscribe'
  const isPending = reasons.some(reason => reason.rule === 'answer' && reason.pending)
  return isPending && !reasons.some(({ rule }) => unreachable.has(rule)) ? 'confirm' : undefined
}

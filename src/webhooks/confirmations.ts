import type { LoggedChange } from '../changes/change-json.ts'
import { expiryOf, type LinkContext, prepareLinks, unknownBase } from '../consent-links/consent-links.ts'
import type { Channel } from '../values/channels.ts'
import { readPendingGrantsSql } from './sql.ts'

/** A grant that waits for its confirmation, with the address to write to and the link that confirms it. */
export type Confirmation = { consent_type_id: number; channel: Channel; address: string; confirm_url: string }

type Grant = { sequence: number; at: string; person_id: string; consent_type_id: number; channel: Channel }

/** The grants of a change that wait for their confirmation. */
function grantsOf({ subject, sequence, at, json }: LoggedChange): Grant[] {
  if (subject !== 'person' || !json.includes('"pending"')) return []
  type Logged = { consent_type_id: number; channel: Channel; pending?: true }
  const { id, after } = JSON.parse(json) as { id: string; after: { consents?: Logged[] } | null }
  const pending = after?.consents?.filter(answer => answer.pending) ?? []
  return pending.map(({ consent_type_id, channel }) => ({ sequence, at, person_id: id, consent_type_id, channel }))
}

/**
 * Returns the confirmation links by the number of the change that gave the grants. It leaves out grants that no longer
 * wait, and people without an address. The end of a link depends on the time of the change, so each attempt sends the
 * same link, and nothing is stored. Without a base, returns the reason in place of the links: kith does not send such
 * an event while it does not know its own address.
 */
export async function readConfirmations(
  context: LinkContext,
  changes: readonly LoggedChange[],
  { base, nowMs }: { base: string | undefined; nowMs: number },
): Promise<Map<number, Confirmation[] | string>> {
  const grants = changes.flatMap(grantsOf)
  if (grants.length === 0) return new Map()
  if (base === undefined) return new Map(grants.map(({ sequence }) => [sequence, unknownBase]))
  const columns = [
    grants.map(each => each.person_id),
    grants.map(each => each.consent_type_id),
    grants.map(each => each.channel),
  ]
  type Row = { position: number; person_id: string; address: string; key: string | null }
  const rows = await context.db.query<Row>(readPendingGrantsSql, [context.organization_id, ...columns])
  const printLink = await prepareLinks(context, base)
  const links = rows.flatMap(({ position, person_id, address, key }) => {
    const { sequence, at, consent_type_id, channel } = grants[position - 1]!
    const expiresAt = expiryOf('confirm', Date.parse(at))
    if (expiresAt * 1_000 <= nowMs) return []
    const confirm_url = printLink({ kind: 'confirm', person_id, consent_type_id, channel, address: key, expiresAt })
    return [{ sequence, link: { consent_type_id, channel, address, confirm_url } }]
  })
  const bySequence = Map.groupBy(links, ({ sequence }) => sequence)
  return new Map(bySequence.entries().map(([sequence, each]) => [sequence, each.map(({ link }) => link)]))
}

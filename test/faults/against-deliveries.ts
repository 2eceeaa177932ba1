import { isDeepStrictEqual } from 'node:util'
import type { Received } from '../support/receiver.ts'
import type { Finding } from './replay.ts'
import type { Change, Stored } from './stored.ts'

/**
 * Compares the requests that the receiver of a webhook got with the change log. The webhook sends the changes of all
 * people and records. Every change since its creation must have arrived, in order for each entity, apart from
 * repetitions, and no other.
 */
export function compareWithDeliveries({ changes, log_id }: Stored, received: readonly Received[]): Finding[] {
  const created = changes.find(({ subject, operation }) => subject === 'webhook' && operation === 'create')!
  const expected = changes.filter(({ subject, sequence }) => subject === 'entity' && sequence > created.sequence)
  const byMessageId = new Map(expected.map(change => [`${log_id}:${change.sequence}`, change]))
  const arrived = new Set(received.map(({ id }) => id))
  const missing = [...byMessageId].filter(([id]) => !arrived.has(id))
  return [
    ...missing.map(([id]): Finding => ({ kind: 'a change was not delivered', text: id })),
    ...received.flatMap(request => compareRequest(request, byMessageId.get(request.id))),
    ...compareOrder(received),
  ]
}

function compareRequest({ id, event }: Received, change: Change | undefined): Finding[] {
  if (!change) return [{ kind: 'an unrequested change was delivered', text: `${id} ${event.type}` }]
  const { before, after, links } = event.data
  const delivered = {
    ...event.data,
    before: withoutNames(before, links, 'before'),
    after: withoutNames(after, links, 'after'),
  }
  const fields = ['sequence', 'operation', 'version', 'before', 'after', 'request_id'] as const
  const different = fields.filter(field => !isDeepStrictEqual(delivered[field], change[field]))
  return different.map(field => ({ kind: 'a delivery differs from the change log', text: `${id} ${field}` }))
}

type Links = Record<string, { before?: string[]; after?: string[] }> | null

/** The delivered values without the names of the targets of links, which the log does not have. */
function withoutNames(values: Record<string, unknown> | null, links: Links, side: 'before' | 'after') {
  if (!values?.attribute_values) return values
  const plain = Object.entries(values.attribute_values).filter(([key]) => !links?.[key]?.[side])
  return { ...values, attribute_values: Object.fromEntries(plain) }
}

/** Compares the first arrival of each change with those of the same entity. */
function compareOrder(received: readonly Received[]): Finding[] {
  const findings: Finding[] = []
  const newest = new Map<string, number>()
  const seen = new Set<string>()
  for (const { id, sequence, event } of received) {
    if (seen.has(id)) continue
    seen.add(id)
    const last = newest.get(event.data.id) ?? 0
    if (sequence < last)
      findings.push({ kind: 'deliveries are out of order', text: `${sequence} after ${last} of ${event.data.id}` })
    newest.set(event.data.id, Math.max(last, sequence))
  }
  return findings
}

import { deletion, type Entry, type Journal } from './journal.ts'
import type { Finding } from './replay.ts'
import type { Change, Stored } from './stored.ts'

/** What a change is called in the journal; undefined of a birth, which is its cause's. */
export function identityOf({ operation, before, after, request_id }: Change): string | undefined {
  if (operation === 'delete') return deletion(request_id, String(before?.external_id))
  return (after.attribute_values as { mark?: string } | undefined)?.mark
}

/** The change log, compared with what is known from outside: done as often as it was acknowledged, and in that order. */
export function compareWithJournal({ changes }: Stored, journal: Journal): Finding[] {
  const entities = changes.filter(({ subject }) => subject === 'entity')
  const done = Map.groupBy(entities, identityOf)
  const births = done.get(undefined) ?? []
  done.delete(undefined)
  return [
    ...journal.surprises.map((text): Finding => ({ kind: 'an answer that no fault explains', text })),
    ...journal.entries.flatMap(entry => compareEntry(entry, done)),
    ...compareUnknown(journal, done),
    ...compareBirths(entities, births),
    ...compareOrder(journal, done),
  ]
}

type Done = Map<string | undefined, Change[]>

function compareEntry({ method, path, writes, atomic, status }: Entry, done: Done): Finding[] {
  const findings: Finding[] = []
  const place = `${method} ${path}, answered ${status}`
  for (const { identity, outcome } of writes) {
    const times = done.get(identity)?.length ?? 0
    const text = `${identity}: ${place}`
    if (times > 1) findings.push({ kind: 'a write was done twice', text })
    if (times === 0 && outcome === 'acknowledged') findings.push({ kind: 'a write is lost', text })
    if (times > 0 && outcome === 'refused') findings.push({ kind: 'a refused write was done', text })
  }
  const doneOfIt = writes.filter(({ identity }) => done.has(identity)).length
  if (atomic && doneOfIt > 0 && doneOfIt < writes.length)
    findings.push({ kind: 'half of a batch was done', text: `${doneOfIt} of ${writes.length}: ${place}` })
  return findings
}

function compareUnknown({ entries }: Journal, done: Done): Finding[] {
  const asked = new Set(entries.flatMap(({ writes }) => writes.map(({ identity }) => identity)))
  const strangers = [...done.keys()].filter(identity => !asked.has(identity!))
  return strangers.map(identity => ({ kind: 'a write comes from nowhere', text: String(identity) }))
}

/** A placeholder is born of a later change of the same request, which names it. */
function compareBirths(entities: Change[], births: Change[]): Finding[] {
  const byRequest = Map.groupBy(entities, ({ request_id }) => request_id)
  const orphans = births.filter(({ operation, request_id, sequence, after }) => {
    const named = JSON.stringify(after.external_id)
    const causes = byRequest.get(request_id)!.filter(change => change.sequence > sequence && identityOf(change))
    return (
      operation !== 'create' ||
      !causes.some(cause => JSON.stringify(cause.after.attribute_values ?? {}).includes(named))
    )
  })
  return orphans.map(({ after, sequence }) => ({
    kind: 'a placeholder has no cause',
    text: `${JSON.stringify(after)} in change ${sequence}`,
  }))
}

/** What was answered before another was asked has the lower number. */
function compareOrder({ entries }: Journal, done: Done): Finding[] {
  const acknowledged = entries.flatMap(entry =>
    entry.writes.flatMap(({ identity, outcome }) => {
      const sequence = outcome === 'acknowledged' ? done.get(identity)?.[0]?.sequence : undefined
      return sequence === undefined ? [] : [{ ...entry, identity, sequence }]
    }),
  )
  const byStart = acknowledged.toSorted((a, b) => a.started - b.started)
  const byEnd = acknowledged.toSorted((a, b) => a.finished - b.finished)
  const findings: Finding[] = []
  let ended = 0
  let highest = 0
  for (const { started, sequence, identity } of byStart) {
    for (; ended < byEnd.length && byEnd[ended]!.finished < started; ended += 1)
      highest = Math.max(highest, byEnd[ended]!.sequence)
    if (sequence < highest)
      findings.push({
        kind: 'later writes come before earlier ones',
        text: `${identity}: ${sequence} after ${highest}`,
      })
  }
  return findings
}

import { deletionIdentity, type Entry, type Journal, restoreIdentity } from './journal.ts'
import type { Finding } from './replay.ts'
import type { Change, Stored } from './stored.ts'

/** Returns the journal's identity of a change; undefined for the create of a placeholder, which another change caused. */
export function identityOf({ operation, before, after, request_id }: Change): string | undefined {
  if (operation === 'delete') return deletionIdentity(request_id, String(before?.external_id))
  if (operation === 'restore') return restoreIdentity(request_id)
  return (after.attribute_values as { mark?: string } | undefined)?.mark
}

/** Compares the change log with the journal: every acknowledged write was done once, no refused one, and in order. */
export function compareWithJournal({ changes }: Stored, journal: Journal): Finding[] {
  const entities = changes.filter(({ subject }) => subject === 'entity')
  const changesByIdentity = Map.groupBy(entities, identityOf)
  const placeholderCreates = changesByIdentity.get(undefined) ?? []
  changesByIdentity.delete(undefined)
  const versions = new Set(entities.filter(({ operation }) => operation !== 'delete').map(versionOf))
  return [
    ...journal.unexplained.map((text): Finding => ({ kind: 'an unexplained response', text })),
    ...journal.entries.flatMap(entry => compareEntry(entry, changesByIdentity, versions)),
    ...compareUnrequested(journal, changesByIdentity),
    ...comparePlaceholders(entities, placeholderCreates),
    ...compareOrder(journal, changesByIdentity),
  ]
}

/** An entity and its version, by the internal identifier of its reads. */
function versionOf({ stack_id, entity_id, version }: Change): string {
  return `${stack_id === 0 ? entity_id : entity_id.replaceAll('-', '').slice(0, 24)} ${version}`
}

type ChangesByIdentity = Map<string | undefined, Change[]>

function compareEntry(
  { method, path, writes, atomic, status }: Entry,
  changesByIdentity: ChangesByIdentity,
  versions: Set<string>,
): Finding[] {
  const findings: Finding[] = []
  const requestLine = `${method} ${path}, answered ${status}`
  for (const { identity, outcome, restored } of writes) {
    const changeCount = changesByIdentity.get(identity)?.length ?? 0
    const text = `${identity}: ${requestLine}`
    if (changeCount > 1) findings.push({ kind: 'a write was done twice', text })
    // A restore returns an entity that exists as it is.
    const isUnchanged = restored !== undefined && versions.has(`${restored.id} ${restored.version}`)
    if (changeCount === 0 && outcome === 'acknowledged' && !isUnchanged)
      findings.push({ kind: 'a write is lost', text })
    if (changeCount > 0 && outcome === 'refused') findings.push({ kind: 'a refused write was done', text })
  }
  const doneCount = writes.filter(({ identity }) => changesByIdentity.has(identity)).length
  if (atomic && doneCount > 0 && doneCount < writes.length)
    findings.push({
      kind: 'an atomic batch was done in part',
      text: `${doneCount} of ${writes.length}: ${requestLine}`,
    })
  return findings
}

function compareUnrequested({ entries }: Journal, changesByIdentity: ChangesByIdentity): Finding[] {
  const requestedIdentities = new Set(entries.flatMap(({ writes }) => writes.map(({ identity }) => identity)))
  const unrequested = [...changesByIdentity.keys()].filter(identity => !requestedIdentities.has(identity!))
  return unrequested.map(identity => ({ kind: 'an unrequested write was done', text: String(identity) }))
}

/** A placeholder's create is followed by a change of the same request that links to the placeholder. */
function comparePlaceholders(entities: Change[], placeholderCreates: Change[]): Finding[] {
  const byRequest = Map.groupBy(entities, ({ request_id }) => request_id)
  const orphans = placeholderCreates.filter(({ operation, request_id, sequence, entity_id }) => {
    const causes = byRequest.get(request_id)!.filter(change => change.sequence > sequence && identityOf(change))
    return (
      operation !== 'create' ||
      !causes.some(({ links }) => Object.values(links ?? {}).some(({ after }) => after?.includes(entity_id)))
    )
  })
  return orphans.map(({ after, sequence }) => ({
    kind: 'a placeholder has no cause',
    text: `${JSON.stringify(after)} in change ${sequence}`,
  }))
}

/** A write that was acknowledged before another was sent has the lower change number. */
function compareOrder({ entries }: Journal, changesByIdentity: ChangesByIdentity): Finding[] {
  const acknowledged = entries.flatMap(entry =>
    entry.writes.flatMap(({ identity, outcome }) => {
      const sequence = outcome === 'acknowledged' ? changesByIdentity.get(identity)?.[0]?.sequence : undefined
      return sequence === undefined ? [] : [{ ...entry, identity, sequence }]
    }),
  )
  const byStart = acknowledged.toSorted((a, b) => a.started - b.started)
  const byEnd = acknowledged.toSorted((a, b) => a.finished - b.finished)
  const findings: Finding[] = []
  let finishedCount = 0
  let highest = 0
  for (const { started, sequence, identity } of byStart) {
    for (; finishedCount < byEnd.length && byEnd[finishedCount]!.finished < started; finishedCount += 1)
      highest = Math.max(highest, byEnd[finishedCount]!.sequence)
    if (sequence < highest)
      findings.push({
        kind: 'change numbers are out of order',
        text: `${identity}: ${sequence} after ${highest}`,
      })
  }
  return findings
}

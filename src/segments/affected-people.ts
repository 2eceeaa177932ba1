import type { Context } from '../db/context.ts'
import { peopleStackId } from '../organizations/definitions.ts'
import type { RelationshipLevel } from '../queries/plan/membership.ts'
import { firstId } from '../values/formats.ts'
import { partsOf } from './members.ts'
import {
  readBatchSql,
  readChecksSql,
  readFormerTargetsSql,
  readMergePartnersSql,
  readSharingSql,
  readSourcesOfSql,
  readSourcesSql,
  readTargetsOfSql,
} from './sql.ts'
import type { ConditionsAt } from './tested-segments.ts'

/** A person whose segments may differ after the change `cause`. */
export type Affected = { id: string; cause: number }

/** The changes after a position, up to `last`. */
export type Batch = {
  after: number
  last: number
  /** The last change of each entity that changed or whose relations changed, by the entity's id. */
  changed: Map<string, number>
  /** The changed people. */
  people: Set<string>
  /** The entities that were linked with erased ones, to delete from the checks after the batch. */
  checked: string[]
  /** The changes that report people whom the clock has moved, with their segments. */
  clock: { sequence: number; segment_id: number }[]
}

type LoggedChange = {
  sequence: number
  stack_id: number | null
  id: string | null
  operation: string
  moved: number | null
}
type Source = { source_id: string; target_id: string }

/** The maximum number of changes that one statement reads. */
const changesPerBatch = 1_000
const checksPerRead = 10_000
const entitiesPerRead = 200
/**
 * Above this number, links are read target by target, so that the links of a large target are never in memory as a
 * whole.
 */
export const defaultSourcesPerRead = 10_000
const peoplePerPage = 1_000

/** Stores the last change that concerns an entity. */
export function noteCause(causes: Map<string, number>, id: string, cause: number): void {
  causes.set(id, Math.max(cause, causes.get(id) ?? 0))
}

/** Reads the next changes, and the further entities that they concern. */
export async function readBatch({ db, organization_id }: Context, after: number, head: number): Promise<Batch> {
  const values = [organization_id, after, head, changesPerBatch]
  const changes = await db.query<LoggedChange>(readBatchSql, values)
  const last = changes.length < changesPerBatch ? head : changes.at(-1)!.sequence
  const batch: Batch = { after, last, changed: new Map(), people: new Set(), checked: [], clock: [] }
  for (const { sequence, stack_id, id, moved } of changes) {
    if (moved !== null) batch.clock.push({ sequence, segment_id: moved })
    if (id === null) continue
    noteCause(batch.changed, id, sequence)
    if (stack_id === peopleStackId) batch.people.add(id)
  }
  const idsOf = (operations: readonly string[]) =>
    changes.flatMap(({ id, operation }) => (id !== null && operations.includes(operation) ? [id] : []))
  const merged = idsOf(['merge', 'unmerge'])
  if (merged.length > 0) {
    type Partner = { id: string; partner_id: string }
    // A person who gains or loses an identifier by a merge may have no change in the log.
    for (const { id, partner_id } of await db.query<Partner>(readMergePartnersSql, [organization_id, merged])) {
      noteCause(batch.changed, partner_id, batch.changed.get(id)!)
      batch.people.add(partner_id)
    }
  }
  await noteSources(idsOf(['erase']))
  return batch

  /** An entity that lost a link with an erased one counts as changed. It may be a person or a record. */
  async function noteSources(erased: string[]) {
    const cause = Math.max(...erased.map(id => batch.changed.get(id)!))
    for (let position = firstId; erased.length > 0; ) {
      const checks = await db.query<{ id: string }>(readChecksSql, [organization_id, position, checksPerRead])
      for (const { id } of checks) {
        noteCause(batch.changed, id, cause)
        batch.people.add(id)
        batch.checked.push(id)
      }
      if (checks.length < checksPerRead) break
      position = checks.at(-1)!.id
    }
  }
}

/**
 * The people whose segments a batch may change, in pages: those that changed, and those that are related to a changed
 * entity by the relationships of the filters, in either direction. With `asksAddresses`, people who share an address
 * that a changed person has answered for count as changed. A person may be in several pages.
 */
export async function* affectedPeople(
  context: Context,
  batch: Batch,
  { levels, asksAddresses }: Pick<ConditionsAt, 'levels' | 'asksAddresses'>,
  sourcesPerRead: number,
): AsyncGenerator<Affected[]> {
  const { changed, people } = batch
  if (asksAddresses) await noteAddresses(context, batch)
  yield* inPages([...people].map(id => ({ id, cause: changed.get(id)! })))
  const former = await readFormerTargets(context, batch, levels)
  let others: ReadonlyMap<string, number> = changed
  const leadTo = async function* ({ outgoing, incoming }: RelationshipLevel) {
    yield* readSources(context, others, outgoing, sourcesPerRead)
    yield* readTargets(context, others, incoming)
    yield* inPages(former.filter(({ attribute_id }) => incoming.has(attribute_id)))
  }
  for (let level = levels.length - 1; level > 0; level -= 1) {
    const next = new Map(changed)
    for await (const page of leadTo(levels[level]!)) for (const { id, cause } of page) noteCause(next, id, cause)
    others = next
  }
  if (levels[0]) yield* leadTo(levels[0])
}

/** Adds the people whose address has the answer of a changed person. */
async function noteAddresses({ db, organization_id }: Context, { changed, people }: Batch): Promise<void> {
  type Sharing = { id: string; answered_by: string }
  for (const { id, answered_by } of await db.query<Sharing>(readSharingSql, [organization_id, [...people]])) {
    noteCause(changed, id, changed.get(answered_by)!)
    people.add(id)
  }
}

const inPages = (affected: readonly Affected[]) => partsOf(affected, peoplePerPage)

/** The entities that link to one of the targets, in pages. */
async function* readSources(
  context: Context,
  causes: ReadonlyMap<string, number>,
  attributes: ReadonlySet<number>,
  sourcesPerRead: number,
): AsyncGenerator<Affected[]> {
  const { db, organization_id } = context
  if (attributes.size === 0) return
  const attributeIds = [...attributes]
  const affectedBy = ({ source_id, target_id }: Source) => ({ id: source_id, cause: causes.get(target_id)! })
  for (const part of partsOf([...causes.keys()], entitiesPerRead)) {
    const values = [organization_id, part, attributeIds, sourcesPerRead + 1]
    const sources = await db.query<Source>(readSourcesSql, values)
    if (sources.length <= sourcesPerRead) yield* inPages(sources.map(affectedBy))
    else
      for (const target of part)
        for (const attribute of attributeIds)
          for await (const page of readSourcesOf(context, target, attribute)) yield page.map(affectedBy)
  }
}

type FormerTarget = Affected & { attribute_id: number }

/** Returns the earlier targets of changed entities. A filter on the targets follows these links back to the entity. */
async function readFormerTargets(
  { db, organization_id }: Context,
  { after, last }: Batch,
  levels: readonly RelationshipLevel[],
): Promise<FormerTarget[]> {
  const attributes = levels.flatMap(({ incoming }) => [...incoming])
  if (attributes.length === 0) return []
  return db.query<FormerTarget>(readFormerTargetsSql, [organization_id, after, last, attributes.map(String)])
}

/** The entities that one of the sources links to, in pages. An entity has at most 1,000 links by an attribute. */
async function* readTargets(
  { db, organization_id }: Context,
  causes: ReadonlyMap<string, number>,
  attributes: ReadonlySet<number>,
): AsyncGenerator<Affected[]> {
  if (attributes.size === 0) return
  for (const sources of partsOf([...causes.keys()], entitiesPerRead)) {
    const values = [organization_id, sources, [...attributes]]
    const links = await db.query<Source>(readTargetsOfSql, values)
    yield* inPages(links.map(({ source_id, target_id }) => ({ id: target_id, cause: causes.get(source_id)! })))
  }
}

async function* readSourcesOf(
  { db, organization_id }: Context,
  target: string,
  attribute: number,
): AsyncGenerator<Source[]> {
  for (let position = firstId; ; ) {
    const values = [organization_id, target, attribute, position, peoplePerPage]
    const page = await db.query<Source>(readSourcesOfSql, values)
    if (page.length > 0) yield page
    if (page.length < peoplePerPage) return
    position = page.at(-1)!.source_id
  }
}

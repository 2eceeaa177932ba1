import { answerChangesToJson } from '../consents/answer-changes.ts'
import { answerKey } from '../consents/answers.ts'
import { throwNoPerson } from '../consents/history.ts'
import type { Within } from '../db/context.ts'
import { awaitPipelined, type Transaction } from '../db/db.ts'
import { readBearersWithAliasesSql, readTargetsSql } from '../entities/bearers-sql.ts'
import type { Target } from '../entities/entity-row.ts'
import { readLastChange } from '../entities/past/past-state.ts'
import { buildFill, buildRestore, type Change } from '../entities/write/decide/decide.ts'
import { readNamesLeftSql } from '../entities/write/load/load-sql.ts'
import type { PlannedChange } from '../entities/write/store/store.ts'
import { checkReturn, readKept } from '../entities/write/tombstones.ts'
import { claimsOf, findHolders, takenRefusal } from '../entities/write/unique.ts'
import type { Locked } from '../organizations/change-organization.ts'
import { type Definitions, isRelationship, peopleStackId } from '../organizations/definitions.ts'
import { channels, channelTable } from '../values/channels.ts'
import { createRefusal, createValueRefusal, Fault, refuse } from '../values/errors.ts'
import { addressFields } from '../values/profile-fields.ts'
import {
  type Asked,
  checkVersion,
  fieldChanges,
  findPeople,
  type IdentityResult,
  type Person,
  readGivenAt,
  readJson,
  readPeople,
  storeRounds,
} from './identity-write.ts'
import type { EndedUndo, MergeRow, Undo } from './merge.ts'
import { takenAnswers } from './merge-answers.ts'
import {
  countListsOfSql,
  endMergeSql,
  findMergeSql,
  numberMergeSql,
  readIsEmptiedSql,
  readMergedIdsSql,
  readMergesIntoSql,
  readOwnAnswersSql,
  readWrittenKeysSql,
  returnIdentifiersSql,
  storeAddressesSql,
  updateUndoSql,
} from './merge-sql.ts'
import { aliasesToJson, type Contact, type LeadingIdentifiers, mergedAddresses } from './merged-addresses.ts'
import { undoWithout } from './undo.ts'
import { type OwnAnswer, planUnmerge, type UnmergeFacts, type UnmergePlan } from './unmerge.ts'

type StandingMerge = MergeRow & { undo: Undo }

/** Undoes the merge of a person into another one. Throws a Fault of 400, 404, 409 or 412. */
export async function unmergePeople(locked: Locked, asked: Asked): Promise<IdentityResult> {
  const { tx, organization_id, definitions } = locked
  const { author, call } = asked
  const { survivor, merge } = await readMerge(tx, definitions, asked)
  checkVersion(survivor.row, call)
  const returning = await readReturning(locked, merge)
  const facts = await readFacts(locked, survivor, merge, returning)
  const plan = planUnmerge(survivor, merge.undo, facts, definitions)
  const { external_id: ownName } = plan.fill.columns
  // The survivor may get back its name from before the merge, unless a deletion of the survivor has ended the alias.
  const isSurvivor = ({ id }: Bearer) => id === survivor.row.id
  const left = ownName ? await readNameLeft(locked, ownName, asked.path, isSurvivor) : 0
  const filled = buildFill(survivor, plan.fill, definitions, call.limits, left)
  if (filled && 'refusal' in filled) throw new Fault(filled.refusal)
  const change = filled?.change
  const mayLeave = (bearer: Bearer) => isSurvivor(bearer) && (bearer.is_alias || ownName !== undefined)
  const { external_id } = merge.undo.other.columns
  const nameLeft = external_id ? await readNameLeft(locked, external_id, asked.path, mayLeave) : 0
  const built = await buildReturn(locked, merge, facts, Math.max(survivor.row.version, nameLeft))
  const givesBack = hasReplaced(merge.undo) && change ? [built, change] : [built]
  const kept = await Promise.all(givesBack.map(giving => readKept(tx, definitions, giving, merge.sequence)))
  const returned = { ...built, kept: kept[0] }
  for (const [index, giving] of givesBack.entries())
    await checkReturn(tx, definitions, { ...giving, kept: kept[index] }, call.preferences.erased)

  const identifiers = await returnIdentifiers(locked, merge)
  const coming: PlannedChange = { stack_id: peopleStackId, change: returned }
  const losing = change ? [{ stack_id: peopleStackId, change, row: survivor.row }] : []
  // The survivor gives up the name of the other before the other gets it back.
  const leavesName = change !== undefined && ownName !== undefined
  const sequence = await storeRounds(locked, author, leavesName ? [losing, [coming]] : [[coming, ...losing]])
  for (const each of givesBack)
    await throwIfTaken(tx, definitions, each, asked.path, call.caller.scopes.has('people:read'))
  await endMerge(locked, { merge, survivor, plan, facts, change, returned })
  const [links] = await tx.query<{ count: number }>(countListsOfSql, [organization_id, returning])
  const [person, unmerged] = await readJson(tx, definitions, [survivor.row.id, merge.merged_id])
  const targets = returned.relinked.flatMap(({ attribute, targets }) =>
    targets.map(target => 'id' in target && facts.resolve(attribute.id, target.id)),
  )
  const moved_out = targets.filter(target => target && !target.is_deleted).length
  return {
    sequence,
    merge_id: merge.id,
    merged: { id: merge.merged_id, external_id: returned.external_id },
    changes: {
      fields: fieldChanges(change),
      links: { moved_in: links!.count, moved_out, dropped: countLinks(merge.undo) - targets.length },
      consents: answerChangesToJson(plan.answers),
      aliases: aliasesToJson(identifiers),
      kept: plan.kept,
    },
    moved: { people: returning, from: survivor.row.id },
    entities: { person: person!, unmerged: unmerged! },
    survivor_id: survivor.row.id,
    version: change?.version ?? survivor.row.version,
  }
}

/** Whether the merge replaced values of the survivor, which the unmerge restores. */
const hasReplaced = ({ filled: { columns, replaced = {} } }: Undo) =>
  Object.keys(replaced).length > 0 || Object.values(columns).some(({ before }) => before !== null)

type Bearer = { id: string; is_alias: boolean }

/** Reads the version at which a name was last given up. Throws a Fault of 409 if a person has the name and keeps it. */
async function readNameLeft(
  { tx, organization_id }: Within,
  external_id: string,
  path: string,
  mayLeave: (bearer: Bearer) => boolean,
): Promise<number> {
  const names = [organization_id, JSON.stringify([{ stack_id: peopleStackId, external_id }])]
  const [bearer] = await tx.query<Bearer>(readBearersWithAliasesSql, names)
  if (bearer && !mayLeave(bearer))
    refuse('duplicate_entry', 'The external identifier is taken.', {
      details: [{ path, message: `another person has the external identifier ${JSON.stringify(external_id)}` }],
    })
  const [release] = await tx.query<{ version: number }>(readNamesLeftSql, names)
  return release?.version ?? 0
}

const countLinks = ({ other }: Undo) => Object.values(other.links).reduce((sum, ids) => sum + ids.length, 0)

/** Finds the merge and the survivor. Throws a Fault of 404 or 409. */
async function readMerge(tx: Transaction, definitions: Definitions, asked: Asked) {
  const { organization_id } = definitions
  const [found] = await findPeople({ db: tx, organization_id }, [asked.survivor])
  if (!found) return throwNoPerson()
  const merge = await findMerge({ tx, organization_id }, asked, found)
  const [survivor] = await readPeople(tx, definitions, [found.id])
  return { survivor: survivor!, merge }
}

/** Throws a Fault of 404 or 409. */
async function findMerge(
  { tx, organization_id }: Within,
  { from, path }: Asked,
  survivor: Target,
): Promise<StandingMerge> {
  const [name, id] = 'id' in from ? [null, from.id] : [from.external_id, null]
  const [merge] = await tx.query<MergeRow>(findMergeSql, [organization_id, name, id, survivor.id])
  if (merge?.person_id !== survivor.id)
    throw new Fault(createValueRefusal(path, 'There is no such merge into this person.', 'not_found'))
  if (merge.into_id !== survivor.id)
    throw conflict(path, `was merged into ${merge.into_id}, who was merged later. Undo the later merge first.`)
  if (!merge.undo) throw conflict(path, 'One of the two people was erased, so the merge cannot be undone.')
  return merge as StandingMerge
}

const conflict = (path: string, message: string) =>
  new Fault(
    createRefusal('invalid_parameter', 'The merge cannot be undone.', { status: 409, details: [{ path, message }] }),
  )

/** The merged person and the people who were merged into it. They lead to it again. */
async function readReturning({ tx, organization_id }: Within, merge: StandingMerge): Promise<string[]> {
  const rows = await tx.query<{ merged_id: string }>(readMergedIdsSql, [organization_id, merge.undo.merges])
  return [merge.merged_id, ...rows.map(({ merged_id }) => merged_id)]
}

async function readFacts(
  locked: Locked,
  survivor: Person,
  merge: StandingMerge,
  returning: readonly string[],
): Promise<UnmergeFacts> {
  const { tx, organization_id, definitions } = locked
  const into = await tx.query<MergeRow>(readMergesIntoSql, [organization_id, survivor.row.id])
  const remaining = into.flatMap(({ undo, ...other }) => (undo && other.id !== merge.id ? [{ ...other, undo }] : []))
  const brought = remaining.map(({ merged_id, undo }) => ({ id: merged_id, answers: undo.other.answers }))
  const person = [organization_id, survivor.row.id]
  const since = merge.undo.into_version
  type Written = { key: string; is_attribute: boolean }
  const [[emptied], written, ownAnswers, resolve, givenAt] = await Promise.all([
    tx.query<{ is_emptied: boolean }>(readIsEmptiedSql, [...person, merge.sequence]),
    since === null ? [] : tx.query<Written>(readWrittenKeysSql, [...person, since]),
    tx.query<OwnAnswer>(readOwnAnswersSql, person),
    readTargets(tx, definitions, merge, returning),
    readGivenAt(locked, brought),
  ])
  const keysOf = (isAttribute: boolean) =>
    new Set(written.filter(({ is_attribute }) => is_attribute === isAttribute).map(({ key }) => key))
  return {
    merge_id: merge.id,
    merged_id: merge.merged_id,
    // The values that an emptied change wrote are unknown, so the survivor keeps everything.
    written: emptied!.is_emptied ? filledKeys(merge.undo, definitions) : { fields: keysOf(false), keys: keysOf(true) },
    isEmptied: emptied!.is_emptied,
    ownAnswers,
    remaining,
    givenAt,
    resolve,
  }
}

/** All fields and attribute keys that a merge filled, except the name, which the returning person needs. */
const filledKeys = ({ filled }: Undo, { attributeById }: Definitions): UnmergeFacts['written'] => ({
  fields: new Set([
    ...Object.keys(filled.columns).filter(name => name !== 'external_id'),
    ...channels.map(channel => channelTable[channel].flag),
  ]),
  keys: new Set([
    ...Object.keys(filled.attributes),
    ...Object.keys(filled.replaced ?? {}),
    ...filled.links.flatMap(({ attribute_id }) => attributeById.get(attribute_id)?.key ?? []),
  ]),
})

/** Reads the people that links of the undo record lead to. */
async function readTargets(
  tx: Transaction,
  { organization_id, attributeById }: Definitions,
  { merged_id, undo }: StandingMerge,
  returning: readonly string[],
): Promise<UnmergeFacts['resolve']> {
  const asked: { stack_id: number; id: string }[] = []
  const add = (attribute_id: number, ids: readonly string[]) => {
    const stack_id = attributeById.get(attribute_id)?.target_stack_id
    if (stack_id != null) for (const id of ids) asked.push({ stack_id, id })
  }
  for (const [attribute_id, ids] of Object.entries(undo.other.links)) add(Number(attribute_id), ids)
  for (const { attribute_id, before, after } of undo.filled.links) add(attribute_id, [...before, ...after])
  const named = JSON.stringify(asked.map((target, position) => ({ position, ...target })))
  const rows = await tx.query<Target & { position: number }>(readTargetsSql, [organization_id, named])
  const targets = new Map(rows.map(({ position, ...target }) => [keyOf(asked[position]!), target]))
  const itself = { id: merged_id, external_id: undo.other.columns.external_id ?? null }
  return (attribute_id, id) => {
    const stack_id = attributeById.get(attribute_id)?.target_stack_id
    if (stack_id == null) return undefined
    if (stack_id === peopleStackId && returning.includes(id))
      return id === merged_id ? itself : { ...itself, written_id: id }
    return targets.get(keyOf({ stack_id, id }))
  }
}

const keyOf = ({ stack_id, id }: { stack_id: number; id: string }) => `${stack_id} ${id}`

/**
 * Builds the change that brings the merged person back. Its version is above `atLeast`, because its identifiers have
 * led to the survivor.
 */
async function buildReturn(
  { tx, organization_id, definitions: { attributeById } }: Locked,
  { merged_id, undo }: StandingMerge,
  { resolve }: UnmergeFacts,
  atLeast: number,
): Promise<Change> {
  const entity = { stack_id: peopleStackId, id: merged_id }
  const last = (await readLastChange({ db: tx, organization_id }, entity))!
  const { columns, answers, attributes } = undo.other
  const version = Math.max(last.version, atLeast)
  const links = Object.entries(undo.other.links).flatMap(([id, ids]) => {
    const attribute = attributeById.get(Number(id))
    if (!attribute || !isRelationship(attribute)) return []
    const targets = ids.flatMap(target => resolve(attribute.id, target) ?? [])
    return targets.length > 0 ? [{ attribute, targets }] : []
  })
  const state = { id: merged_id, version, created_at: last.created_at, columns, answers, attributes, links }
  return { ...buildRestore(state), operation: 'unmerge' }
}

/**
 * Throws a Fault of 409 if another person has a unique value of the person who returned. The head is locked, so no
 * write takes one from now on.
 */
async function throwIfTaken(
  tx: Transaction,
  { organization_id, unique }: Definitions,
  { id, set }: Change,
  path: string,
  mayRead: boolean,
): Promise<void> {
  const claims = claimsOf(unique.get(peopleStackId), set)
  if (claims.length === 0) return
  const holders = await findHolders({ db: tx, organization_id }, claims)
  const refusal = takenRefusal(claims, id, { stack_id: peopleStackId, mayRead }, holders)
  if (!refusal) return
  const details = refusal.details.map(detail => ({ path, message: `The value at ${detail.path} ${detail.message}` }))
  throw new Fault({ ...refusal, details })
}

/**
 * Gives the aliases and the people who were merged into the person back to it. Returns the identifiers that lead to it
 * again, with its own name, email and phone.
 */
async function returnIdentifiers({ tx, organization_id }: Within, merge: StandingMerge): Promise<LeadingIdentifiers> {
  const { aliases, merges, other } = merge.undo
  const names = typeof other.columns.external_id === 'string' ? [other.columns.external_id] : []
  const values = [organization_id, merge.merged_id, aliases, merges, names, merge.person_id]
  const [returned] = await tx.query<Record<keyof LeadingIdentifiers, string[]>>(returnIdentifiersSql, values)
  return { ...returned!, aliases: [...names, ...returned!.aliases] }
}

type Unmerged = {
  merge: StandingMerge
  survivor: Person
  plan: UnmergePlan
  facts: UnmergeFacts
  change: Change | undefined
  returned: Change
}

/** Ends the merge. Answers of other merges that are in force again count from the version of the unmerge on. */
async function endMerge(
  { tx, organization_id, definitions }: Locked,
  { merge, survivor, plan, facts, change, returned }: Unmerged,
): Promise<void> {
  const until = change?.version ?? survivor.row.version + 1
  const ended: EndedUndo = {
    into_version: merge.undo.into_version,
    answers: merge.undo.answers.map(answer => ({ until, ...answer })),
  }
  await tx.query(endMergeSql, [organization_id, merge.id, merge.merged_id, returned.version, JSON.stringify(ended)])
  const versions = [returned.version, change?.version ?? null]
  await tx.query(numberMergeSql, [organization_id, merge.id, [merge.merged_id, survivor.row.id], versions])
  const taken = takenAnswers(plan.answers, change?.version, facts.givenAt)
  const updated = facts.remaining.flatMap(({ id, merged_id, undo }) => {
    const choices = plan.answers.filter(({ key, after }) => isFrom(after, merged_id, undo.other.answers[key]))
    const keys = choices.map(({ key }) => key)
    const added = taken.filter(answer => keys.includes(answerKey(answer.consent_type_id, answer.channel)))
    if (id < merge.id && added.length === 0) return []
    const rest = id > merge.id ? undoWithout({ id, undo }, merge, facts, definitions) : undo
    return [{ id, merged_id, undo: { ...rest, answers: [...undo.answers, ...added] } }]
  })
  if (updated.length > 0) await awaitPipelined([tx.query(updateUndoSql, [organization_id, JSON.stringify(updated)])])
  const columns = change?.columns ?? {}
  const changesAddress = ({ filled }: Undo) => addressFields.some(name => filled.columns[name] !== undefined)
  if (!addressFields.some(name => columns[name] !== undefined) && !changesAddress(merge.undo)) return
  // If the survivor loses an address that it took from this person, the address may still lead to it by another merge.
  const addresses = facts.remaining.map(({ id, ...remaining }) => {
    const former = formerAddresses(updated.find(each => each.id === id)?.undo ?? remaining.undo)
    return { id, ...mergedAddresses({ ...survivor.row, ...columns }, [former], definitions.default_country) }
  })
  await tx.query(storeAddressesSql, [organization_id, JSON.stringify(addresses)])
}

/**
 * The addresses that a merge leads to the survivor: the survivor's former address if the merge changed it, or else the
 * merged person's. An address that the survivor took is its own, and is gone once overwritten.
 */
const formerAddresses = ({ other, filled }: Undo): Contact => ({
  ...other.columns,
  ...Object.fromEntries(
    addressFields.flatMap(name => (filled.columns[name] ? [[name, filled.columns[name].before]] : [])),
  ),
})

/** Whether a merged person brought an answer, its own or that of a person merged into it. */
const isFrom = (
  after: { person_id?: string } | undefined,
  merged_id: string,
  brought: { person_id?: string } | undefined,
) => after?.person_id !== undefined && brought !== undefined && after.person_id === (brought.person_id ?? merged_id)

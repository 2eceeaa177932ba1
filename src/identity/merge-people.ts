import { answerChangesToJson } from '../consents/answer-changes.ts'
import { throwNoPerson } from '../consents/history.ts'
import { awaitPipelined, type Transaction } from '../db/db.ts'
import { type CurrentState, type StoredRow, writtenIdOf } from '../entities/entity-row.ts'
import { linkedByKey } from '../entities/write/decide/attributes.ts'
import { buildDeletion, buildFill, type Change } from '../entities/write/decide/decide.ts'
import { countFirstAlias, insertAliases } from '../entities/write/store/aliases.ts'
import type { PlannedChange } from '../entities/write/store/store.ts'
import type { Locked } from '../organizations/change-organization.ts'
import { type Definitions, peopleStackId } from '../organizations/definitions.ts'
import { createValueRefusal, type Detail, Fault, pointer, refuse, refuseValues } from '../values/errors.ts'
import { attributePrefix, profileFlags, profileTexts } from '../values/profile-fields.ts'
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
import { type Keep, type MergePlan, planMerge, type Side, type Undo } from './merge.ts'
import { type GivenAt, takenAnswers } from './merge-answers.ts'
import { countLinksToSql, insertMergeSql, moveIdentifiersSql, numberMergeSql } from './merge-sql.ts'
import { aliasesToJson, type LeadingIdentifiers, mergedAddresses } from './merged-addresses.ts'

/** Merges a person into another one. Throws a Fault of 400, 404 or 412. */
export async function mergePeople(locked: Locked, asked: Asked): Promise<IdentityResult> {
  const { tx, organization_id, definitions, at } = locked
  const { author, call } = asked
  const { survivor, other } = await readBoth(tx, definitions, asked)
  checkVersion(survivor.row, call)
  throwIfPlaceholder(survivor.row, '')
  throwIfPlaceholder(other.row, asked.path)
  const givenAt = await readGivenAt(locked, [survivor.row, other.row])
  const keep = readKeep(call.body.keep ?? {}, survivor, other, definitions)
  const plan = planMerge(survivor, other, definitions, call.limits.links, givenAt, keep)
  if (plan.faults.length > 0)
    refuse('invalid_parameter', 'The person would have too many links.', { details: plan.faults })
  // The identifiers of the other lead to the survivor now, so its version rises above the other's: no If-Match may
  // match.
  const filled = buildFill(survivor, plan.fill, definitions, call.limits, other.row.version)
  if (filled && 'refusal' in filled) throw new Fault(filled.refusal)
  const deletion = buildDeletion(other, definitions)
  const ended: Change = { ...deletion, operation: 'merge', after: { merged_into: survivor.row.id } }

  const ending: PlannedChange = { stack_id: peopleStackId, change: ended, row: other.row }
  const filling = filled ? [{ stack_id: peopleStackId, change: filled.change, row: survivor.row }] : []
  const takesName = filled?.change.columns.external_id !== undefined
  // The other gives up its name before the survivor takes it.
  const sequence = await storeRounds(locked, author, takesName ? [[ending], filling] : [[ending, ...filling]])
  const [moved] = await tx.query<{ merges: number[] } & Record<keyof LeadingIdentifiers, string[]>>(
    moveIdentifiersSql,
    [organization_id, other.row.id, survivor.row.id],
  )
  const { aliases, merges, emails, mobiles } = moved!
  const undo: Undo = { ...undoOf(survivor, other, plan, filled?.change, givenAt), aliases, merges }
  const { email_key, mobile_key } = mergedAddresses(
    { ...survivor.row, ...filled?.change.columns },
    [survivor.row, other.row],
    definitions.default_country,
  )
  await countFirstAlias(locked)
  const ids = [other.row.id, survivor.row.id]
  const values = [organization_id, ...ids, ended.version, at, JSON.stringify(undo), email_key, mobile_key]
  const [{ id: merge_id }] = (await tx.query<{ id: number }>(insertMergeSql, values)) as [{ id: number }]
  const versions = [ended.version, filled?.change.version ?? null]
  await tx.query(numberMergeSql, [organization_id, merge_id, ids, versions])
  const [links] = await tx.query<{ count: number }>(countLinksToSql, [organization_id, other.row.id])
  // If the survivor takes the name of the other, its own former name becomes an alias. That alias never named the
  // merged person.
  const alias = (takesName ? survivor : other).row.external_id
  const given = { person_id: survivor.row.id, merge_id: takesName ? null : merge_id }
  const added = alias === null ? [] : [{ external_id: alias, ...given }]
  await awaitPipelined(insertAliases(locked, added, at))
  const [person] = await readJson(tx, definitions, [survivor.row.id])
  return {
    sequence,
    merge_id,
    merged: { id: other.row.id, external_id: other.row.external_id },
    changes: {
      fields: fieldChanges(filled?.change),
      links: { moved_in: links!.count, ...plan.links },
      consents: answerChangesToJson(plan.answers),
      aliases: aliasesToJson({
        aliases: [...added.map(each => each.external_id), ...aliases],
        emails: [email_key, ...emails].filter(key => key !== null),
        mobiles: [mobile_key, ...mobiles].filter(key => key !== null),
      }),
    },
    moved: { people: [other.row.id], from: other.row.id },
    entities: { person: person! },
    survivor_id: survivor.row.id,
    version: filled?.change.version ?? survivor.row.version,
  }
}

/** Reads both people. Throws a Fault of 400 or 404. */
async function readBoth(tx: Transaction, definitions: Definitions, { survivor, from, path }: Asked) {
  const { organization_id } = definitions
  const addresses = [survivor, from]
  const [into, other] = await findPeople({ db: tx, organization_id }, addresses)
  if (!into) return throwNoPerson()
  if (!other) throw new Fault(createValueRefusal(path, 'There is no such person.', 'not_found'))
  if (into.id === other.id) refuseValues({ path, message: 'leads to the same person. Name another one.' })
  const [first, second] = await readPeople(tx, definitions, [into.id, other.id])
  return { survivor: first!, other: second! }
}

function throwIfPlaceholder({ active, external_id }: StoredRow, path: string) {
  if (active) return
  const message = `${JSON.stringify(external_id)} is a placeholder: only links name it. Create the person first.`
  refuse('invalid_parameter', message, { details: [{ path, message: 'is a placeholder: create the person first' }] })
}

function undoOf(
  survivor: Person,
  { row, links }: Person,
  plan: MergePlan,
  change: Change | undefined,
  givenAt: GivenAt,
): Omit<Undo, 'aliases' | 'merges'> {
  const columns = Object.fromEntries(
    ['external_id', 'active', ...profileTexts, ...profileFlags].map(name => [name, row[name as keyof StoredRow]]),
  )
  return {
    into_version: change?.version ?? null,
    other: {
      columns,
      answers: row.answers,
      attributes: row.attributes,
      links: Object.fromEntries([...links].map(([id, targets]) => [id, targets.map(writtenIdOf)])),
    },
    filled: plan.filled,
    flags: { email_consent: survivor.row.email_consent, sms_consent: survivor.row.sms_consent },
    answers: takenAnswers(plan.answers, change?.version, givenAt),
  }
}

/**
 * The fields that a merge lets a request choose, besides attribute values. A phone is chosen as a whole, and consents
 * follow from the answers.
 */
const choices: readonly string[] = ['external_id', ...profileTexts.filter(name => name !== 'mobile_prefix')]

/** Reads the member `keep` of a merge. Throws a Fault of 400 with the path of each field that cannot be chosen. */
function readKeep(
  keep: Readonly<Record<string, Side>>,
  survivor: CurrentState,
  other: CurrentState,
  definitions: Definitions,
): Keep {
  const columns = new Map<string, Side>()
  const attributes = new Map<string, Side>()
  const details: Detail[] = []
  const known = attributeKeys([survivor, other], definitions)
  for (const [name, side] of Object.entries(keep)) {
    const message = refusalOf(name, side, known, other)
    const key = name.slice(attributePrefix.length)
    if (message !== undefined) details.push({ path: pointer('keep', name), message })
    else if (name.startsWith(attributePrefix)) attributes.set(key, side)
    else columns.set(name, side)
  }
  if (details.length > 0) refuseValues(...details)
  return { columns, attributes }
}

function refusalOf(name: string, side: Side, known: ReadonlySet<string>, other: CurrentState): string | undefined {
  if (name === 'mobile_prefix') return 'is kept together with the number. Name `mobile_number`'
  if (name === 'external_id' && side === 'other' && other.row.external_id === null)
    return 'the other person has no external identifier'
  if (choices.includes(name) || (name.startsWith(attributePrefix) && known.has(name.slice(attributePrefix.length))))
    return undefined
  return `is no field that a merge can choose. Name one of ${choices.join(', ')}, or \`attribute_values.<key>\` with a declared key or one that either person has`
}

/** The keys of the attributes that are declared, and of those that one of the people has. */
function attributeKeys(people: readonly CurrentState[], definitions: Definitions): ReadonlySet<string> {
  const declared = definitions.attributes.filter(({ owner_stack_id }) => owner_stack_id === peopleStackId)
  const held = people.flatMap(({ row, links }) => [
    ...Object.keys(row.attributes),
    ...linkedByKey(links, definitions).keys(),
  ])
  return new Set([...declared.map(({ key }) => key), ...held])
}

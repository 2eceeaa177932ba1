import type { AnswerChoice } from '../consents/answer-changes.ts'
import {
  type Answer,
  answerKey,
  compareAnswers,
  type NumberedAnswer,
  type Question,
  type StandingAnswer,
} from '../consents/answers.ts'
import type { Evidence } from '../consents/schema.ts'
import { type Columns, type CurrentState, type EntityRow, type Target, writtenIdOf } from '../entities/entity-row.ts'
import { linkedByKey } from '../entities/write/decide/attributes.ts'
import type { Fill } from '../entities/write/decide/decide.ts'
import { jsonEqual } from '../entities/write/decide/json-equal.ts'
import { type Definitions, isRelationship } from '../organizations/definitions.ts'
import { channels, channelTable, type SummaryFlag } from '../values/channels.ts'
import { pointer } from '../values/errors.ts'
import type { Undo } from './merge.ts'
import { answerColumns, type GivenAt, givenBy } from './merge-answers.ts'
import type { KeptValue } from './merge-schema.ts'
import {
  broughtBy,
  type Decided,
  decidedBy,
  isDecided,
  isRefusedBy,
  ownMember,
  plainKeys,
  type UndoableMerge,
  type Written,
  withoutFilled,
} from './undo.ts'

/** An answer of the consent history that the survivor itself gave. */
export type OwnAnswer = Question & {
  state: boolean
  previous_state: boolean | null
  pending: boolean
  superseded: boolean
  undated: boolean
  sequence: number
  source: Answer['source']
  evidence: Evidence | null
  collected_at: string | null
  answered_at: string
}

/** The facts of an unmerge besides the survivor and the undo of the merge. */
export type UnmergeFacts = {
  merge_id: number
  merged_id: string
  written: Written
  /**
   * Whether the log has lost values written since the merge. All values that the merge filled then count as written.
   */
  isEmptied: boolean
  /** The survivor's own answers, including superseded ones. */
  ownAnswers: readonly OwnAnswer[]
  /** The other merges into the survivor that are not undone. */
  remaining: readonly UndoableMerge[]
  givenAt: GivenAt
  /**
   * Returns the target that an id of the undo record leads to after the unmerge, or undefined if it no longer exists.
   */
  resolve: (attribute_id: number, id: string) => Target | undefined
}

/** All inputs of an unmerge. `later` are the values that the merges after it, `mergedLater`, decided. They stay. */
type Unmerge = UnmergeFacts & {
  survivor: CurrentState
  undo: Undo
  definitions: Definitions
  mergedLater: readonly UndoableMerge[]
  later: Decided
}

export type UnmergePlan = { fill: Fill; answers: AnswerChoice[]; kept: KeptValue[] }

/**
 * Decides what the survivor loses: the values that the merge filled and no later write replaced, and the answers of the
 * merged person. The function is pure.
 */
export function planUnmerge(
  survivor: CurrentState,
  undo: Undo,
  facts: UnmergeFacts,
  definitions: Definitions,
): UnmergePlan {
  const mergedLater = facts.remaining.filter(({ id }) => id > facts.merge_id)
  const unmerge: Unmerge = { ...facts, survivor, undo, definitions, mergedLater, later: decidedBy(mergedLater) }
  const { choices, recorded } = revertAnswers(unmerge)
  const answered = answerColumns(survivor.row, choices, definitions.consent_types)
  const columns = { ...answered.columns, ...revertColumns(unmerge, answered.columns) }
  const plain = revertPlainValues(unmerge)
  return {
    fill: {
      plain,
      // A plain value that replaces links removes them by itself.
      links: revertLinks(unmerge).filter(({ attribute, targets }) => targets.length > 0 || !plain.has(attribute.key)),
      columns,
      answers: recorded,
      ...(answered.consents && { consents: answered.consents }),
    },
    answers: choices,
    kept: [...keptFields(unmerge, columns), ...keptAttributes(unmerge, plain)],
  }
}

/** The plain values that the survivor had before the merge, or null if it had none. */
function revertPlainValues({ survivor, undo, written, later, definitions }: Unmerge): Map<string, unknown> {
  const { attributes, replaced, links } = undo.filled
  const linked = linkedByKey(survivor.links, definitions)
  const chosenLinks = links.filter(({ chosen }) => chosen)
  const chosenKeys = chosenLinks.map(({ attribute_id }) => definitions.attributeById.get(attribute_id)?.key)
  const plain = new Map<string, unknown>()
  for (const key of plainKeys(undo)) {
    if (written.keys.has(key) || later.keys.has(key)) continue
    const isUnchanged = jsonEqual(ownMember(survivor.row.attributes, key), ownMember(attributes, key))
    const isLinkedSince = linked.has(key) && !chosenKeys.includes(key)
    if (isUnchanged && !isLinkedSince) plain.set(key, ownMember(replaced, key) ?? null)
  }
  return plain
}

/**
 * The columns that the survivor had before the merge, and the summary flags of channels in which it has no answer left.
 */
function revertColumns(
  { survivor, undo, written, remaining, mergedLater, later }: Unmerge,
  answered: Columns,
): Columns {
  const { row } = survivor
  const columns: Record<string, unknown> = {}
  const isRefused = (name: string, merges: readonly UndoableMerge[]) =>
    merges.some(merge => isRefusedBy(merge.undo, name))
  for (const [name, { before, after }] of Object.entries(undo.filled.columns)) {
    if (written.fields.has(name) || row[name as keyof EntityRow] !== after || isDecided(later, name)) continue
    // The refusal of a person who is still merged keeps its effect. `before` has the refusals of earlier merges, unless
    // a write ended them.
    if (!(after === false && isRefused(name, mergedLater))) columns[name] = before
  }
  for (const channel of channels) {
    const flag: SummaryFlag = channelTable[channel].flag
    const isAnswered = Object.keys(answered.answers ?? row.answers).some(key => key.endsWith(`:${channel}`))
    if (answered[flag] === undefined || isAnswered || written.fields.has(flag)) continue
    columns[flag] = isRefused(flag, remaining) ? false : undo.flags[flag]
  }
  return columns as Columns
}

/** The fields that the merge filled and the survivor keeps. */
function keptFields({ undo, written, isEmptied, later }: Unmerge, reverted: Columns): KeptValue[] {
  const kept = Object.keys(undo.filled.columns).filter(name => !(name in reverted) && !isDecided(later, name))
  return kept.map(name => {
    const reason = written.fields.has(name) ? keptReason(isEmptied) : 'refused_by_another'
    return { path: pointer(name), reason }
  })
}

/** The attributes that the merge filled, by a plain value or links, and the survivor keeps. */
function keptAttributes(
  { undo, written, isEmptied, later, definitions }: Unmerge,
  reverted: ReadonlyMap<string, unknown>,
): KeptValue[] {
  const plain = [...plainKeys(undo)].filter(key => !reverted.has(key) && !later.keys.has(key))
  const linked = undo.filled.links
    .filter(({ attribute_id }) => !later.attribute_ids.has(attribute_id))
    .filter(({ before, after }) => after.some(id => !before.includes(id)))
    .map(({ attribute_id }) => definitions.attributeById.get(attribute_id)?.key)
    .filter(key => key !== undefined && written.keys.has(key))
  const keys = new Set([...plain, ...(linked as string[])])
  return [...keys].map(key => ({ path: pointer('attribute_values', key), reason: keptReason(isEmptied) }))
}

const keptReason = (isEmptied: boolean) => (isEmptied ? 'log_emptied' : 'written_since')

/**
 * The answers of the survivor without those of the merged person. An own answer since the merge that only an answer of
 * the merged person superseded is in force again. It is recorded again, because the consent history never changes.
 */
function revertAnswers({ survivor, undo, merged_id, ownAnswers, remaining, givenAt }: Unmerge) {
  const choices: AnswerChoice[] = []
  const recorded: Answer[] = []
  for (const [key, brought] of Object.entries(undo.other.answers)) {
    const before = survivor.row.answers[key]
    if (!before || !jsonEqual(before, givenBy(merged_id, brought))) continue
    const asked = ownAnswers.filter(one => answerKey(one.consent_type_id, one.channel) === key)
    const own: Standing[] = asked.map(own => ({ answer: standingOf(own), sequence: own.sequence, own }))
    const others = remaining.flatMap(({ merged_id, undo }): Standing[] => {
      const answer = undo.other.answers[key]
      if (!answer) return []
      const given = givenBy(merged_id, answer)
      return [{ answer: given, sequence: givenAt(given.person_id!, key)?.sequence }]
    })
    const standing = [...own, ...others].toSorted((a, b) => compareAnswers(numbered(b), numbered(a)))[0]
    choices.push({ key, before, after: standing?.answer })
    if (standing?.own?.superseded) recorded.push(recordAgain(standing.own, before))
  }
  return { choices, recorded }
}

/** An answer that may be in force after the unmerge, with the survivor's own answer if it is one. */
type Standing = { answer: StandingAnswer; sequence: number | undefined; own?: OwnAnswer }

const numbered = ({ answer, sequence }: Standing): NumberedAnswer => ({ ...answer, sequence })

function standingOf({ state, pending, undated, answered_at, evidence }: OwnAnswer): StandingAnswer {
  return {
    state: state && !pending,
    answered_at,
    ...(undated && { undated }),
    ...(pending && { pending }),
    ...(evidence?.method !== undefined && { method: evidence.method }),
    ...(evidence?.text_version !== undefined && { text_version: evidence.text_version }),
  }
}

function recordAgain(own: OwnAnswer, before: StandingAnswer): Answer {
  const { sequence: _, answered_at, ...answer } = own
  const collected_at = own.undated ? null : answered_at
  const isNow = { previous_state: before.state, collected_at, isDated: true, superseded: false }
  return { ...answer, ...isNow, stored: standingOf(own) }
}

/** The changed lists of links of the survivor, without the links of the merge. */
function revertLinks({ survivor, undo, written, mergedLater, resolve, later, definitions }: Unmerge): Fill['links'] {
  return undo.filled.links.flatMap(filled => {
    const attribute = definitions.attributeById.get(filled.attribute_id)
    if (!attribute || !isRelationship(attribute)) return []
    if (written.keys.has(attribute.key) || later.attribute_ids.has(attribute.id)) return []
    const current = new Map(survivor.links.get(attribute.id)?.map(target => [writtenIdOf(target), target]))
    const currentIds = [...current.keys()]
    // A merge ends the links between the two people. So a link to the survivor cannot come from another merge.
    const kept = broughtBy(mergedLater, attribute.id).filter(id => id !== survivor.row.id)
    const ids = withoutFilled(currentIds, filled, kept)
    const found = ids.flatMap(id => resolve(attribute.id, id) ?? current.get(id) ?? [])
    const targets = attribute.cardinality === 'one' ? found.slice(0, 1) : found
    return jsonEqual(targets.map(writtenIdOf), currentIds) ? [] : [{ attribute, targets }]
  })
}

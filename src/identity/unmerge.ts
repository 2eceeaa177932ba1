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
import { profileFlags } from '../values/profile-fields.ts'
import type { LinkFill, Undo } from './merge.ts'
import { answerColumns, type GivenAt, givenBy } from './merge-answers.ts'
import type { KeptValue } from './merge-schema.ts'

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
  /** The fields and attribute keys that were written since, by anything but a merge. */
  written: { fields: ReadonlySet<string>; keys: ReadonlySet<string> }
  /** Whether the log has lost what was written since. All that the merge filled counts as written then. */
  isEmptied: boolean
  /** The own answers of the survivor, also those that were superseded. */
  ownAnswers: readonly OwnAnswer[]
  /** The other merges into the survivor that stand. */
  remaining: readonly { id: number; merged_id: string; undo: Undo }[]
  givenAt: GivenAt
  /** Returns whom an id of the undo leads to after the unmerge; undefined if it does not exist any more. */
  resolve: (attribute_id: number, id: string) => Target | undefined
}

export type UnmergePlan = { fill: Fill; answers: AnswerChoice[]; kept: KeptValue[] }

/**
 * Decides what the survivor loses again: what the merge filled and nothing has written since, and the answers of the merged person.
 * The function is pure.
 */
export function planUnmerge(
  survivor: CurrentState,
  undo: Undo,
  facts: UnmergeFacts,
  definitions: Definitions,
): UnmergePlan {
  const { choices, recorded } = returnAnswers(survivor.row, undo, facts)
  const answered = answerColumns(survivor.row, choices, definitions.consent_types)
  const later = choicesOf(facts.remaining.filter(({ id }) => id > facts.merge_id))
  const links = returnLinks(survivor, undo, facts, later.attribute_ids, definitions)
  const plain = new Map<string, unknown>()
  const linked = linkedByKey(survivor.links, definitions)
  for (const key of plainKeys(undo)) {
    if (facts.written.keys.has(key) || later.keys.has(key)) continue
    const [after, stored] = [ownMember(undo.filled.attributes, key), ownMember(survivor.row.attributes, key)]
    const isLinked = linked.has(key) && !undo.filled.links.some(isChosenFor(key, definitions))
    if (!isLinked && jsonEqual(stored, after)) plain.set(key, ownMember(undo.filled.replaced, key) ?? null)
  }
  const columns = { ...answered.columns, ...returnColumns(survivor.row, undo, facts, later.fields, answered.columns) }
  return {
    fill: {
      plain,
      links: links.filter(({ attribute, targets }) => targets.length > 0 || !plain.has(attribute.key)),
      columns,
      answers: recorded,
      ...(answered.consents && { consents: answered.consents }),
    },
    answers: choices,
    kept: keptValues(undo, { ...facts, later }, { columns, plain }, definitions),
  }
}

/** The attributes of which a merge changed a plain value. */
const plainKeys = ({ filled }: Pick<Undo, 'filled'>) =>
  new Set([...Object.keys(filled.attributes), ...Object.keys(filled.replaced ?? {})])

/** A member of an object whose keys a client chose. */
const ownMember = (values: Readonly<Record<string, unknown>> | undefined, key: string): unknown =>
  values && Object.hasOwn(values, key) ? values[key] : undefined

const isChosenFor =
  (key: string, { attributeById }: Definitions) =>
  ({ attribute_id, chosen }: LinkFill) =>
    chosen === true && attributeById.get(attribute_id)?.key === key

type Choices = { fields: ReadonlySet<string>; keys: ReadonlySet<string>; attribute_ids: ReadonlySet<number> }

/** What some merges changed of the values that the survivor had: the state after them owes nothing to an earlier merge. */
function choicesOf(merges: readonly { undo: Undo }[]): Choices {
  const filled = merges.map(({ undo }) => undo.filled)
  return {
    fields: new Set(filled.flatMap(({ columns }) => Object.keys(columns))),
    keys: new Set(merges.flatMap(({ undo }) => [...plainKeys(undo)])),
    attribute_ids: new Set(
      filled.flatMap(({ links }) => links.flatMap(({ chosen, attribute_id }) => (chosen ? [attribute_id] : []))),
    ),
  }
}

/** What the merge filled and the survivor keeps. */
function keptValues(
  { filled }: Undo,
  { written, isEmptied, later }: UnmergeFacts & { later: Choices },
  { columns, plain }: { columns: Columns; plain: ReadonlyMap<string, unknown> },
  { attributeById }: Definitions,
): KeptValue[] {
  const reason = isEmptied ? 'log_emptied' : 'written_since'
  const fields = Object.keys(filled.columns).filter(name => !(name in columns) && !isReplaced(later.fields, name))
  const keys = [...plainKeys({ filled })].filter(key => !plain.has(key) && !later.keys.has(key))
  const linked = filled.links.flatMap(({ attribute_id, before, after }) => {
    if (later.attribute_ids.has(attribute_id)) return []
    const key = attributeById.get(attribute_id)?.key
    const isFilled = after.some(id => !before.includes(id))
    return key !== undefined && isFilled && written.keys.has(key) ? [key] : []
  })
  return [
    ...fields.map((name): KeptValue => {
      const isWritten = written.fields.has(name)
      return { path: pointer(name), reason: isWritten ? reason : 'refused_by_another' }
    }),
    ...[...new Set([...keys, ...linked])].map((key): KeptValue => ({ path: pointer('attribute_values', key), reason })),
  ]
}

/** Whether a later merge changed a field. A flag stays with the refusals of those who are still merged. */
const isReplaced = (fields: ReadonlySet<string>, name: string) =>
  fields.has(name) && !(profileFlags as string[]).includes(name)

/**
 * What a later merge needs to be undone, once an earlier one into the same person is undone: the state before it has nothing of the earlier
 * one any more. `written` is what was written since the earlier one, `remaining` are the merges that stand.
 */
export function withoutFill(
  { id: laterId, undo: later }: { id: number; undo: Undo },
  { id: earlierId, undo: earlier }: { id: number; undo: Undo },
  { written, remaining }: Pick<UnmergeFacts, 'written' | 'remaining'>,
  { attributeById }: Definitions,
): Undo {
  // What earlier ones brought is in the state before this one, unless a write ended it.
  const between = remaining.filter(({ id }) => id > earlierId && id < laterId)
  const since = choicesOf(between)
  const columns = { ...later.filled.columns }
  for (const [name, { before, after }] of Object.entries(earlier.filled.columns)) {
    const change = columns[name]
    if (written.fields.has(name) || isReplaced(since.fields, name)) continue
    if (change && change.before === after) columns[name] = { ...change, before }
    // The refusal of both stays as that of the later one: of several, of the first.
    const isFirst = !between.some(({ undo }) => isRefusedBy(undo, name))
    if (!change && after === false && isRefusedBy(later, name) && isFirst) columns[name] = { before, after }
  }
  const flags = channels.map(channel => {
    const { flag } = channelTable[channel]
    return [flag, (written.fields.has(flag) ? later : earlier).flags[flag]]
  })
  const links = later.filled.links.map(change => {
    const { attribute_id, chosen } = change
    const filled = earlier.filled.links.find(link => link.attribute_id === attribute_id)
    const isWritten = written.keys.has(attributeById.get(attribute_id)?.key ?? '')
    if (!filled || isWritten || since.attribute_ids.has(attribute_id)) return change
    const kept = broughtBy(between, attribute_id)
    return {
      ...change,
      before: takeBack(change.before, filled, kept),
      after: chosen
        ? change.after
        : takeBack(change.after, filled, [...kept, ...broughtBy([{ undo: later }], attribute_id)]),
    }
  })
  // A link that both brought stays as one of the later.
  for (const { attribute_id, before: had, after: has } of earlier.filled.links) {
    const key = attributeById.get(attribute_id)?.key
    if (links.some(link => link.attribute_id === attribute_id) || key === undefined || written.keys.has(key)) continue
    const stays = new Set(has)
      .difference(new Set([...had, ...broughtBy(between, attribute_id)]))
      .intersection(new Set(broughtBy([{ undo: later }], attribute_id)))
    if (stays.size > 0) links.push({ attribute_id, before: [], after: [...stays] })
  }
  const replaced = replacedWithout(later, earlier, written.keys.union(since.keys))
  return {
    ...later,
    flags: Object.fromEntries(flags) as Undo['flags'],
    filled: { ...later.filled, columns, links, replaced },
  }
}

/** The plain values that a later merge replaced, as if the earlier one had not given them. `decided` are keys that something decided since. */
function replacedWithout(later: Undo, earlier: Undo, decided: ReadonlySet<string>): Record<string, unknown> {
  const replaced = new Map(Object.entries(later.filled.replaced ?? {}))
  for (const key of plainKeys(later).intersection(plainKeys(earlier))) {
    if (decided.has(key) || !jsonEqual(replaced.get(key), ownMember(earlier.filled.attributes, key))) continue
    const before = ownMember(earlier.filled.replaced, key)
    if (before === undefined) replaced.delete(key)
    else replaced.set(key, before)
  }
  return Object.fromEntries(replaced)
}

/** Whether the merged person refuses what a field says. */
const isRefusedBy = ({ other }: Undo, name: string) => (other.columns as Record<string, unknown>)[name] === false

function returnColumns(
  row: EntityRow,
  undo: Undo,
  { merge_id, written, remaining }: UnmergeFacts,
  later: Choices['fields'],
  answered: Columns,
): Columns {
  const columns: Record<string, unknown> = {}
  const isRefused = (name: string, merges = remaining) => merges.some(merge => isRefusedBy(merge.undo, name))
  const mergedLater = remaining.filter(({ id }) => id > merge_id)
  for (const [name, { before, after }] of Object.entries(undo.filled.columns)) {
    if (written.fields.has(name) || row[name as keyof EntityRow] !== after || isReplaced(later, name)) continue
    // The refusal of a person who is still merged keeps its effect. `before` has those of earlier merges, unless a write ended them.
    if (!(after === false && isRefused(name, mergedLater))) columns[name] = before
  }
  for (const channel of channels) {
    const flag: SummaryFlag = channelTable[channel].flag
    const isAnswered = Object.keys(answered.answers ?? row.answers).some(key => key.endsWith(`:${channel}`))
    if (answered[flag] === undefined || isAnswered || written.fields.has(flag)) continue
    columns[flag] = isRefused(flag) ? false : undo.flags[flag]
  }
  return columns as Columns
}

/**
 * The answers of the survivor without those of the merged person. An own answer that came since and was only superseded by one of the
 * merged person stands again; it is recorded again, because the consent history never changes.
 */
function returnAnswers(
  { answers }: EntityRow,
  undo: Undo,
  { merged_id, ownAnswers, remaining, givenAt }: UnmergeFacts,
): { choices: AnswerChoice[]; recorded: Answer[] } {
  const choices: AnswerChoice[] = []
  const recorded: Answer[] = []
  for (const [key, brought] of Object.entries(undo.other.answers)) {
    const before = answers[key]
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

/** An answer that may stand after the unmerge, with the own one of the survivor that it is. */
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

function returnLinks(
  survivor: CurrentState,
  undo: Undo,
  { merge_id, written, remaining, resolve }: UnmergeFacts,
  later: Choices['attribute_ids'],
  definitions: Definitions,
): Fill['links'] {
  const changed: Fill['links'][number][] = []
  const mergedLater = remaining.filter(({ id }) => id > merge_id)
  for (const filled of undo.filled.links) {
    const attribute = definitions.attributeById.get(filled.attribute_id)
    if (!attribute || !isRelationship(attribute) || written.keys.has(attribute.key)) continue
    if (later.has(attribute.id)) continue
    const current = new Map(survivor.links.get(attribute.id)?.map(target => [writtenIdOf(target), target]))
    // A merge ends the links between the two people, so none to the survivor came from another merge.
    const kept = broughtBy(mergedLater, attribute.id).filter(id => id !== survivor.row.id)
    const returned = takeBack([...current.keys()], filled, kept)
    const targets = returned.flatMap(id => resolve(attribute.id, id) ?? current.get(id) ?? [])
    const limited = attribute.cardinality === 'one' ? targets.slice(0, 1) : targets
    const ids = [...current.keys()]
    const isSame = limited.length === ids.length && limited.every((target, index) => writtenIdOf(target) === ids[index])
    if (!isSame) changed.push({ attribute, targets: limited })
  }
  return changed
}

/**
 * What the links of merged people named, without those that the survivor was not to get. The merges are in their order: of those before
 * the last choice of the other's links nothing is left.
 */
function broughtBy(merges: readonly { undo: Undo }[], attribute_id: number): string[] {
  const isChoice = ({ undo }: { undo: Undo }) =>
    undo.filled.links.some(link => link.attribute_id === attribute_id && link.chosen)
  return merges
    .slice(Math.max(0, merges.findLastIndex(isChoice)))
    .flatMap(({ undo: { other, filled } }) =>
      filled.left?.includes(attribute_id) ? [] : (other.links[attribute_id] ?? []),
    )
}

/** A list of links as if a merge had not filled it. The links that were there before are in their order of then. */
function takeBack(list: readonly string[], { before, after }: LinkFill, kept: readonly string[]): string[] {
  const [had, has] = [new Set(before), new Set(after)]
  const added = has.difference(had).difference(new Set(kept))
  const rest = list.filter(id => !added.has(id))
  const returned = before.filter(id => !has.has(id) && !rest.includes(id))
  const placeOf = (id: string) => (had.has(id) ? before.indexOf(id) : before.length)
  return [...rest, ...returned].toSorted((one, other) => placeOf(one) - placeOf(other))
}

import { isDeepStrictEqual } from 'node:util'
import { sortTermOf } from '../../src/entities/indexes/sort-field.ts'
import { profileFlags, profileTexts } from '../../src/values/profile-fields.ts'
import type { Finding, FindingKind, Replayed, ReplayedEntity } from './replay.ts'
import type { ConsentAnswer, Stored, StoredEntity } from './stored.ts'

/** Compares the stored rows with the replayed change log. */
export function compareWithLog(stored: Stored, replayed: Replayed): Finding[] {
  return [
    ...compareEntities(stored, replayed),
    ...compareLinks(stored, replayed),
    ...compareAnswers(stored, replayed),
    ...compareTerms(stored),
  ]
}

function compareEntities({ entities }: Stored, { live }: Replayed): Finding[] {
  const kind = 'stored entities differ from the change log'
  const findings: Finding[] = []
  const missing = new Set(live.keys())
  for (const entity of entities) {
    const expected = live.get(entity.id)
    const difference = expected ? differenceOf(entity, expected) : 'is stored, but not in the change log'
    missing.delete(entity.id)
    if (difference) findings.push({ kind, text: `${entity.external_id} ${entity.id} ${difference}` })
  }
  return [...findings, ...[...missing].map(id => ({ kind, text: `${id} is not stored` }) as const)]
}

function differenceOf(entity: StoredEntity, expected: ReplayedEntity): string | undefined {
  const { external_id, version, state, columns, plainValues } = expected
  if (entity.external_id !== external_id) return `should have the name ${external_id}`
  if (entity.version !== version) return `has version ${entity.version}, not ${version}`
  if (entity.active !== (state === 'active')) return `should be ${state}`
  for (const column of [...profileTexts, ...profileFlags])
    if (!isDeepStrictEqual(entity[column], columns[column] ?? null))
      return `has ${column} ${entity[column]}, not ${columns[column]}`
  if (isDeepStrictEqual(entity.attributes, plainValues)) return undefined
  return `has ${JSON.stringify(entity.attributes)}, not ${JSON.stringify(plainValues)}`
}

/** Compares the links with those that the log has written, also to targets that are deleted. */
function compareLinks({ links, attributes }: Stored, { live, deleted }: Replayed): Finding[] {
  const findings: Finding[] = []
  const stored = Map.groupBy(links, ({ source_id, attribute_id }) => `${source_id} ${attribute_id}`)
  for (const { source_id, target_id } of links) {
    const linkText = `${source_id} → ${target_id}`
    if (!live.has(target_id) && !deleted.has(target_id)) findings.push({ kind: 'a link is dangling', text: linkText })
    if (!live.has(source_id)) findings.push({ kind: 'a link is dangling', text: `${linkText}, without a source` })
  }
  for (const expected of live.values())
    for (const { id, key, owner_stack_id, target_stack_id } of attributes) {
      if (owner_stack_id !== expected.stack_id || target_stack_id === null) continue
      const written = expected.linkedIds.get(`${id}`) ?? []
      const found = (stored.get(`${expected.id} ${id}`) ?? []).map(({ target_id }) => target_id)
      if (!isDeepStrictEqual(found, written))
        findings.push({
          kind: 'stored links differ from the change log',
          text: `${expected.id} ${key} leads to ${found}, not to ${written}`,
        })
    }
  return findings
}

const answerKey = (answer: { consent_type_id: number; channel: string }) =>
  `${answer.consent_type_id}:${answer.channel}`

function compareAnswers({ answers, entities, changes }: Stored, { live, deleted }: Replayed): Finding[] {
  const kind: FindingKind = 'the consent history does not replay'
  const findings: Finding[] = []
  const current = new Map<string, Map<string, ConsentAnswer>>()
  for (const answer of answers) {
    const { person_id, previous_state } = answer
    const answersOfPerson = current.get(person_id) ?? new Map<string, ConsentAnswer>()
    current.set(person_id, answersOfPerson)
    const before = answersOfPerson.get(answerKey(answer))?.state ?? null
    if (previous_state !== before)
      findings.push({ kind, text: `${person_id} ${answerKey(answer)} was ${before}, not ${previous_state}` })
    if (!live.has(person_id) && !deleted.has(person_id)) findings.push({ kind, text: `${person_id} does not exist` })
    if (!answer.superseded)
      answersOfPerson.set(answerKey(answer), { ...answer, state: answer.state && !answer.pending })
  }
  for (const { id, external_id, answers: storedAnswers, email_consent, sms_consent } of entities) {
    const replayed = [...(current.get(id) ?? [])].map(([key, { state }]) => `${key} ${state}`).sort()
    const currentAnswers = Object.entries(storedAnswers)
      .map(([key, { state }]) => `${key} ${state}`)
      .sort()
    if (!isDeepStrictEqual(replayed, currentAnswers))
      findings.push({ kind, text: `${external_id} ${id} has ${currentAnswers}, and was answered ${replayed}` })
    for (const [channel, flag] of [
      ['email', email_consent],
      ['sms', sms_consent],
    ] as const)
      if (flag !== consentFlagOf(currentAnswers, channel))
        findings.push({ kind, text: `${id} ${channel} is ${flag}: ${currentAnswers}` })
  }
  // A restore logs the consents of that time, which is no new answer.
  const written = changes.filter(({ operation }) => operation !== 'restore')
  const expected = written.flatMap(({ entity_id, version, request_id, after }) =>
    ((after?.consents ?? []) as LoggedAnswer[]).map(given =>
      evidenceLine({ ...given, state: givenState(given), person_id: entity_id, version, request_id }),
    ),
  )
  const historyLines = new Set(answers.map(evidenceLine))
  for (const line of expected)
    if (!historyLines.delete(line)) findings.push({ kind, text: `is missing in the history: ${line}` })
  for (const line of historyLines) findings.push({ kind, text: `is only in the history: ${line}` })
  return findings
}

type LoggedAnswer = Omit<ConsentAnswer, 'superseded'> & { superseded?: { state: boolean } }

/** The state that was answered. The log has the state in effect beside a superseded answer, and false for a pending grant. */
const givenState = ({ superseded, pending, state }: LoggedAnswer) => superseded?.state ?? (pending || state)

const evidenceLine = ({
  person_id,
  version,
  consent_type_id,
  channel,
  state,
  request_id,
}: Omit<ConsentAnswer, 'superseded' | 'pending' | 'previous_state'>) =>
  [person_id, version, consent_type_id, channel, state, request_id].join(' ')

function consentFlagOf(currentAnswers: string[], channel: string): boolean | null {
  const states = currentAnswers.filter(line => line.includes(`:${channel} `)).map(line => line.endsWith('true'))
  return states.length === 0 ? null : states.includes(true)
}

function compareTerms({ terms, entities, attributes, sort_indexes }: Stored): Finding[] {
  const tag = attributes.find(({ key }) => key === 'tag')
  const tagged = entities.filter(({ stack_id, attributes }) => stack_id === tag?.owner_stack_id && 'tag' in attributes)
  const sorted = sort_indexes.flatMap(({ stack_id, field, index_id }) =>
    entities
      .filter(entity => entity.stack_id === stack_id)
      .map(entity => `${index_id} ${sortTermOf('datetime', sortValueOf(entity, field))} ${entity.id}`),
  )
  const expected = new Set([
    ...tagged.map(({ id, attributes }) => `${tag!.index_id} s${attributes.tag} ${id}`),
    ...sorted,
  ])
  const found = terms.filter(term => !expected.delete(term))
  return [...found, ...expected].map(text => ({ kind: 'the index differs from the stored entities', text }))
}

function sortValueOf(entity: StoredEntity, field: string): unknown {
  if (field.startsWith('attribute_values.')) return entity.attributes[field.slice('attribute_values.'.length)]
  const value = entity[field as keyof StoredEntity] as unknown
  return value instanceof Date ? value.toISOString() : value
}

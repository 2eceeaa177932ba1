import { isDeepStrictEqual } from 'node:util'
import { type Finding, type FindingKind, nameKey, type Replayed, type Told } from './replay.ts'
import { type Answered, plainColumns, type Stored, type StoredEntity, type StoredLink } from './stored.ts'

/** What is stored, compared with what the change log tells. */
export function compareWithLog(stored: Stored, replayed: Replayed): Finding[] {
  return [
    ...compareEntities(stored, replayed),
    ...compareLinks(stored, replayed),
    ...compareAnswers(stored, replayed),
    ...compareTerms(stored),
  ]
}

function compareEntities({ entities }: Stored, { live }: Replayed): Finding[] {
  const kind = 'what is stored is not what the change log tells'
  const findings: Finding[] = []
  const missing = new Set(live.keys())
  for (const entity of entities) {
    const told = live.get(entity.id)
    const difference = told ? differenceOf(entity, told) : 'is stored, but gone'
    missing.delete(entity.id)
    if (difference) findings.push({ kind, text: `${entity.external_id} ${entity.id} ${difference}` })
  }
  return [...findings, ...[...missing].map(id => ({ kind, text: `${id} is not stored` }) as const)]
}

function differenceOf(entity: StoredEntity, told: Told): string | undefined {
  const { external_id, version, state, columns, plain } = told
  if (entity.external_id !== external_id) return `should be called ${external_id}`
  if (entity.version !== version) return `has version ${entity.version}, not ${version}`
  if (entity.active !== (state === 'active')) return `should be ${state}`
  for (const column of plainColumns)
    if (!isDeepStrictEqual(entity[column], columns[column] ?? null))
      return `has ${column} ${entity[column]}, not ${columns[column]}`
  if (isDeepStrictEqual(entity.attributes, plain)) return undefined
  return `has ${JSON.stringify(entity.attributes)}, not ${JSON.stringify(plain)}`
}

/**
 * A link keeps its target through renames, and one whose target was deleted may be gone or be swept later: so each name
 * that was written has its link, to one that has borne the name, or was borne by one that is gone.
 */
function compareLinks({ links, attributes }: Stored, { live, gone, borne }: Replayed): Finding[] {
  const findings: Finding[] = []
  const stored = Map.groupBy(links, ({ source_id, attribute_id }) => `${source_id} ${attribute_id}`)
  const lostNames = new Set([...gone].flatMap(id => [...(borne.get(id) ?? [])]))
  for (const { source_id, target_id } of links) {
    const place = `${source_id} → ${target_id}`
    if (!live.has(target_id) && !gone.has(target_id)) findings.push({ kind: 'a link leads to nothing', text: place })
    if (!live.has(source_id) && !gone.has(source_id))
      findings.push({ kind: 'a link leads to nothing', text: `${place}, from nobody` })
  }
  for (const told of live.values())
    for (const { id, key, owner_stack_id, target_stack_id } of attributes) {
      if (owner_stack_id !== told.stack_id || target_stack_id === null) continue
      const names = (told.linked.get(key) ?? []).map(name => nameKey(target_stack_id, name))
      const difference = differenceOfLinks(names, stored.get(`${told.id} ${id}`) ?? [], borne, lostNames)
      if (difference)
        findings.push({ kind: 'links are not what the change log tells', text: `${told.id} ${key} ${difference}` })
    }
  return findings
}

function differenceOfLinks(
  names: string[],
  links: StoredLink[],
  borne: Replayed['borne'],
  lostNames: Set<string>,
): string | undefined {
  let place = 0
  for (const { target_id } of links) {
    const bore = borne.get(target_id)
    while (place < names.length && !bore?.has(names[place]!)) {
      if (!lostNames.has(names[place]!)) return `does not lead to ${names[place]}`
      place += 1
    }
    if (place === names.length) return `leads to ${target_id}, which was not named`
    place += 1
  }
  const left = names.slice(place).find(name => !lostNames.has(name))
  return left === undefined ? undefined : `does not lead to ${left}`
}

const answerKey = (answer: { consent_type_id: number; channel: string }) =>
  `${answer.consent_type_id}:${answer.channel}`

function compareAnswers({ answers, entities, changes }: Stored, { live, gone }: Replayed): Finding[] {
  const kind: FindingKind = 'the consent history does not replay'
  const findings: Finding[] = []
  const current = new Map<string, Map<string, Answered>>()
  for (const answer of answers) {
    const { person_id, previous_state } = answer
    const ofPerson = current.get(person_id) ?? new Map<string, Answered>()
    current.set(person_id, ofPerson)
    const before = ofPerson.get(answerKey(answer))?.state ?? null
    if (previous_state !== before)
      findings.push({ kind, text: `${person_id} ${answerKey(answer)} was ${before}, not ${previous_state}` })
    if (!live.has(person_id) && !gone.has(person_id)) findings.push({ kind, text: `${person_id} is nobody` })
    ofPerson.set(answerKey(answer), answer)
  }
  for (const { id, external_id, answers: standing, email_consent, sms_consent } of entities) {
    const replayed = [...(current.get(id) ?? [])].map(([key, { state }]) => `${key} ${state}`).sort()
    const stands = Object.entries(standing)
      .map(([key, { state }]) => `${key} ${state}`)
      .sort()
    if (!isDeepStrictEqual(replayed, stands))
      findings.push({ kind, text: `${external_id} ${id} has ${stands}, and was answered ${replayed}` })
    for (const [channel, flag] of [
      ['email', email_consent],
      ['sms', sms_consent],
    ] as const)
      if (flag !== summaryOf(stands, channel)) findings.push({ kind, text: `${id} ${channel} is ${flag}: ${stands}` })
  }
  const told = changes.flatMap(({ entity_id, version, request_id, after }) =>
    ((after?.consents ?? []) as (Answered & object)[]).map(given =>
      evidence({ ...given, person_id: entity_id, version, request_id }),
    ),
  )
  const kept = new Set(answers.map(evidence))
  for (const line of told) if (!kept.delete(line)) findings.push({ kind, text: `is not in the history: ${line}` })
  for (const line of kept) findings.push({ kind, text: `is in the history alone: ${line}` })
  return findings
}

const evidence = ({ person_id, version, consent_type_id, channel, state, request_id }: Answered) =>
  [person_id, version, consent_type_id, channel, state, request_id].join(' ')

function summaryOf(stands: string[], channel: string): boolean | null {
  const states = stands.filter(line => line.includes(`:${channel} `)).map(line => line.endsWith('true'))
  return states.length === 0 ? null : states.includes(true)
}

function compareTerms({ terms, entities, attributes }: Stored): Finding[] {
  const tag = attributes.find(({ key }) => key === 'tag')
  const tagged = entities.filter(({ stack_id, attributes }) => stack_id === tag?.owner_stack_id && 'tag' in attributes)
  const expected = new Set(tagged.map(({ id, attributes }) => `s${attributes.tag} ${id}`))
  const found = terms.filter(term => !expected.delete(term))
  return [...found, ...expected].map(text => ({ kind: 'an index is not what is stored', text }))
}

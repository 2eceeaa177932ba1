import { type Attribute, type Change, channels } from '@kith/client'
import type { ReactNode } from 'react'
import { useFormats, useMessages } from '../app/language.tsx'
import { suppressionMessages } from '../deliverability/suppression-messages.ts'
import { attributeField } from '../entity/fields.ts'
import { answerWord, type EntityTexts, messages as entityMessages } from '../entity/messages.ts'
import { attributesOf, consentTypeName, useDefinitions } from '../entity/schema.ts'
import { FieldValue, Value } from '../entity/value.tsx'
import { Facts } from '../ui/page.tsx'
import {
  type AnswerDifference,
  addressesOf,
  answersOf,
  type Difference,
  differencesOf,
  type LoggedAddress,
} from './differences.ts'
import styles from './history.module.css'
import { messages } from './messages.ts'

/** The name of a field or attribute. */
export function nameOf(
  { group, key }: Pick<Difference, 'group' | 'key'>,
  texts: EntityTexts,
  attributes: ReadonlyMap<string, Attribute>,
) {
  if (group === 'attribute') return attributes.get(key)?.name || key
  return (texts.fields as Record<string, string>)[key] ?? key
}

type LoggedValueProps = { difference: Difference; value: unknown; attributes: ReadonlyMap<string, Attribute> }

/**
 * A value by its type. The state of an entity is translated. Targets have the names of that time, so they are no links.
 */
function LoggedValue({ difference: { group, key }, value, attributes }: LoggedValueProps) {
  const states: Record<string, string> = useMessages(entityMessages).states
  const attribute = group === 'attribute' ? attributes.get(key) : undefined
  if (attribute) return <FieldValue field={{ ...attributeField(attribute, value), target: undefined }} value={value} />
  if (group === 'field' && key === 'date_of_birth') return <FieldValue field={{ kind: 'date' }} value={value} />
  return <Value value={group === 'field' && key === 'state' ? (states[String(value)] ?? value) : value} />
}

/** The values and answers that a change set. */
export function HistoryChanges({ owner, change }: { owner: string; change: Change }) {
  const texts = useMessages(messages)
  const entityTexts = useMessages(entityMessages)
  const { definitions } = useDefinitions()
  const attributes = attributesOf(definitions, owner)
  const answers = answersOf(change)
  // The summary flags follow from the answers, and only repeat them.
  const summaries = new Set<string>(answers.map(({ channel }) => channels[channel].flag))
  const differences = differencesOf(change).filter(({ key }) => !summaries.has(key))
  const isFirst = change.operation === 'create'
  const values = differences.map(difference => {
    const step = (
      <Step
        key={difference.key}
        isFirst={isFirst}
        before={<LoggedValue difference={difference} value={difference.before} attributes={attributes} />}
        isEmpty={difference.before === null}
      >
        <LoggedValue difference={difference} value={difference.after} attributes={attributes} />
      </Step>
    )
    return [nameOf(difference, entityTexts, attributes), step] as const
  })
  const given = answers.map(answer => {
    const purpose = consentTypeName(definitions.consent_types, answer.consent_type_id)
    const name = `${purpose} · ${entityTexts.channels[answer.channel]}`
    return [name, <Answer key={name} {...answer} isFirst={isFirst} />] as const
  })
  const reached = addressesOf(change).map(address => {
    const name = `${texts.deliverability} · ${entityTexts.channels[address.after.channel]}`
    return [name, <Address key={name} {...address} />] as const
  })
  const facts = [...values, ...given, ...reached]
  if (facts.length === 0)
    // An erasure removes the values of every change. Any other change has values, a creation at least the identifier or
    // the state.
    return <p className="muted">{change.before === null ? texts.valuesErased : texts.noValues}</p>
  return (
    <div className={styles.changes}>
      <Facts facts={facts} />
    </div>
  )
}

type StepProps = {
  /** Whether there is no previous value, as in a creation. */
  isFirst: boolean
  isEmpty: boolean
  before: ReactNode
  children: ReactNode
}

/** A value before and after. Screen readers get labels for both. */
function Step({ isFirst, isEmpty, before, children }: StepProps) {
  const texts = useMessages(messages)
  if (isFirst) return <>{children}</>
  return (
    <>
      <span className="visually-hidden">{texts.from}: </span>
      <span className={isEmpty ? 'muted' : styles.before}>{before}</span>
      <svg className={styles.arrow} viewBox="0 0 16 16" aria-hidden="true">
        <path d="M1 8h13M10 4l4 4-4 4" />
      </svg>
      <span className="visually-hidden">{texts.to}: </span>
      <span>{children}</span>
    </>
  )
}

/** Whether messages reach an address, before and after. */
function Address({ before, after }: { before: LoggedAddress | undefined; after: LoggedAddress }) {
  const texts = useMessages(suppressionMessages)
  return (
    <>
      <Step isFirst={before === undefined} before={before && texts.states[before.state]} isEmpty={false}>
        {texts.states[after.state]}
      </Step>
      {after.reason && <span className="muted"> · {texts.reasons[after.reason]}</span>}
    </>
  )
}

/** The answer to a purpose, before and after. */
function Answer({ before, after, isFirst }: AnswerDifference & { isFirst: boolean }) {
  const texts = useMessages(messages)
  const { answers } = useMessages(entityMessages)
  const formats = useFormats()
  const isSame = before !== undefined && !after?.superseded && answerWord(before) === answerWord(after)
  return (
    <>
      <Step isFirst={isFirst || isSame} before={answers[answerWord(before)]} isEmpty={before === undefined}>
        {answers[answerWord(after)]}
      </Step>
      {isSame && <span className="muted"> · {texts.again}</span>}
      {after?.answered_at && <span className="muted"> · {texts.answeredAt(formats.dateTime(after.answered_at))}</span>}
      {after?.superseded && (
        <span className="muted">
          {' '}
          · {answers[answerWord(after.superseded)]}: {texts.superseded}
        </span>
      )}
    </>
  )
}

import { type ConsentAssignment, isKithError, type Person } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { client, useWrite } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { isEqual } from '../entity/equal.ts'
import { momentOf } from '../entity/fields.ts'
import { messages as entityMessages } from '../entity/messages.ts'
import { FieldGroup, fieldsOf, TextField } from '../ui/field.tsx'
import { type Faults, Form } from '../ui/form.tsx'
import { Notice } from '../ui/page.tsx'
import { Select } from '../ui/select.tsx'
import { consentMessages } from './consent-messages.ts'
import type { Purpose } from './decision.ts'

type AnswerFormProps = { person: Person; purpose: Purpose; onShow(person: Person): void; onClose: () => void }

type Method = NonNullable<ConsentAssignment['method']>

/** The methods of an answer that a person records by hand. */
const methods: Method[] = ['phone', 'paper', 'web_form', 'double_opt_in', 'gpc', 'other']
const noText = 'none'
/** The path of the answer in the body of the write. */
const place = '/consents/0'

const effectiveOf = ({ consents }: Person, { consent_type_id, channel }: Purpose) =>
  consents.find(one => one.consent_type_id === consent_type_id && one.channel === channel)

export const emptyAnswer = {
  state: null as 'true' | 'false' | null,
  method: 'phone' as Method,
  ...{ source: '', text_version: noText, reference: '', consent_string: '', collected_at: '' },
}
type AnswerDraft = typeof emptyAnswer

export const assignmentOf = (draft: AnswerDraft, { consent_type_id, channel }: Purpose): ConsentAssignment => ({
  consent_type_id,
  channel,
  state: draft.state === 'true',
  method: draft.method,
  ...(draft.source.trim() && { source: draft.source }),
  ...(draft.reference.trim() && { reference: draft.reference }),
  ...(draft.consent_string.trim() && { consent_string: draft.consent_string.trim() }),
  ...(draft.text_version !== noText && { text_version: Number(draft.text_version) }),
  ...(draft.collected_at && { collected_at: momentOf(draft.collected_at) ?? draft.collected_at }),
})

const maxRepeats = 3

/**
 * Records an answer of a person who was read as `base`. If only other values have changed since, it retries. If the
 * answer to this purpose has changed, it records nothing and returns the current person.
 */
async function recordAnswer(base: Person, draft: AnswerDraft, purpose: Purpose) {
  const body = { consents: [assignmentOf(draft, purpose)] }
  for (let [read, repeats] = [base, 0]; ; repeats++) {
    try {
      const options = { ifMatch: read.version, representation: true } as const
      return { person: (await client.people.patch({ id: base.id }, body, options)) as Person, isRecorded: true }
    } catch (error) {
      if (!isKithError(error) || error.status !== 412 || repeats === maxRepeats) throw error
      const now = (await client.people.get({ id: base.id })) as Person
      if (!isEqual(effectiveOf(now, purpose), effectiveOf(read, purpose))) return { person: now, isRecorded: false }
      read = now
    }
  }
}

/** Records an answer that a person gave, with its evidence. */
export function AnswerForm({ person, purpose, onShow, onClose }: AnswerFormProps) {
  const texts = useMessages(consentMessages)
  const entityTexts = useMessages(entityMessages)
  const [draft, setDraft] = useState(emptyAnswer)
  const [base, setBase] = useState(person)
  const [hasConflict, setConflict] = useState(false)
  const [faults, setFaults] = useState<Faults>({})
  const save = useWrite((draft: AnswerDraft) => recordAnswer(base, draft, purpose), {
    onSuccess: ({ person, isRecorded }) => {
      onShow(person)
      setBase(person)
      if (isRecorded) onClose()
      else setConflict(true)
    },
  })
  const submit = () => {
    const found: Faults = {
      ...(draft.state === null && { [`${place}/state`]: texts.needsAnswer }),
      ...(draft.collected_at !== '' &&
        momentOf(draft.collected_at) === undefined && { [`${place}/collected_at`]: entityTexts.faults.datetime }),
    }
    setFaults(found)
    if (Object.keys(found).length === 0) save.mutate(draft)
  }
  return (
    <Form
      onSubmit={submit}
      label={texts.record}
      write={save}
      faults={faults}
      submit={save.isPending ? `${texts.saving}…` : texts.save}
      onCancel={onClose}
    >
      <h3>{texts.record}</h3>
      <p className="muted">{texts.recordAdvice}</p>
      {hasConflict && (
        <Notice kind="caution" title={texts.conflict}>
          <p>{texts.conflictAdvice}</p>
        </Notice>
      )}
      <AnswerFields draft={draft} onChange={setDraft} purpose={purpose} />
    </Form>
  )
}

type AnswerFieldsProps = { draft: AnswerDraft; onChange(draft: AnswerDraft): void; purpose: Purpose }

/** The fields of an answer with its evidence. */
export function AnswerFields({ draft, onChange, purpose: { type, channel } }: AnswerFieldsProps) {
  const texts = useMessages(consentMessages)
  const entityTexts = useMessages(entityMessages)
  const versions = useTextVersions(type?.text_versions ?? 0, type?.id)
  const field = fieldsOf(draft, more => onChange({ ...draft, ...more }), place)
  const asksTwice = type?.channels.some(one => one.channel === channel && one.double_opt_in)
  return (
    <FieldGroup look="grid">
      <Select<'true' | 'false'>
        label={texts.answer}
        options={{ true: entityTexts.answers.granted, false: entityTexts.answers.refused }}
        {...field('state')}
        {...(asksTwice && { help: texts.doubleOptIn })}
      />
      <Select
        label={texts.method}
        options={methods.map(value => ({ value, label: entityTexts.methods[value] }))}
        {...field('method')}
      />
      <TextField label={texts.source} help={texts.sourceHelp} {...field('source')} />
      {versions.length > 0 && (
        <Select
          label={texts.text}
          options={[{ value: noText, label: texts.noText }, ...versions]}
          {...field('text_version')}
        />
      )}
      <TextField
        label={texts.collectedAt}
        help={texts.collectedHelp}
        type="datetime-local"
        {...field('collected_at')}
      />
      <TextField label={texts.reference} {...field('reference')} />
      <TextField label={texts.consent_string} help={texts.consentStringHelp} rows={3} {...field('consent_string')} />
    </FieldGroup>
  )
}

/** The latest texts of a purpose, newest first. A manually recorded answer never refers to an older one. */
function useTextVersions(count: number, consentTypeId: number | undefined) {
  const texts = useMessages(consentMessages)
  const mayRead = useScope('schema:read')
  const { data } = useQuery({
    queryKey: ['consents', 'texts', consentTypeId, count],
    queryFn: ({ signal }) =>
      client.schema.consentTypes
        .texts(consentTypeId!, { after: String(Math.max(0, count - 20)), size: 20, signal })
        .page(),
    enabled: mayRead && consentTypeId !== undefined && count > 0,
  })
  return (data?.items ?? []).toReversed().map(({ version, language, text }) => ({
    value: String(version),
    label: `${texts.version(version)} · ${language}`,
    help: text.length > 160 ? `${text.slice(0, 160)}…` : text,
  }))
}

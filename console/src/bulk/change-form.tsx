import { useState } from 'react'
import { mayUse } from '../app/field-rights.ts'
import { useMessages } from '../app/language.tsx'
import type { Write } from '../app/write.ts'
import { faultTexts } from '../entity/edit-form.tsx'
import { FieldEditor } from '../entity/field-editor.tsx'
import {
  attributeField,
  bodyOf,
  type Draft,
  draftOf,
  type Field,
  nameOfField,
  parseDraft,
  profileField,
} from '../entity/fields.ts'
import { messages as entityMessages } from '../entity/messages.ts'
import { useDefinitions } from '../entity/schema.ts'
import { AnswerFields, assignmentOf, emptyAnswer } from '../person/answer-form.tsx'
import { consentMessages } from '../person/consent-messages.ts'
import { rightsMessages } from '../person/rights-messages.ts'
import { Checkbox, TextField } from '../ui/field.tsx'
import { type Faults, Form } from '../ui/form.tsx'
import { Select } from '../ui/select.tsx'
import type { BulkAction, BulkChange } from './change.ts'
import { messages } from './messages.ts'

type FormProps = { owner: string; write: Write<BulkChange>; onCancel(): void }

/** Asks for what an action gives to each. Sending the form shows what it would do. */
export function ChangeForm({ action, ...props }: FormProps & { action: BulkAction }) {
  if (action === 'set') return <SetForm {...props} />
  return action === 'consent' ? <ConsentForm {...props} /> : <EraseForm {...props} />
}

const profile = ['first_name', 'last_name', 'email', 'mobile_prefix', 'mobile_number', 'language'] as const

/** The fields that several people or records may get one value of. */
function useFields(owner: string): Field[] {
  const { definitions } = useDefinitions()
  const { fields } = useMessages(entityMessages)
  const ofPeople = [
    ...profile.map(name => profileField(name, fields[name])),
    profileField('date_of_birth', fields.date_of_birth, 'date'),
    profileField('push_notification_consent', fields.push_notification_consent, 'boolean'),
  ]
  const attributes = definitions.attributes
    .filter(attribute => attribute.owner === owner && attribute.state === 'active')
    .map(attribute => attributeField(attribute, null))
  return [...attributes, ...(owner === 'people' ? ofPeople : [])].filter(field =>
    mayUse('write', owner, nameOfField(field)),
  )
}

function SetForm({ owner, write, onCancel }: FormProps) {
  const texts = useMessages(messages)
  const entityTexts = useMessages(entityMessages)
  const fields = useFields(owner)
  const [path, setPath] = useState(fields[0]?.path)
  const [isEmptied, setEmptied] = useState(false)
  const [draft, setDraft] = useState<Draft>()
  const [faults, setFaults] = useState<Faults>({})
  const field = fields.find(each => each.path === path)
  if (!field) return <p>{texts.noFields}</p>
  const shown = draft ?? draftOf(field, null)
  const submit = () => {
    const { value, fault } = isEmptied ? { value: null } : parseDraft(field, shown)
    const found = fault
      ? faultTexts(new Map([[field.path, fault]]), entityTexts)
      : !isEmptied && value === null && { [field.path]: texts.needsValue }
    setFaults(found || {})
    if (!found) write.mutate({ op: 'patch', body: bodyOf(new Map([[field, value]])) })
  }
  return (
    <Form onSubmit={submit} write={write} faults={faults} submit={texts.preview} onCancel={onCancel}>
      <Select
        label={texts.field}
        options={fields.map(({ path, label }) => ({ value: path, label }))}
        value={field.path}
        onChange={chosen => {
          setPath(chosen)
          setDraft(undefined)
          setFaults({})
        }}
      />
      {!isEmptied && <FieldEditor key={field.path} field={field} draft={shown} onChange={setDraft} />}
      <Checkbox isSelected={isEmptied} onChange={setEmptied}>
        {texts.empty}
      </Checkbox>
    </Form>
  )
}

function ConsentForm({ write, onCancel }: FormProps) {
  const texts = useMessages(messages)
  const consentTexts = useMessages(consentMessages)
  const { channels } = useMessages(entityMessages)
  const { definitions } = useDefinitions()
  const purposes = definitions.consent_types
    .filter(({ state, mandatory }) => state === 'active' && !mandatory)
    .flatMap(type => type.channels.map(({ channel }) => ({ consent_type_id: type.id, channel, name: type.name, type })))
  const nameOf = (purpose: (typeof purposes)[number]) => `${purpose.consent_type_id} ${purpose.channel}`
  const [chosen, setChosen] = useState(purposes[0] && nameOf(purposes[0]))
  const [draft, setDraft] = useState(emptyAnswer)
  const [faults, setFaults] = useState<Faults>({})
  const purpose = purposes.find(each => nameOf(each) === chosen)
  if (!purpose) return <p>{texts.noFields}</p>
  const submit = () => {
    const found: Faults = {
      ...(draft.state === '' && { '/consents/0/state': consentTexts.needsAnswer }),
      ...(draft.source.trim() === '' && { '/consents/0/source': texts.needsSource }),
    }
    setFaults(found)
    if (Object.keys(found).length === 0)
      write.mutate({ op: 'patch', body: { consents: [assignmentOf(draft, purpose)] } })
  }
  return (
    <Form onSubmit={submit} write={write} faults={faults} submit={texts.preview} onCancel={onCancel}>
      <p>{texts.consentAdvice}</p>
      <Select
        label={texts.purpose}
        options={purposes.map(each => ({ value: nameOf(each), label: `${each.name} · ${channels[each.channel]}` }))}
        value={nameOf(purpose)}
        onChange={setChosen}
      />
      <AnswerFields draft={draft} onChange={setDraft} purpose={purpose} />
    </Form>
  )
}

function EraseForm({ write, onCancel }: FormProps) {
  const texts = useMessages(messages)
  const rightsTexts = useMessages(rightsMessages)
  const [reason, setReason] = useState('')
  const [records, setRecords] = useState<'keep' | 'linked'>('keep')
  const [faults, setFaults] = useState<Faults>({})
  const submit = () => {
    if (reason.trim() === '') setFaults({ '/reason': rightsTexts.reasonNeeded })
    else write.mutate({ op: 'erase', reason, records })
  }
  return (
    <Form onSubmit={submit} write={write} faults={faults} submit={texts.preview} onCancel={onCancel}>
      <p>{rightsTexts.eraseAdvice}</p>
      <TextField
        label={rightsTexts.reason}
        help={rightsTexts.reasonHelp}
        autoFocus
        name="/reason"
        value={reason}
        onChange={setReason}
      />
      <Select<'keep' | 'linked'>
        label={rightsTexts.records}
        options={[
          { value: 'keep', label: rightsTexts.recordsKeep },
          { value: 'linked', label: rightsTexts.recordsLinked },
        ]}
        value={records}
        onChange={setRecords}
      />
    </Form>
  )
}

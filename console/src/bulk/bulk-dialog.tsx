import type { BulkRequest, Client, JobPreview } from '@kith/client'
import { useEffect, useState } from 'react'
import { useWrite, type Write } from '../app/client.ts'
import { mayUse } from '../app/field-rights.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { faultTexts } from '../entity/edit-form.tsx'
import { entitiesOf } from '../entity/entities.ts'
import { FieldEditor } from '../entity/field-editor.tsx'
import {
  attributeField,
  bodyOf,
  type Draft,
  draftOf,
  type Field,
  nameOfField,
  parseDraft,
  personField,
  plainFields,
} from '../entity/fields.ts'
import { messages as entityMessages } from '../entity/messages.ts'
import { useDefinitions } from '../entity/schema.ts'
import { AnswerFields, assignmentOf, emptyAnswer } from '../person/answer-form.tsx'
import { consentMessages } from '../person/consent-messages.ts'
import { type Reason, ReasonForm } from '../person/erase-dialog.tsx'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Checkbox, TextField } from '../ui/field.tsx'
import { type Faults, Form } from '../ui/form.tsx'
import { Details, Loading, Notice, Problem } from '../ui/page.tsx'
import { Select } from '../ui/select.tsx'
import { JobView, RefusalList } from './job-view.tsx'
import { messages } from './messages.ts'

/** The actions on the chosen rows. */
export type BulkAction = 'set' | 'consent' | 'delete' | 'erase'

/** The people or records that an action changes. */
export type BulkTarget = { owner: string; filter: Record<string, unknown> } | { owner: string; ids: string[] }

type BulkChange = BulkRequest['change']

type BulkDialogProps = { action: BulkAction; target: BulkTarget; onClose(hasBegun: boolean): void }

/** Asks for the change, shows a preview of it, and then its progress. */
export default function BulkDialog({ action, target, onClose }: BulkDialogProps) {
  const texts = useMessages(messages)
  const { owner, ...selected } = target
  const entities = entitiesOf(owner) as unknown as Pick<Client['people'], 'bulk' | 'previewBulk'>
  const preview = useWrite((change: BulkChange) => entities.previewBulk({ ...selected, change }))
  const change = preview.variables
  const begin = useWrite((change: BulkChange, idempotencyKey) =>
    entities.bulk({ ...selected, change }, { idempotencyKey }),
  )
  const job = begin.data
  // A deletion has no form, only a preview.
  const ChangeForm = action === 'delete' ? undefined : changeForms[action]
  const previewDeletion = () => preview.mutate({ op: 'delete' })
  // biome-ignore lint/correctness/useExhaustiveDependencies: the preview begins once
  useEffect(() => {
    if (!ChangeForm) previewDeletion()
  }, [])
  return (
    <Dialog
      title={texts.action[action]}
      size="wide"
      isAlert={action === 'erase' || action === 'delete'}
      hasDraft={!job}
      onClose={() => onClose(job !== undefined)}
    >
      {job ? (
        <JobView owner={owner} id={job.id} onClose={() => onClose(true)} />
      ) : (
        <>
          {change && preview.data && (
            <Confirm
              action={action}
              preview={preview.data}
              write={{ ...begin, mutate: () => begin.mutate(change) }}
              onBack={() => (ChangeForm ? preview.reset() : onClose(false))}
            />
          )}
          {ChangeForm && (
            // The form stays mounted, so that it keeps its input for the way back.
            <div hidden={preview.data !== undefined}>
              <ChangeForm owner={owner} write={preview} onCancel={() => onClose(false)} />
            </div>
          )}
          {!ChangeForm && preview.error && <Problem error={preview.error} onRetry={previewDeletion} />}
          {!ChangeForm && preview.isPending && <Loading />}
        </>
      )}
    </Dialog>
  )
}

type ConfirmProps = { action: BulkAction; preview: JobPreview; write: Write; onBack: () => void }

/** Shows the counts of the dry run. An erasure cannot be undone, so the person must type the number of people. */
function Confirm({ action, preview, write, onBack }: ConfirmProps) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const [typed, setTyped] = useState('')
  const { total, tested, done, unchanged, refused, refusals, warnings = [] } = preview
  const isErasure = action === 'erase'
  const isConfirmed = !isErasure || typed.replaceAll(/\D/g, '') === String(total)
  return (
    <Form
      onSubmit={() => isConfirmed && write.mutate()}
      write={write}
      look={isErasure || action === 'delete' ? 'danger' : 'primary'}
      submit={texts.begin[action](total, formats.number(total))}
      isDisabled={!isConfirmed || total === 0}
      back={<Button onPress={onBack}>{texts.back}</Button>}
    >
      <Notice title={texts.wouldChange(done, formats.number(done))}>
        {unchanged > 0 && <p>{texts.alreadySo(unchanged, formats.number(unchanged))}</p>}
        {refused > 0 && <p>{texts.wouldRefuse(refused, formats.number(refused))}</p>}
        {tested < total && <p>{texts.triedOf(formats.number(tested), formats.number(total))}</p>}
        <p>{isErasure ? texts.forGood : action === 'consent' ? texts.consentAdvice : texts.canBeUndone}</p>
      </Notice>
      {warnings.length > 0 && (
        <Notice kind="caution">
          <Details details={warnings} />
        </Notice>
      )}
      {refusals.length > 0 && <RefusalList refusals={refusals} />}
      {isErasure && (
        <TextField
          label={texts.typeCount(String(total))}
          autoComplete="off"
          inputMode="numeric"
          value={typed}
          onChange={setTyped}
        />
      )}
    </Form>
  )
}

type FormProps = { owner: string; write: Write<BulkChange>; onCancel(): void }

/** The fields that can be set for several people or records at once. */
function useFields(owner: string): Field[] {
  const { definitions } = useDefinitions()
  const { fields } = useMessages(entityMessages)
  const ofPeople = plainFields.map(name => personField(name, fields))
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
      ...(draft.state === null && { '/consents/0/state': consentTexts.needsAnswer }),
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
  const [reason, setReason] = useState<Reason>({ reason: '', records: 'keep' })
  const erase = { ...write, mutate: (given: Reason) => write.mutate({ op: 'erase', ...given }) }
  return <ReasonForm reason={reason} onChange={setReason} write={erase} submit={texts.preview} onClose={onCancel} />
}

/** The forms for the values of an action. Submitting a form shows a preview. */
const changeForms = { set: SetForm, consent: ConsentForm, erase: EraseForm }

import type { Erased, Person } from '@kith/client'
import { useNavigate } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { client, useWrite, type Write } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { queryClient } from '../app/query-client.ts'
import { nameOf } from '../entity/address.ts'
import { PlacesLeft } from '../erasures/places-left.tsx'
import { Button } from '../ui/button.tsx'
import { Actions, Dialog } from '../ui/dialog.tsx'
import { Checkbox, TextField } from '../ui/field.tsx'
import { type Faults, Form } from '../ui/form.tsx'
import { Facts, Notice } from '../ui/page.tsx'
import { Select } from '../ui/select.tsx'
import { downloadCertificate } from './certificate.tsx'
import { useHold } from './hold.tsx'
import { rightsMessages } from './rights-messages.ts'

export type Reason = { reason: string; records: 'keep' | 'linked'; override_hold?: boolean }

/** Erases a person: shows the data to erase, asks for the identifier, and gives the certificate. */
export function EraseDialog({ id, person, onClose }: { id: string; person: Person | undefined; onClose: () => void }) {
  const texts = useMessages(rightsMessages)
  const navigate = useNavigate()
  const hold = useHold(id)
  const [reason, setReason] = useState<Reason>({ reason: '', records: 'keep' })
  const [preview, setPreview] = useState<Erased>()
  const rehearse = useWrite((reason: Reason) => client.people.erase({ id }, reason, { dryRun: true }), {
    onSuccess: setPreview,
  })
  const erase = useWrite(() => client.people.erase({ id }, reason))
  const end = async () => {
    onClose()
    if (!erase.data) return
    await navigate({ to: '/people/$externalId', params: { externalId: id }, search: { by: 'id' }, replace: true })
    // The cache of the browser drops the person, too.
    queryClient.removeQueries({ queryKey: ['consents'] })
    await queryClient.resetQueries({ queryKey: ['entities', 'people'] })
    await queryClient.resetQueries({ queryKey: ['history', 'people', id] })
  }
  return (
    <Dialog
      title={texts.eraseTitle(person ? nameOf(person) : id)}
      onClose={end}
      size="wide"
      isAlert
      hasDraft={!erase.data}
    >
      {erase.data ? (
        <Done id={id} result={erase.data} onAgain={() => erase.mutate()} isPending={erase.isPending} onClose={end} />
      ) : preview ? (
        <Confirm
          identifier={person?.external_id ?? id}
          preview={preview}
          write={erase}
          onBack={() => setPreview(undefined)}
        />
      ) : (
        <ReasonForm reason={reason} onChange={setReason} write={rehearse} submit={texts.preview} onClose={onClose}>
          {hold && (
            <Checkbox
              isSelected={reason.override_hold ?? false}
              onChange={override_hold => setReason({ ...reason, override_hold })}
            >
              {texts.overrideHold}
            </Checkbox>
          )}
        </ReasonForm>
      )}
    </Dialog>
  )
}

type ReasonFormProps = {
  reason: Reason
  onChange(reason: Reason): void
  write: Write<Reason>
  submit: string
  onClose: () => void
  children?: ReactNode
}

/** Asks for the reason of an erasure, and the records to erase. */
export function ReasonForm({ reason, onChange, write, submit: action, onClose, children }: ReasonFormProps) {
  const texts = useMessages(rightsMessages)
  const [faults, setFaults] = useState<Faults>({})
  const submit = () => {
    if (reason.reason.trim() === '') setFaults({ '/reason': texts.reasonNeeded })
    else write.mutate(reason)
  }
  return (
    <Form onSubmit={submit} write={write} faults={faults} submit={action} onCancel={onClose}>
      <p>{texts.eraseAdvice}</p>
      <TextField
        label={texts.reason}
        help={texts.reasonHelp}
        autoFocus
        name="/reason"
        value={reason.reason}
        onChange={text => onChange({ ...reason, reason: text })}
      />
      <Select
        label={texts.records}
        options={{ keep: texts.recordsKeep, linked: texts.recordsLinked }}
        value={reason.records}
        onChange={records => onChange({ ...reason, records })}
      />
      {children}
    </Form>
  )
}

type ConfirmProps = {
  /** The text to type. */
  identifier: string
  preview: Erased
  write: Write
  onBack: () => void
}

function Confirm({ identifier, preview, write, onBack }: ConfirmProps) {
  const texts = useMessages(rightsMessages)
  const [typed, setTyped] = useState('')
  const isConfirmed = typed.trim() === identifier
  return (
    <Form
      onSubmit={() => isConfirmed && write.mutate()}
      write={write}
      look="danger"
      submit={write.isPending ? `${texts.erasing}…` : texts.eraseNow}
      isDisabled={!isConfirmed}
      back={<Button onPress={onBack}>{texts.back}</Button>}
    >
      <Preview erasure={preview.erasure} />
      <TextField
        label={texts.typeToConfirm(identifier)}
        autoComplete="off"
        autoFocus
        value={typed}
        onChange={setTyped}
      />
    </Form>
  )
}

function Preview({ erasure: { removed, record_ids, merged_ids, not_removed } }: { erasure: Erased['erasure'] }) {
  const texts = useMessages(rightsMessages)
  const formats = useFormats()
  const names: Record<string, string> = texts.tables
  // The tables have the order of `names`, which begins with the most personal data. Other tables come last.
  const tables = [...new Set([...Object.keys(names), ...Object.keys(removed)])]
  return (
    <>
      <h3>{texts.willGo}</h3>
      <Facts
        facts={tables
          .map(table => [names[table] ?? table, removed[table] ?? 0] as const)
          .map(([name, count]) => [name, count > 0 && texts.rows(count, formats.number(count))])}
      />
      {record_ids.length > 0 && <p>{texts.recordsGo(record_ids.length, formats.number(record_ids.length))}</p>}
      {merged_ids.length > 0 && <p>{texts.mergedGo(merged_ids.length, formats.number(merged_ids.length))}</p>}
      {not_removed.length > 0 && (
        <div>
          <p>{texts.notRemoved}</p>
          <PlacesLeft places={not_removed} />
        </div>
      )}
    </>
  )
}

type DoneProps = { id: string; result: Erased; onAgain: () => void; isPending: boolean; onClose: () => void }

function Done({ id, result: { certificate }, onAgain, isPending, onClose }: DoneProps) {
  const texts = useMessages(rightsMessages)
  return (
    <>
      <Notice kind="success" title={texts.erased}>
        <p>{certificate === null ? texts.certificateLater : texts.erasedAdvice}</p>
      </Notice>
      <Actions>
        <Button onPress={onClose}>{texts.close}</Button>
        {certificate === null ? (
          <Button look="primary" onPress={onAgain} isPending={isPending}>
            {texts.checkAgain}
          </Button>
        ) : (
          <Button look="primary" onPress={() => downloadCertificate(id, certificate)} autoFocus>
            {texts.certificate}
          </Button>
        )}
      </Actions>
    </>
  )
}

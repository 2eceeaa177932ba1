import type { Erased, Person } from '@kith/client'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { client } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { Actions, Dialog } from '../ui/dialog.tsx'
import { Select, TextField } from '../ui/field.tsx'
import { Notice, Problem } from '../ui/notice.tsx'
import { Facts } from '../ui/page.tsx'
import { downloadCertificate } from './certificate.tsx'
import { messages } from './messages.ts'
import styles from './person.module.css'
import { nameOf } from './person-address.ts'
import { rightsMessages } from './rights-messages.ts'

type EraseDialogProps = { id: string; person: Person | undefined; onClose: () => void }

type Reason = { reason: string; records: 'keep' | 'linked' }

/** Erases a person: shows what goes, asks for the identifier, and gives the certificate. */
export function EraseDialog({ id, person, onClose }: EraseDialogProps) {
  const texts = useMessages(rightsMessages)
  const queryClient = useQueryClient()
  const navigate = useNavigate()
  const [reason, setReason] = useState<Reason>({ reason: '', records: 'keep' })
  const [preview, setPreview] = useState<Erased>()
  const rehearse = useMutation({
    mutationFn: () => client.people.erase({ id }, reason, { dryRun: true }),
    onSuccess: setPreview,
  })
  const erase = useMutation({ mutationFn: () => client.people.erase({ id }, reason) })
  const end = async () => {
    onClose()
    if (!erase.data) return
    await navigate({ to: '/people/$externalId', params: { externalId: id }, search: { by: 'id' }, replace: true })
    // The browser forgets the person, too.
    queryClient.removeQueries({ queryKey: ['consents'] })
    await queryClient.resetQueries({ queryKey: ['people'] })
    await queryClient.resetQueries({ queryKey: ['history', 'people', id] })
  }
  return (
    <Dialog
      title={texts.eraseTitle(person ? nameOf(person) : id)}
      isOpen
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
          error={erase.error}
          isPending={erase.isPending}
          onBack={() => setPreview(undefined)}
          onErase={() => erase.mutate()}
        />
      ) : (
        <ReasonForm
          reason={reason}
          onChange={setReason}
          error={rehearse.error}
          isPending={rehearse.isPending}
          onClose={onClose}
          onPreview={() => rehearse.mutate()}
        />
      )}
    </Dialog>
  )
}

type ReasonFormProps = {
  reason: Reason
  onChange(reason: Reason): void
  error: unknown
  isPending: boolean
  onClose: () => void
  onPreview: () => void
}

function ReasonForm({ reason, onChange, error, isPending, onClose, onPreview }: ReasonFormProps) {
  const texts = useMessages(rightsMessages)
  const { cancel } = useMessages(messages)
  const [isIncomplete, setIncomplete] = useState(false)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const isEmpty = reason.reason.trim() === ''
    setIncomplete(isEmpty)
    if (!isEmpty) onPreview()
  }
  return (
    <form className={styles.stack!} onSubmit={submit} noValidate>
      <p>{texts.eraseAdvice}</p>
      <TextField
        label={texts.reason}
        help={texts.reasonHelp}
        autoFocus
        value={reason.reason}
        onChange={text => onChange({ ...reason, reason: text })}
        {...(isIncomplete && reason.reason.trim() === '' && { error: texts.reasonNeeded })}
      />
      <Select
        label={texts.records}
        options={[
          { value: 'keep', label: texts.recordsKeep },
          { value: 'linked', label: texts.recordsLinked },
        ]}
        value={reason.records}
        onChange={records => onChange({ ...reason, records })}
      />
      {error !== null && <Problem error={error} />}
      <Actions>
        <Button onPress={onClose}>{cancel}</Button>
        <Button type="submit" look="primary" isPending={isPending}>
          {texts.preview}
        </Button>
      </Actions>
    </form>
  )
}

type ConfirmProps = {
  /** The text to type. */
  identifier: string
  preview: Erased
  error: unknown
  isPending: boolean
  onBack: () => void
  onErase: () => void
}

function Confirm({ identifier, preview, error, isPending, onBack, onErase }: ConfirmProps) {
  const texts = useMessages(rightsMessages)
  const [typed, setTyped] = useState('')
  const isConfirmed = typed.trim() === identifier
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (isConfirmed) onErase()
  }
  return (
    <form className={styles.stack!} onSubmit={submit} noValidate>
      <Preview erasure={preview.erasure} />
      <TextField
        label={texts.typeToConfirm(identifier)}
        autoComplete="off"
        autoFocus
        value={typed}
        onChange={setTyped}
      />
      {error !== null && <Problem error={error} />}
      <Actions>
        <Button onPress={onBack}>{texts.backToEdit}</Button>
        <Button type="submit" look="danger" isDisabled={!isConfirmed} isPending={isPending}>
          {isPending ? `${texts.erasing}…` : texts.eraseNow}
        </Button>
      </Actions>
    </form>
  )
}

/** The order of the names: what concerns the person most comes first, tables without a name last. */
function sortByTable(rows: [string, number][], order: readonly string[]): [string, number][] {
  const place = (table: string) => (order.includes(table) ? order.indexOf(table) : order.length)
  return rows.toSorted(([one], [other]) => place(one) - place(other))
}

function Preview({ erasure: { removed, record_ids, merged_ids, not_removed } }: { erasure: Erased['erasure'] }) {
  const texts = useMessages(rightsMessages)
  const formats = useFormats()
  const names: Record<string, string> = texts.tables
  return (
    <>
      <h3>{texts.willGo}</h3>
      <Facts
        facts={sortByTable(Object.entries(removed), Object.keys(names))
          .filter(([, count]) => count > 0)
          .map(([table, count]) => [names[table] ?? table, texts.rows(count, formats.number(count))] as const)}
      />
      {record_ids.length > 0 && <p>{texts.recordsGo(record_ids.length, formats.number(record_ids.length))}</p>}
      {merged_ids.length > 0 && <p>{texts.mergedGo(merged_ids.length, formats.number(merged_ids.length))}</p>}
      {not_removed.length > 0 && (
        <div>
          <p>{texts.notRemoved}</p>
          <ul>
            {not_removed.map(place => (
              <li key={place}>{place}</li>
            ))}
          </ul>
        </div>
      )}
    </>
  )
}

type DoneProps = { id: string; result: Erased; onAgain: () => void; isPending: boolean; onClose: () => void }

function Done({ id, result: { certificate }, onAgain, isPending, onClose }: DoneProps) {
  const texts = useMessages(rightsMessages)
  const { close } = useMessages(messages)
  return (
    <>
      <Notice kind="success" title={texts.erased}>
        <p>{certificate === null ? texts.certificateLater : texts.erasedAdvice}</p>
      </Notice>
      <Actions>
        <Button onPress={onClose}>{close}</Button>
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

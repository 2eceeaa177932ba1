import type { Client, JobPreview } from '@kith/client'
import { useState } from 'react'
import { useFormats, useMessages } from '../app/language.tsx'
import { useWrite } from '../app/write.ts'
import { entitiesOf } from '../entity/entities.ts'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { TextField } from '../ui/field.tsx'
import { Form } from '../ui/form.tsx'
import { Notice, Problem } from '../ui/notice.tsx'
import { Loading } from '../ui/page.tsx'
import type { BulkAction, BulkChange, BulkTarget } from './change.ts'
import { ChangeForm } from './change-form.tsx'
import { JobView } from './job-view.tsx'
import { messages } from './messages.ts'
import { RefusalList } from './refusal-list.tsx'

type BulkDialogProps = { action: BulkAction; target: BulkTarget; onClose(hasBegun: boolean): void }

/** Asks what to change, shows what that would do, and then how far it is. */
export default function BulkDialog({ action, target, onClose }: BulkDialogProps) {
  const texts = useMessages(messages)
  const { owner, ...selected } = target
  const entities = entitiesOf(owner) as unknown as Pick<Client['people'], 'bulk' | 'previewBulk'>
  // A deletion needs no more than its preview.
  const [change, setChange] = useState<BulkChange | undefined>(action === 'delete' ? { op: 'delete' } : undefined)
  const preview = useWrite((change: BulkChange) => entities.previewBulk({ ...selected, change }), {
    onSuccess: (_, change) => setChange(change),
  })
  const begin = useWrite((change: BulkChange, idempotencyKey) =>
    entities.bulk({ ...selected, change }, { idempotencyKey }),
  )
  const job = begin.data
  return (
    <Dialog
      title={texts.action[action]}
      isOpen
      size="wide"
      isAlert={action === 'erase' || action === 'delete'}
      hasDraft={!job}
      onClose={() => onClose(job !== undefined)}
    >
      {job ? (
        <JobView owner={owner} id={job.id} onClose={() => onClose(true)} />
      ) : change && preview.data ? (
        <Confirm
          action={action}
          preview={preview.data}
          write={{ ...begin, mutate: () => begin.mutate(change) }}
          onBack={() => (action === 'delete' ? onClose(false) : preview.reset())}
        />
      ) : action === 'delete' ? (
        <PreviewAtOnce error={preview.error} onStart={() => preview.mutate({ op: 'delete' })} />
      ) : (
        <ChangeForm action={action} owner={owner} write={preview} onCancel={() => onClose(false)} />
      )}
    </Dialog>
  )
}

function PreviewAtOnce({ error, onStart }: { error: unknown; onStart: () => void }) {
  const [hasStarted, setStarted] = useState(false)
  if (!hasStarted) {
    setStarted(true)
    queueMicrotask(onStart)
  }
  return error ? <Problem error={error} onRetry={onStart} /> : <Loading />
}

type ConfirmProps = {
  action: BulkAction
  preview: JobPreview
  write: { mutate: () => void; isPending: boolean; error: unknown }
  onBack: () => void
}

/** Shows the counts of the dry run. An erasure cannot be undone, so the number of people is typed. */
function Confirm({ action, preview, write, onBack }: ConfirmProps) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const [typed, setTyped] = useState('')
  const { total, tested, done, unchanged, refused, refusals } = preview
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

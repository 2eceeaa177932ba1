import { useState } from 'react'
import { useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { localTime, momentOf } from '../entity/fields.ts'
import type { SetMoment } from '../entity/search.ts'
import { DialogButton } from '../ui/dialog.tsx'
import { TextField, useDraft } from '../ui/field.tsx'
import { type Faults, FormDialog } from '../ui/form.tsx'
import { messages } from './messages.ts'

type AsOfProps = { at?: string | undefined; setMoment: SetMoment }

/** A button that asks for a moment and shows the entity as of that moment. */
export function AsOfButton(props: AsOfProps) {
  const texts = useMessages(messages)
  if (!useScope('changes:read')) return null
  return <DialogButton dialog={close => <AsOfDialog {...props} onClose={close} />}>{texts.asOf}</DialogButton>
}

function AsOfDialog({ at, setMoment, onClose }: AsOfProps & { onClose: () => void }) {
  const texts = useMessages(messages)
  const { draft, field } = useDraft(() => ({ at: localTime(at ?? Date.now()).slice(0, 19) }))
  const [faults, setFaults] = useState<Faults>({})
  const submit = () => {
    const moment = momentOf(draft.at)
    if (moment === undefined || Date.parse(moment) > Date.now()) return setFaults({ '/at': texts.asOfFuture })
    onClose()
    setMoment({ at: moment })
  }
  return (
    <FormDialog title={texts.asOfTitle} onSubmit={submit} faults={faults} submit={texts.asOfShow} onClose={onClose}>
      <TextField label={texts.asOfLabel} help={texts.asOfHelp} type="datetime-local" autoFocus {...field('at')} />
    </FormDialog>
  )
}

import { useState } from 'react'
import { useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { localTime, momentOf } from '../entity/fields.ts'
import type { SetMoment } from '../entity/search.ts'
import { Button } from '../ui/button.tsx'
import { TextField } from '../ui/field.tsx'
import type { Faults } from '../ui/form.tsx'
import { FormDialog } from '../ui/form.tsx'
import { messages } from './messages.ts'

/** A button that asks for a moment, and shows the entity as of then. */
export function AsOfButton({ at, setMoment }: { at?: string | undefined; setMoment: SetMoment }) {
  const texts = useMessages(messages)
  const mayRead = useScope('changes:read')
  const [isOpen, setOpen] = useState(false)
  if (!mayRead) return null
  return (
    <>
      <Button onPress={() => setOpen(true)}>{texts.asOf}</Button>
      {isOpen && <AsOfDialog at={at} setMoment={setMoment} onClose={() => setOpen(false)} />}
    </>
  )
}

type AsOfDialogProps = { at: string | undefined; setMoment: SetMoment; onClose: () => void }

function AsOfDialog({ at, setMoment, onClose }: AsOfDialogProps) {
  const texts = useMessages(messages)
  const [text, setText] = useState(() => localTime(at ?? Date.now()).slice(0, 19))
  const [faults, setFaults] = useState<Faults>({})
  const submit = () => {
    const moment = momentOf(text)
    if (moment === undefined || Date.parse(moment) > Date.now()) return setFaults({ '/at': texts.asOfFuture })
    onClose()
    setMoment({ at: moment })
  }
  return (
    <FormDialog title={texts.asOfTitle} onSubmit={submit} faults={faults} submit={texts.asOfShow} onClose={onClose}>
      <TextField
        label={texts.asOfLabel}
        help={texts.asOfHelp}
        type="datetime-local"
        autoFocus
        name="/at"
        value={text}
        onChange={setText}
      />
    </FormDialog>
  )
}

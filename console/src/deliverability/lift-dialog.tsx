import type { Channel, Suppression } from '@kith/client'
import { useState } from 'react'
import { client, useWrite } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { ConfirmDialog } from '../ui/dialog.tsx'
import { Checkbox } from '../ui/field.tsx'
import { suppressionsKey } from './queries.ts'
import { suppressionMessages } from './suppression-messages.ts'

type LiftDialogProps = {
  /** The suppressed address. */
  lifted: { channel: Channel; address: string; reason: Suppression['reason'] }
  onLifted?: () => void
  onClose: () => void
}

/** Asks before the suppression of an address is lifted, and explains the effect. After a complaint, it asks twice. */
export function LiftDialog({ lifted: { channel, address, reason }, onLifted, onClose }: LiftDialogProps) {
  const texts = useMessages(suppressionMessages)
  const [isSure, setSure] = useState(false)
  const lift = useWrite(() => client.deliverability.lift(channel, address), {
    refresh: [suppressionsKey, ['consents']],
    onSuccess: () => {
      onLifted?.()
      onClose()
    },
  })
  const isComplaint = reason === 'complaint'
  return (
    <ConfirmDialog
      title={texts.liftTitle(address)}
      action={texts.liftAction}
      write={lift}
      isDisabled={isComplaint && !isSure}
      onClose={onClose}
    >
      <p>{texts.liftAdvice}</p>
      {isComplaint && (
        <>
          <p>{texts.complaintAdvice}</p>
          <Checkbox isSelected={isSure} onChange={setSure}>
            {texts.complaintSure}
          </Checkbox>
        </>
      )}
    </ConfirmDialog>
  )
}

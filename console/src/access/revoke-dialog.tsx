import { useWrite } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { ConfirmDialog } from '../ui/dialog.tsx'
import { messages } from './messages.ts'

type RevokeDialogProps = {
  title: string
  advice: string
  revoke: () => Promise<unknown>
  refresh: readonly unknown[]
  onClose: () => void
}

/** Asks before a client or a token is revoked. */
export function RevokeDialog({ title, advice, revoke, refresh, onClose }: RevokeDialogProps) {
  const texts = useMessages(messages)
  const write = useWrite(revoke, { refresh: [refresh], onSuccess: onClose })
  return (
    <ConfirmDialog title={title} action={texts.revoke} write={write} onClose={onClose}>
      <p>{advice}</p>
    </ConfirmDialog>
  )
}

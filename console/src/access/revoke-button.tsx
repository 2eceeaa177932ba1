import { useState } from 'react'
import { useWrite } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { ConfirmDialog } from '../ui/dialog.tsx'
import { messages } from './messages.ts'

type RevokeButtonProps = {
  /** The name of the client or token that the button revokes. */
  name: string
  title: string
  advice: string
  revoke: () => Promise<unknown>
  refresh: readonly unknown[]
}

/** Revokes a client or a token, after a confirmation. */
export function RevokeButton({ name, title, advice, revoke, refresh }: RevokeButtonProps) {
  const texts = useMessages(messages)
  const [isAsking, setAsking] = useState(false)
  const close = () => setAsking(false)
  const write = useWrite(revoke, { refresh: [refresh], onSuccess: close })
  return (
    <>
      <Button look="danger" aria-label={`${texts.revoke}: ${name}`} onPress={() => setAsking(true)}>
        {texts.revoke}
      </Button>
      {isAsking && (
        <ConfirmDialog title={title} action={texts.revoke} write={write} onClose={close}>
          <p>{advice}</p>
        </ConfirmDialog>
      )}
    </>
  )
}

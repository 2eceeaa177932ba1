import { useState } from 'react'
import { useMessages } from '../app/language.tsx'
import { Button } from './button.tsx'
import { Actions, Dialog } from './dialog.tsx'
import { messages } from './messages.ts'
import styles from './secret-dialog.module.css'

type SecretDialogProps = {
  title: string
  advice: string
  /** The names and values to copy. */
  values: readonly (readonly [name: string, value: string])[]
  onClose: () => void
}

/** Shows a secret once, with a button that copies it. A click beside the dialog does not close it. */
export function SecretDialog({ title, advice, values, onClose }: SecretDialogProps) {
  const texts = useMessages(messages)
  const [copied, setCopied] = useState('')
  return (
    <Dialog title={title} onClose={onClose} isAlert>
      <p>{advice}</p>
      {values.map(([name, value]) => (
        <div key={name} className={styles.value}>
          <span className={styles.name}>{name}</span>
          <code className={styles.secret}>{value}</code>
          <Button
            aria-label={`${texts.copy}: ${name}`}
            onPress={() => navigator.clipboard?.writeText(value).then(() => setCopied(name))}
          >
            {copied === name ? texts.copied : texts.copy}
          </Button>
        </div>
      ))}
      <Actions>
        <Button look="primary" onPress={onClose} autoFocus>
          {texts.close}
        </Button>
      </Actions>
    </Dialog>
  )
}

import { useState } from 'react'
import { useMessages } from '../app/language.tsx'
import { Button } from './button.tsx'
import styles from './field.module.css'
import { TextField } from './field.tsx'
import { messages } from './messages.ts'

/** A text to copy. If the browser does not let a page copy, the person selects it. */
export function CopyField({ label, text }: { label: string; text: string }) {
  const texts = useMessages(messages)
  const [isCopied, setCopied] = useState(false)
  const copy = async () => {
    await navigator.clipboard.writeText(text)
    setCopied(true)
  }
  return (
    <div className={styles.copyField}>
      <TextField label={label} value={text} isReadOnly />
      {'clipboard' in navigator && (
        <Button onPress={copy} aria-label={`${isCopied ? texts.copied : texts.copy}: ${label}`}>
          {isCopied ? texts.copied : texts.copy}
        </Button>
      )}
    </div>
  )
}

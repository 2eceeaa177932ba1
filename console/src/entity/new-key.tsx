import { useState } from 'react'
import { useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { TextField } from '../ui/field.tsx'
import styles from './form.module.css'
import { messages } from './messages.ts'

/** Asks for the key of a value that no attribute declares. */
export function NewKey({ isTaken, onAdd }: { isTaken(key: string): boolean; onAdd(key: string): void }) {
  const texts = useMessages(messages)
  const [text, setText] = useState('')
  const key = text.trim()
  const canAdd = key !== '' && !isTaken(key)
  const add = () => {
    onAdd(key)
    setText('')
  }
  return (
    <div className={styles.newKey}>
      <TextField
        label={texts.addValue}
        placeholder={texts.newKey}
        value={text}
        onChange={setText}
        onKeyDown={event => {
          if (event.key !== 'Enter') return
          // The form around the field would save.
          event.preventDefault()
          if (canAdd) add()
        }}
        {...(isTaken(key) && { error: texts.keyTaken })}
      />
      <Button isDisabled={!canAdd} onPress={add}>
        {texts.add}
      </Button>
    </div>
  )
}

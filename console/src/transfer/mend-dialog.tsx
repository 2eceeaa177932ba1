import { type FormEvent, useState } from 'react'
import { useFormats, useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { Actions, Dialog } from '../ui/dialog.tsx'
import { TextField } from '../ui/field.tsx'
import { Notice } from '../ui/notice.tsx'
import { messages } from './messages.ts'
import type { RefusedLine } from './refused-lines.ts'
import styles from './transfer.module.css'
import { useRefusalTexts } from './use-refusal-texts.ts'

/** Lets a person correct the cells of a refused record, or the text of a refused line. */
export function MendDialog({
  line,
  names,
  nameOf,
  onClose,
  onMend,
}: {
  line: RefusedLine
  names: string[]
  /** The name of the column of a path. */
  nameOf: (path: string) => string
  onClose: () => void
  onMend: (content: RefusedLine['content']) => void
}) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const [content, setContent] = useState(() => padded(line.content, names.length))
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onMend(content)
  }
  const faults = useRefusalTexts().refusalTexts(line.refusal)
  return (
    <Dialog title={texts.mendLine(formats.number(line.line))} isOpen onClose={onClose} size="wide">
      <form className={styles.mend!} onSubmit={submit}>
        <Notice kind="caution">
          {faults.map(({ path, text }) => (
            <p key={`${path} ${text}`}>
              {path && <code>{nameOf(path)}</code>} {text}
            </p>
          ))}
        </Notice>
        {typeof content === 'string' ? (
          <TextField
            label={names.length > 0 ? texts.recordText : texts.jsonLine}
            rows={8}
            value={content}
            onChange={setContent}
            autoFocus
          />
        ) : (
          content.map((cell, index) => (
            <TextField
              // biome-ignore lint/suspicious/noArrayIndexKey: a cell has no other identity than its place
              key={index}
              label={names[index] || `${texts.column} ${index + 1}`}
              value={cell}
              autoFocus={index === 0}
              onChange={text => setContent(content.map((before, other) => (other === index ? text : before)))}
            />
          ))
        )}
        <Actions>
          <Button onPress={onClose}>{texts.cancel}</Button>
          <Button type="submit" look="primary">
            {texts.keepMended}
          </Button>
        </Actions>
      </form>
    </Dialog>
  )
}

/** A record with too few cells gets empty ones, so that each column can be filled. */
function padded(content: RefusedLine['content'], length: number): RefusedLine['content'] {
  if (typeof content === 'string') return content
  return Array.from({ length: Math.max(length, content.length) }, (_, index) => content[index] ?? '')
}

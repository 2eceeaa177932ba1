import { Fragment, useState } from 'react'
import { useMessages } from '../app/language.tsx'
import { messages } from './messages.ts'
import { isErasedTarget } from './relationship.ts'
import styles from './value.module.css'

/** Longer texts are clipped, because a value may have 64 KiB. */
const maxCharacters = 240

/** A value of any kind as text. It is never interpreted: neither as HTML nor as an address. */
export function Value({ value }: { value: unknown }) {
  const texts = useMessages(messages)
  if (value === null || value === undefined || value === '') return <span className={styles.none}>—</span>
  if (typeof value === 'boolean') return <>{value ? texts.yes : texts.no}</>
  if (typeof value === 'string') return <LongText text={value} />
  if (typeof value === 'number') return <>{String(value)}</>
  if (isErasedTarget(value)) return <em>{texts.erasedTarget}</em>
  if (Array.isArray(value) && value.every(item => typeof item !== 'object' || isErasedTarget(item)))
    return value.map((item, index) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: a list may have a value twice, and is never reordered
      <Fragment key={index}>
        {index > 0 && ', '}
        <Value value={item} />
      </Fragment>
    ))
  return <LongText text={JSON.stringify(value)} isCode />
}

/** A text of any length and direction. */
export function LongText({ text, isCode }: { text: string; isCode?: boolean }) {
  const texts = useMessages(messages)
  const [isOpen, setOpen] = useState(false)
  const shown = isOpen || text.length <= maxCharacters ? text : `${text.slice(0, maxCharacters)}…`
  const Element = isCode ? 'code' : 'bdi'
  return (
    <>
      <Element className={styles.text}>{shown}</Element>
      {text.length > maxCharacters && (
        <>
          {' '}
          <button type="button" className={styles.more} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {isOpen ? texts.showLess : texts.showAll}
          </button>
        </>
      )}
    </>
  )
}

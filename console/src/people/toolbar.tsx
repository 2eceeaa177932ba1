import { useEffect, useRef, useState } from 'react'
import { Button as AriaButton, Input, Label, SearchField } from 'react-aria-components'
import { useShortcut } from '../app/keys.tsx'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { countConditions } from '../filters/filter-tree.ts'
import { Button } from '../ui/button.tsx'
import fieldStyles from '../ui/field.module.css'
import { Icon } from '../ui/icon.tsx'
import { messages } from './messages.ts'
import styles from './people.module.css'
import type { Change } from './people-table.tsx'
import type { PeopleSearch } from './search.ts'
import { SegmentChoice } from './segment-choice.tsx'

type ToolbarProps = { search: PeopleSearch; change: Change; isFilterOpen: boolean; onFilter(): void }

/** The search, the filter and the segments above the list. */
export function Toolbar({ search, change, isFilterOpen, onFilter }: ToolbarProps) {
  const texts = useMessages(messages)
  const { number } = useFormats()
  const canReadSchema = useScope('schema:read')
  const conditions = search.filter ? countConditions(search.filter) : 0
  return (
    <div className={styles.toolbar!}>
      <PeopleSearchField text={search.text ?? ''} change={change} />
      {canReadSchema && <SegmentChoice search={search} change={change} />}
      <Button onPress={onFilter} aria-expanded={isFilterOpen}>
        {conditions > 0 ? texts.filterOf(number(conditions)) : texts.filter}
      </Button>
    </div>
  )
}

/** A key searches at once if the search before began longer ago than this, else after this pause without a key. */
const pauseMs = 100

/** The field that searches while one types. */
function PeopleSearchField({ text, change }: { text: string; change: Change }) {
  const texts = useMessages(messages)
  const input = useRef<HTMLInputElement>(null)
  const [typed, setTyped] = useState(text)
  useShortcut('/', texts.keySearch, () => input.current?.focus())
  const sent = useSentText({ typed, text, change })
  // The address changed without the field: back, forward, or a cleared search.
  useEffect(() => {
    if (text !== sent.current) {
      sent.current = text
      setTyped(text)
    }
  }, [text, sent])
  return (
    <SearchField className={styles.search!} value={typed} onChange={setTyped}>
      <Label className="visually-hidden">{texts.search}</Label>
      <Input
        className={fieldStyles.input!}
        ref={input}
        placeholder={`${texts.search}  ( / )`}
        aria-description={texts.searchHelp}
        spellCheck={false}
        onKeyDown={event => {
          if (event.key !== 'ArrowDown' && event.key !== 'Enter') return
          event.preventDefault()
          document.querySelector<HTMLElement>('[role=table] [role=cell] a')?.focus()
        }}
      />
      {typed !== '' && (
        <AriaButton className={styles.clear!}>
          <Icon name="close" />
        </AriaButton>
      )}
    </SearchField>
  )
}

/** Writes the typed text to the address after a pause, and returns the text that was written last. */
function useSentText({ typed, text, change }: { typed: string; text: string; change: Change }) {
  const sent = useRef(text)
  const sentAt = useRef(0)
  const latest = useRef({ change, text })
  latest.current = { change, text }
  useEffect(() => {
    if (typed === sent.current) return
    const send = () => {
      sent.current = typed
      sentAt.current = performance.now()
      // One entry of the history for a search, not one for each key.
      latest.current.change({ text: typed === '' ? undefined : typed }, latest.current.text !== '')
    }
    const sinceMs = performance.now() - sentAt.current
    if (sinceMs > pauseMs) return send()
    const timer = setTimeout(send, pauseMs)
    return () => clearTimeout(timer)
  }, [typed])
  return sent
}

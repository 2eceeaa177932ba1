import { lazy, type Ref, Suspense, useEffect, useRef, useState } from 'react'
import { Button as AriaButton, Input, Label, SearchField } from 'react-aria-components'
import { useShortcut } from '../app/keys.tsx'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { useIsSearchable } from '../entity/schema.ts'
import { countConditions } from '../filters/filter-tree.ts'
import { Button } from '../ui/button.tsx'
import fieldStyles from '../ui/field.module.css'
import { Icon } from '../ui/icon.tsx'
import styles from './list.module.css'
import { messages } from './messages.ts'
import type { Change, ListSearch } from './search.ts'

// The segments load after the list.
const SegmentChoice = lazy(() => import('./segment-choice.tsx'))

type ToolbarProps = {
  owner: string
  search: ListSearch
  change: Change
  isFilterOpen: boolean
  onFilter(): void
  filterButton: Ref<HTMLButtonElement>
}

/** The search, the filter and the segments above the list. */
export function Toolbar({ owner, search, change, isFilterOpen, onFilter, filterButton }: ToolbarProps) {
  const texts = useMessages(messages)
  const { number } = useFormats()
  const hasSegments = useScope('schema:read') && owner === 'people'
  // The search of people and records also finds records of a stack without a searchable attribute.
  const mayReadPeople = useScope('people:read')
  const isSearchable = useIsSearchable(owner) || mayReadPeople
  const conditions = search.filter ? countConditions(search.filter) : 0
  return (
    <div className={`row ${styles.toolbar}`}>
      {(isSearchable || search.text !== undefined) && (
        <ListSearchField owner={owner} text={search.text ?? ''} change={change} />
      )}
      {hasSegments && (
        <Suspense fallback={<div className={styles.segment} />}>
          <SegmentChoice search={search} change={change} />
        </Suspense>
      )}
      <Button ref={filterButton} onPress={onFilter} aria-expanded={isFilterOpen}>
        {conditions > 0 ? texts.filterOf(number(conditions)) : texts.filter}
      </Button>
    </div>
  )
}

/**
 * A keystroke searches at once if the previous search began longer ago than this. Otherwise it waits for this pause.
 */
const pauseMs = 100

/** The field that searches while a person types. */
function ListSearchField({ owner, text, change }: { owner: string; text: string; change: Change }) {
  const texts = useMessages(messages)
  const { search, searchHelp } = texts.kinds[owner === 'people' ? 'people' : 'records']
  const help = useIsSearchable(owner) ? searchHelp : texts.identifierSearchHelp
  const input = useRef<HTMLInputElement>(null)
  const [typed, setTyped] = useState(text)
  useShortcut('s', search, () => input.current?.focus())
  const sent = useSentText({ typed, text, change })
  // The address changed without the field: back, forward, or a cleared search.
  useEffect(() => {
    if (text !== sent.current) {
      sent.current = text
      setTyped(text)
    }
  }, [text, sent])
  return (
    <SearchField className={styles.search} value={typed} onChange={setTyped}>
      <Label className="visually-hidden">{search}</Label>
      <Input
        className={fieldStyles.input}
        ref={input}
        placeholder={`${search}  ( s )`}
        aria-description={help}
        spellCheck={false}
        onKeyDown={event => {
          if (event.key !== 'ArrowDown' && event.key !== 'Enter') return
          event.preventDefault()
          document.querySelector<HTMLElement>('[role=table] [role=cell] a')?.focus()
        }}
      />
      {typed !== '' && (
        <AriaButton className={styles.clear}>
          <Icon name="close" />
        </AriaButton>
      )}
    </SearchField>
  )
}

/** Writes the typed text to the address after a pause, and returns the last written text. */
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
      // A search makes one entry in the history, not one per keystroke.
      latest.current.change({ text: typed === '' ? undefined : typed }, latest.current.text !== '')
    }
    const sinceMs = performance.now() - sentAt.current
    if (sinceMs > pauseMs) return send()
    const timer = setTimeout(send, pauseMs)
    return () => clearTimeout(timer)
  }, [typed])
  return sent
}

import { type Filter as ClientFilter, KithError } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { type ReactNode, type RefObject, useEffect, useRef, useState } from 'react'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { segmentsQuery, useDefinitions } from '../entity/schema.ts'
import { FilterEditor } from '../filters/filter-editor.tsx'
import type { Filter } from '../filters/filter-tree.ts'
import { Button } from '../ui/button.tsx'
import { Form } from '../ui/form.tsx'
import { Details, Loading, Notice, Problem, Section } from '../ui/page.tsx'
import { useSettled } from '../ui/use-settled.ts'
import { messages } from './messages.ts'
import { countQuery } from './queries.ts'
import type { Change, ListSearch } from './search.ts'

type FilterPanelProps = {
  owner: string
  search: ListSearch
  change: Change
  onClose(): void
  /** The element of the panel. */
  ref?: RefObject<HTMLDivElement | null>
}

/** The editor of the filter above the list. It counts the matches of the filter before it is applied. */
export default function FilterPanel({ owner, search, change, onClose, ref }: FilterPanelProps) {
  const own = useRef<HTMLDivElement>(null)
  const texts = useMessages(messages)
  const { definitions, isLoading } = useDefinitions()
  const hasSegments = useScope('schema:read') && owner === 'people'
  const { data: segments = [], isLoading: isLoadingSegments } = useQuery({ ...segmentsQuery, enabled: hasSegments })
  const isReady = !isLoading && !isLoadingSegments
  const segment = segments.find(({ key }) => key === search.segment)
  const applied = search.filter ?? segment?.filter ?? {}
  const apply = (filter: Filter) => {
    const isEmpty = Object.keys(filter).length === 0
    const isOfSegment = segment !== undefined && JSON.stringify(segment.filter) === JSON.stringify(filter)
    change({
      filter: isEmpty || isOfSegment ? undefined : filter,
      ...(isEmpty && { segment: undefined }),
    })
  }
  return (
    <FocusedPanel ref={ref ?? own} isReady={isReady} onClose={onClose}>
      <Section
        title={texts.filter}
        actions={
          <Button look="quiet" onPress={onClose}>
            {texts.close}
          </Button>
        }
      >
        {isReady ? (
          <FilterDraft
            // When the address changes, by back, another segment or another owner, the editor restarts with its filter.
            key={JSON.stringify([owner, applied, search.segment])}
            applied={applied}
            onApply={apply}
            editor={{ owner, definitions, segments: segments.filter(({ key }) => key !== segment?.key) }}
          />
        ) : (
          <Loading />
        )}
      </Section>
    </FocusedPanel>
  )
}

type FocusedPanelProps = Required<Pick<FilterPanelProps, 'ref' | 'onClose'>> & { isReady: boolean; children: ReactNode }

/** Focuses its first field when it opens, and closes on Escape, unless Escape closes a list of choices. */
function FocusedPanel({ ref, isReady, onClose, children }: FocusedPanelProps) {
  const closesList = useRef(false)
  const hadFocus = useRef(false)
  useEffect(() => {
    // For another owner, the panel loads its data again while the focus is elsewhere.
    if (!isReady || hadFocus.current) return
    hadFocus.current = true
    ref.current?.querySelector('input')?.focus()
  }, [ref, isReady])
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the key is that of the fields in it
    <div
      ref={ref}
      // A list of choices is already closed when the key arrives here.
      onKeyDownCapture={({ target }) => {
        closesList.current = (target as Element).closest('[aria-expanded=true], [role=listbox], [role=menu]') !== null
      }}
      onKeyDown={event => event.key === 'Escape' && !event.defaultPrevented && !closesList.current && onClose()}
    >
      {children}
    </div>
  )
}

type FilterDraftProps = {
  applied: Filter
  onApply(filter: Filter): void
  editor: Pick<Parameters<typeof FilterEditor>[0], 'owner' | 'definitions' | 'segments'>
}

function FilterDraft({ applied, onApply, editor }: FilterDraftProps) {
  const texts = useMessages(messages)
  const [draft, setDraft] = useState<Filter | undefined>(applied)
  const isChanged = JSON.stringify(draft) !== JSON.stringify(applied)
  return (
    <Form onSubmit={() => draft && onApply(draft)} isWide>
      <FilterEditor {...editor} initialFilter={applied} onChange={setDraft} />
      <div className="row centered">
        <Button look="primary" type="submit" isDisabled={!draft || !isChanged}>
          {texts.apply}
        </Button>
        <Button onPress={() => onApply({})} isDisabled={Object.keys(applied).length === 0}>
          {texts.clearFilter}
        </Button>
        <DraftCount owner={editor.owner} draft={draft} />
      </div>
    </Form>
  )
}

const countPauseMs = 300

/** The number of people that match a draft of the filter, or its fault with the place. */
function DraftCount({ owner, draft }: { owner: string; draft: Filter | undefined }) {
  const texts = useMessages(messages)
  const { number } = useFormats()
  const counted = useSettled(JSON.stringify(draft), countPauseMs)
  const filter = counted === undefined ? undefined : (JSON.parse(counted) as ClientFilter)
  const { data, error } = useQuery({ ...countQuery(owner, filter), enabled: filter !== undefined })
  if (filter === undefined) return null
  if (error) return error instanceof KithError && error.status === 400 ? <Problem error={error} /> : null
  const { count, warnings = [] } = data ?? {}
  return (
    <>
      <p role="status" className="muted">
        {count === undefined
          ? `${texts.counting}…`
          : `${texts.matching} ${texts.kinds[owner === 'people' ? 'people' : 'records'].count(count, number(count))}`}
      </p>
      {warnings.length > 0 && (
        <Notice kind="caution">
          <Details details={warnings} />
        </Notice>
      )}
    </>
  )
}

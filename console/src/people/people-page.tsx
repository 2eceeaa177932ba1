import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { lazy, Suspense, useCallback, useState } from 'react'
import { useShortcut } from '../app/keys.tsx'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { Button } from '../ui/button.tsx'
import { Loading, Page } from '../ui/page.tsx'
import { chosenColumns, storeColumns } from './chosen-columns.ts'
import { messages } from './messages.ts'
import { countQuery, listOf, type PeopleQuery, peopleQuery } from './people-query.ts'
import { PeopleTable } from './people-table.tsx'
import type { PeopleSearch } from './search.ts'
import { Toolbar } from './toolbar.tsx'

// Dialogs and the filter are loaded when they are opened first, so that the list comes early.
const FilterPanel = lazy(() => import('./filter-panel.tsx'))
const ColumnsDialog = lazy(() => import('./columns-dialog.tsx'))
const ExportDialog = lazy(() => import('./export-dialog.tsx'))
const PersonDialog = lazy(() => import('./person-dialog.tsx'))

type OpenDialog = 'columns' | 'export' | 'person'

/** The list of people. Its address has its whole state. */
export function PeoplePage() {
  const texts = useMessages(messages)
  const search = useSearch({ from: '/shell/people' })
  const navigate = useNavigate({ from: '/people' })
  const canWrite = useScope('people:write')
  const [opened, setOpened] = useState<OpenDialog>()
  const [isFilterOpen, setFilterOpen] = useState(false)
  // A change of the list shows its beginning. The router would keep the place that was scrolled to.
  const change = useCallback(
    (changed: Partial<Record<keyof PeopleSearch, unknown>>, replace = false) =>
      navigate({ search: before => ({ ...before, ...changed }) as PeopleSearch, replace, resetScroll: false }),
    [navigate],
  )
  const names = chosenColumns(search.columns)
  const query = listOf(search, names)
  const list = useInfiniteQuery(peopleQuery(query))
  const close = () => setOpened(undefined)
  useShortcut('f', texts.keyFilter, () => setFilterOpen(true))
  useShortcut('n', texts.keyNew, () => canWrite && setOpened('person'))
  return (
    <Page
      title={texts.people}
      subtitle={<Count query={query} list={list} />}
      actions={
        <>
          <Button onPress={() => setOpened('columns')}>{texts.columns}</Button>
          <Button onPress={() => setOpened('export')}>{texts.export}</Button>
          {canWrite && (
            <Button look="primary" onPress={() => setOpened('person')}>
              {texts.newPerson}
            </Button>
          )}
        </>
      }
    >
      <Toolbar
        search={search}
        change={change}
        isFilterOpen={isFilterOpen}
        onFilter={() => setFilterOpen(!isFilterOpen)}
      />
      <Suspense fallback={<Loading />}>
        {isFilterOpen && <FilterPanel search={search} change={change} onClose={() => setFilterOpen(false)} />}
      </Suspense>
      <PeopleTable search={search} query={query} list={list} columns={names} change={change} />
      <Suspense>
        {opened === 'columns' && (
          <ColumnsDialog
            names={names}
            onClose={close}
            onChange={chosen => {
              storeColumns(chosen)
              change({ columns: chosen.join(',') }, true)
            }}
          />
        )}
        {opened === 'export' && <ExportDialog query={query} columns={names} onClose={close} />}
        {opened === 'person' && <PersonDialog onClose={close} />}
      </Suspense>
    </Page>
  )
}

type List = ReturnType<typeof useInfiniteQuery<unknown>>

/** The number of people in the list. The exact one comes after the first rows. */
function Count({
  query,
  list,
}: {
  query: PeopleQuery
  list: Pick<List, 'isSuccess' | 'isError' | 'isPlaceholderData' | 'hasNextPage'> & { data?: unknown }
}) {
  const texts = useMessages(messages)
  const { number } = useFormats()
  const isSearch = query.text !== ''
  const { data: counted, isError } = useQuery({ ...countQuery(query.filter), enabled: list.isSuccess && !isSearch })
  const pages = (list.data as { pages: { items: unknown[] }[] } | undefined)?.pages ?? []
  const shown = pages.reduce((sum, { items }) => sum + items.length, 0)
  const text = () => {
    if (!isSearch)
      return counted === undefined
        ? isError || list.isError
          ? ''
          : `${texts.counting}…`
        : texts.count(counted, number(counted))
    if (!list.isSuccess || list.isPlaceholderData) return ''
    return list.hasNextPage ? texts.atLeast(number(shown)) : texts.count(shown, number(shown))
  }
  return (
    <span role="status" aria-live="polite">
      {text()}
    </span>
  )
}

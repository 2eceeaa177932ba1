import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { lazy, Suspense, useRef, useState } from 'react'
import { useShortcut } from '../app/keys.tsx'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { ownerName } from '../entity/address.ts'
import { scopesOf } from '../entity/entities.ts'
import { useDefinitions } from '../entity/schema.ts'
import { Button, LinkButton } from '../ui/button.tsx'
import { Loading, Page, Problem } from '../ui/page.tsx'
import { useChosenColumns } from './chosen-columns.ts'
import { ListTable } from './list-table.tsx'
import { messages } from './messages.ts'
import { countQuery, type ListQuery, type ListResult, listOf, listQuery } from './queries.ts'
import type { Change, ListSearch } from './search.ts'
import { Toolbar } from './toolbar.tsx'

// Dialogs and the filter load when they are first opened, so that the list appears early.
const FilterPanel = lazy(() => import('./filter-panel.tsx'))
const ColumnsDialog = lazy(() => import('./columns-dialog.tsx'))
const ExportDialog = lazy(() => import('./export-dialog.tsx'))
const CreateDialog = lazy(() => import('./create-dialog.tsx'))

/** The list of people, or of the records of a stack. */
export function ListPage() {
  const { stackKey } = useParams({ strict: false })
  const { definitions, isLoading, error, refetch } = useDefinitions()
  if (stackKey === undefined) return <List key="people" owner="people" />
  // The columns of records depend on the schema.
  if (isLoading) return <Loading />
  if (!error) return <List key={stackKey} owner={stackKey} stackName={ownerName(stackKey, definitions, stackKey)} />
  return (
    <Page title={stackKey}>
      <Problem error={error} onRetry={() => refetch()} />
    </Page>
  )
}

/** A list. The address has its whole state. */
function List({ owner, stackName }: { owner: string; stackName?: string }) {
  const texts = useMessages(messages)
  const kind = texts.kinds[stackName === undefined ? 'people' : 'records']
  const search = useSearch({ strict: false }) as ListSearch
  const navigate = useNavigate()
  const canWrite = useScope(scopesOf(owner).write)
  const [opened, setOpened] = useState<'columns' | 'export'>()
  const [isFilterOpen, setFilterOpen] = useState(false)
  // A changed list starts at its beginning. The router would keep the scroll position.
  const change: Change = (changed, replace = false) =>
    navigate({ to: '.', search: before => ({ ...before, ...changed }) as never, replace, resetScroll: false })
  const columns = useChosenColumns(owner, search, change)
  const query = listOf(owner, search, columns.names)
  const list = useInfiniteQuery(listQuery(query))
  const close = () => setOpened(undefined)
  const create = () => change({ create: 'yes' })
  const filterButton = useRef<HTMLButtonElement>(null)
  const closeFilter = () => {
    setFilterOpen(false)
    filterButton.current?.focus()
  }
  const filterPanel = useRef<HTMLDivElement>(null)
  useShortcut('f', texts.keyFilter, () => {
    setFilterOpen(true)
    // The panel focuses its first field when it opens. It may be open already.
    filterPanel.current?.querySelector('input')?.focus()
  })
  useShortcut('n', kind.create, () => canWrite && create())
  return (
    <Page
      title={stackName ?? kind.title}
      subtitle={
        <>
          {stackName !== undefined && (
            <>
              <Link to="/records">{kind.title}</Link> · <code>{owner}</code> ·{' '}
            </>
          )}
          <Count query={query} list={list} />
        </>
      }
      actions={
        <>
          <Button onPress={() => setOpened('columns')}>{texts.columns}</Button>
          <LinkButton
            to="/reports"
            search={{ ...(owner !== 'people' && { owner }), ...(query.filter && { filter: query.filter }) }}
          >
            {texts.report}
          </LinkButton>
          <Button onPress={() => setOpened('export')}>{texts.export}</Button>
          {canWrite && (
            <Button look="primary" onPress={create}>
              {kind.create}
            </Button>
          )}
        </>
      }
    >
      <Toolbar
        owner={owner}
        search={search}
        change={change}
        isFilterOpen={isFilterOpen}
        onFilter={() => setFilterOpen(!isFilterOpen)}
        filterButton={filterButton}
      />
      <Suspense fallback={<Loading />}>
        {isFilterOpen && (
          <FilterPanel ref={filterPanel} owner={owner} search={search} change={change} onClose={closeFilter} />
        )}
      </Suspense>
      <ListTable {...{ search, query, list, columns, change }} />
      <Suspense>
        {opened === 'columns' && <ColumnsDialog owner={owner} columns={columns} onClose={close} />}
        {opened === 'export' && <ExportDialog query={query} columns={columns.names} onClose={close} />}
        {search.create && canWrite && (
          <CreateDialog owner={owner} onClose={() => change({ create: undefined }, true)} />
        )}
      </Suspense>
    </Page>
  )
}

/** The number of entities in the list. The exact number loads after the first rows. */
function Count({ query: { owner, text, filter }, list }: { query: ListQuery; list: ListResult }) {
  const texts = useMessages(messages)
  const { count, atLeast } = texts.kinds[owner === 'people' ? 'people' : 'records']
  const { number } = useFormats()
  const isSearch = text !== ''
  const { data: counted, isError } = useQuery({ ...countQuery(owner, filter), enabled: list.isSuccess && !isSearch })
  const shown = list.data?.pages.reduce((sum, { items }) => sum + items.length, 0) ?? 0
  const countText = () => {
    if (!isSearch && counted !== undefined) return count(counted.count, number(counted.count))
    if (!isSearch) return isError || list.isError ? '' : `${texts.counting}…`
    if (!list.isSuccess || list.isPlaceholderData) return ''
    return list.hasNextPage ? atLeast(number(shown)) : count(shown, number(shown))
  }
  return (
    <span role="status" aria-live="polite">
      {countText()}
    </span>
  )
}

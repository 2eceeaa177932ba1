import type { Attribute } from '@kith/client'
import { type FocusEvent, lazy, Suspense, useEffect, useMemo, useRef, useState } from 'react'
import { useWrite } from '../app/client.ts'
import { useShortcut } from '../app/keys.tsx'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope, useSession } from '../app/session.tsx'
import { messages as bulkMessages } from '../bulk/messages.ts'
import { useSelection } from '../bulk/selection.ts'
import { SelectionBar } from '../bulk/selection-bar.tsx'
import { scopesOf } from '../entity/entities.ts'
import { attributesOf, useDefinitions, useIsSearchable } from '../entity/schema.ts'
import { attributePrefix } from '../filters/field-types.ts'
import { Button, LinkButton } from '../ui/button.tsx'
import { EmptyState, Loading, Problem } from '../ui/page.tsx'
import { type Sort, VirtualTable } from '../ui/virtual-table.tsx'
import type { ChosenColumns } from './chosen-columns.ts'
import { nameOf, useColumns } from './columns.tsx'
import styles from './list.module.css'
import { messages } from './messages.ts'
import type { ListQuery, ListResult, Row } from './queries.ts'
import { type Change, type ListSearch, sortOf, sortText } from './search.ts'

const IndexDialog = lazy(() => import('./index-dialog.tsx'))

type ListTableProps = {
  search: ListSearch
  query: ListQuery
  list: ListResult
  columns: ChosenColumns
  change: Change
}

/** The rows of the list, or why there are none. */
export function ListTable({ search, query, list, columns: chosenColumns, change }: ListTableProps) {
  const texts = useMessages(messages)
  const { owner } = query
  const { definitions } = useDefinitions()
  const [unindexed, setUnindexed] = useState<Attribute>()
  const columns = useColumns(owner, chosenColumns.names)
  const { data, error, isPlaceholderData, hasNextPage, isFetchingNextPage, fetchNextPage, refetch } = list
  const rows = useMemo(() => data?.pages.flatMap(({ items }) => items) ?? [], [data])
  const position = usePosition(query, rows)
  const focus = useKeptFocus(position.listKey, isPlaceholderData)
  const canWrite = useScope(scopesOf(owner).write)
  const bulkTexts = useMessages(bulkMessages)
  const chosen = useSelection(position.listKey, rows)
  useShortcut('x', bulkTexts.keyChoose, () => canWrite && chosen.toggle(position.active ?? 0, false))
  const sort = (next: Sort) => {
    const isAttribute = next.field.startsWith(attributePrefix)
    const attribute = isAttribute && attributesOf(definitions, owner).get(next.field.slice(attributePrefix.length))
    if (attribute && !attribute.indexed) setUnindexed(attribute)
    else change({ sort: sortText(next), text: undefined })
  }
  const isEmpty = data !== undefined && !isPlaceholderData && rows.length === 0 && !hasNextPage
  return (
    <>
      {error && <Problem error={error} onRetry={() => (data ? fetchNextPage() : refetch())} />}
      {isEmpty && <NothingListed query={query} change={change} />}
      {!data && !error && <Loading />}
      {canWrite && <SelectionBar query={query} chosen={chosen} />}
      {rows.length > 0 && (
        <div
          className={isPlaceholderData ? `${styles.list} ${styles.stale}` : styles.list}
          aria-busy={isPlaceholderData}
          {...focus}
        >
          <VirtualTable<Row>
            key={position.listKey}
            label={texts.kinds[owner === 'people' ? 'people' : 'records'].title}
            hasCards
            columns={columns}
            rows={rows}
            rowKey={rowKey}
            hasMore={hasNextPage && !error}
            // A new function for each page lets the table ask again after a page without a row in sight.
            onEndReached={() => !isFetchingNextPage && !isPlaceholderData && fetchNextPage()}
            sort={query.text === '' ? sortOf(search) : undefined}
            onSort={sort}
            widths={chosenColumns.widths}
            onResize={chosenColumns.resize}
            choice={
              canWrite
                ? {
                    isChosen: row => chosen.isChosen(row.id),
                    toggle: chosen.toggle,
                    state: chosen.count === 0 ? 'none' : chosen.count < rows.length ? 'some' : 'all',
                    toggleAll: chosen.toggleLoaded,
                    labels: { row: row => bulkTexts.chooseRow(nameOf(row) ?? row.id), all: bulkTexts.chooseLoaded },
                  }
                : undefined
            }
            activeIndex={position.active}
          />
        </div>
      )}
      <Suspense>
        {unindexed && (
          <IndexDialog
            attribute={unindexed}
            onClose={() => setUnindexed(undefined)}
            onIndexed={() => {
              setUnindexed(undefined)
              change({ sort: attributePrefix + unindexed.key, text: undefined })
            }}
          />
        )}
      </Suspense>
    </>
  )
}

const rowKey = ({ id }: Row) => id

/** The row that the keys j and k have reached. In each list it starts before the first row. */
function usePosition(query: ListQuery, rows: readonly Row[]) {
  const texts = useMessages(messages)
  const listKey = JSON.stringify([query.text, query.filter, query.sort])
  const [reached, setReached] = useState({ listKey, index: -1 })
  const index = reached.listKey === listKey ? reached.index : -1
  const move = (by: number) =>
    rows.length > 0 && setReached({ listKey, index: Math.max(0, Math.min(rows.length - 1, index + by)) })
  useShortcut('j', texts.keyNext, () => move(1))
  useShortcut('k', texts.keyPrevious, () => move(-1))
  return { listKey, active: index < 0 ? undefined : index }
}

/**
 * Focuses the first row if the focused row disappeared with its list. The focus stays in the results of a search while
 * better results arrive.
 */
function useKeptFocus(listKey: string, isPlaceholderData: boolean) {
  const list = useRef<HTMLDivElement>(null)
  const focused = useRef<Element>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: both tell that other rows have replaced those of before
  useEffect(() => {
    if (!focused.current || focused.current.isConnected || document.activeElement !== document.body) return
    list.current?.querySelector<HTMLElement>('[role=table] [role=cell] a')?.focus()
  }, [listKey, isPlaceholderData])
  return {
    ref: list,
    onFocus: ({ target }: FocusEvent) => {
      focused.current = target
    },
    onBlur: ({ target }: FocusEvent) => {
      if (target.isConnected) focused.current = null
    },
  }
}

/** The reason why the list is empty, and how to begin. */
function NothingListed({ query: { owner, text, filter }, change }: { query: ListQuery; change: Change }) {
  const texts = useMessages(messages)
  const isOfPeople = owner === 'people'
  const kind = texts.kinds[isOfPeople ? 'people' : 'records']
  const { scopes } = useSession()
  const isSearchable = useIsSearchable(owner)
  if (text !== '')
    return (
      <EmptyState title={kind.nothingFound(text)}>
        <p>{isSearchable ? texts.nothingFoundAdvice : texts.identifierSearchHelp}</p>
        <Button onPress={() => change({ text: undefined })}>{texts.clearSearch}</Button>
      </EmptyState>
    )
  if (filter)
    return (
      <EmptyState title={kind.nothingMatches}>
        <Button onPress={() => change({ filter: undefined, segment: undefined })}>{texts.clearFilter}</Button>
      </EmptyState>
    )
  return (
    <EmptyState title={kind.empty}>
      {scopes.includes(scopesOf(owner).write) && (
        <div className={`row centered ${styles.begin}`}>
          <LinkButton to="/import" look="primary">
            {texts.importFile}
          </LinkButton>
          {isOfPeople && shopScopes.every(scope => scopes.includes(scope)) && <FillShop />}
        </div>
      )}
    </EmptyState>
  )
}

const shopScopes = ['people:write', 'records:write', 'schema:read', 'schema:write']

/** Offers a sample shop to an organization without people. */
function FillShop() {
  const texts = useMessages(messages)
  const formats = useFormats()
  const [done, setDone] = useState(0)
  // Every query may show something of the shop.
  const fill = useWrite(async () => (await import('./fill-shop.ts')).fillShop(setDone), { refresh: [[]] })
  return (
    <>
      <Button onPress={() => fill.mutate()} isPending={fill.isPending}>
        {texts.fillShop}
      </Button>
      {fill.isPending && <p role="status">{texts.fillingShop(formats.percent(Math.min(done, 1)))}</p>}
      {fill.error && <Problem error={fill.error} onRetry={() => fill.mutate()} />}
    </>
  )
}

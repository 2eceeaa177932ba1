import type { Attribute, Definitions, Filter } from '@kith/client'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useCallback, useMemo, useState } from 'react'
import { useShortcut } from '../app/keys.tsx'
import { type Formats, useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { FieldValue } from '../entity/field-value.tsx'
import { attributeField } from '../entity/fields.ts'
import { useDefinitions } from '../schema/definitions.ts'
import { Button } from '../ui/button.tsx'
import { Problem } from '../ui/notice.tsx'
import { Badge, EmptyState, Loading, Page } from '../ui/page.tsx'
import { type Column, VirtualTable } from '../ui/virtual-table.tsx'
import { FilterDialog } from './filter-dialog.tsx'
import { messages, type RecordTexts } from './messages.ts'
import { NewRecordDialog } from './new-record-dialog.tsx'
import { countQuery, type ListedRecord, listQuery } from './record-queries.ts'
import styles from './records.module.css'
import { SearchField } from './search-field.tsx'

const route = getRouteApi('/shell/records/$stackKey')

/** The records of a stack. */
export function RecordsPage() {
  const { stackKey } = route.useParams()
  return useScope('schema:read') ? (
    <WithSchema stackKey={stackKey} />
  ) : (
    <Records key={stackKey} stackKey={stackKey} definitions={noDefinitions} />
  )
}

const noDefinitions: Definitions = { stacks: [], attributes: [], consent_types: [] }

/** The columns follow from the schema, so the list waits for it. */
function WithSchema({ stackKey }: { stackKey: string }) {
  const { data, error, refetch } = useDefinitions()
  if (data) return <Records key={stackKey} stackKey={stackKey} definitions={data} />
  return <Page title={stackKey}>{error ? <Problem error={error} onRetry={() => refetch()} /> : <Loading />}</Page>
}

function Records({ stackKey, definitions }: { stackKey: string; definitions: Definitions }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const mayWrite = useScope('records:write')
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const [dialog, setDialog] = useState<'filter' | 'new'>()
  const attributes = useMemo(
    () => definitions.attributes.filter(({ owner, state }) => owner === stackKey && state === 'active'),
    [definitions, stackKey],
  )
  const { data: count } = useQuery({ ...countQuery(stackKey, search.filter), enabled: !search.text })
  useShortcut('f', texts.filter, () => setDialog('filter'))
  useShortcut('n', texts.newRecord, () => mayWrite && setDialog('new'))
  const stack = definitions.stacks.find(({ key }) => key === stackKey)
  const setFilter = (filter: Filter | undefined) => {
    setDialog(undefined)
    navigate({ search: ({ filter: _, ...before }) => (filter ? { ...before, filter } : before) })
  }
  const isSearchable = attributes.some(({ searchable }) => searchable)
  return (
    <Page
      title={stack?.name ?? stackKey}
      subtitle={
        <>
          <Link to="/records">{texts.records}</Link> · <code>{stackKey}</code>
          {count && !search.text && ` · ${texts.count(formats.number(count.count), count.count)}`}
        </>
      }
      actions={
        <>
          {isSearchable && <SearchField key={search.text} text={search.text ?? ''} />}
          <Button onPress={() => setDialog('filter')}>{search.filter ? texts.changeFilter : texts.filter}</Button>
          {search.filter && <Button onPress={() => setFilter(undefined)}>{texts.removeFilter}</Button>}
          {mayWrite && (
            <Button look="primary" onPress={() => setDialog('new')}>
              {texts.newRecord}
            </Button>
          )}
        </>
      }
    >
      <RecordTable stackKey={stackKey} attributes={attributes} total={search.text ? undefined : count?.count} />
      {dialog === 'filter' && (
        <FilterDialog
          owner={stackKey}
          definitions={definitions}
          filter={search.filter}
          onClose={() => setDialog(undefined)}
          onApply={setFilter}
        />
      )}
      {dialog === 'new' && (
        <NewRecordDialog stackKey={stackKey} attributes={attributes} onClose={() => setDialog(undefined)} />
      )}
    </Page>
  )
}

type RecordTableProps = { stackKey: string; attributes: readonly Attribute[]; total: number | undefined }

function RecordTable({ stackKey, attributes, total }: RecordTableProps) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const keys = useMemo(() => attributes.map(({ key }) => key), [attributes])
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetching, isFetchingNextPage } = useInfiniteQuery(
    listQuery(stackKey, search, keys),
  )
  const rows = useMemo(() => data?.pages.flatMap(({ items }) => items) ?? [], [data])
  const columns = useMemo(() => columnsOf(stackKey, attributes, texts, formats), [stackKey, attributes, texts, formats])
  const readNext = useCallback(() => {
    if (!isFetchingNextPage) fetchNextPage()
  }, [fetchNextPage, isFetchingNextPage])
  if (!data) return error ? <Problem error={error} onRetry={() => refetch()} /> : <Loading />
  if (rows.length === 0 && !isFetching && !error)
    return <NoRecords isFiltered={Boolean(search.text || search.filter)} />
  const sort = search.sort ? { field: search.sort, direction: search.direction ?? ('asc' as const) } : undefined
  return (
    <>
      {error && <Problem error={error} onRetry={() => refetch()} />}
      <VirtualTable
        label={texts.records}
        columns={columns}
        rows={rows}
        rowKey={({ record_id }) => record_id}
        hasMore={hasNextPage && !error}
        onEndReached={readNext}
        total={total}
        sort={sort}
        {...(!search.text && {
          onSort: ({ field, direction }) =>
            navigate({
              search: ({ direction: _, ...before }) => ({
                ...before,
                sort: field,
                ...(direction === 'desc' && { direction }),
              }),
            }),
        })}
      />
    </>
  )
}

function NoRecords({ isFiltered }: { isFiltered: boolean }) {
  const texts = useMessages(messages)
  return (
    <EmptyState title={isFiltered ? texts.noMatch : texts.noRecords}>
      <p>{isFiltered ? texts.noMatchAdvice : texts.noRecordsAdvice}</p>
    </EmptyState>
  )
}

/** The columns: the identifier, each attribute, and the times. Indexed attributes with one value sort. */
function columnsOf(
  stackKey: string,
  attributes: readonly Attribute[],
  texts: RecordTexts,
  formats: Formats,
): Column<ListedRecord>[] {
  const timeColumn = (key: 'created_at' | 'updated_at'): Column<ListedRecord> => ({
    key,
    header: texts.times[key],
    minWidth: 170,
    sortField: key,
    render: record => formats.dateTime(record[key]),
  })
  const valuesColumn: Column<ListedRecord> = {
    key: 'values',
    header: texts.values,
    minWidth: 240,
    render: ({ attribute_values }) => <code>{JSON.stringify(attribute_values).slice(0, maxCellCharacters)}</code>,
  }
  return [
    {
      key: 'external_id',
      header: texts.identifier,
      minWidth: 180,
      sortField: 'external_id',
      render: ({ record_id, external_id, state }) => (
        <>
          <Link to="/records/$stackKey/$recordId" params={{ stackKey, recordId: record_id }}>
            <bdi>{external_id ?? record_id}</bdi>
          </Link>{' '}
          {state === 'placeholder' && <Badge kind="caution">{texts.placeholder}</Badge>}
        </>
      ),
    },
    ...attributes.map(
      (attribute): Column<ListedRecord> => ({
        key: `attribute ${attribute.key}`,
        header: attribute.name,
        minWidth: attribute.cardinality === 'many' || attribute.type === 'datetime' ? 200 : 140,
        ...(attribute.type === 'number' && attribute.cardinality === 'one' && { align: 'end' as const }),
        ...(attribute.indexed &&
          attribute.cardinality === 'one' &&
          attribute.type !== 'person' &&
          attribute.type !== 'stack' && { sortField: `attribute_values.${attribute.key}` }),
        render: ({ attribute_values }) => <Cell attribute={attribute} value={attribute_values[attribute.key]} />,
      }),
    ),
    ...(attributes.length === 0 ? [valuesColumn] : []),
    timeColumn('created_at'),
    timeColumn('updated_at'),
  ]
}

/** A cell shows the beginning of a long text, and the first targets of a relationship. */
const maxCellCharacters = 200
const maxCellItems = 5

function Cell({ attribute, value }: { attribute: Attribute; value: unknown }) {
  if (value === undefined || value === null) return null
  if (typeof value === 'string' && value.length > maxCellCharacters) return <>{value.slice(0, maxCellCharacters)}…</>
  if (Array.isArray(value) && value.length > maxCellItems)
    return (
      <span className={styles.cell!}>
        <FieldValue field={attributeField(attribute, value)} value={value.slice(0, maxCellItems)} /> … {value.length}
      </span>
    )
  if (typeof value === 'object' && !Array.isArray(value))
    return <code>{JSON.stringify(value).slice(0, maxCellCharacters)}</code>
  return (
    <span className={styles.cell!}>
      <FieldValue field={attributeField(attribute, value)} value={value} />
    </span>
  )
}

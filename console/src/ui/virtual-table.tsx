import {
  type KeyboardEvent,
  memo,
  type ReactNode,
  type RefObject,
  useEffect,
  useRef,
  useState,
  useSyncExternalStore,
} from 'react'
import { useMessages } from '../app/language.tsx'
import { Icon } from './icon.tsx'
import { messages } from './messages.ts'
import styles from './virtual-table.module.css'

export type Column<Row> = {
  key: string
  header: string
  /** The minimum width in pixels. Columns share the rest of the width by `grow`, 1 by default. */
  minWidth: number
  grow?: number
  align?: 'end'
  /** The API field for sorting the column. Without it, the header does not sort. */
  sortField?: string
  render(row: Row): ReactNode
}

/** The choice of rows, by a column of checkboxes. */
export type RowChoice<Row> = {
  isChosen(row: Row): boolean
  /**
   * Chooses a row or not, or with `isRange` all rows from the last chosen one. The function stays the same while the
   * table is shown.
   */
  toggle(index: number, isRange: boolean): void
  /** The checkbox of the header: of all rows, of some, or of none. */
  state: 'none' | 'some' | 'all'
  toggleAll(): void
  labels: { row(row: Row): string; all: string }
}

export type Sort = { field: string; direction: 'asc' | 'desc' }

type VirtualTableProps<Row> = {
  /** The name of the table, for screen readers. */
  label: string
  columns: readonly Column<Row>[]
  rows: readonly Row[]
  rowKey(row: Row): string
  /** Whether the service has more rows. `onEndReached` then loads the next page before the end comes into sight. */
  hasMore?: boolean
  onEndReached?: () => void
  /** The number of all rows, if known. */
  total?: number | undefined
  sort?: Sort | undefined
  onSort?: (sort: Sort) => void
  /** The chosen widths of columns in pixels, by their keys, and the handler of a dragged border. */
  widths?: Readonly<Record<string, number>> | undefined
  onResize?: ((key: string, width: number | undefined) => void) | undefined
  /** Makes rows selectable. */
  choice?: RowChoice<Row> | undefined
  /** Whether each row becomes a card in a window as narrow as a telephone. */
  hasCards?: boolean
  /** The row whose first link gets the focus when this changes. */
  activeIndex?: number | undefined
}

/** The height of a header and of a row, and the height of a card, which has its first cell above the others. */
const [lineHeight, cardHeight] = [40, 64]
/** The width of the column of checkboxes. */
const choiceWidth = 44
/** In pixels: the width of a header's character, of its padding with the icon, and the maximum width of a header. */
const [characterWidth, headerSpace, maxHeaderWidth] = [7.2, 46, 260]

/** The minimum width of a column. It does not clip the header in any language, except the long name of an attribute. */
const minWidthOf = ({ header, minWidth }: { header: string; minWidth: number }): number =>
  Math.max(minWidth, Math.min(maxHeaderWidth, Math.ceil(header.length * characterWidth + headerSpace)))

/** The next page loads when at most this many rows are left below the last visible one. */
const rowsAhead = 40

/** A table that renders only the visible rows, so a million rows scroll like fifty. */
export function VirtualTable<Row>({
  label,
  columns,
  rows,
  rowKey,
  hasMore = false,
  onEndReached,
  total,
  sort,
  onSort,
  widths = {},
  onResize,
  choice,
  hasCards = false,
  activeIndex,
}: VirtualTableProps<Row>) {
  const texts = useMessages(messages)
  const scroller = useRef<HTMLDivElement>(null)
  const areCards = useNarrow() && hasCards
  const rowHeight = areCards ? cardHeight : lineHeight
  const { first, last } = useVisibleRows(scroller, rows.length, rowHeight)
  useEffect(() => {
    if (hasMore && last >= rows.length - rowsAhead) onEndReached?.()
  }, [hasMore, last, rows.length, onEndReached])
  useEffect(() => {
    if (activeIndex === undefined) return
    const element = scroller.current!
    const top = activeIndex * rowHeight
    // The header covers the first visible row.
    const least = top + lineHeight + rowHeight - element.clientHeight
    if (element.scrollTop > top || element.scrollTop < least) element.scrollTop = element.scrollTop > top ? top : least
    // A row that was out of sight exists after the next frame.
    const frame = requestAnimationFrame(() => focusRow(scroller.current, activeIndex))
    return () => cancelAnimationFrame(frame)
  }, [activeIndex, rowHeight])
  const tracks = columns.map(column => {
    const width = widths[column.key]
    if (areCards) return 'max-content'
    return width ? `${width}px` : `minmax(${minWidthOf(column)}px, ${column.grow ?? 1}fr)`
  })
  const template = [...(choice ? [`${choiceWidth}px`] : []), ...tracks].join(' ')
  const widthOf = (column: Column<Row>) => widths[column.key] ?? minWidthOf(column)
  const minWidth = columns.reduce((sum, column) => sum + widthOf(column), choice ? choiceWidth : 0)
  return (
    <section
      className={styles.scroller}
      ref={scroller}
      tabIndex={0}
      aria-label={label}
      // The router restores the scroll position of the list under this name.
      data-scroll-restoration-id={label}
    >
      {/* Elements of a table cannot be placed freely, so roles tell screen readers what they are. */}
      <div
        role="table"
        aria-label={label}
        aria-rowcount={total === undefined ? -1 : total + 1}
        className={areCards ? styles.cards : undefined}
        style={areCards ? undefined : { minWidth }}
      >
        <div role="rowgroup" className={styles.head}>
          <div
            role="row"
            aria-rowindex={1}
            className={styles.row}
            style={{ gridTemplateColumns: template, height: lineHeight }}
          >
            {choice && (
              <div role="columnheader" className={styles.choice}>
                <input
                  type="checkbox"
                  aria-label={choice.labels.all}
                  checked={choice.state === 'all'}
                  ref={box => {
                    if (box) box.indeterminate = choice.state === 'some'
                  }}
                  onChange={choice.toggleAll}
                />
              </div>
            )}
            {columns.map(column => (
              <ColumnHeader key={column.key} column={column} sort={sort} onSort={onSort} onResize={onResize} />
            ))}
          </div>
        </div>
        <div role="rowgroup" className={styles.body} style={{ height: rows.length * rowHeight }}>
          {rows.slice(first, last + 1).map((row, offset) => (
            <TableRow
              key={rowKey(row)}
              row={row}
              index={first + offset}
              template={template}
              height={rowHeight}
              columns={columns}
              isChosen={choice?.isChosen(row)}
              onChoose={choice?.toggle}
              choiceLabel={choice?.labels.row(row)}
            />
          ))}
        </div>
      </div>
      {hasMore && (
        <p className={styles.more} role="status">
          {texts.loadingMore}…
        </p>
      )}
    </section>
  )
}

type TableRowProps<Row> = {
  row: Row
  index: number
  template: string
  height: number
  columns: readonly Column<Row>[]
  isChosen: boolean | undefined
  onChoose: RowChoice<Row>['toggle'] | undefined
  choiceLabel: string | undefined
}

/** A row is rendered when it comes into sight, not with every scroll step. */
const TableRow = memo(DataRow) as typeof DataRow

function DataRow<Row>({ row, index, template, height, columns, isChosen, onChoose, choiceLabel }: TableRowProps<Row>) {
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      className={`${styles.row} ${styles.data}`}
      data-chosen={isChosen || undefined}
      style={{ gridTemplateColumns: template, height, transform: `translateY(${index * height}px)` }}
    >
      {onChoose && (
        <div role="cell" className={styles.choice}>
          <input
            type="checkbox"
            aria-label={choiceLabel}
            checked={isChosen ?? false}
            onChange={({ nativeEvent }) => onChoose(index, (nativeEvent as MouseEvent).shiftKey)}
            onKeyDown={event => moveChoice(event, index, onChoose)}
          />
        </div>
      )}
      {columns.map(({ key, align, render }) => (
        <div key={key} role="cell" className={align ? `${styles.cell} ${styles.end}` : styles.cell}>
          {render(row)}
        </div>
      ))}
    </div>
  )
}

/** The arrow keys move to the checkbox of the next row. With Shift they also choose it. */
function moveChoice(
  event: KeyboardEvent<HTMLInputElement>,
  index: number,
  onChoose: (index: number, isRange: boolean) => void,
) {
  const by = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
  const table = event.currentTarget.closest('[role=table]')
  const next = table?.querySelector<HTMLElement>(`[aria-rowindex="${index + by + 2}"] [role=cell] input`)
  if (by === 0 || !next) return
  event.preventDefault()
  next.focus()
  if (event.shiftKey) onChoose(index + by, true)
}

function focusRow(table: Element | null, index: number) {
  table?.querySelector<HTMLElement>(`[aria-rowindex="${index + 2}"] a`)?.focus({ preventScroll: true })
}

/** The minimum width of a dragged column, in pixels. */
const minDragged = 60

/** The border of a header, which a pointer drags to change the width. A double click restores the width. */
function Border({ onDrag, onReset }: { onDrag(width: number): void; onReset(): void }) {
  const start = useRef<number>(undefined)
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the dialog of the columns has buttons for the keyboard
    <span
      className={styles.border}
      onPointerDown={({ currentTarget, pointerId, clientX }) => {
        currentTarget.setPointerCapture(pointerId)
        start.current = clientX - currentTarget.parentElement!.offsetWidth
      }}
      onPointerMove={({ clientX }) =>
        start.current !== undefined && onDrag(Math.max(minDragged, clientX - start.current))
      }
      onPointerUp={() => {
        start.current = undefined
      }}
      onDoubleClick={onReset}
    />
  )
}

function ColumnHeader<Row>({
  column: { key, header, align, sortField },
  sort,
  onSort,
  onResize,
}: {
  column: Column<Row>
  sort: Sort | undefined
  onSort: ((sort: Sort) => void) | undefined
  onResize: VirtualTableProps<Row>['onResize']
}) {
  const isSorted = sortField !== undefined && sort?.field === sortField
  const sorted = isSorted ? (sort.direction === 'asc' ? 'ascending' : 'descending') : undefined
  const className = align ? `${styles.cell} ${styles.end}` : styles.cell
  return (
    <div role="columnheader" className={className} aria-sort={sorted}>
      {sortField && onSort ? (
        <button
          type="button"
          className={styles.sort}
          onClick={() => onSort({ field: sortField, direction: isSorted && sort.direction === 'asc' ? 'desc' : 'asc' })}
        >
          {header}
          <span>
            <Icon name={isSorted ? (sort.direction === 'asc' ? 'ascending' : 'descending') : 'sortable'} />
          </span>
        </button>
      ) : (
        header
      )}
      {onResize && <Border onDrag={width => onResize(key, width)} onReset={() => onResize(key, undefined)} />}
    </div>
  )
}

const narrow = matchMedia('(max-width: 480px)')

/** Whether the window is as narrow as a telephone. */
const useNarrow = (): boolean =>
  useSyncExternalStore(
    onChange => {
      narrow.addEventListener('change', onChange)
      return () => narrow.removeEventListener('change', onChange)
    },
    () => narrow.matches,
  )

/** The number of rows rendered above and below the visible ones. */
const overscan = 12

/** The visible rows of a scrolled element, from `first` to `last`. All rows have the same height. */
export function useVisibleRows(scroller: RefObject<HTMLElement | null>, count: number, rowHeight: number) {
  const [[top, height], setSight] = useState([0, 0])
  useEffect(() => {
    const element = scroller.current!
    const read = () => setSight([element.scrollTop, element.clientHeight])
    read()
    const resized = new ResizeObserver(read)
    resized.observe(element)
    element.addEventListener('scroll', read, { passive: true })
    return () => {
      resized.disconnect()
      element.removeEventListener('scroll', read)
    }
  }, [scroller])
  const first = Math.max(0, Math.floor(top! / rowHeight) - overscan)
  return { first, last: Math.min(count, Math.ceil((top! + height!) / rowHeight) + overscan) - 1 }
}

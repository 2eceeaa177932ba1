import { type CellType, type DateOrder, type DecimalMark, dateOrderOf } from './cell-parser.ts'
import type { Target } from './target.ts'

/** The notation of a file, as far as its cells show it. `mixed` means dates in both orders, or in an unclear order. */
export type CellHabits = { decimal: DecimalMark | null; dateOrder: DateOrder | 'mixed' | null }

/** Numbers that show the decimal mark: one or two digits follow it, or a zero or a group of thousands precedes it. */
const decimalForms: Record<DecimalMark, RegExp> = {
  ',': /^[+-]?(?:\d+,\d{1,2}|\d+,\d{4,}|0,\d+|\d{1,3}(?:[. '’\u00a0\u202f]\d{3})+,\d*|\d{1,3}(?:\.\d{3}){2,})$/,
  '.': /^[+-]?(?:\d+\.\d{1,2}|\d+\.\d{4,}|0?\.\d+|\d{1,3}(?:[, '’\u00a0\u202f]\d{3})+\.\d*|\d{1,3}(?:,\d{3}){2,})$/,
}

const typeOf = (target: Target): CellType | null => ('type' in target ? target.type : null)

/**
 * Finds the notation from some records of a file. `targets` are the targets of its columns. Null if no cell shows it.
 */
export function habitsOf(records: readonly (readonly string[])[], targets: readonly Target[]): CellHabits {
  const cellsOf = (...types: CellType[]) =>
    targets.flatMap((target, index) =>
      types.includes(typeOf(target)!) ? records.map(cells => (cells[index] ?? '').trim()) : [],
    )
  const numbers = cellsOf('number')
  const marks = ([',', '.'] as const).filter(mark => numbers.some(cell => decimalForms[mark].test(cell)))
  const orders = new Set(cellsOf('date', 'datetime').map(dateOrderOf))
  const isClear = orders.has('dmy') !== orders.has('mdy')
  return {
    decimal: marks.length === 1 ? marks[0]! : null,
    dateOrder: isClear
      ? orders.has('dmy')
        ? 'dmy'
        : 'mdy'
      : orders.has('dmy') || orders.has('mixed')
        ? 'mixed'
        : null,
  }
}

import { csvText } from '../../../transfer/export-shape.ts'
import { internalIdOf } from '../entity/targets.tsx'
import { byteOrderMark } from '../transfer/export-setup.ts'
import { spreadsheetLook } from '../transfer/spreadsheet.ts'
import type { Result } from './report.ts'

type Words = { measure: string; identifier: string; locale: string }
type Cell = string | number | boolean | null

/**
 * A result as a CSV file for spreadsheets of the locale. The target of a relationship has its name, as on the
 * page, and its identifier. No text runs as a formula.
 */
export function csvOf({ report, aggregate, labels }: Result, { measure, identifier, locale }: Words): string {
  const header = report.groups.flatMap(({ field: { label, target } }) =>
    target === undefined ? [label] : [label, `${label}: ${identifier}`],
  )
  const cellsOf = (value: unknown, at: number): Cell[] => {
    if (report.groups[at]!.field.target === undefined) return [cellOf(value)]
    const target = internalIdOf(value) ?? cellOf(value)
    const names = labels[at] ?? {}
    return [typeof target === 'string' && Object.hasOwn(names, target) ? names[target]! : target, target]
  }
  const rows = aggregate.groups.map(({ by, measures }) => [...by.flatMap(cellsOf), cellOf(measures[0])])
  return byteOrderMark + csvText([[...header, measure], ...rows], spreadsheetLook(locale))
}

const cellOf = (value: unknown): Cell =>
  typeof value === 'object' && value !== null ? JSON.stringify(value) : (value as Cell)

import { csvText } from '../../../transfer/export-shape.ts'
import { byteOrderMark } from '../transfer/export-setup.ts'
import type { Result } from './report.ts'

/** A result as a CSV file for spreadsheets, with the values as the service has them. No text runs as a formula. */
export function csvOf({ report, aggregate }: Result, measure: string): string {
  const header = [...report.groups.map(({ field }) => field.label), measure]
  const rows = aggregate.groups.map(({ by, measures }) => [...by, measures[0]].map(cellOf))
  return byteOrderMark + csvText([header, ...rows], { escapesFormulas: true })
}

const cellOf = (value: unknown) =>
  typeof value === 'object' && value !== null ? JSON.stringify(value) : (value as string | number | boolean | null)

import { dateOf } from '../app/dates.ts'
import { useFormats, useLanguage, useMessages } from '../app/language.tsx'
import { messages as filterMessages } from '../filters/messages.ts'
import { messages } from './messages.ts'
import type { TimeUnit } from './plot-data.ts'
import type { Group, Report, TargetLabels } from './report.ts'
import type { MeasureOperation } from './search.ts'

/** The results of these measures have more digits than a person reads. */
const averages: readonly MeasureOperation[] = ['avg', 'median', 'percentile']

export type ReportTexts = ReturnType<typeof useReportTexts>

/** Returns the texts of a report in the language of the page. */
export function useReportTexts() {
  const texts = useMessages(messages)
  const { states } = useMessages(filterMessages)
  const formats = useFormats()
  const { locale } = useLanguage()
  const rounded = new Intl.NumberFormat(locale, { maximumFractionDigits: 2 })
  const spanText = (unit: TimeUnit, day: string): string => {
    const date = dateOf(day)
    const year = new Intl.DateTimeFormat(locale, { year: 'numeric', timeZone: 'UTC' }).format(date)
    if (unit === 'year') return year
    if (unit === 'quarter') return texts.quarter(Math.floor(date.getUTCMonth() / 3) + 1, year)
    if (unit === 'month')
      return new Intl.DateTimeFormat(locale, { year: 'numeric', month: 'short', timeZone: 'UTC' }).format(date)
    return unit === 'week' ? texts.weekOf(formats.day(day)) : formats.day(day)
  }
  return {
    /** The value of a group, such as a month. */
    groupText({ field: { type }, by }: Group, value: unknown, labels: TargetLabels = {}): string {
      if (value === null || value === undefined) return texts.noValue
      if (typeof value === 'boolean') return value ? texts.yes : texts.no
      if (typeof value === 'number') return formats.exactNumber(value)
      if (typeof value !== 'string') return JSON.stringify(value)
      if (by !== undefined) return spanText(by, value)
      if (Object.hasOwn(labels, value)) return labels[value]!
      return type === 'state' && Object.hasOwn(states, value) ? states[value as keyof typeof states] : value
    },
    /** A result of the measure. */
    valueText({ measure, of }: Report, value: unknown): string {
      if (value === null || value === undefined) return '—'
      if (typeof value === 'number')
        return averages.includes(measure) ? rounded.format(value) : formats.exactNumber(value)
      if (typeof value !== 'string') return JSON.stringify(value)
      if (of?.type === 'date') return formats.day(value)
      return of?.type === 'datetime' ? formats.dateTime(value) : value
    },
    measureText({ measure, of, percentile }: Report): string {
      const name = measure === 'percentile' ? `${texts.measures.percentile} ${percentile}` : texts.measures[measure]
      return of ? `${name}: ${of.label}` : name
    },
  }
}

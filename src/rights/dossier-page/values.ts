import type { Definitions } from '../../organizations/definitions.ts'
import type { PageLanguage } from '../../organizations/settings-schema.ts'
import { Html, html } from '../../values/html.ts'
import { profileLabels } from '../../values/profile-labels.ts'
import type { DossierWords, Label } from './languages/en.ts'

/** The language of a page, its texts, and the definitions of the organization. */
export type Page = { language: PageLanguage; words: DossierWords; definitions: Definitions }

const day = { timeZone: 'UTC', day: 'numeric', month: 'long', year: 'numeric' } as const
const moment = { ...day, hour: '2-digit', minute: '2-digit', second: '2-digit' } as const

// The format of British dates spells out the month, so that day and month are not confused.
const localeOf = ({ language }: Page) => (language === 'en' ? 'en-GB' : language)

const formats = new Map<string, Intl.DateTimeFormat>()

/** Caches the formatters. Making one takes 20 µs, and a dossier has thousands of times. */
function formatIn(page: Page, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const name = `${page.language} ${options === moment}`
  const format = formats.get(name) ?? new Intl.DateTimeFormat(localeOf(page), options)
  formats.set(name, format)
  return format
}

/** The day of a time, such as `1 January 2026`. */
export const dateOf = (page: Page, at: string): Html =>
  html`<time datetime="${at}">${formatIn(page, day).format(new Date(at))}</time>`

/** A time, such as `1 January 2026 at 12:00:00 UTC`. */
export const timeOf = (page: Page, at: string): Html =>
  html`<time datetime="${at}">${formatIn(page, moment).format(new Date(at))} UTC</time>`

/**
 * The label of a member for readers. A member without a label gets its name in words: `date_of_visit` →
 * `Date of visit`.
 */
export function labelOf({ language, words }: Page, name: string): string {
  for (const labels of [profileLabels[language], words.labels] as Record<string, string>[])
    if (Object.hasOwn(labels, name)) return labels[name]!
  const text = name.replaceAll('_', ' ')
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}

/** The label of an attribute of people or of a stack. An undeclared one gets its key in words. */
export function attributeLabel(page: Page, stack_id: number | undefined, key: string): string {
  const name = stack_id === undefined ? undefined : page.definitions.declared.get(stack_id)?.get(key)?.name
  return name === undefined || name === key ? labelOf(page, key) : name
}

const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/
const isDay = /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$/

const quiet = (text: string) => html`<span class="unset">${text}</span>`

/** Prints a JSON value. Objects and arrays become nested lists. */
export function printValue(page: Page, value: unknown): Html {
  const { unset, empty, yes, no } = page.words.values
  if (value === null || value === undefined) return quiet(unset)
  if (value === '') return quiet(empty)
  if (typeof value === 'boolean') return html`${value ? yes : no}`
  if (typeof value === 'string') {
    if (isTime.test(value)) return timeOf(page, value)
    return isDay.test(value) ? dateOf(page, value) : html`<span dir="auto">${value}</span>`
  }
  if (typeof value !== 'object') return html`${String(value)}`
  return html`<div class="value">${Array.isArray(value) ? listOf(page, value) : membersOf(page, value)}</div>`
}

function listOf(page: Page, values: unknown[]): Html {
  if (values.length === 0) return quiet(page.words.values.none)
  return html`<ul>${values.map(value => html`<li>${printValue(page, value)}</li>`)}</ul>`
}

function membersOf(page: Page, values: object): Html {
  const members = Object.entries(values)
  if (members.length === 0) return quiet(page.words.values.none)
  return html`<dl>${members.map(([name, value]) => html`<div><dt dir="auto">${name}</dt><dd>${printValue(page, value)}</dd></div>`)}</dl>`
}

/** A row of a description list. */
export const rowOf = (page: Page, label: string, value: unknown): Html =>
  html`<div><dt dir="auto">${label}</dt><dd>${printed(page, value)}</dd></div>`

/** Prints a value as HTML. HTML stays as it is. */
export const printed = (page: Page, value: unknown): Html => (value instanceof Html ? value : printValue(page, value))

/** The members that have a value, as rows. */
export const rowsOf = (page: Page, members: Partial<Record<Label, unknown>>): Html[] =>
  Object.entries(members)
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => rowOf(page, page.words.labels[name as Label], value))

/** The cells of a row of a table. A narrow window shows the label in front of each. */
export const cellsOf = (page: Page, cells: Partial<Record<Label, unknown>>): Html =>
  html`<tr>${Object.entries(cells).map(([name, value]) => html`<td data-label="${page.words.labels[name as Label]}">${printed(page, value)}</td>`)}</tr>`

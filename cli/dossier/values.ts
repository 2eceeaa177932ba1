import { type Html, html } from '../../src/consent-pages/html.ts'

const utc = { timeZone: 'UTC' } as const
const day = new Intl.DateTimeFormat('en-GB', { ...utc, day: 'numeric', month: 'long', year: 'numeric' })
const moment = new Intl.DateTimeFormat('en-GB', {
  ...utc,
  ...{ day: 'numeric', month: 'long', year: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit' },
})

/** A day of RFC 3339, such as `1 January 2026`. */
export const dateOf = (at: string): Html => html`<time datetime="${at}">${day.format(new Date(at))}</time>`

/** A time of RFC 3339, such as `1 January 2026 at 12:00:00 UTC`. */
export const timeOf = (at: string): Html => html`<time datetime="${at}">${moment.format(new Date(at))} UTC</time>`

const labels: Record<string, string> = {
  id: 'Internal identifier',
  external_id: 'Identifier',
  sms_consent: 'Text message consent',
  push_notification_consent: 'Push notification consent',
  created_at: 'Stored at',
  updated_at: 'Last changed at',
  ip_address: 'IP address',
}

/** The name of a member as people read it: `first_name` → `First name`. */
export function labelOf(name: string): string {
  const label = Object.hasOwn(labels, name) ? labels[name] : undefined
  if (label !== undefined) return label
  const words = name.replaceAll('_', ' ')
  return words.slice(0, 1).toUpperCase() + words.slice(1)
}

const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/

/** Prints a value of JSON. Objects and arrays are nested lists. */
export function printValue(value: unknown): Html {
  if (value === null || value === undefined) return html`<span class="unset">not set</span>`
  if (value === '') return html`<span class="unset">empty</span>`
  if (typeof value === 'boolean') return html`${value ? 'yes' : 'no'}`
  if (typeof value === 'string') return isTime.test(value) ? timeOf(value) : html`<span dir="auto">${value}</span>`
  if (typeof value !== 'object') return html`${String(value)}`
  return html`<div class="value">${Array.isArray(value) ? listOf(value) : membersOf(value)}</div>`
}

function listOf(values: unknown[]): Html {
  if (values.length === 0) return html`<span class="unset">none</span>`
  return html`<ul>${values.map(value => html`<li>${printValue(value)}</li>`)}</ul>`
}

function membersOf(values: object): Html {
  const members = Object.entries(values)
  if (members.length === 0) return html`<span class="unset">none</span>`
  return html`<dl>${members.map(([name, value]) => html`<div><dt dir="auto">${name}</dt><dd>${printValue(value)}</dd></div>`)}</dl>`
}

/** Prints a name with its value, as a row of a description list. */
export const rowOf = (label: string, value: unknown): Html =>
  html`<div><dt dir="auto">${label}</dt><dd>${printValue(value)}</dd></div>`

/** Prints the members that have a value, as rows. */
export const rowsOf = (members: Record<string, unknown>): Html[] =>
  Object.entries(members)
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => rowOf(labelOf(name), value))

/** Prints a cell of a table. A narrow window shows the label in front of it. */
export const cellOf = (label: string, value: unknown): Html => html`<td data-label="${label}">${printValue(value)}</td>`

import { expect, it } from 'vitest'
import { dateOf, formatTime } from '../src/app/dates.ts'

const day = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeZone: 'UTC' })

it('days and moments have the year that a time zone or an offset leads to', () => {
  expect(['2005-10-08', '0001-01-01', '9999-12-31', '10000-01-01'].map(text => formatTime(day, text))).toEqual([
    '8 Oct 2005',
    '1 Jan 1',
    '31 Dec 9999',
    '1 Jan 10000',
  ])
  expect(formatTime(day, '10000-01-01T23:58:59Z')).toBe('1 Jan 10000')
  expect(dateOf('2020-02-29t12:00:00.5z').toISOString()).toBe('2020-02-29T12:00:00.500Z')
})

it('a text that is no time is shown as it is', () => {
  for (const text of ['10', 'in spring', '2020-13-45', '']) expect(formatTime(day, text)).toBe(text)
})

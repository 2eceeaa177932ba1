import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from 'react'
import { I18nProvider } from 'react-aria-components'
import { formatTime, type Instant } from './dates.ts'
import { type Entries, inEachLanguage, type Language, languages, type Messages, words } from './words.ts'

export type { Language }

/** Defines the texts of a folder, in addition to the common words. */
export const defineMessages = <const Defined extends Entries>(entries: Defined) =>
  inEachLanguage<Omit<typeof words, keyof Defined> & Defined>({ ...words, ...entries })

type LanguageState = { language: Language; locale: string; setLanguage: (language: Language) => void }

const LanguageContext = createContext<LanguageState | undefined>(undefined)
const storageKey = 'kith.language'

function isLanguage(text: string | null | undefined): text is Language {
  return languages.includes(text as Language)
}

const languageOf = (tag: string): string => tag.toLowerCase().split('-')[0]!

/** The language chosen earlier in this browser, else the first of the browser's languages that the console has. */
function firstLanguage(): Language {
  const stored = localStorage.getItem(storageKey)
  if (isLanguage(stored)) return stored
  return navigator.languages.map(languageOf).find(isLanguage) ?? 'en'
}

/** The locale for dates and numbers: the browser's variant of the language, such as de-AT. */
function localeOf(language: Language): string {
  return navigator.languages.find(tag => languageOf(tag) === language) ?? language
}

export function LanguageProvider({ children }: { children: ReactNode }) {
  const [language, setLanguage] = useState(firstLanguage)
  const locale = localeOf(language)
  useEffect(() => {
    document.documentElement.lang = language
  }, [language])
  const choose = (chosen: Language) => {
    localStorage.setItem(storageKey, chosen)
    setLanguage(chosen)
  }
  return (
    <LanguageContext value={{ language, locale, setLanguage: choose }}>
      <I18nProvider locale={locale}>{children}</I18nProvider>
    </LanguageContext>
  )
}

export function useLanguage(): LanguageState {
  const state = useContext(LanguageContext)
  if (!state) throw new Error('useLanguage needs a LanguageProvider')
  return state
}

/** The texts of a folder in the language of the page. */
export function useMessages<Texts>(messages: Messages<Texts>): Texts {
  return messages[useLanguage().language]
}

/** The formats of the page's locale. */
export type Formats = ReturnType<typeof createFormats>

export function useFormats(): Formats {
  const { locale } = useLanguage()
  return useMemo(() => createFormats(locale), [locale])
}

const relativeUnits: [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 31_557_600_000],
  ['month', 2_629_800_000],
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
]

const byteUnits = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte']

/** Creates the formats of numbers and times in a locale. Times are in the time zone of the browser. */
export function createFormats(locale: string) {
  const number = new Intl.NumberFormat(locale)
  const exactNumber = new Intl.NumberFormat(locale, { maximumFractionDigits: 20 })
  const percent = new Intl.NumberFormat(locale, { style: 'percent', maximumFractionDigits: 1 })
  const date = new Intl.DateTimeFormat(locale, { dateStyle: 'medium' })
  const day = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeZone: 'UTC' })
  const dateTime = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short' })
  const exactTime = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'medium' })
  const relative = new Intl.RelativeTimeFormat(locale, { numeric: 'auto' })
  return {
    number: (value: number) => number.format(value),
    /** A number with all its digits. */
    exactNumber: (value: number) => exactNumber.format(value),
    /** A share from 0 to 1 as a percentage. */
    percent: (share: number) => percent.format(share),
    /** The day of a moment, such as 23 Nov 2026. */
    date: (instant: Instant) => formatTime(date, instant),
    /** A date without a time zone. */
    day: (value: string) => formatTime(day, value),
    /** A moment to the minute. */
    dateTime: (instant: Instant) => formatTime(dateTime, instant),
    /** A moment to the second. */
    exactTime: (instant: Instant) => formatTime(exactTime, instant),
    /** The distance of a moment from now, such as "3 minutes ago". */
    relative: (instant: Instant) => {
      const differenceMs = new Date(instant).getTime() - Date.now()
      const [unit, lengthMs] =
        relativeUnits.find(([, length]) => Math.abs(differenceMs) >= length) ?? relativeUnits.at(-1)!
      return relative.format(Math.round(differenceMs / lengthMs), unit)
    },
    /** The name of a language, such as German for `de`. */
    language: (tag: string) => {
      const name = new Intl.DisplayNames(locale, { type: 'language' }).of(tag) ?? tag
      return name.slice(0, 1).toLocaleUpperCase(locale) + name.slice(1)
    },
    /** A number of bytes, such as 3.2 MB. */
    bytes: (count: number) => {
      const power = Math.min(byteUnits.length - 1, count < 1 ? 0 : Math.floor(Math.log10(count) / 3))
      return new Intl.NumberFormat(locale, {
        style: 'unit',
        unit: byteUnits[power]!,
        unitDisplay: 'short',
        maximumFractionDigits: power === 0 ? 0 : 1,
      }).format(count / 1_000 ** power)
    },
  }
}

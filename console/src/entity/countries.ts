import { callingCodes } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { useLanguage, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { settingsQuery } from '../schema/queries.ts'
import { messages } from './messages.ts'

type Country = { code: string; name: string; callingCode: string }

/** The countries with phone numbers, in the order of their names in the language of the page. */
export function useCountries(): readonly Country[] {
  const { locale } = useLanguage()
  return useMemo(() => {
    const names = new Intl.DisplayNames(locale, { type: 'region' })
    const all = Object.entries(callingCodes).flatMap(([callingCode, codes]) =>
      codes.map(code => ({ code, name: names.of(code) ?? code, callingCode })),
    )
    return all.sort((a, b) => a.name.localeCompare(b.name, locale))
  }, [locale])
}

export const noCountry = 'none'

/** The countries as choices of a field. {@link noCountry} means the country of the settings, if they name one. */
export function useCountryChoices(): { name: string; label: string }[] {
  const texts = useMessages(messages)
  const countries = useCountries()
  const { data: settings } = useQuery({ ...settingsQuery, enabled: useScope('schema:read') })
  const own = countries.find(({ code }) => code === settings?.default_country)?.name
  return [
    { name: noCountry, label: own === undefined ? texts.noCountry : texts.ownCountry(own) },
    ...countries.map(({ code, name, callingCode }) => ({ name: code, label: `${name} +${callingCode}` })),
  ]
}

/** The prefix of a country, such as +39. */
export const prefixOf = (country: string): string =>
  `+${Object.entries(callingCodes).find(([, codes]) => (codes as readonly string[]).includes(country))?.[0]}`

const codesByCallingCode: Readonly<Record<string, readonly string[]>> = callingCodes

/** The country of a prefix, or of a number with a prefix. For a shared calling code, this is the main country. */
export function countryOf(text: string): string | undefined {
  const digits = text.replace(/[\s().-]/g, '').replace(/^(?:\+|00)/, '')
  return [1, 2, 3].map(length => codesByCallingCode[digits.slice(0, length)]?.[0]).find(code => code !== undefined)
}

/** Whether a number begins with a country prefix. */
export const isInternational = (number: string): boolean => /^\s*(?:\+|00)/.test(number)

import { callingCodes } from '@kith/client'
import { useMemo } from 'react'
import { useLanguage } from '../app/language.tsx'

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

const codesByCallingCode: Readonly<Record<string, readonly string[]>> = callingCodes

/** The country that a prefix, or a number that begins with one, belongs to: of a shared calling code the main one. */
export function countryOf(text: string): string | undefined {
  const digits = text.replace(/[\s().-]/g, '').replace(/^(?:\+|00)/, '')
  return [1, 2, 3].map(length => codesByCallingCode[digits.slice(0, length)]?.[0]).find(code => code !== undefined)
}

/** Whether a number has its country in itself. */
export const isInternational = (number: string): boolean => /^\s*(?:\+|00)/.test(number)

import { readQualities } from '../values/qualities.ts'
import { type PageLanguage, pageLanguages } from './settings-schema.ts'

/** The primary subtag of a language: `de` of `de-AT`. */
export const primaryOf = (tag: string) => tag.trim().toLowerCase().split(/[-_]/)[0]!

/** The page language for a tag. Undefined if the pages do not exist in that language. */
export const pageLanguageOf = (tag: string | null | undefined): PageLanguage | undefined =>
  pageLanguages.find(language => language === primaryOf(tag ?? ''))

/** The page language that an Accept-Language header prefers (RFC 9110, 12.5.4). */
export function acceptedLanguage(header = ''): PageLanguage | undefined {
  const accepted = readQualities(header)
    .map(({ name, quality }) => ({ language: pageLanguageOf(name), quality }))
    .filter(({ language, quality }) => language !== undefined && quality > 0)
  // The sort is stable, so the first of several equal qualities wins.
  return accepted.sort((a, b) => b.quality - a.quality)[0]?.language
}

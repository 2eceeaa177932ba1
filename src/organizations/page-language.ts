import { readQualities } from '../values/qualities.ts'
import { type PageLanguage, pageLanguages } from './settings-schema.ts'

/** The primary subtag of a language: `de` of `de-AT`. */
export const primaryOf = (tag: string) => tag.trim().toLowerCase().split(/[-_]/)[0]!

/** The language of the pages that a tag asks for. Undefined if the pages do not exist in it. */
export const pageLanguageOf = (tag: string | null | undefined): PageLanguage | undefined =>
  pageLanguages.find(language => language === primaryOf(tag ?? ''))

/** The language that an Accept-Language header prefers (RFC 9110, 12.5.4), of those that the pages exist in. */
export function acceptedLanguage(header = ''): PageLanguage | undefined {
  const accepted = readQualities(header)
    .map(({ name, quality }) => ({ language: pageLanguageOf(name), quality }))
    .filter(({ language, quality }) => language !== undefined && quality > 0)
  // The sort is stable, so the first of equal qualities wins.
  return accepted.sort((a, b) => b.quality - a.quality)[0]?.language
}

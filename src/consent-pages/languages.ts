import { acceptedLanguage, pageLanguageOf, primaryOf } from '../organizations/page-language.ts'
import type { PageLanguage } from '../organizations/settings-schema.ts'

/** Chooses the language of a page: the person's, then the browser's, then the organization's, then English. */
export function choosePageLanguage(
  personLanguage: string | null,
  acceptLanguage: string | undefined,
  organizationLanguage: PageLanguage | null,
): PageLanguage {
  return pageLanguageOf(personLanguage) ?? acceptedLanguage(acceptLanguage) ?? organizationLanguage ?? 'en'
}

/**
 * Chooses from texts with the newest first. The best is one in the first language of `wanted`, exactly or by its
 * primary subtag. Otherwise the function chooses one in any language.
 */
export function chooseText<Text extends { language: string }>(
  texts: readonly Text[],
  wanted: readonly (string | null)[],
): Text | undefined {
  const normal = (tag: string) => tag.toLowerCase().replaceAll('_', '-')
  for (const tag of wanted.filter(language => language !== null)) {
    const found =
      texts.find(({ language }) => normal(language) === normal(tag)) ??
      texts.find(({ language }) => primaryOf(language) === primaryOf(tag))
    if (found) return found
  }
  return texts[0]
}

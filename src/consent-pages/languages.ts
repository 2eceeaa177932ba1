import { type PageLanguage, pageLanguages } from '../organizations/settings-schema.ts'

const primaryOf = (tag: string) => tag.trim().toLowerCase().split(/[-_]/)[0]!

const pageLanguageOf = (tag: string | null | undefined): PageLanguage | undefined =>
  pageLanguages.find(language => language === primaryOf(tag ?? ''))

/** Chooses the language of a page: the person's, then the browser's, then the organization's, then English. */
export function choosePageLanguage(
  personLanguage: string | null,
  acceptLanguage: string | undefined,
  organizationLanguage: PageLanguage | null,
): PageLanguage {
  return pageLanguageOf(personLanguage) ?? acceptedLanguage(acceptLanguage) ?? organizationLanguage ?? 'en'
}

/** The language that an Accept-Language header prefers (RFC 9110, 12.5.4), of those that the pages exist in. */
function acceptedLanguage(header = ''): PageLanguage | undefined {
  const ranges = header.split(',').map(range => {
    const [tag = '', ...parameters] = range.split(';').map(part => part.trim())
    const quality = Number(parameters.find(parameter => parameter.startsWith('q='))?.slice(2) ?? 1)
    return { language: pageLanguageOf(tag), quality: quality <= 1 ? quality : 0 }
  })
  const accepted = ranges.filter(({ language, quality }) => language !== undefined && quality > 0)
  // The sort is stable, so the first of equal qualities wins.
  return accepted.sort((a, b) => b.quality - a.quality)[0]?.language
}

/**
 * Chooses from texts with the newest first. The best is one in the first language of `wanted`, exactly or by its primary
 * subtag, and any other is better than none.
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

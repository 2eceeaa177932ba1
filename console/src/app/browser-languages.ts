const isTag = (language: string): boolean => {
  try {
    return Intl.getCanonicalLocales(language).length === 1
  } catch {
    return false
  }
}

/**
 * Drops languages of the browser that are no tags of BCP 47, such as `en-US@posix` where LANG is C. English is left if
 * no language remains. `Intl` throws for invalid tags, even in libraries that read them from `navigator`.
 */
export function dropInvalidLanguages(): void {
  const languages = navigator.languages.filter(isTag)
  if (languages.length === navigator.languages.length && isTag(navigator.language)) return
  if (languages.length === 0) languages.push('en')
  Object.defineProperty(navigator, 'languages', { value: languages, configurable: true })
  Object.defineProperty(navigator, 'language', { value: languages[0], configurable: true })
}

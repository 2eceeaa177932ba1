import { useEffect, useState } from 'react'
import { useLanguage } from './language.tsx'

type Sentences = typeof import('./service-sentences.ts')
let loaded: Sentences | undefined

/** The sentences of the service in the language of the page. Translations load when they are needed. */
export function useServiceTexts() {
  const { language } = useLanguage()
  const [sentences, setSentences] = useState(loaded)
  useEffect(() => {
    if (language === 'en' || loaded) return
    import('./service-sentences.ts').then(
      module => {
        loaded = module
        setSentences(module)
      },
      // If the translations fail to load, the page shows the sentence of the service.
      () => {},
    )
  }, [language])
  const translated = (sentence: string): string | undefined =>
    language === 'en' ? sentence : sentences?.translated(language, sentence)
  return {
    language,
    sentences,
    /** The sentence in the language of the page, or undefined without a translation. */
    translated,
    /** The sentence in the language of the page, or else the original sentence. */
    said: (sentence: string): string => translated(sentence) ?? sentence,
    /** The meaning of an error with this code, or undefined in the language of the service. */
    meaningOf: (code: string | undefined): string | undefined => sentences?.meaningOf(language, code),
  }
}

import { useEffect, useState } from 'react'
import { useLanguage } from './language.tsx'

type Sentences = typeof import('./service-sentences.ts')
let loaded: Sentences | undefined

/** What the service says, in the language of the page. The sentences of other languages than its own are loaded when they are needed. */
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
      // The sentence of the service stands for itself.
      () => {},
    )
  }, [language])
  const translated = (sentence: string): string | undefined =>
    language === 'en' ? sentence : sentences?.translated(language, sentence)
  return {
    language,
    sentences,
    /** The sentence in the language of the page, or undefined if only the service says it. */
    translated,
    /** The sentence in the language of the page, or as the service says it. */
    said: (sentence: string): string => translated(sentence) ?? sentence,
    /** What an error with this code is, or undefined in the language of the service. */
    meaningOf: (code: string | undefined): string | undefined => sentences?.meaningOf(language, code),
  }
}

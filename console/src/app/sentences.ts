import type { Language } from './words.ts'

/** Sentences of other programs, in English, with their translations. `#` stands for a value. */
export type Sentences = Readonly<Record<string, readonly [de: string, it: string]>>

/** Returns a function that translates the sentences. It returns undefined for any other sentence. */
export function sentenceTranslator(sentences: Sentences) {
  // Longer sentences come first, because a longer one may begin like a shorter one.
  const known = Object.entries(sentences).toSorted(([a], [b]) => b.length - a.length)
  const patterns = known.map(([sentence, [de, it]]) => ({
    sentence,
    translations: { de, it },
    pattern: new RegExp(
      `^${sentence.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`).replaceAll('#', '(.+?)')}$`,
      's',
    ),
  }))
  return function translated(language: Language, message: string): string | undefined {
    if (language === 'en') return message
    for (const { sentence, translations, pattern } of patterns) {
      const [, ...values] = pattern.exec(message) ?? [message]
      if (values.length > 0 || sentence === message)
        return translations[language].replaceAll('#', () => {
          const value = values.shift() ?? ''
          return translated(language, value) ?? value
        })
    }
    return undefined
  }
}

import type { Language } from './words.ts'

/** Sentences that are shown as another program writes them, in English, with their translations. `#` stands for a value. */
export type Sentences = Readonly<Record<string, readonly [de: string, it: string]>>

/** Returns a function that translates the sentences. Its result is undefined for another sentence. */
export function sentenceTranslator(sentences: Sentences) {
  // A longer sentence may begin as a shorter one does.
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

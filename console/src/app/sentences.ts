import type { Language } from './words.ts'

type OtherLanguage = Exclude<Language, 'en'>

/** Sentences that are shown as another program writes them, in English, with their translations. `#` stands for a value. */
export type Sentences<Sentence extends string = string> = Record<OtherLanguage, Record<Sentence, string>>

/** Defines sentences. Italian has the same ones as German. */
export const defineSentences = <Sentence extends string>(
  de: Record<Sentence, string>,
  it: Record<NoInfer<Sentence>, string>,
): Sentences<Sentence> => ({ de, it })

/** Returns a function that translates the sentences. Its result is undefined for another sentence. */
export function sentenceTranslator(sentences: Sentences) {
  // A longer sentence may begin as a shorter one does.
  const known = Object.keys(sentences.de).toSorted((a, b) => b.length - a.length)
  const patterns = known.map(sentence => ({
    sentence,
    pattern: new RegExp(
      `^${sentence.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`).replaceAll('#', '(.+?)')}$`,
      's',
    ),
  }))
  return function translated(language: Language, message: string): string | undefined {
    if (language === 'en') return message
    for (const { sentence, pattern } of patterns) {
      const [, ...values] = pattern.exec(message) ?? [message]
      if (values.length > 0 || sentence === message)
        return sentences[language][sentence]!.replaceAll('#', () => {
          const value = values.shift() ?? ''
          return translated(language, value) ?? value
        })
    }
    return undefined
  }
}

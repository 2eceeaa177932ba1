import { useServiceTexts } from '../app/use-service-texts.ts'
import { translatedFault } from './file-sentences.ts'
import { nameOfPath, type RefusedLine } from './refused-lines.ts'

/** Returns a function that has the faults of a refused line in the language of the page, each with the name of its column. */
export function useRefusalTexts() {
  const { language, translated } = useServiceTexts()
  const said = (sentence: string) => translated(sentence) ?? translatedFault(language, sentence) ?? sentence
  return ({ message, details }: RefusedLine['refusal']): { column: string; text: string }[] =>
    details.length === 0
      ? [{ column: '', text: said(message) }]
      : details.map(({ path, message }) => ({ column: nameOfPath(path), text: said(message) }))
}

import { useServiceTexts } from '../app/use-service-texts.ts'
import { translatedFault } from './file-sentences.ts'
import { nameOfPath, type RefusedLine } from './refused-lines.ts'

/**
 * Returns functions that translate faults: a single fault, and the faults of a refused line with the names of their
 * columns.
 */
export function useRefusalTexts() {
  const { language, translated, meaningOf } = useServiceTexts()
  const known = (sentence: string) => translated(sentence) ?? translatedFault(language, sentence)
  return {
    faultText: (sentence: string): string => known(sentence) ?? sentence,
    /** A sentence of the service without a translation follows the meaning of its code. */
    refusalTexts({ code, message, details }: RefusedLine['refusal']): { path: string; text: string }[] {
      const said = (sentence: string) => known(sentence) ?? [meaningOf(code), sentence].filter(Boolean).join(' ')
      return details.length === 0
        ? [{ path: '', text: said(message) }]
        : details.map(({ path, message }) => ({ path: nameOfPath(path), text: said(message) }))
    },
  }
}

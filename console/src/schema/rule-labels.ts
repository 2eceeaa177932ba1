import type { RuleName } from '@kith/client'
import type { Language } from '../app/language.tsx'

/** The texts of a rule: its name, the help of its field, and the rule with its operand, if the name alone does not say it. */
type RuleLabels = { name: string; help?: string; short?: (operand: string) => string }

/** The texts of the rules of attributes, one set for each language. */
export const ruleLabels: Record<Language, Record<RuleName, RuleLabels>> = {
  en: {
    required: { name: 'Required', help: 'A new entry needs a value.' },
    unique: { name: 'Unique', help: 'No two entries have the same value. Needs “Indexed” and a single value.' },
    enum: {
      name: 'Allowed values',
      help: 'One a line. Empty allows every value.',
      short: values => `One of: ${values}`,
    },
    pattern: {
      name: 'Pattern',
      help: 'A regular expression. ^ and $ stand for the beginning and the end.',
      short: pattern => `Matches ${pattern}`,
    },
    minimum: { name: 'Minimum', short: value => `At least ${value}` },
    maximum: { name: 'Maximum', short: value => `At most ${value}` },
  },
  de: {
    required: { name: 'Pflicht', help: 'Ein neuer Eintrag braucht einen Wert.' },
    unique: {
      name: 'Eindeutig',
      help: 'Keine zwei Einträge haben denselben Wert. Setzt „Indiziert“ und einen einzelnen Wert voraus.',
    },
    enum: {
      name: 'Erlaubte Werte',
      help: 'Einer je Zeile. Leer erlaubt jeden Wert.',
      short: values => `Einer von: ${values}`,
    },
    pattern: {
      name: 'Muster',
      help: 'Ein regulärer Ausdruck. ^ und $ stehen für Anfang und Ende.',
      short: pattern => `Passt auf ${pattern}`,
    },
    minimum: { name: 'Minimum', short: value => `Mindestens ${value}` },
    maximum: { name: 'Maximum', short: value => `Höchstens ${value}` },
  },
  it: {
    required: { name: 'Obbligatorio', help: 'Un nuovo elemento deve avere un valore.' },
    unique: { name: 'Univoco', help: 'Nessun valore si ripete. Richiede «Indicizzato» e un solo valore.' },
    enum: {
      name: 'Valori ammessi',
      help: 'Uno per riga. Vuoto ammette ogni valore.',
      short: values => `Uno tra: ${values}`,
    },
    pattern: {
      name: 'Modello',
      help: 'Un’espressione regolare. ^ e $ indicano l’inizio e la fine.',
      short: pattern => `Corrisponde a ${pattern}`,
    },
    minimum: { name: 'Minimo', short: value => `Almeno ${value}` },
    maximum: { name: 'Massimo', short: value => `Al massimo ${value}` },
  },
}

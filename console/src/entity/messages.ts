import { defineMessages } from '../app/language.tsx'
import { channelLabels, fieldLabels } from './field-labels.ts'

export const messages = defineMessages({
  erasedTarget: ['erased', 'endgültig gelöscht', 'cancellato definitivamente'],
  addItem: ['Add another value', 'Weiteren Wert hinzufügen', 'Aggiungi un altro valore'],
  removeItem: (number: number) => [`Remove value ${number}`, `Wert ${number} entfernen`, `Rimuovi il valore ${number}`],
  itemOf: (label: string, number: number) => [
    `${label}, value ${number}`,
    `${label}, Wert ${number}`,
    `${label}, valore ${number}`,
  ],
  noValue: ['No value', 'Kein Wert', 'Nessun valore'],
  phone: ['Phone', 'Telefon', 'Telefono'],
  country: ['Country', 'Land', 'Paese'],
  noCountry: ['No country', 'Ohne Land', 'Nessun paese'],
  ownCountry: (name: string) => [`${name} (settings)`, `${name} (Einstellungen)`, `${name} (impostazioni)`],
  noPhone: ['No international number', 'Keine internationale Nummer', 'Nessun numero internazionale'],
  required: ['Needs a value.', 'Braucht einen Wert.', 'Serve un valore.'],
  undeclared: ['Not declared', 'Nicht deklariert', 'Non dichiarato'],
  linkHelp: ['The identifier of the target.', 'Die Kennung des Ziels.', 'L’identificativo della destinazione.'],
  jsonHelp: [
    'JSON: a text stands in quotation marks. Empty removes the value.',
    'JSON: Ein Text steht in Anführungszeichen. Leer entfernt den Wert.',
    'JSON: un testo sta tra virgolette. Vuoto toglie il valore.',
  ],
  listHelp: [
    'Several lines that are pasted become several values.',
    'Mehrere Zeilen, die eingefügt werden, werden zu mehreren Werten.',
    'Più righe incollate diventano più valori.',
  ],
  timeZoneHelp: (zone: string) => [`In the time zone ${zone}.`, `In der Zeitzone ${zone}.`, `Nel fuso orario ${zone}.`],
  makeTargets: [
    'Create what does not exist yet as a placeholder',
    'Was es noch nicht gibt, als Platzhalter anlegen',
    'Crea come segnaposto ciò che non esiste ancora',
  ],
  addValue: [
    'Add a value under a new key',
    'Einen Wert unter einem neuen Schlüssel hinzufügen',
    'Aggiungi un valore con una nuova chiave',
  ],
  keyTaken: ['This key exists already.', 'Diesen Schlüssel gibt es schon.', 'Questa chiave esiste già.'],
  add: ['Add', 'Hinzufügen', 'Aggiungi'],
  faults: {
    number: [
      'Write a number, such as 12 or 12.5.',
      'Schreiben Sie eine Zahl, etwa 12 oder 12.5.',
      'Scrivi un numero, per esempio 12 o 12.5.',
    ],
    exactNumber: [
      'This number has more digits than can be stored exactly.',
      'Diese Zahl hat mehr Stellen, als sich genau speichern lassen.',
      'Questo numero ha più cifre di quante se ne possano conservare esattamente.',
    ],
    json: (words: string) => [
      `This is not JSON: ${words}. A text stands in quotation marks: "text".`,
      `Das ist kein JSON: ${words}. Ein Text steht in Anführungszeichen: "Text".`,
      `Questo non è JSON: ${words}. Un testo sta tra virgolette: "testo".`,
    ],
    datetime: [
      'Write a date and a time that exist in your time zone.',
      'Geben Sie Datum und Uhrzeit an, die es in Ihrer Zeitzone gibt.',
      'Scrivi una data e un’ora che esistono nel tuo fuso orario.',
    ],
  },
  conflict: [
    'Somebody changed the same values while you edited',
    'Jemand hat dieselben Werte geändert, während Sie sie bearbeitet haben',
    'Qualcuno ha modificato gli stessi valori mentre li modificavi tu',
  ],
  changedBy: (actor: string, time: string) => [
    `${actor} wrote last, on ${time}.`,
    `Zuletzt hat ${actor} geschrieben, am ${time}.`,
    `${actor} ha scritto per ultimo, il ${time}.`,
  ],
  conflictAdvice: [
    'Choose for each value which one to keep. Then save. Nothing that you typed is lost.',
    'Wählen Sie für jeden Wert, welcher bleibt, und speichern Sie dann. Nichts, was Sie geschrieben haben, geht verloren.',
    'Scegli quale tenere per ogni valore, poi salva. Niente di ciò che hai scritto va perso.',
  ],
  was: ['When you began', 'Als Sie begannen', 'Quando hai iniziato'],
  theirs: ['Theirs', 'Der andere', 'L’altro'],
  mine: ['Yours', 'Ihrer', 'Il tuo'],
  gone: [
    'It was deleted in the meantime. Your input is still here: copy what you need.',
    'Der Eintrag wurde inzwischen gelöscht. Ihre Eingaben stehen noch hier: Kopieren Sie, was Sie brauchen.',
    'Nel frattempo è stato eliminato. I dati inseriti sono ancora qui: copia ciò che ti serve.',
  ],
  showAll: ['Show all of it', 'Ganz zeigen', 'Mostra tutto'],
  showLess: ['Show less', 'Weniger zeigen', 'Mostra meno'],
  fields: fieldLabels,
  states: { active: ['Active', 'Aktiv', 'Attivo'], placeholder: ['Placeholder', 'Platzhalter', 'Segnaposto'] },
  channels: channelLabels,
  methods: {
    web_form: ['Web form', 'Webformular', 'Modulo web'],
    double_opt_in: ['Confirmed by link', 'Per Link bestätigt', 'Confermato con un link'],
    preference_page: ['Preference page', 'Einstellungsseite', 'Pagina delle preferenze'],
    unsubscribe_link: ['Unsubscribe link', 'Abmeldelink', 'Link di disiscrizione'],
    gpc: ['Signal of the browser (GPC)', 'Signal des Browsers (GPC)', 'Segnale del browser (GPC)'],
    phone: ['Phone call', 'Telefonat', 'Telefonata'],
    paper: ['Paper', 'Papier', 'Carta'],
    import: ['Import', 'Import', 'Importazione'],
    api: ['Program', 'Programm', 'Programma'],
    other: ['Other', 'Anderes', 'Altro'],
  },
  answers: {
    granted: ['Granted', 'Erteilt', 'Concesso'],
    refused: ['Refused', 'Abgelehnt', 'Rifiutato'],
    pending: ['Waiting for confirmation', 'Wartet auf Bestätigung', 'In attesa di conferma'],
    none: ['No answer', 'Keine Antwort', 'Nessuna risposta'],
    mandatory: ['Needs no answer', 'Braucht keine Antwort', 'Non serve risposta'],
  },
})

export type EntityTexts = (typeof messages)['en']

/** The key of an answer to a purpose in the texts of `answers`. */
export function answerWord(answer: { state: boolean | null; pending?: boolean } | null | undefined) {
  if (answer?.pending) return 'pending'
  return answer?.state == null ? 'none' : answer.state ? 'granted' : 'refused'
}

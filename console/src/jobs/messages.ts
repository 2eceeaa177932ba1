import { defineMessages } from '../app/language.tsx'

export const messages = defineMessages({
  en: {
    subtitle:
      'What was done with several people or records at once. Open one to see whom it was refused for, and to undo it.',
    none: 'Nothing was changed yet for several at once',
    noneAdvice: 'Choose rows in a list of people or records to begin.',
    more: 'Show older',
    what: 'What',
    owner: 'Of',
    when: 'When',
    who: 'Who',
    changed: 'Changed',
    refused: 'Refused',
    details: 'Open',
    detailsOf: (time: string) => `Open the change of ${time}`,
    ops: { patch: 'Fields or consents', delete: 'Deletion', erase: 'Erasure' },
  },
  de: {
    subtitle:
      'Was mit mehreren Personen oder Datensätzen auf einmal geschah. Öffnen Sie eine, um zu sehen, für wen sie abgelehnt wurde, und um sie rückgängig zu machen.',
    none: 'Noch wurde nichts für mehrere auf einmal geändert',
    noneAdvice: 'Wählen Sie dazu Zeilen in einer Liste von Personen oder Datensätzen.',
    more: 'Ältere zeigen',
    what: 'Was',
    owner: 'Von',
    when: 'Wann',
    who: 'Wer',
    changed: 'Geändert',
    refused: 'Abgelehnt',
    details: 'Öffnen',
    detailsOf: time => `Die Änderung vom ${time} öffnen`,
    ops: { patch: 'Felder oder Einwilligungen', delete: 'Löschung', erase: 'Endgültige Löschung' },
  },
  it: {
    subtitle:
      'Che cosa è stato fatto con più persone o record insieme. Aprine una per vedere per chi è stata rifiutata e per annullarla.',
    none: 'Non è ancora stato modificato nulla per più elementi insieme',
    noneAdvice: 'Per iniziare scegli delle righe in un elenco di persone o di record.',
    more: 'Mostra le precedenti',
    what: 'Che cosa',
    owner: 'Di',
    when: 'Quando',
    who: 'Chi',
    changed: 'Modificati',
    refused: 'Rifiutati',
    details: 'Apri',
    detailsOf: time => `Apri la modifica del ${time}`,
    ops: { patch: 'Campi o consensi', delete: 'Eliminazione', erase: 'Cancellazione' },
  },
})

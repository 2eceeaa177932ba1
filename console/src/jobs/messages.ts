import { defineMessages } from '../app/language.tsx'

export const messages = defineMessages({
  subtitle: [
    'What was done with several people or records at once. Open one to see whom it was refused for, and to undo it.',
    'Was mit mehreren Personen oder Datensätzen auf einmal geschah. Öffnen Sie eine, um zu sehen, für wen sie abgelehnt wurde, und um sie rückgängig zu machen.',
    'Che cosa è stato fatto con più persone o record insieme. Aprine una per vedere per chi è stata rifiutata e per annullarla.',
  ],
  none: [
    'Nothing was changed yet for several at once',
    'Noch wurde nichts für mehrere auf einmal geändert',
    'Non è ancora stato modificato nulla per più elementi insieme',
  ],
  noneAdvice: [
    'Choose rows in a list of people or records to begin.',
    'Wählen Sie dazu Zeilen in einer Liste von Personen oder Datensätzen.',
    'Per iniziare scegli delle righe in un elenco di persone o di record.',
  ],
  more: ['Show older', 'Ältere zeigen', 'Mostra le precedenti'],
  owner: ['Of', 'Von', 'Di'],
  changed: ['Changed', 'Geändert', 'Modificati'],
  refused: ['Refused', 'Abgelehnt', 'Rifiutati'],
  details: ['Open', 'Öffnen', 'Apri'],
  detailsOf: (time: string) => [
    `Open the change of ${time}`,
    `Die Änderung vom ${time} öffnen`,
    `Apri la modifica del ${time}`,
  ],
  ops: {
    patch: ['Fields or consents', 'Felder oder Einwilligungen', 'Campi o consensi'],
    delete: ['Deletion', 'Löschung', 'Eliminazione'],
    erase: ['Erasure', 'Endgültige Löschung', 'Cancellazione'],
  },
})

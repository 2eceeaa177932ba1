import { defineMessages } from '../app/language.tsx'

export const messages = defineMessages({
  title: ['Erasures', 'Endgültige Löschungen', 'Cancellazioni definitive'],
  subtitle: [
    'Who was erased for good, why and by whom, with the signed certificate. Newest first.',
    'Wer endgültig gelöscht wurde, warum und von wem, mit der unterschriebenen Bescheinigung. Die neueste zuerst.',
    'Chi è stato cancellato per sempre, perché e da chi, con il certificato firmato. Dalla più recente.',
  ],
  none: ['Nobody was erased yet', 'Noch niemand wurde endgültig gelöscht', 'Nessuno è stato ancora cancellato'],
  noneAdvice: [
    'The page of a person has “Erase” in its menu. Each erasure is listed here afterwards.',
    'Auf der Seite einer Person steht „Endgültig löschen“ im Menü. Jede Löschung steht danach hier.',
    'La pagina di una persona ha «Cancella definitivamente» nel menu. Ogni cancellazione compare poi qui.',
  ],
  who: ['By', 'Von', 'Da'],
  person: ['Internal identifier', 'Interne Kennung', 'Identificativo interno'],
  certificate: ['Certificate', 'Bescheinigung', 'Certificato'],
  download: ['Download', 'Herunterladen', 'Scarica'],
  downloadOf: (number: string) => [
    `Download the certificate of erasure ${number}`,
    `Bescheinigung der Löschung ${number} herunterladen`,
    `Scarica il certificato della cancellazione ${number}`,
  ],
  underWay: ['under way', 'läuft noch', 'in corso'],
  underWayAdvice: [
    'The history of this person is very long and is still being erased. The certificate, which says what was removed, comes when that is done.',
    'Der Verlauf dieser Person ist sehr lang und wird noch gelöscht. Danach kommt die Bescheinigung, die sagt, was entfernt wurde.',
    'La cronologia di questa persona è molto lunga e la cancellazione è ancora in corso. Poi arriva il certificato, che dice che cosa è stato rimosso.',
  ],
  detailsOf: (number: string) => [
    `Details of erasure ${number}`,
    `Einzelheiten der Löschung ${number}`,
    `Dettagli della cancellazione ${number}`,
  ],
  erasure: (number: string) => [`Erasure ${number}`, `Löschung ${number}`, `Cancellazione ${number}`],
  recordsOf: {
    keep: [
      'Kept, without the link to the person',
      'Behalten, ohne die Verknüpfung mit der Person',
      'Conservati, senza il collegamento alla persona',
    ],
    linked: [
      'Erased, if they belonged to nobody else',
      'Gelöscht, wenn sie niemandem sonst gehörten',
      'Cancellati, se non appartenevano a nessun altro',
    ],
  },
  removed: ['What was removed', 'Was entfernt wurde', 'Che cosa è stato rimosso'],
  people: ['People, with those who were merged', 'Personen, mit den zusammengeführten', 'Persone, con quelle unite'],
  erasedRecords: [
    'Records erased with the person',
    'Mit der Person gelöschte Datensätze',
    'Record cancellati con la persona',
  ],
  notReached: ['What kith did not reach', 'Was kith nicht erreicht hat', 'Che cosa kith non ha raggiunto'],
  more: ['Show older erasures', 'Ältere Löschungen zeigen', 'Mostra cancellazioni precedenti'],
})

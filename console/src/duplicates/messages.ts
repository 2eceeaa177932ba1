import { defineMessages } from '../app/language.tsx'

/** The texts about people who may be the same: the page, the candidates of a merge, and the warning of a form. */
export const duplicateMessages = defineMessages({
  advice: [
    'These people share an email, a phone, or name and date of birth. Compare two and merge them, or say that they are not the same: then they are not shown again. Both can be undone.',
    'Diese Personen haben dieselbe E-Mail-Adresse, dieselbe Telefonnummer oder denselben Namen mit Geburtsdatum. Vergleichen Sie zwei und führen Sie sie zusammen, oder sagen Sie, dass es verschiedene Personen sind: Dann erscheinen sie nicht mehr. Beides lässt sich zurücknehmen.',
    'Queste persone hanno la stessa email, lo stesso telefono oppure lo stesso nome con la data di nascita. Confrontane due e uniscile, oppure indica che non sono la stessa persona: allora non compaiono più. Entrambe le scelte si possono annullare.',
  ],
  none: ['No duplicates', 'Keine Dubletten', 'Nessun duplicato'],
  noneAdvice: [
    'No two people share an email, a phone, or name and date of birth.',
    'Keine zwei Personen haben dieselbe E-Mail-Adresse, Telefonnummer oder denselben Namen mit Geburtsdatum.',
    'Non ci sono due persone con la stessa email, lo stesso telefono o lo stesso nome con la data di nascita.',
  ],
  reasons: {
    email: (value: string) => [`Same email: ${value}`, `Gleiche E-Mail-Adresse: ${value}`, `Stessa email: ${value}`],
    mobile: (value: string) => [`Same phone: ${value}`, `Gleiche Telefonnummer: ${value}`, `Stesso telefono: ${value}`],
    name: (value: string) => [
      `Same name and date of birth: ${value}`,
      `Gleicher Name und gleiches Geburtsdatum: ${value}`,
      `Stesso nome e stessa data di nascita: ${value}`,
    ],
  },
  more: ['More groups', 'Weitere Gruppen', 'Altri gruppi'],
  searchOn: ['Search on', 'Weitersuchen', 'Continua la ricerca'],
  shown: (shown: string, size: string) => [
    `The first ${shown} of ${size} people are shown.`,
    `Die ersten ${shown} von ${size} Personen werden gezeigt.`,
    `Sono mostrate le prime ${shown} persone di ${size}.`,
  ],
  size: (count: number, shown: string) => [
    `${shown} ${count === 1 ? 'person' : 'people'}`,
    `${shown} ${count === 1 ? 'Person' : 'Personen'}`,
    `${shown} ${count === 1 ? 'persona' : 'persone'}`,
  ],
  merge: ['Compare and merge', 'Vergleichen und zusammenführen', 'Confronta e unisci'],
  first: ['This one stays', 'Bleibt', 'Questa resta'],
  second: ['Is merged', 'Wird zusammengeführt', 'Viene unita'],
  notSame: ['Not the same', 'Nicht dieselben', 'Non la stessa persona'],
  notSameSaid: [
    'They are set aside as not the same.',
    'Sie gelten nun als verschiedene Personen.',
    'Ora risultano persone diverse.',
  ],
  takeBack: ['Undo', 'Zurücknehmen', 'Annulla'],
  setAside: ['Set aside as not the same', 'Als verschieden erklärt', 'Indicate come diverse'],
  noSetAside: ['Nobody is set aside.', 'Niemand ist als verschieden erklärt.', 'Nessuno è indicato come diverso.'],
  moreSetAside: ['Older ones', 'Ältere', 'Precedenti'],
  by: ['By', 'Von', 'Da'],
  candidates: ['They may be the same person:', 'Es könnte dieselbe Person sein:', 'Potrebbe essere la stessa persona:'],
  known: [
    'This email or phone is already known:',
    'Diese E-Mail-Adresse oder Telefonnummer ist schon bekannt:',
    'Questa email o questo telefono sono già noti:',
  ],
  knownAdvice: [
    'Look whether it is the same person before you save.',
    'Sehen Sie vor dem Speichern nach, ob es dieselbe Person ist.',
    'Prima di salvare, verifica se è la stessa persona.',
  ],
})

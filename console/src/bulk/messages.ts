import { defineMessages } from '../app/language.tsx'

type Forms = readonly [one: string, other: string]

/** A text with a count in place of `#`. */
const counter = (en: Forms, de: Forms, it: Forms) => (count: number, shown: string) => {
  const text = ([one, other]: Forms) => (count === 1 ? one : other).replace('#', shown)
  return [text(en), text(de), text(it)] as const
}

export const messages = defineMessages({
  actions: ['Actions on the chosen rows', 'Aktionen für die gewählten Zeilen', 'Azioni sulle righe scelte'],
  chosen: counter(['# chosen', '# chosen'], ['# gewählt', '# gewählt'], ['# scelta', '# scelte']),
  chooseAll: (shown: string) => [
    `Choose all ${shown} that match`,
    `Alle ${shown} passenden wählen`,
    `Scegli tutte le ${shown} corrispondenti`,
  ],
  clear: ['Choose none', 'Nichts wählen', 'Nessuna scelta'],
  chooseRow: (name: string) => [`Choose ${name}`, `${name} wählen`, `Scegli ${name}`],
  chooseLoaded: [
    'Choose the rows shown, or none',
    'Die gezeigten Zeilen wählen, oder keine',
    'Scegli le righe mostrate, o nessuna',
  ],
  keyChoose: ['Choose the row of the list', 'Zeile der Liste wählen', "Scegli la riga dell'elenco"],
  action: {
    set: ['Set or empty a field', 'Feld setzen oder leeren', 'Imposta o svuota un campo'],
    consent: ['Record a consent', 'Einwilligung erfassen', 'Registra un consenso'],
    delete: ['Delete', 'Löschen', 'Elimina'],
    erase: ['Erase', 'Endgültig löschen', 'Cancella definitivamente'],
  },
  begin: {
    set: counter(
      ['Change # entry', 'Change # entries'],
      ['# Eintrag ändern', '# Einträge ändern'],
      ['Modifica # voce', 'Modifica # voci'],
    ),
    consent: counter(
      ['Record it for # person', 'Record it for # people'],
      ['Für # Person erfassen', 'Für # Personen erfassen'],
      ['Registra per # persona', 'Registra per # persone'],
    ),
    delete: counter(
      ['Delete # entry', 'Delete # entries'],
      ['# Eintrag löschen', '# Einträge löschen'],
      ['Elimina # voce', 'Elimina # voci'],
    ),
    erase: counter(
      ['Erase # person', 'Erase # people'],
      ['# Person endgültig löschen', '# Personen endgültig löschen'],
      ['Cancella # persona', 'Cancella # persone'],
    ),
  },
  preview: ['Show what would change', 'Zeigen, was sich ändern würde', 'Mostra che cosa cambierebbe'],
  empty: ['Empty the field', 'Das Feld leeren', 'Svuota il campo'],
  needsValue: [
    'Give a value, or empty the field.',
    'Geben Sie einen Wert an, oder leeren Sie das Feld.',
    'Indica un valore, o svuota il campo.',
  ],
  needsSource: [
    'Say where the answers were given.',
    'Geben Sie an, wo die Antworten gegeben wurden.',
    'Indica dove sono state date le risposte.',
  ],
  noFields: [
    'There is nothing here that you may set.',
    'Hier gibt es nichts, das Sie setzen dürfen.',
    'Qui non c’è nulla che tu possa impostare.',
  ],
  consentAdvice: [
    'Each person gets this answer with its evidence. An undo does not take answers back.',
    'Jede Person bekommt diese Antwort mit ihrem Nachweis. Rückgängig machen nimmt Antworten nicht zurück.',
    'Ogni persona riceve questa risposta con la sua prova. L’annullamento non ritira le risposte.',
  ],
  wouldChange: counter(
    ['# entry would change', '# entries would change'],
    ['# Eintrag würde sich ändern', '# Einträge würden sich ändern'],
    ['# voce cambierebbe', '# voci cambierebbero'],
  ),
  alreadySo: counter(
    ['# is so already', '# are so already'],
    ['# ist schon so', '# sind schon so'],
    ['# è già così', '# sono già così'],
  ),
  wouldRefuse: counter(
    ['# would be refused', '# would be refused'],
    ['# würde abgelehnt', '# würden abgelehnt'],
    ['# sarebbe rifiutata', '# sarebbero rifiutate'],
  ),
  triedOf: (tested: string, total: string) => [
    `The first ${tested} of ${total} were tried.`,
    `Die ersten ${tested} von ${total} wurden geprüft.`,
    `Sono state provate le prime ${tested} di ${total}.`,
  ],
  canBeUndone: [
    'It can be undone afterwards.',
    'Es lässt sich danach rückgängig machen.',
    'Si può annullare in seguito.',
  ],
  forGood: [
    'An erasure cannot be undone. Each person gets a certificate.',
    'Endgültiges Löschen lässt sich nicht rückgängig machen. Zu jeder Person gibt es ein Zertifikat.',
    'La cancellazione definitiva non si può annullare. Per ogni persona c’è un certificato.',
  ],
  typeCount: (count: string) => [
    `Type ${count} to go on`,
    `Zum Fortfahren ${count} eingeben`,
    `Scrivi ${count} per continuare`,
  ],
  refusedList: ['Refused', 'Abgelehnt', 'Rifiutate'],
  reason: ['Why', 'Warum', 'Perché'],
  progress: ['Progress', 'Fortschritt', 'Avanzamento'],
  states: {
    running: ['Under way', 'Läuft', 'In corso'],
    done: ['Done', 'Fertig', 'Fatto'],
    cancelled: ['Cancelled', 'Abgebrochen', 'Interrotto'],
    failed: ['It could not go on', 'Es ging nicht weiter', 'Non è potuto continuare'],
  },
  changed: counter(['# changed', '# changed'], ['# geändert', '# geändert'], ['# modificata', '# modificate']),
  refused: counter(['# refused', '# refused'], ['# abgelehnt', '# abgelehnt'], ['# rifiutata', '# rifiutate']),
  remaining: (shown: string) => [`${shown} left`, `${shown} übrig`, `${shown} rimanenti`],
  goesOn: [
    'It goes on if you close this window.',
    'Es geht weiter, auch wenn Sie dieses Fenster schließen.',
    'Continua anche se chiudi questa finestra.',
  ],
  undo: ['Undo', 'Rückgängig machen', 'Annulla le modifiche'],
  undoing: ['Undoing', 'Wird rückgängig gemacht', 'Annullamento in corso'],
  undoneAt: (time: string) => [`Undone on ${time}`, `Rückgängig gemacht am ${time}`, `Annullata il ${time}`],
  earlier: ['Earlier changes', 'Frühere Änderungen', 'Modifiche precedenti'],
  undone: counter(
    ['Undone: # entry', 'Undone: # entries'],
    ['Rückgängig gemacht: # Eintrag', 'Rückgängig gemacht: # Einträge'],
    ['Annullata: # voce', 'Annullate: # voci'],
  ),
  undoLeft: counter(
    [
      '# stays as it is: it was changed since, or is an answer.',
      '# stay as they are: they were changed since, or are answers.',
    ],
    [
      '# bleibt, wie es ist: seither geändert, oder eine Antwort.',
      '# bleiben, wie sie sind: seither geändert, oder Antworten.',
    ],
    [
      '# resta com’è: è cambiata nel frattempo, o è una risposta.',
      '# restano come sono: sono cambiate nel frattempo, o sono risposte.',
    ],
  ),
  more: ['Show more', 'Mehr zeigen', 'Mostra altre'],
})

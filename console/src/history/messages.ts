import { defineMessages } from '../app/language.tsx'

export const messages = defineMessages({
  none: ['Nothing has happened yet.', 'Es ist noch nichts geschehen.', 'Non è ancora successo nulla.'],
  notAllowed: [
    'Your session may not read the history. It takes the scope changes:read.',
    'Ihre Sitzung darf den Verlauf nicht lesen. Dazu braucht es das Recht changes:read.',
    'La tua sessione non può leggere la cronologia. Serve il permesso changes:read.',
  ],
  showOlder: ['Show older entries', 'Ältere Einträge zeigen', 'Mostra le voci precedenti'],
  operations: {
    create: ['created', 'hat angelegt', 'ha creato'],
    update: ['changed', 'hat geändert', 'ha modificato'],
    delete: ['deleted', 'hat gelöscht', 'ha eliminato'],
    restore: ['restored', 'hat wiederhergestellt', 'ha ripristinato'],
    merge: ['merged into somebody else', 'hat mit jemand anderem zusammengeführt', 'ha unito a un’altra persona'],
    unmerge: ['separated again', 'hat wieder getrennt', 'ha separato'],
    erase: ['erased', 'hat endgültig gelöscht', 'ha cancellato definitivamente'],
    retention_due: [
      'told that the person will be erased or deleted',
      'hat die Löschung angekündigt',
      'ha annunciato la cancellazione',
    ],
  },
  showVersion: (version: number) => [
    `Show this version: ${version}`,
    `Diese Fassung zeigen: ${version}`,
    `Mostra questa versione: ${version}`,
  ],
  undo: (version: number) => [
    `Undo the change of version ${version}`,
    `Die Änderung von Fassung ${version} zurücknehmen`,
    `Annulla la modifica della versione ${version}`,
  ],
  undoShort: ['Undo', 'Zurücknehmen', 'Annulla la modifica'],
  showShort: ['Show this version', 'Diese Fassung zeigen', 'Mostra questa versione'],
  noValues: ['No value changed.', 'Kein Wert hat sich geändert.', 'Nessun valore è cambiato.'],
  from: ['before', 'vorher', 'prima'],
  to: ['after', 'nachher', 'dopo'],
  superseded: [
    'arrived late and changed nothing',
    'kam verspätet an und änderte nichts',
    'arrivata in ritardo, senza effetto',
  ],
  again: ['answered again', 'noch einmal beantwortet', 'nuova risposta'],
  answeredAt: (time: string) => [`answered ${time}`, `beantwortet ${time}`, `risposta del ${time}`],
  restoreTitle: (version: number) => [
    `Restore version ${version}`,
    `Fassung ${version} wiederherstellen`,
    `Ripristina la versione ${version}`,
  ],
  willBeSet: ['These values will be set:', 'Diese Werte werden gesetzt:', 'Questi valori verranno impostati:'],
  now: ['Now', 'Jetzt', 'Ora'],
  willBe: ['Will be', 'Wird zu', 'Diventa'],
  cannotBeSet: [
    'These links cannot be set, because a target was erased:',
    'Diese Verknüpfungen lassen sich nicht setzen, weil ein Ziel endgültig gelöscht wurde:',
    'Questi collegamenti non si possono impostare, perché una destinazione è stata cancellata definitivamente:',
  ],
  valuesErased: [
    'The values of this change were erased.',
    'Die Werte dieser Änderung wurden endgültig gelöscht.',
    'I valori di questa modifica sono stati cancellati.',
  ],
  nothingToSet: [
    'Nothing to restore: the current values are the same.',
    'Es gibt nichts zu setzen: Die Werte sind schon die von damals.',
    'Niente da impostare: i valori sono già quelli di allora.',
  ],
  answersStay: [
    'Consent answers stay as they are, because only the person answers.',
    'Einwilligungen bleiben, wie sie sind, denn nur die Person selbst antwortet.',
    'I consensi restano come sono, perché risponde solo la persona.',
  ],
  apply: ['Set these values', 'Diese Werte setzen', 'Imposta questi valori'],
  changedMeanwhile: [
    'Somebody changed something in the meantime. This list is new: check it, then set the values.',
    'Inzwischen hat jemand etwas geändert. Diese Liste ist neu: Prüfen Sie sie und setzen Sie dann die Werte.',
    'Nel frattempo qualcuno ha modificato qualcosa. Questo elenco è nuovo: controllalo, poi imposta i valori.',
  ],
})

import { defineMessages } from '../app/language.tsx'

/** The group of the texts below for an owner. */
export const kindOf = (owner: string): 'person' | 'record' => (owner === 'people' ? 'person' : 'record')

export const messages = defineMessages({
  person: {
    title: ['Person', 'Person', 'Persona'],
    notFound: ['Nobody has this identifier', 'Niemand hat diese Kennung', 'Nessuno ha questo identificativo'],
    notFoundAdvice: [
      'Check the identifier, or search among all people.',
      'Prüfen Sie die Kennung, oder suchen Sie unter allen Personen.',
      'Controlla l’identificativo, oppure cerca tra tutte le persone.',
    ],
    toList: ['To all people', 'Zu allen Personen', 'A tutte le persone'],
    placeholderTitle: [
      'Nobody has created this person yet.',
      'Diese Person hat noch niemand angelegt.',
      'Nessuno ha ancora creato questa persona.',
    ],
    pastTitle: (moment: string) => [
      `You see this person as of ${moment}.`,
      `Sie sehen diese Person im Stand vom ${moment}.`,
      `Vedi questa persona com’era il ${moment}.`,
    ],
    didNotExist: [
      'The person did not exist then, or the log no longer has its values.',
      'Die Person gab es damals nicht, oder das Protokoll hat die Werte von damals nicht mehr.',
      'La persona allora non esisteva, oppure il registro non ha più i valori di allora.',
    ],
    deleteAdvice: [
      'The person and the further identifiers are deleted, and links to the person are no longer shown. The history and the consent answers stay as evidence, and the person can be restored with the links. To remove everything, erase the person.',
      'Die Person und ihre weiteren Kennungen werden gelöscht, und Verknüpfungen mit ihr werden nicht mehr gezeigt. Der Verlauf und die Einwilligungen bleiben als Nachweis, und die Person lässt sich mit den Verknüpfungen wiederherstellen. Um alles zu entfernen, löschen Sie die Person endgültig.',
      'La persona e gli altri identificativi vengono eliminati, e i collegamenti alla persona non si vedono più. La cronologia e i consensi restano come prova, e la persona si può ripristinare con i collegamenti. Per togliere tutto, cancella la persona definitivamente.',
    ],
    deleteNow: ['Delete the person', 'Person löschen', 'Elimina la persona'],
    deletedBy: (actor: string, time: string) => [
      `${actor} deleted the person, ${time}.`,
      `${actor} hat die Person gelöscht, ${time}.`,
      `${actor} ha eliminato la persona, ${time}.`,
    ],
    erasedTitle: [
      'This person was erased',
      'Diese Person wurde endgültig gelöscht',
      'Questa persona è stata cancellata definitivamente',
    ],
    erasedBy: (actor: string, time: string) => [
      `${actor} erased the person, ${time}. Only numbers and times are left. It cannot be undone.`,
      `${actor} hat die Person endgültig gelöscht, ${time}. Nur Nummern und Zeiten sind übrig. Das lässt sich nicht zurücknehmen.`,
      `${actor} ha cancellato la persona, ${time}. Restano solo numeri e date. Non si può annullare.`,
    ],
    restore: ['Restore the person', 'Person wiederherstellen', 'Ripristina la persona'],
  },
  record: {
    title: ['Record', 'Datensatz', 'Record'],
    notFound: ['There is no such record.', 'Diesen Datensatz gibt es nicht.', 'Questo record non esiste.'],
    notFoundAdvice: ['Check the identifier.', 'Prüfen Sie die Kennung.', 'Controlla l’identificativo.'],
    toList: ['Show all records', 'Alle Datensätze zeigen', 'Mostra tutti i record'],
    placeholderTitle: [
      'Nobody has created this record yet.',
      'Niemand hat diesen Datensatz bisher angelegt.',
      'Nessuno ha ancora creato questo record.',
    ],
    pastTitle: (moment: string) => [
      `You see this record as of ${moment}.`,
      `Sie sehen diesen Datensatz mit dem Stand vom ${moment}.`,
      `Vedi questo record com’era il ${moment}.`,
    ],
    didNotExist: [
      'The record did not exist then, or the log no longer has its values.',
      'Den Datensatz gab es damals nicht, oder das Protokoll hat seine Werte nicht mehr.',
      'Il record allora non esisteva, o il registro non ne ha più i valori.',
    ],
    deleteAdvice: [
      'Links to the record are no longer shown. The record can be restored from this page, with its links.',
      'Verknüpfungen auf den Datensatz werden nicht mehr gezeigt. Er lässt sich auf dieser Seite mit ihnen wiederherstellen.',
      'I collegamenti al record non si vedono più. Il record si può ripristinare da questa pagina, con i collegamenti.',
    ],
    deleteNow: ['Delete', 'Löschen', 'Elimina'],
    deletedBy: (actor: string, time: string) => [
      `${actor} deleted this record on ${time}.`,
      `${actor} hat diesen Datensatz am ${time} gelöscht.`,
      `${actor} ha eliminato questo record il ${time}.`,
    ],
    erasedTitle: [
      'This record was erased',
      'Dieser Datensatz wurde endgültig gelöscht',
      'Questo record è stato cancellato definitivamente',
    ],
    erasedBy: (actor: string, time: string) => [
      `${actor} erased this record on ${time}. It cannot come back.`,
      `${actor} hat diesen Datensatz am ${time} endgültig gelöscht.`,
      `${actor} ha cancellato questo record il ${time}. Non può tornare.`,
    ],
    restore: ['Restore', 'Wiederherstellen', 'Ripristina'],
  },
  internalId: ['Internal identifier', 'Interne Kennung', 'Identificativo interno'],
  noIdentifier: ['no identifier', 'keine Kennung', 'nessun identificativo'],
  created: ['Created', 'Angelegt', 'Creazione'],
  changed: ['Last change', 'Letzte Änderung', 'Ultima modifica'],
  aliasTitle: (alias: string) => [
    `“${alias}” leads to this person.`,
    `„${alias}“ führt zu dieser Person.`,
    `“${alias}” porta a questa persona.`,
  ],
  aliasAdvice: [
    'It is a further identifier of the person, from a merge or from another system.',
    'Das ist eine weitere Kennung der Person, aus einer Zusammenführung oder einem anderen System.',
    'È un altro identificativo della persona, da un’unione o da un altro sistema.',
  ],
  noAttributes: [
    'No attributes are declared, and the person has no values.',
    'Es sind keine Attribute deklariert, und die Person hat keine Werte.',
    'Non ci sono attributi dichiarati e la persona non ha valori.',
  ],
  asOf: ['As of…', 'Stand vom …', 'In data…'],
  asOfLabel: ['Date and time', 'Datum und Uhrzeit', 'Data e ora'],
  asOfHelp: [
    'The time zone is that of this browser.',
    'Die Zeitzone ist die dieses Browsers.',
    'Il fuso orario è quello di questo browser.',
  ],
  asOfShow: ['Show', 'Zeigen', 'Mostra'],
  asOfFuture: [
    'Choose a moment in the past.',
    'Wählen Sie einen vergangenen Zeitpunkt.',
    'Scegli un momento nel passato.',
  ],
  pastVersion: (version: number) => [
    `Version ${version}. Nothing can be changed here.`,
    `Fassung ${version}. Hier lässt sich nichts ändern.`,
    `Versione ${version}. Qui non si può modificare nulla.`,
  ],
  toNow: ['Back to now', 'Zurück zu jetzt', 'Torna a ora'],
  restoreVersion: ['Restore this version', 'Diese Fassung wiederherstellen', 'Ripristina questa versione'],
  links: ['Linked people and records', 'Verknüpfte Personen und Datensätze', 'Persone e record collegati'],
  noLinks: ['No links.', 'Keine Verknüpfungen.', 'Nessun collegamento.'],
  linkedBy: ['Linked by', 'Verknüpft durch', 'Collegato da'],
  linksOfNow: [
    'These are the identifiers at that time. Links from others are not shown for a past moment.',
    'Das sind die Namen von damals. Verknüpfungen von anderen gibt es für die Vergangenheit nicht.',
    'Questi sono i nomi di allora. I collegamenti da altri non si vedono per il passato.',
  ],
  showMore: ['Show more', 'Mehr anzeigen', 'Mostra altri'],
  deleteTitle: (name: string) => [`Delete ${name}?`, `${name} löschen?`, `Eliminare ${name}?`],
  deleting: ['Deleting', 'Wird gelöscht', 'Eliminazione'],
  deletedTitle: (name: string) => [`${name} was deleted`, `${name} wurde gelöscht`, `Persona eliminata: ${name}`],
  mergedTitle: (name: string) => [
    `${name} was merged into somebody else`,
    `${name} wurde mit jemand anderem zusammengeführt`,
    `Persona unita a un’altra: ${name}`,
  ],
  lastValues: [
    'These are the values before the deletion.',
    'Das sind die Werte vor der Löschung.',
    'Questi sono i valori prima dell’eliminazione.',
  ],
  restoring: ['Restoring', 'Wird wiederhergestellt', 'Ripristino'],
  placeholderAdvice: (identifier: string) => [
    `A link of other data names “${identifier}”, so kith holds a place. Enter any value below: the first one completes it.`,
    `Ein Link anderer Daten nennt „${identifier}“, deshalb hält kith einen Platz frei. Geben Sie unten einen Wert ein: Der erste macht den Eintrag vollständig.`,
    `Un link di altri dati indica «${identifier}», quindi kith tiene un posto. Inserisci un valore qui sotto: il primo lo completa.`,
  ],
  asOfTitle: ['Show it as of a moment', 'Den Stand eines Zeitpunkts zeigen', 'Mostra com’era in un momento'],
  immutable: ['never changes', 'ändert sich nie', 'non cambia mai'],
  restoreAdvice: [
    'The values and the links come back, also those from others that were not written since.',
    'Die Werte und die Links kommen zurück, auch die von anderen, die seitdem nicht geschrieben wurden.',
    'Tornano i valori e i link, anche quelli da altri che nel frattempo non sono stati scritti.',
  ],
})

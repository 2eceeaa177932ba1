/** The languages of the console. */
export const languages = ['en', 'de', 'it'] as const
export type Language = (typeof languages)[number]

/** A text in each language, in the order of {@link languages}. */
type Text = readonly [en: string, de: string, it: string]
type Entry = Text | ((...values: never[]) => Text) | Record<Language, object> | Entries
/**
 * Texts by their names. A text with a value is a function. Texts may be in groups. A group may also have one object per
 * language.
 */
export type Entries = { readonly [name: string]: Entry }

type TextsOf<Each> = Each extends Text
  ? string
  : Each extends (...values: infer Values) => Text
    ? (...values: Values) => string
    : Each extends Record<Language, infer Group>
      ? Group
      : { [Name in keyof Each]: TextsOf<Each[Name]> }

/** The texts of each language. */
export type Messages<Texts> = Record<Language, Texts>

/** Splits entries that have the languages side by side into the texts of each language. */
export function inEachLanguage<Defined extends Entries>(entries: Defined): Messages<TextsOf<Defined>> {
  const textsOf = (entry: Entry, language: Language): unknown => {
    const index = languages.indexOf(language)
    if (typeof entry === 'function') return (...values: never[]) => entry(...values)[index]
    if (Array.isArray(entry)) return entry[index]
    if ('en' in entry) return entry[language]
    return Object.fromEntries(Object.entries(entry).map(([name, each]) => [name, textsOf(each, language)]))
  }
  return Object.fromEntries(languages.map(language => [language, textsOf(entries, language)])) as never
}

/** Common words of all folders. A folder that needs another word for a name defines its own. */
export const words = {
  access: ['Access', 'Zugänge', 'Accessi'],
  action: ['Action', 'Aktion', 'Azione'],
  actions: ['Actions', 'Aktionen', 'Azioni'],
  all: ['All', 'Alle', 'Tutte'],
  archive: ['Archive', 'Archivieren', 'Archivia'],
  archived: ['Archived', 'Archiviert', 'Archiviato'],
  attributes: ['Attributes', 'Attribute', 'Attributi'],
  back: ['Back', 'Zurück', 'Indietro'],
  cancel: ['Cancel', 'Abbrechen', 'Annulla'],
  changes: ['Changes', 'Änderungen', 'Modifiche'],
  channel: ['Channel', 'Kanal', 'Canale'],
  chooseField: ['Choose a field', 'Feld wählen', 'Scegli un campo'],
  clientId: ['Client id', 'Client-ID', 'ID del client'],
  clientSecret: ['Client secret', 'Client-Geheimnis', 'Segreto del client'],
  close: ['Close', 'Schließen', 'Chiudi'],
  consent_string: ['Consent string', 'Consent-String', 'Stringa di consenso'],
  consents: ['Consents', 'Einwilligungen', 'Consensi'],
  copied: ['Copied', 'Kopiert', 'Copiato'],
  copy: ['Copy', 'Kopieren', 'Copia'],
  create: ['Create', 'Anlegen', 'Crea'],
  delete: ['Delete', 'Löschen', 'Elimina'],
  deliverability: ['Deliverability', 'Zustellbarkeit', 'Recapitabilità'],
  description: ['Description', 'Beschreibung', 'Descrizione'],
  details: ['Details', 'Einzelheiten', 'Dettagli'],
  duplicates: ['Duplicates', 'Dubletten', 'Duplicati'],
  edit: ['Edit', 'Bearbeiten', 'Modifica'],
  erasures: ['Erasures', 'Endgültige Löschungen', 'Cancellazioni'],
  field: ['Field', 'Feld', 'Campo'],
  fields: ['Fields', 'Felder', 'Campi'],
  filter: ['Filter', 'Filter', 'Filtro'],
  filterOf: (count: string) => [`Filter (${count})`, `Filter (${count})`, `Filtro (${count})`],
  goOn: ['Go on', 'Fortsetzen', 'Riprendi'],
  history: ['History', 'Verlauf', 'Cronologia'],
  identifier: ['Identifier', 'Kennung', 'Identificativo'],
  ip: ['IP address', 'IP-Adresse', 'Indirizzo IP'],
  jobs: ['Changes of many', 'Sammeländerungen', 'Modifiche multiple'],
  key: ['Key', 'Schlüssel', 'Chiave'],
  kind: ['Kind', 'Art', 'Genere'],
  language: ['Language', 'Sprache', 'Lingua'],
  lifetimes: ['Lifetimes', 'Aufbewahrung', 'Conservazione'],
  method: ['How', 'Wie', 'Come'],
  name: ['Name', 'Name', 'Nome'],
  never: ['never', 'nie', 'mai'],
  no: ['No', 'Nein', 'No'],
  operations: ['Operations', 'Betrieb', 'Operatività'],
  pages: ['Pages', 'Seiten', 'Pagine'],
  pause: ['Pause', 'Anhalten', 'Pausa'],
  paused: ['Paused', 'Angehalten', 'In pausa'],
  people: ['People', 'Personen', 'Persone'],
  profile: ['Profile', 'Profil', 'Profilo'],
  purpose: ['Purpose', 'Zweck', 'Finalità'],
  reason: ['Reason', 'Grund', 'Motivo'],
  records: ['Records', 'Datensätze', 'Record'],
  reference: ['Reference', 'Referenz', 'Riferimento'],
  reports: ['Reports', 'Auswertungen', 'Report'],
  request: ['Request', 'Anfrage', 'Richiesta'],
  role: ['Role', 'Rolle', 'Ruolo'],
  save: ['Save', 'Speichern', 'Salva'],
  saving: ['Saving', 'Wird gespeichert', 'Salvataggio'],
  schema: ['Schema', 'Schema', 'Schema'],
  segment: ['Segment', 'Segment', 'Segmento'],
  showMore: ['Show more', 'Mehr anzeigen', 'Mostra altro'],
  signIn: ['Sign in', 'Anmelden', 'Accedi'],
  source: ['Where', 'Wo', 'Dove'],
  state: ['State', 'Zustand', 'Stato'],
  text: ['Text', 'Text', 'Testo'],
  user_agent: ['Browser', 'Browser', 'Browser'],
  value: ['Value', 'Wert', 'Valore'],
  values: ['Values', 'Werte', 'Valori'],
  version: (version: number) => [`Version ${version}`, `Fassung ${version}`, `Versione ${version}`],
  webhooks: ['Webhooks', 'Webhooks', 'Webhook'],
  what: ['What', 'Was', 'Che cosa'],
  when: ['When', 'Wann', 'Quando'],
  who: ['Who', 'Wer', 'Chi'],
  yes: ['Yes', 'Ja', 'Sì'],
} as const satisfies Entries

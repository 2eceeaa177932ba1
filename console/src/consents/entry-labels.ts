import type { LedgerEntry } from '@kith/client'
import { type Entries, inEachLanguage } from '../app/words.ts'

/** The labels of the members of an answer as a receipt has it. */
export const entryLabels = inEachLanguage({
  organization: ['Organization', 'Organisation', 'Organizzazione'],
  sequence: ['Number of the change', 'Nummer der Änderung', 'Numero della modifica'],
  person_id: ['Person', 'Person', 'Persona'],
  consent_type_id: ['Consent type', 'Einwilligungsart', 'Tipo di consenso'],
  channel: ['Channel', 'Kanal', 'Canale'],
  state: ['Granted', 'Eingewilligt', 'Concesso'],
  previous_state: ['Granted before', 'Vorher eingewilligt', 'Concesso prima'],
  superseded: ['Arrived late', 'Verspätet eingetroffen', 'Arrivato in ritardo'],
  pending: ['Waits for its confirmation', 'Wartet auf Bestätigung', 'Attende la conferma'],
  undated: ['Without a time of its own', 'Ohne eigenen Zeitpunkt', 'Senza un momento proprio'],
  at: ['Recorded', 'Gespeichert', 'Registrato'],
  collected_at: ['Answered', 'Geantwortet', 'Risposto'],
  method: ['How', 'Wie', 'Come'],
  source: ['Where', 'Wo', 'Dove'],
  text_version: ['Version of the text', 'Version des Texts', 'Versione del testo'],
  text_sha256: ['SHA-256 of the text', 'SHA-256 des Texts', 'SHA-256 del testo'],
  ip: ['IP address', 'IP-Adresse', 'Indirizzo IP'],
  user_agent: ['Browser', 'Browser', 'Browser'],
  reference: ['Reference', 'Verweis', 'Riferimento'],
  consent_string: ['Consent string', 'Consent-String', 'Stringa di consenso'],
  actor: ['Recorded by', 'Gespeichert von', 'Registrato da'],
  request_id: ['Request', 'Anfrage', 'Richiesta'],
} satisfies Record<keyof LedgerEntry, Entries[string]>)

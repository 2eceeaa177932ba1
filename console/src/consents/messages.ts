import type { LedgerEntry } from '@kith/client'
import { defineMessages } from '../app/language.tsx'
import { type Entries, inEachLanguage, words } from '../app/words.ts'

export const messages = defineMessages({
  confirmationLink: [
    'Link that confirms the answer',
    'Link, der die Antwort bestätigt',
    'Link che conferma la risposta',
  ],
  confirmationAdvice: [
    'Send it to the person, who confirms the answer with it. Give it to nobody else.',
    'Senden Sie ihn der Person, die damit ihre Antwort bestätigt. Geben Sie ihn niemandem sonst.',
    'Invialo alla persona, che con esso conferma la risposta. Non darlo a nessun altro.',
  ],
  subtitle: [
    'Who may be written to, by purpose and channel.',
    'Wer angeschrieben werden darf, nach Zweck und Kanal.',
    'A chi si può scrivere, per finalità e canale.',
  ],
  interval: ['Interval', 'Zeitraum', 'Periodo'],
  days: ['30 days', '30 Tage', '30 giorni'],
  weeks: ['26 weeks', '26 Wochen', '26 settimane'],
  months: ['12 months', '12 Monate', '12 mesi'],
  now: [
    'People who may be written to now',
    'Personen, die jetzt angeschrieben werden dürfen',
    'Persone a cui si può scrivere ora',
  ],
  nowHelp: [
    'Counted exactly, by the rules of contact decisions.',
    'Genau gezählt, nach den Regeln der Kontaktentscheidungen.',
    'Contate esattamente, secondo le regole delle decisioni di contatto.',
  ],
  overTime: ['Answers over time', 'Antworten im Lauf der Zeit', 'Risposte nel tempo'],
  granted: ['Granted', 'Erteilt', 'Concesse'],
  refused: ['Refused', 'Abgelehnt', 'Rifiutate'],
  pending: ['Waiting for confirmation', 'Wartet auf Bestätigung', 'In attesa di conferma'],
  mayContact: ['May be written to', 'Dürfen angeschrieben werden', 'Si può scrivere a'],
  plot: (purpose: string, channel: string) => [
    `${purpose}, ${channel}: answers in force`,
    `${purpose}, ${channel}: geltende Antworten`,
    `${purpose}, ${channel}: risposte in vigore`,
  ],
  none: ['No purposes yet', 'Noch keine Zwecke', 'Ancora nessuna finalità'],
  noneAdvice: [
    'Define a consent type in the schema. Its answers are then counted here.',
    'Legen Sie im Schema einen Einwilligungszweck an. Seine Antworten werden dann hier gezählt.',
    'Definisci un tipo di consenso nello schema. Le sue risposte saranno contate qui.',
  ],
  ledgerTitle: ['Ledger', 'Nachweise', 'Registro'],
  ledgerSubtitle: [
    'The sealed log of all consent answers, in which no answer can be changed unnoticed.',
    'Das versiegelte Protokoll aller Einwilligungen, das niemand unbemerkt umschreiben kann.',
    'Il registro sigillato di tutti i consensi, che nessuno può riscrivere di nascosto.',
  ],
  checkpoint: ['Newest checkpoint', 'Neuester Prüfpunkt', 'Ultimo checkpoint'],
  entries: ['Sealed answers', 'Versiegelte Antworten', 'Risposte sigillate'],
  root: ['Root hash', 'Wurzel-Hash', 'Hash radice'],
  origin: ['Log', 'Protokoll', 'Registro'],
  noteAdvice: [
    'Save it and keep it somewhere else. It proves later that the ledger was not rewritten since.',
    'Bewahren Sie ihn anderswo auf. Er beweist später, dass seither nichts umgeschrieben wurde.',
    'Conservalo altrove. In seguito prova che il registro non è stato riscritto.',
  ],
  save: ['Save the checkpoint', 'Prüfpunkt speichern', 'Salva il checkpoint'],
  keys: ['Keys of the ledger', 'Schlüssel des Protokolls', 'Chiavi del registro'],
  created: ['Created', 'Angelegt', 'Creata'],
  retired: ['Retired', 'Abgelöst', 'Ritirata'],
  inUse: ['signs', 'signiert', 'firma'],
  verify: ['Verify a receipt', 'Einen Beleg prüfen', 'Verifica una ricevuta'],
  verifyAdvice: [
    'The page checks the receipt itself. The file leaves neither this page nor this machine.',
    'Die Seite prüft den Beleg selbst. Die Datei verlässt weder diese Seite noch diesen Rechner.',
    'È la pagina a verificare la ricevuta. Il file non lascia né questa pagina né questo computer.',
  ],
  dropReceipt: [
    'Drop a receipt here, or choose its file',
    'Legen Sie einen Beleg hier ab oder wählen Sie seine Datei',
    'Trascina qui una ricevuta, oppure scegli il suo file',
  ],
  trustedKey: [
    'Key that must have signed (optional)',
    'Schlüssel, der signiert haben muss (optional)',
    'Chiave che deve aver firmato (facoltativa)',
  ],
  trustedKeyHelp: [
    'name+hash+base64, from a source that you trust. Without it, the receipt’s own key is used.',
    'Name+Hash+Base64, aus einer vertrauenswürdigen Quelle. Ohne ihn gilt der Schlüssel im Beleg selbst.',
    'nome+hash+base64, da una fonte di cui ti fidi. Senza, vale la chiave della ricevuta stessa.',
  ],
  textFile: [
    'Text that the person answered to (optional)',
    'Text, auf den die Person geantwortet hat (optional)',
    'Testo a cui la persona ha risposto (facoltativo)',
  ],
  valid: ['The receipt is valid.', 'Der Beleg ist gültig.', 'La ricevuta è valida.'],
  invalid: (part: string) => [
    `The receipt is not valid: ${part}.`,
    `Der Beleg ist nicht gültig: ${part}.`,
    `La ricevuta non è valida: ${part}.`,
  ],
  entry: ['The answer', 'Die Antwort', 'La risposta'],
  proved: ['Proved', 'Bewiesen', 'Provato'],
  notProved: ['Not proved', 'Nicht bewiesen', 'Non provato'],
  provedKey: [
    'This key signed the receipt, and no member of it was changed since:',
    'Dieser Schlüssel hat den Beleg signiert, und seither wurde kein Teil geändert:',
    'Questa chiave ha firmato la ricevuta, e da allora nessuna parte è cambiata:',
  ],
  provedEntry: (index: string, size: string) => [
    `The answer is entry ${index} of a log of ${size}, and neither was changed since it was sealed.`,
    `Die Antwort ist Eintrag ${index} eines Protokolls mit ${size} Einträgen, und beides ist seit der Versiegelung unverändert.`,
    `La risposta è la voce ${index} di un registro di ${size}, e nulla è cambiato da quando è stata sigillata.`,
  ],
  provedText: [
    'The text is the one whose hash is in the answer.',
    'Der Text ist der, dessen Hash in der Antwort steht.',
    'Il testo è quello il cui hash è nella risposta.',
  ],
  notProvedKey: [
    'That the key is the organization’s. Compare it with the key that the organization publishes, or give it above.',
    'Dass der Schlüssel der Organisation gehört. Vergleichen Sie ihn mit dem veröffentlichten, oder geben Sie ihn oben an.',
    'Che la chiave sia dell’organizzazione. Confrontala con quella che l’organizzazione pubblica, o indicala sopra.',
  ],
  notProvedLog: [
    'That others are shown the same log. Compare the checkpoint with one that was kept elsewhere.',
    'Dass andere dasselbe Protokoll sehen. Vergleichen Sie den Prüfpunkt mit einem anderswo aufbewahrten.',
    'Che gli altri vedano lo stesso registro. Confronta il checkpoint con uno conservato altrove.',
  ],
  notProvedPerson: [
    'That the person, the evidence and the times are true: the organization states them.',
    'Dass Person, Nachweise und Zeiten stimmen: Das gibt die Organisation an.',
    'Che persona, prove e orari siano veri: lo dichiara l’organizzazione.',
  ],
  notProvedText: [
    'That the person saw a certain text: the answer names none.',
    'Dass die Person einen bestimmten Text sah: Die Antwort nennt keinen.',
    'Che la persona abbia visto un certo testo: la risposta non ne nomina.',
  ],
  notProvedLater: [
    'That the person has not answered again since.',
    'Dass die Person seither nicht anders geantwortet hat.',
    'Che la persona non abbia poi risposto di nuovo.',
  ],
})

/** The labels of the members of an answer in a receipt. */
export const entryLabels = inEachLanguage({
  ...words,
  organization: ['Organization', 'Organisation', 'Organizzazione'],
  sequence: ['Number of the change', 'Nummer der Änderung', 'Numero della modifica'],
  person_id: ['Person', 'Person', 'Persona'],
  consent_type_id: ['Consent type', 'Einwilligungsart', 'Tipo di consenso'],
  state: ['Granted', 'Eingewilligt', 'Concesso'],
  previous_state: ['Granted before', 'Vorher eingewilligt', 'Concesso prima'],
  superseded: ['Arrived late', 'Verspätet eingetroffen', 'Arrivato in ritardo'],
  pending: ['Waits for its confirmation', 'Wartet auf Bestätigung', 'Attende la conferma'],
  undated: ['Without a time of its own', 'Ohne eigenen Zeitpunkt', 'Senza un momento proprio'],
  at: ['Recorded', 'Gespeichert', 'Registrato'],
  collected_at: ['Answered', 'Geantwortet', 'Risposto'],
  text_version: ['Version of the text', 'Version des Texts', 'Versione del testo'],
  text_sha256: ['SHA-256 of the text', 'SHA-256 des Texts', 'SHA-256 del testo'],
  reference: ['Reference', 'Verweis', 'Riferimento'],
  actor: ['Recorded by', 'Gespeichert von', 'Registrato da'],
  request_id: ['Request', 'Anfrage', 'Richiesta'],
} satisfies Record<keyof LedgerEntry, Entries[string]>)

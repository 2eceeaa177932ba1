import { defineMessages } from '../app/language.tsx'

export const messages = defineMessages({
  subtitle: [
    'Addresses that messages do not reach, and the mail providers that tell of them.',
    'Adressen, die Nachrichten nicht erreichen, und die Versanddienste, die davon berichten.',
    'Gli indirizzi che i messaggi non raggiungono, e i servizi di invio che lo segnalano.',
  ],
  suppressions: ['Suppressed addresses', 'Gesperrte Adressen', 'Indirizzi sospesi'],
  suppressionsAdvice: [
    'No message may go to these addresses. The latest comes first.',
    'An diese Adressen darf keine Nachricht gehen. Die jüngste Sperre steht oben.',
    'A questi indirizzi non può andare nessun messaggio. Il più recente è il primo.',
  ],
  search: ['Part of the address', 'Teil der Adresse', 'Parte dell’indirizzo'],
  address: ['Address', 'Adresse', 'Indirizzo'],
  erasedAddress: (channel: string) => [
    `${channel} of an erased person`,
    `${channel} einer endgültig gelöschten Person`,
    `${channel} di una persona cancellata`,
  ],
  noneFound: [
    'No suppressed address is found.',
    'Keine gesperrte Adresse gefunden.',
    'Nessun indirizzo sospeso trovato.',
  ],
  noSuppressions: ['No address is suppressed.', 'Keine Adresse ist gesperrt.', 'Nessun indirizzo è sospeso.'],
  noSuppressionsAdvice: [
    'Bounces and complaints suppress addresses. A source lets your mail provider tell of them.',
    'Rückläufer und Beschwerden sperren Adressen. Über eine Quelle berichtet Ihr Versanddienst davon.',
    'I mancati recapiti e i reclami sospendono gli indirizzi. Con una fonte è il tuo servizio di invio a segnalarli.',
  ],
  sources: ['Sources', 'Quellen', 'Fonti'],
  sourcesAdvice: [
    'Each source takes the bounces, complaints and deliveries of one mail provider.',
    'Jede Quelle nimmt die Rückläufer, Beschwerden und Zustellungen eines Versanddienstes an.',
    'Ogni fonte riceve i mancati recapiti, i reclami e le consegne di un servizio di invio.',
  ],
  addSource: ['New source', 'Neue Quelle', 'Nuova fonte'],
  noSources: ['No sources yet', 'Noch keine Quellen', 'Ancora nessuna fonte'],
  noSourcesAdvice: [
    'A source has an address of its own, to which the provider sends its events.',
    'Eine Quelle hat eine eigene Adresse, an die der Dienst seine Ereignisse sendet.',
    'Una fonte ha un proprio indirizzo, a cui il servizio manda i suoi eventi.',
  ],
  provider: ['Mail provider', 'Versanddienst', 'Servizio di invio'],
  providers: {
    ses: ['Amazon SES', 'Amazon SES', 'Amazon SES'],
    sendgrid: ['SendGrid', 'SendGrid', 'SendGrid'],
    mailgun: ['Mailgun', 'Mailgun', 'Mailgun'],
    postmark: ['Postmark', 'Postmark', 'Postmark'],
  },
  keyHelp: [
    'A name of your own, such as newsletter: small letters, digits and _.',
    'Ein eigener Name, etwa newsletter: kleine Buchstaben, Ziffern und _.',
    'Un nome a tua scelta, per esempio newsletter: lettere minuscole, cifre e _.',
  ],
  secrets: {
    ses: ['ARN of the SNS topic', 'ARN des SNS-Themas', 'ARN dell’argomento SNS'],
    sendgrid: ['Public key of the webhook', 'Öffentlicher Schlüssel des Webhooks', 'Chiave pubblica del webhook'],
    mailgun: ['HTTP webhook signing key', 'Signaturschlüssel der HTTP-Webhooks', 'Chiave di firma dei webhook HTTP'],
    postmark: ['User and password (optional)', 'Benutzer und Passwort (optional)', 'Utente e password (facoltativi)'],
  },
  secretHelps: {
    ses: [
      'Create a standard topic in Amazon SNS, and copy its ARN. In SES, let your configuration set send bounces, complaints and deliveries to this topic (Event destinations).',
      'Legen Sie in Amazon SNS ein Thema vom Typ „Standard“ an, und kopieren Sie seine ARN. Lassen Sie in SES Ihren Konfigurationssatz Bounces, Complaints und Deliveries an dieses Thema senden (Event destinations).',
      'In Amazon SNS crea un argomento standard e copia il suo ARN. In SES fai inviare al tuo set di configurazione Bounces, Complaints e Deliveries a questo argomento (Event destinations).',
    ],
    sendgrid: [
      'In SendGrid: Settings, Mail Settings, Event Webhooks. Create a webhook, turn on signature verification, and copy the public key. Until you have the address of kith, enter any other one there.',
      'In SendGrid: Settings, Mail Settings, Event Webhooks. Legen Sie einen Webhook an, schalten Sie „Signature Verification“ ein, und kopieren Sie den öffentlichen Schlüssel. Geben Sie dort eine beliebige Adresse ein, bis Sie die von kith haben.',
      'In SendGrid: Settings, Mail Settings, Event Webhooks. Crea un webhook, attiva “Signature Verification” e copia la chiave pubblica. Finché non hai l’indirizzo di kith, inseriscine lì uno qualsiasi.',
    ],
    mailgun: [
      'In Mailgun: Settings, API Security. Copy the HTTP webhook signing key.',
      'In Mailgun: Settings, API Security. Kopieren Sie den „HTTP webhook signing key“.',
      'In Mailgun: Settings, API Security. Copia la “HTTP webhook signing key”.',
    ],
    postmark: [
      'Think of both, and write them with a colon between them, such as kith:a-long-password. Without them, only the secret address protects the source.',
      'Denken Sie sich beides aus, und schreiben Sie einen Doppelpunkt dazwischen, etwa kith:ein-langes-Passwort. Ohne beides schützt nur die geheime Adresse die Quelle.',
      'Scegli tu entrambi e scrivili separati da due punti, per esempio kith:una-password-lunga. Senza, solo l’indirizzo segreto protegge la fonte.',
    ],
  },
  pasteAddress: [
    'Address to paste at the provider',
    'Adresse, die Sie beim Dienst einfügen',
    'Indirizzo da incollare nel servizio',
  ],
  where: {
    ses: [
      'In Amazon SNS, open the topic and create a subscription: protocol HTTPS, this address as the endpoint, and no raw message delivery. kith confirms the subscription.',
      'Öffnen Sie in Amazon SNS das Thema, und legen Sie ein Abonnement an: Protokoll HTTPS, diese Adresse als Endpunkt, ohne „Raw message delivery“. kith bestätigt das Abonnement.',
      'In Amazon SNS apri l’argomento e crea una sottoscrizione: protocollo HTTPS, questo indirizzo come endpoint, senza “Raw message delivery”. kith conferma la sottoscrizione.',
    ],
    sendgrid: [
      'In SendGrid: Settings, Mail Settings, Event Webhooks. Paste it as the Post URL of the webhook, choose Delivered, Bounced, Spam Reports, Unsubscribes and Group Unsubscribes, and leave signature verification on.',
      'In SendGrid: Settings, Mail Settings, Event Webhooks. Fügen Sie sie als Post URL des Webhooks ein, wählen Sie Delivered, Bounced, Spam Reports, Unsubscribes und Group Unsubscribes, und lassen Sie „Signature Verification“ eingeschaltet.',
      'In SendGrid: Settings, Mail Settings, Event Webhooks. Incollalo come Post URL del webhook, scegli Delivered, Bounced, Spam Reports, Unsubscribes e Group Unsubscribes, e lascia attiva “Signature Verification”.',
    ],
    mailgun: [
      'In Mailgun: Send, Sending, Webhooks. Add a webhook with this address for Delivered Messages, Permanent Failure, Temporary Failure, Spam Complaints and Unsubscribes.',
      'In Mailgun: Send, Sending, Webhooks. Legen Sie einen Webhook mit dieser Adresse an, für Delivered Messages, Permanent Failure, Temporary Failure, Spam Complaints und Unsubscribes.',
      'In Mailgun: Send, Sending, Webhooks. Aggiungi un webhook con questo indirizzo per Delivered Messages, Permanent Failure, Temporary Failure, Spam Complaints e Unsubscribes.',
    ],
    postmark: [
      'In Postmark: your server, its message stream, Webhooks. Add a webhook with this address for Delivery, Bounce, Spam Complaint and Subscription Change, with the user and the password if the source has them. Keep the address secret.',
      'In Postmark: Ihr Server, sein Message Stream, Webhooks. Legen Sie einen Webhook mit dieser Adresse an, für Delivery, Bounce, Spam Complaint und Subscription Change, mit Benutzer und Passwort, wenn die Quelle sie hat. Halten Sie die Adresse geheim.',
      'In Postmark: il tuo server, il suo Message Stream, Webhooks. Aggiungi un webhook con questo indirizzo per Delivery, Bounce, Spam Complaint e Subscription Change, con utente e password se la fonte li ha. Tieni segreto l’indirizzo.',
    ],
  },
  lastEvent: ['Last events', 'Letzte Ereignisse', 'Ultimi eventi'],
  ignoredEvents: [
    'Ignored events, such as opened messages',
    'Ignorierte Ereignisse, etwa geöffnete Nachrichten',
    'Eventi ignorati, come i messaggi aperti',
  ],
  confirmed: ['Subscription confirmed', 'Abonnement bestätigt', 'Sottoscrizione confermata'],
  notYet: ['not yet', 'noch nicht', 'non ancora'],
  removeSource: ['Remove…', 'Entfernen …', 'Rimuovi…'],
  removeTitle: (key: string) => [
    `Remove the source ${key}?`,
    `Die Quelle ${key} entfernen?`,
    `Rimuovere la fonte ${key}?`,
  ],
  removeAdvice: (provider: string) => [
    `kith takes no more events from this address. What ${provider} told until now stays. Remove the address there too.`,
    `kith nimmt von dieser Adresse keine Ereignisse mehr an. Was ${provider} bisher gemeldet hat, bleibt. Entfernen Sie die Adresse auch dort.`,
    `kith non riceve più eventi a questo indirizzo. Ciò che ${provider} ha segnalato finora resta. Rimuovi l’indirizzo anche lì.`,
  ],
  removeAction: ['Remove the source', 'Quelle entfernen', 'Rimuovi la fonte'],
})

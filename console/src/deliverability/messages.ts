import { defineMessages } from '../app/language.tsx'

export const messages = defineMessages({
  en: {
    subtitle: 'Addresses that messages do not reach, and the mail providers that tell of them.',
    suppressions: 'Suppressed addresses',
    suppressionsAdvice: 'No message may go to these addresses. The latest comes first.',
    search: 'Part of the address',
    reason: 'Reason',
    address: 'Address',
    action: 'Action',
    erasedAddress: (channel: string) => `${channel} of an erased person`,
    noneFound: 'No suppressed address is found.',
    noSuppressions: 'No address is suppressed.',
    noSuppressionsAdvice: 'Bounces and complaints suppress addresses. A source lets your mail provider tell of them.',
    more: 'Show more',
    sources: 'Sources',
    sourcesAdvice: 'Each source takes the bounces, complaints and deliveries of one mail provider.',
    addSource: 'New source',
    noSources: 'No sources yet',
    noSourcesAdvice: 'A source has an address of its own, to which the provider sends its events.',
    provider: 'Mail provider',
    providers: { ses: 'Amazon SES', sendgrid: 'SendGrid', mailgun: 'Mailgun', postmark: 'Postmark' },
    keyHelp: 'A name of your own, such as newsletter: small letters, digits and _.',
    secrets: {
      ses: 'ARN of the SNS topic',
      sendgrid: 'Public key of the webhook',
      mailgun: 'HTTP webhook signing key',
      postmark: 'User and password (optional)',
    },
    secretHelps: {
      ses: 'Create a standard topic in Amazon SNS, and copy its ARN. In SES, let your configuration set send bounces, complaints and deliveries to this topic (Event destinations).',
      sendgrid:
        'In SendGrid: Settings, Mail Settings, Event Webhooks. Create a webhook, turn on signature verification, and copy the public key. Until you have the address of kith, enter any other one there.',
      mailgun: 'In Mailgun: Settings, API Security. Copy the HTTP webhook signing key.',
      postmark:
        'Think of both, and write them with a colon between them, such as kith:a-long-password. Without them, only the secret address protects the source.',
    },
    pasteAddress: 'Address to paste at the provider',
    where: {
      ses: 'In Amazon SNS, open the topic and create a subscription: protocol HTTPS, this address as the endpoint, and no raw message delivery. kith confirms the subscription.',
      sendgrid:
        'In SendGrid: Settings, Mail Settings, Event Webhooks. Paste it as the Post URL of the webhook, choose Delivered, Bounced, Spam Reports, Unsubscribes and Group Unsubscribes, and leave signature verification on.',
      mailgun:
        'In Mailgun: Send, Sending, Webhooks. Add a webhook with this address for Delivered Messages, Permanent Failure, Temporary Failure, Spam Complaints and Unsubscribes.',
      postmark:
        'In Postmark: your server, its message stream, Webhooks. Add a webhook with this address for Delivery, Bounce, Spam Complaint and Subscription Change, with the user and the password if the source has them. Keep the address secret.',
    },
    lastEvent: 'Last events',
    never: 'never',
    ignoredEvents: 'Ignored events, such as opened messages',
    confirmed: 'Subscription confirmed',
    notYet: 'not yet',
    removeSource: 'Remove…',
    removeTitle: (key: string) => `Remove the source ${key}?`,
    removeAdvice: (provider: string) =>
      `kith takes no more events from this address. What ${provider} told until now stays. Remove the address there too.`,
    removeAction: 'Remove the source',
  },
  de: {
    subtitle: 'Adressen, die Nachrichten nicht erreichen, und die Versanddienste, die davon berichten.',
    suppressions: 'Gesperrte Adressen',
    suppressionsAdvice: 'An diese Adressen darf keine Nachricht gehen. Die jüngste Sperre steht oben.',
    search: 'Teil der Adresse',
    reason: 'Grund',
    address: 'Adresse',
    action: 'Aktion',
    erasedAddress: channel => `${channel} einer endgültig gelöschten Person`,
    noneFound: 'Keine gesperrte Adresse gefunden.',
    noSuppressions: 'Keine Adresse ist gesperrt.',
    noSuppressionsAdvice:
      'Rückläufer und Beschwerden sperren Adressen. Über eine Quelle berichtet Ihr Versanddienst davon.',
    more: 'Mehr anzeigen',
    sources: 'Quellen',
    sourcesAdvice: 'Jede Quelle nimmt die Rückläufer, Beschwerden und Zustellungen eines Versanddienstes an.',
    addSource: 'Neue Quelle',
    noSources: 'Noch keine Quellen',
    noSourcesAdvice: 'Eine Quelle hat eine eigene Adresse, an die der Dienst seine Ereignisse sendet.',
    provider: 'Versanddienst',
    providers: { ses: 'Amazon SES', sendgrid: 'SendGrid', mailgun: 'Mailgun', postmark: 'Postmark' },
    keyHelp: 'Ein eigener Name, etwa newsletter: kleine Buchstaben, Ziffern und _.',
    secrets: {
      ses: 'ARN des SNS-Themas',
      sendgrid: 'Öffentlicher Schlüssel des Webhooks',
      mailgun: 'Signaturschlüssel der HTTP-Webhooks',
      postmark: 'Benutzer und Passwort (optional)',
    },
    secretHelps: {
      ses: 'Legen Sie in Amazon SNS ein Thema vom Typ „Standard“ an, und kopieren Sie seine ARN. Lassen Sie in SES Ihren Konfigurationssatz Bounces, Complaints und Deliveries an dieses Thema senden (Event destinations).',
      sendgrid:
        'In SendGrid: Settings, Mail Settings, Event Webhooks. Legen Sie einen Webhook an, schalten Sie „Signature Verification“ ein, und kopieren Sie den öffentlichen Schlüssel. Geben Sie dort eine beliebige Adresse ein, bis Sie die von kith haben.',
      mailgun: 'In Mailgun: Settings, API Security. Kopieren Sie den „HTTP webhook signing key“.',
      postmark:
        'Denken Sie sich beides aus, und schreiben Sie einen Doppelpunkt dazwischen, etwa kith:ein-langes-Passwort. Ohne beides schützt nur die geheime Adresse die Quelle.',
    },
    pasteAddress: 'Adresse, die Sie beim Dienst einfügen',
    where: {
      ses: 'Öffnen Sie in Amazon SNS das Thema, und legen Sie ein Abonnement an: Protokoll HTTPS, diese Adresse als Endpunkt, ohne „Raw message delivery“. kith bestätigt das Abonnement.',
      sendgrid:
        'In SendGrid: Settings, Mail Settings, Event Webhooks. Fügen Sie sie als Post URL des Webhooks ein, wählen Sie Delivered, Bounced, Spam Reports, Unsubscribes und Group Unsubscribes, und lassen Sie „Signature Verification“ eingeschaltet.',
      mailgun:
        'In Mailgun: Send, Sending, Webhooks. Legen Sie einen Webhook mit dieser Adresse an, für Delivered Messages, Permanent Failure, Temporary Failure, Spam Complaints und Unsubscribes.',
      postmark:
        'In Postmark: Ihr Server, sein Message Stream, Webhooks. Legen Sie einen Webhook mit dieser Adresse an, für Delivery, Bounce, Spam Complaint und Subscription Change, mit Benutzer und Passwort, wenn die Quelle sie hat. Halten Sie die Adresse geheim.',
    },
    lastEvent: 'Letzte Ereignisse',
    never: 'nie',
    ignoredEvents: 'Ignorierte Ereignisse, etwa geöffnete Nachrichten',
    confirmed: 'Abonnement bestätigt',
    notYet: 'noch nicht',
    removeSource: 'Entfernen …',
    removeTitle: key => `Die Quelle ${key} entfernen?`,
    removeAdvice: provider =>
      `kith nimmt von dieser Adresse keine Ereignisse mehr an. Was ${provider} bisher gemeldet hat, bleibt. Entfernen Sie die Adresse auch dort.`,
    removeAction: 'Quelle entfernen',
  },
  it: {
    subtitle: 'Gli indirizzi che i messaggi non raggiungono, e i servizi di invio che lo segnalano.',
    suppressions: 'Indirizzi sospesi',
    suppressionsAdvice: 'A questi indirizzi non può andare nessun messaggio. Il più recente è il primo.',
    search: 'Parte dell’indirizzo',
    reason: 'Motivo',
    address: 'Indirizzo',
    action: 'Azione',
    erasedAddress: channel => `${channel} di una persona cancellata`,
    noneFound: 'Nessun indirizzo sospeso trovato.',
    noSuppressions: 'Nessun indirizzo è sospeso.',
    noSuppressionsAdvice:
      'I mancati recapiti e i reclami sospendono gli indirizzi. Con una fonte è il tuo servizio di invio a segnalarli.',
    more: 'Mostra altro',
    sources: 'Fonti',
    sourcesAdvice: 'Ogni fonte riceve i mancati recapiti, i reclami e le consegne di un servizio di invio.',
    addSource: 'Nuova fonte',
    noSources: 'Ancora nessuna fonte',
    noSourcesAdvice: 'Una fonte ha un proprio indirizzo, a cui il servizio manda i suoi eventi.',
    provider: 'Servizio di invio',
    providers: { ses: 'Amazon SES', sendgrid: 'SendGrid', mailgun: 'Mailgun', postmark: 'Postmark' },
    keyHelp: 'Un nome a tua scelta, per esempio newsletter: lettere minuscole, cifre e _.',
    secrets: {
      ses: 'ARN dell’argomento SNS',
      sendgrid: 'Chiave pubblica del webhook',
      mailgun: 'Chiave di firma dei webhook HTTP',
      postmark: 'Utente e password (facoltativi)',
    },
    secretHelps: {
      ses: 'In Amazon SNS crea un argomento standard e copia il suo ARN. In SES fai inviare al tuo set di configurazione Bounces, Complaints e Deliveries a questo argomento (Event destinations).',
      sendgrid:
        'In SendGrid: Settings, Mail Settings, Event Webhooks. Crea un webhook, attiva “Signature Verification” e copia la chiave pubblica. Finché non hai l’indirizzo di kith, inseriscine lì uno qualsiasi.',
      mailgun: 'In Mailgun: Settings, API Security. Copia la “HTTP webhook signing key”.',
      postmark:
        'Scegli tu entrambi e scrivili separati da due punti, per esempio kith:una-password-lunga. Senza, solo l’indirizzo segreto protegge la fonte.',
    },
    pasteAddress: 'Indirizzo da incollare nel servizio',
    where: {
      ses: 'In Amazon SNS apri l’argomento e crea una sottoscrizione: protocollo HTTPS, questo indirizzo come endpoint, senza “Raw message delivery”. kith conferma la sottoscrizione.',
      sendgrid:
        'In SendGrid: Settings, Mail Settings, Event Webhooks. Incollalo come Post URL del webhook, scegli Delivered, Bounced, Spam Reports, Unsubscribes e Group Unsubscribes, e lascia attiva “Signature Verification”.',
      mailgun:
        'In Mailgun: Send, Sending, Webhooks. Aggiungi un webhook con questo indirizzo per Delivered Messages, Permanent Failure, Temporary Failure, Spam Complaints e Unsubscribes.',
      postmark:
        'In Postmark: il tuo server, il suo Message Stream, Webhooks. Aggiungi un webhook con questo indirizzo per Delivery, Bounce, Spam Complaint e Subscription Change, con utente e password se la fonte li ha. Tieni segreto l’indirizzo.',
    },
    lastEvent: 'Ultimi eventi',
    never: 'mai',
    ignoredEvents: 'Eventi ignorati, come i messaggi aperti',
    confirmed: 'Sottoscrizione confermata',
    notYet: 'non ancora',
    removeSource: 'Rimuovi…',
    removeTitle: key => `Rimuovere la fonte ${key}?`,
    removeAdvice: provider =>
      `kith non riceve più eventi a questo indirizzo. Ciò che ${provider} ha segnalato finora resta. Rimuovi l’indirizzo anche lì.`,
    removeAction: 'Rimuovi la fonte',
  },
})

import type { ErrorCode } from '@kith/client'
import { type Sentences, sentenceTranslator } from './sentences.ts'
import type { Language } from './words.ts'

/** Sentences of the service that the console translates. It shows any other sentence unchanged. */
export const serviceSentences: Sentences = {
  'is required': ['fehlt', 'manca'],
  'must not be empty': ['darf nicht leer sein', 'non può essere vuoto'],
  'must not be null': ['darf nicht leer sein', 'non può essere vuoto'],
  'unknown key': ['diesen Schlüssel gibt es hier nicht', 'questa chiave qui non esiste'],
  'must be a string': ['muss ein Text sein', 'deve essere un testo'],
  'must be a number': ['muss eine Zahl sein', 'deve essere un numero'],
  'must be an integer': ['muss eine ganze Zahl sein', 'deve essere un numero intero'],
  'must be true or false': ['muss Ja oder Nein sein', 'deve essere sì o no'],
  'must be an array: the attribute holds many values': [
    'muss eine Liste sein, denn das Attribut hat mehrere Werte',
    'deve essere un elenco, perché l’attributo ha più valori',
  ],
  'must be one of: #': ['muss einer dieser Werte sein: #', 'deve essere uno di questi valori: #'],
  'must be at least # characters': ['muss mindestens # Zeichen haben', 'deve avere almeno # caratteri'],
  'must be at most # characters': ['darf höchstens # Zeichen haben', 'può avere al massimo # caratteri'],
  'must be at most # bytes of UTF-8': ['darf höchstens # Byte in UTF-8 haben', 'può avere al massimo # byte in UTF-8'],
  'must be at most # bytes in UTF-8': ['darf höchstens # Byte in UTF-8 haben', 'può avere al massimo # byte in UTF-8'],
  'must have at least 1 element': ['braucht mindestens einen Wert', 'ha bisogno di almeno un valore'],
  'must have at most # elements': ['darf höchstens # Werte haben', 'può avere al massimo # valori'],
  'is one of the first passwords that are guessed': [
    'gehört zu den Passwörtern, die zuerst geraten werden',
    'è una delle prime password che si provano',
  ],
  'is not the password': ['ist nicht das Passwort', 'non è la password'],
  'must be at least #': ['muss mindestens # sein', 'deve essere almeno #'],
  'must be at most #': ['darf höchstens # sein', 'può essere al massimo #'],
  'must not be more than `maximum`': ['darf nicht größer als das Maximum sein', 'non può superare il massimo'],
  'must match #': ['muss dem Muster # entsprechen', 'deve corrispondere al modello #'],
  'must be an email address, such as ada@example.com, without quotes, comments and IP addresses': [
    'muss eine E-Mail-Adresse sein, etwa ada@example.com, ohne Anführungszeichen, Kommentare und IP-Adressen',
    'deve essere un indirizzo email, come ada@example.com, senza virgolette, commenti e indirizzi IP',
  ],
  'must be a language code, such as en or pt-BR': [
    'muss ein Sprachcode sein, etwa en oder pt-BR',
    'deve essere un codice di lingua, per esempio en o pt-BR',
  ],
  'must be a date, YYYY-MM-DD': [
    'muss ein Datum der Form JJJJ-MM-TT sein',
    'deve essere una data nella forma AAAA-MM-GG',
  ],
  'must be a date from 1850-01-01 to today, YYYY-MM-DD': [
    'muss ein Datum von 1850 bis heute sein, JJJJ-MM-TT',
    'deve essere una data dal 1850 a oggi, AAAA-MM-GG',
  ],
  'must be a date and time with its offset, as in RFC 3339': [
    'muss ein Datum mit Uhrzeit und Zeitzone sein (RFC 3339)',
    'deve essere una data con ora e fuso orario (RFC 3339)',
  ],
  'must be 1 to 255 characters, without control characters, and not . or ..': [
    'muss 1 bis 255 Zeichen haben, keine Steuerzeichen, und nicht . oder .. sein',
    'deve avere da 1 a 255 caratteri, senza caratteri di controllo, e non essere . o ..',
  ],
  'must be an https URL': ['muss eine Adresse mit https sein', 'deve essere un indirizzo https'],
  'must be an http or https URL': [
    'muss eine Adresse mit http oder https sein',
    'deve essere un indirizzo http o https',
  ],
  'must be an https URL without a user': [
    'muss eine Adresse mit https und ohne Benutzer sein',
    'deve essere un indirizzo https senza utente',
  ],
  'is an address that webhooks may not reach (KITH_WEBHOOK_ALLOW)': [
    'ist eine Adresse, die Webhooks nicht erreichen dürfen (KITH_WEBHOOK_ALLOW)',
    'è un indirizzo che i webhook non possono raggiungere (KITH_WEBHOOK_ALLOW)',
  ],
  'must be an https URL: http is allowed only to a loopback address that KITH_WEBHOOK_ALLOW permits': [
    'muss eine Adresse mit https sein: http geht nur zu einer eigenen Adresse, die KITH_WEBHOOK_ALLOW erlaubt',
    'deve essere un indirizzo https: http vale solo per un indirizzo locale che KITH_WEBHOOK_ALLOW permette',
  ],
  'is a name of an address that webhooks may not reach (KITH_WEBHOOK_ALLOW)': [
    'ist der Name einer Adresse, die Webhooks nicht erreichen dürfen (KITH_WEBHOOK_ALLOW)',
    'è il nome di un indirizzo che i webhook non possono raggiungere (KITH_WEBHOOK_ALLOW)',
  ],
  'is not a field of people or records, nor attribute_values. with a key': [
    'ist kein Feld von Personen oder Datensätzen und nicht attribute_values. mit einem Schlüssel',
    'non è un campo di persone o record, né attribute_values. con una chiave',
  ],
  'is not the name of a header of at most # characters': [
    'ist kein Name einer Kopfzeile von höchstens # Zeichen',
    'non è il nome di un’intestazione di al massimo # caratteri',
  ],
  'is a header that kith or HTTP sets itself': [
    'ist eine Kopfzeile, die kith oder HTTP selbst setzt',
    'è un’intestazione impostata da kith o da HTTP',
  ],
  'is given twice: upper and lower case are equal': [
    'steht zweimal da: Groß- und Kleinschreibung sind gleich',
    'è indicata due volte: maiuscole e minuscole sono uguali',
  ],
  'must have 1 to # printable ASCII characters': [
    'muss 1 bis # druckbare ASCII-Zeichen haben',
    'deve avere da 1 a # caratteri ASCII stampabili',
  ],
  'must have at most # headers': ['darf höchstens # Kopfzeilen haben', 'può avere al massimo # intestazioni'],
  'must have # again, or null for it, because the url has another origin': [
    'braucht # noch einmal oder ohne diese Kopfzeile, weil die Adresse auf einem anderen Server liegt',
    'deve avere di nuovo #, o farne a meno, perché l’indirizzo è di un altro server',
  ],
  'cannot be combined with the payload ids': [
    'geht nicht mit einem Inhalt nur aus Kennungen',
    'non si può combinare con un contenuto di soli identificativi',
  ],
  'is an inactive webhook. Activate it first.': [
    'ist ein beendeter Webhook. Schalten Sie ihn zuerst wieder ein.',
    'è un webhook non attivo. Prima riattivalo.',
  ],
  'The URL #.': ['Die Adresse #.', 'L’indirizzo #.'],
  'The host resolves to an address that webhooks may not reach.': [
    'Der Name führt zu einer Adresse, die Webhooks nicht erreichen dürfen.',
    'Il nome porta a un indirizzo che i webhook non possono raggiungere.',
  ],
  'The host has no address.': ['Der Name hat keine Adresse.', 'Il nome non ha un indirizzo.'],
  'The receiver refused the connection.': [
    'Der Empfänger hat die Verbindung abgelehnt.',
    'Il destinatario ha rifiutato la connessione.',
  ],
  'The receiver closed the connection.': [
    'Der Empfänger hat die Verbindung geschlossen.',
    'Il destinatario ha chiuso la connessione.',
  ],
  'The connection took too long.': [
    'Die Verbindung kam nicht rechtzeitig zustande.',
    'La connessione ha richiesto troppo tempo.',
  ],
  'The header of the response is too large.': [
    'Der Kopf der Antwort ist zu groß.',
    'L’intestazione della risposta è troppo grande.',
  ],
  'The receiver did not respond in time.': [
    'Der Empfänger hat nicht rechtzeitig geantwortet.',
    'Il destinatario non ha risposto in tempo.',
  ],
  'The request failed (#).': ['Die Anfrage ist gescheitert (#).', 'La richiesta non è riuscita (#).'],
  'The request could not be made (#).': [
    'Die Anfrage ließ sich nicht stellen (#).',
    'Non è stato possibile fare la richiesta (#).',
  ],
  'is the key of another role': ['ist der Schlüssel einer anderen Rolle', 'è la chiave di un altro ruolo'],
  'is the key of another rule': ['ist der Schlüssel einer anderen Regel', 'è la chiave di un’altra regola'],
  'is reserved: people are not a stack. Choose another key': [
    'ist vergeben: Personen sind keine Sammlung. Wählen Sie einen anderen Schlüssel',
    'è riservata: le persone non sono una raccolta. Scegli un’altra chiave',
  ],
  'has a single brace: write {{ or }} for a brace in the text': [
    'hat eine einzelne Klammer: Schreiben Sie {{ oder }} für eine Klammer im Text',
    'ha una sola parentesi: scrivi {{ o }} per una parentesi nel testo',
  ],
  'names {#}, which is not a declared attribute of the stack': [
    'nennt {#}, das kein deklariertes Attribut der Sammlung ist',
    'indica {#}, che non è un attributo dichiarato della raccolta',
  ],
  'names {#}, which is not a declared attribute of the target': [
    'nennt {#}, das kein deklariertes Attribut des Ziels ist',
    'indica {#}, che non è un attributo dichiarato della destinazione',
  ],
  'names {#}, which has JSON: name an attribute of another type': [
    'nennt {#} mit JSON: Nennen Sie ein Attribut eines anderen Typs',
    'indica {#}, che contiene JSON: indica un attributo di un altro tipo',
  ],
  'names {#}, but {#} is not a relationship': [
    'nennt {#}, aber {#} ist keine Verknüpfung',
    'indica {#}, ma {#} non è una relazione',
  ],
  'names {#}: a label follows one relationship only': [
    'nennt {#}: Ein Name folgt nur einer Verknüpfung',
    'indica {#}: un nome segue una sola relazione',
  ],
  'cannot be true for type `json`, which has no order: index a value of its own key': [
    'geht nicht bei JSON, denn es hat keine Reihenfolge: Indizieren Sie einen Wert mit eigenem Schlüssel',
    'non è possibile con JSON, che non ha un ordine: indicizza un valore con una sua chiave',
  ],
  'is too complex: write it shorter, or with smaller numbers of repetitions': [
    'ist zu aufwendig: Schreiben Sie es kürzer oder mit weniger Wiederholungen',
    'è troppo complesso: scrivilo più breve o con meno ripetizioni',
  ],
  'is no regular expression in the syntax of RE2: #': [
    'ist kein regulärer Ausdruck in der Schreibweise von RE2: #',
    'non è un’espressione regolare nella sintassi di RE2: #',
  ],
  'is the external identifier of another entity': [
    'ist schon die Kennung eines anderen Eintrags',
    'è già l’identificativo di un altro elemento',
  ],
  'is already the value of #': ['haben schon andere: #', 'è già il valore di #'],
  'names an entity that does not exist': [
    'nennt einen Eintrag, den es nicht gibt',
    'indica un elemento che non esiste',
  ],
  'names a record that does not exist in the stack of the relationship': [
    'nennt einen Eintrag, den es in der Sammlung der Verknüpfung nicht gibt',
    'indica un elemento che non esiste nella raccolta della relazione',
  ],
  'belongs to a person who was erased': [
    'gehört zu einer Person, die endgültig gelöscht wurde',
    'appartiene a una persona cancellata definitivamente',
  ],
  'is not declared, and no # carries it': [
    'ist nicht deklariert und nirgends gespeichert',
    'non è dichiarata e non è salvata da nessuna parte',
  ],
  'is already declared for this owner': ['ist hier schon deklariert', 'qui è già dichiarato'],
  'is the key of another stack': ['ist der Schlüssel einer anderen Sammlung', 'è la chiave di un’altra raccolta'],
  'is the key of another segment': ['ist der Schlüssel eines anderen Segments', 'è la chiave di un altro segmento'],
  'is the key of another source': ['ist der Schlüssel einer anderen Quelle', 'è la chiave di un’altra fonte'],
  'is required for #': ['ist für # erforderlich', 'è obbligatorio per #'],
  'must be a public key of the curve P-256 in base64, as SendGrid shows it': [
    'muss der öffentliche Schlüssel sein, wie ihn SendGrid zeigt (P-256 in Base64)',
    'deve essere la chiave pubblica come la mostra SendGrid (P-256 in base64)',
  ],
  'must have a colon between the user and the password': [
    'braucht einen Doppelpunkt zwischen Benutzer und Passwort',
    'deve avere due punti tra l’utente e la password',
  ],
  'exceeds the limit of # sources': ['es sind höchstens # Quellen möglich', 'sono possibili al massimo # fonti'],
  'is the key of another consent type': [
    'ist der Schlüssel einer anderen Einwilligungsart',
    'è la chiave di un altro tipo di consenso',
  ],
  'is not the key of a stack': ['ist nicht der Schlüssel einer Sammlung', 'non è la chiave di una raccolta'],
  'is named by the segment #': ['wird vom Segment # genannt', 'è indicato dal segmento #'],
  'needs `indexed: true`': ['braucht einen Index', 'ha bisogno di un indice'],
  'applies only to cardinality `one`': [
    'gilt nur für ein Attribut mit einem Wert',
    'vale solo per un attributo con un valore',
  ],
  'is a placeholder: create the person first': [
    'ist ein Platzhalter: erst die Person anlegen',
    'è un segnaposto: prima va creata la persona',
  ],
  'is a mandatory consent type, which cannot be answered: leave it out': [
    'lässt sich nicht beantworten, weil es vorgeschrieben ist: weglassen',
    'non ammette risposte, perché è obbligatorio: da togliere',
  ],
  'is a channel that the consent type is not configured for': [
    'ist ein Kanal, den die Einwilligungsart nicht hat',
    'è un canale che il tipo di consenso non ha',
  ],
  'is already stored with other content': [
    'ist schon mit anderem Inhalt gespeichert',
    'è già salvato con un altro contenuto',
  ],
  'is an archived consent type': ['ist eine archivierte Einwilligungsart', 'è un tipo di consenso archiviato'],
  'is not a consent type of the organization': [
    'ist keine Einwilligungsart der Organisation',
    'non è un tipo di consenso dell’organizzazione',
  ],
  'is not a phone number with its country: give mobile_prefix, such as +39, or begin the number with +': [
    'ist keine Telefonnummer mit ihrem Land: Geben Sie die Ländervorwahl an, etwa +39, oder beginnen Sie die Nummer mit +',
    'non è un numero di telefono con il suo paese: indica il prefisso, come +39, o comincia il numero con +',
  ],
  'must be a date and time with its offset, as in RFC 3339, from 1990 to now': [
    'muss ein Zeitpunkt von 1990 bis jetzt sein, mit Zeitzone',
    'deve essere un momento dal 1990 a ora, con fuso orario',
  ],
  'must be a single external identifier: the attribute links to one entity': [
    'muss eine einzige Kennung sein, denn das Attribut verweist auf einen Eintrag',
    'deve essere un solo identificativo, perché l’attributo porta a un solo elemento',
  ],
  'must be a valid external identifier of 1 to 255 characters': [
    'muss eine gültige Kennung von 1 bis 255 Zeichen sein',
    'deve essere un identificativo valido da 1 a 255 caratteri',
  ],
  'must be an IPv4 or IPv6 address, such as 192.0.2.7 or 2001:db8::7': [
    'muss eine Adresse in IPv4 oder IPv6 sein, etwa 192.0.2.7 oder 2001:db8::7',
    'deve essere un indirizzo IPv4 o IPv6, come 192.0.2.7 o 2001:db8::7',
  ],
  'must be an array of external identifiers': [
    'muss eine Liste von Kennungen sein',
    'deve essere un elenco di identificativi',
  ],
  'must be an array of values': ['muss eine Liste von Werten sein', 'deve essere un elenco di valori'],
  'must have one of email, mobile_number and external_id': [
    'braucht E-Mail, Telefonnummer oder Kennung',
    'deve avere email, numero di telefono o identificativo',
  ],
  'must name an entity: leave the element out': [
    'muss einen Eintrag nennen: das Element weglassen',
    'deve indicare un elemento: togli questo valore',
  ],
  'is given twice': ['steht zweimal da', 'è indicato due volte'],
  'The request has invalid values. See details.': ['Einige Angaben sind ungültig.', 'Alcuni dati non sono validi.'],
  'The query has invalid values. See details.': [
    'Die Adresse hat ungültige Angaben.',
    'L’indirizzo ha dati non validi.',
  ],
  'The request breaks a rule.': ['Die Angaben verstoßen gegen eine Regel.', 'I dati violano una regola.'],
  'The filter is invalid.': ['Der Filter ist ungültig.', 'Il filtro non è valido.'],
  'The external identifier is taken.': ['Die Kennung ist schon vergeben.', 'L’identificativo è già in uso.'],
  'The key is taken.': ['Der Schlüssel ist schon vergeben.', 'La chiave è già in uso.'],
  'Another entity has a value that is unique.': [
    'Ein anderer Eintrag hat einen Wert, der nur einmal vorkommen darf.',
    'Un altro elemento ha un valore che può esistere una sola volta.',
  ],
  'The page cannot be sorted by this field.': [
    'Nach diesem Feld lässt sich nicht sortieren.',
    'Non si può ordinare per questo campo.',
  ],
  'The merge cannot be undone.': [
    'Die Zusammenführung lässt sich nicht rückgängig machen.',
    'L’unione non si può annullare.',
  ],
  'The service is overloaded. Retry after #.': ['Der Dienst ist überlastet.', 'Il servizio è sovraccarico.'],
  'There were too many failed attempts. Retry after # s.': [
    'Zu viele Versuche sind gescheitert. Warten Sie # Sekunden.',
    'Troppi tentativi non riusciti. Aspetta # secondi.',
  ],
  'The token lacks the scope #.': ['Der Sitzung fehlt das Recht #.', 'Alla sessione manca il permesso #.'],
  'The person is under a legal hold, so it is not erased. End the hold first, or send override_hold: true.': [
    'Die Person hat eine Löschsperre und wird deshalb nicht gelöscht. Heben Sie zuerst die Sperre auf, oder wählen Sie, dass trotzdem gelöscht wird.',
    'La persona ha un blocco legale e quindi non viene cancellata. Togli prima il blocco, oppure scegli di cancellarla comunque.',
  ],
  'must be true to erase in spite of hold #': [
    'muss bestätigt sein, um trotz der Sperre # zu löschen',
    'va confermato per cancellare nonostante il blocco #',
  ],
  'The person is not under a hold.': ['Die Person hat keine Löschsperre.', 'La persona non ha un blocco legale.'],
  'There is no such person.': ['Diese Person gibt es nicht.', 'Questa persona non esiste.'],
  'There is no such retention rule.': ['Diese Regel gibt es nicht mehr.', 'Questa regola non esiste più.'],
  'There is no such segment.': ['Dieses Segment gibt es nicht mehr.', 'Questo segmento non esiste più.'],
  'is not the key of a segment': ['ist nicht der Schlüssel eines Segments', 'non è la chiave di un segmento'],
  'must be the key of a segment': ['ist nicht der Schlüssel eines Segments', 'non è la chiave di un segmento'],
  'leads to the segment #, whose filter is invalid at #: #': [
    'führt zum Segment #, dessen Filter bei # ungültig ist: #',
    'porta al segmento #, il cui filtro non è valido in #: #',
  ],
  'is not a field of a # that a filter accepts': [
    'ist kein Feld, nach dem sich filtern lässt',
    'non è un campo per cui si può filtrare',
  ],
  'is no field: write attribute_values.<key>': [
    'ist kein Feld: Schreiben Sie attribute_values.<Schlüssel>',
    'non è un campo: scrivi attribute_values.<chiave>',
  ],
  'is not an operator': ['ist kein Operator', 'non è un operatore'],
  'must be an object of conditions': ['muss ein Objekt aus Bedingungen sein', 'deve essere un oggetto di condizioni'],
  'must have at least one operator': ['braucht mindestens einen Operator', 'ha bisogno di almeno un operatore'],
  'is nested deeper than # levels': ['hat mehr als # Ebenen', 'ha più di # livelli'],
  'exceeds the maximum of # conditions in a filter': [
    'ist eine Bedingung zu viel: Ein Filter hat höchstens #',
    'è una condizione di troppo: un filtro ne ha al massimo #',
  ],
  'applies only to a declared relationship': [
    'gilt nur für eine deklarierte Verknüpfung',
    'vale solo per una relazione dichiarata',
  ],
  '# has no relationship #': ['# hat keine Verknüpfung #', '# non ha una relazione #'],
  'is not indexed: PATCH /v1/schema/attributes/# {"indexed": true}': [
    'hat keinen Index: Schalten Sie ihn beim Attribut ein',
    'non ha un indice: attivalo nell’attributo',
  ],
  'is not a declared attribute. Only a declared, indexed attribute sorts a page': [
    'ist nicht deklariert. Sortieren lässt sich nur nach deklarierten Attributen mit einem Index',
    'non è dichiarato. Si può ordinare solo per attributi dichiarati con un indice',
  ],
  'exceeds the limit of # rules per organization': [
    'es sind höchstens # Regeln möglich',
    'sono possibili al massimo # regole',
  ],
  'must be another one: it was deleted': [
    'muss ein anderes sein: Es wurde gelöscht',
    'deve essere un altro: è stato eliminato',
  ],
  'must be in the future': ['muss in der Zukunft liegen', 'deve essere nel futuro'],
  'The attribute is archived, so nothing stands against its rules.': [
    'Das Attribut ist archiviert, also verstößt nichts gegen seine Regeln.',
    'L’attributo è archiviato, quindi nulla viola le sue regole.',
  ],
  'The index of the attribute is not ready yet. Retry when its `index_state` is `ready`.': [
    'Der Index des Attributs ist noch nicht fertig. Versuchen Sie es gleich noch einmal.',
    'L’indice dell’attributo non è ancora pronto. Riprova tra poco.',
  ],
  'makes the segment # invalid: #': ['macht das Segment # ungültig: #', 'rende non valido il segmento #: #'],
  'The organization has reached its limit of segments. Delete one first.': [
    'Mehr Segmente sind nicht möglich. Löschen Sie zuerst eines.',
    'Non sono possibili altri segmenti. Eliminane prima uno.',
  ],
  'The people of the segment are being computed. Retry after 1 second.': [
    'Die Personen des Segments werden gerade ermittelt.',
    'Le persone del segmento si stanno calcolando.',
  ],
}

const sentence = sentenceTranslator(serviceSentences)

/** The end of a sentence about an unknown name. */
const suggestion = /: did you mean "(.*)"\?$/s
const meant = { de: 'Meinten Sie', it: 'Intendevi' } as const

/** A sentence of the service in a language, or undefined without a translation. */
export function translated(language: Language, message: string): string | undefined {
  const [end, name] = suggestion.exec(message) ?? []
  if (language === 'en' || end === undefined) return sentence(language, message)
  const beginning = sentence(language, message.slice(0, -end.length))
  return beginning && `${beginning}. ${meant[language]} "${name}"?`
}

/** The meaning of an error by its code, for sentences that are not listed above. */
const byCode: Record<ErrorCode, Sentences[string]> = {
  failed_binding_json: ['Die Angaben sind kein gültiges JSON.', 'I dati non sono JSON valido.'],
  invalid_json: ['Einige Angaben sind ungültig.', 'Alcuni dati non sono validi.'],
  invalid_parameter: ['Das geht so nicht.', 'Così non è possibile.'],
  unauthorized: ['Die Anmeldung ist nicht gültig.', 'L’accesso non è valido.'],
  forbidden: ['Dafür fehlt Ihnen die Berechtigung.', 'Non hai il permesso per questa operazione.'],
  not_found: ['Das gibt es nicht, oder nicht mehr.', 'Non esiste, o non esiste più.'],
  duplicate_entry: ['Das gibt es schon.', 'Esiste già.'],
  rate_limit_exceeded: ['Das waren zu viele Anfragen in kurzer Zeit.', 'Troppe richieste in poco tempo.'],
  operation_failed: ['Der Dienst konnte das nicht ausführen.', 'Il servizio non è riuscito a farlo.'],
}

/** The meaning of an error with this code, or undefined in the language of the service. */
export const meaningOf = (language: Language, code: string | undefined): string | undefined =>
  language === 'en' || code === undefined ? undefined : byCode[code as ErrorCode]?.[language === 'de' ? 0 : 1]

import { defineMessages } from '../app/language.tsx'

export const consentMessages = defineMessages({
  noPurposes: ['No purposes are declared.', 'Es sind keine Zwecke deklariert.', 'Non ci sono scopi dichiarati.'],
  noAddress: {
    email: ['no email address', 'keine E-Mail-Adresse', 'nessun indirizzo email'],
    sms: ['no phone number', 'keine Telefonnummer', 'nessun numero di telefono'],
  },
  notOffered: ['not on this channel', 'nicht auf diesem Kanal', 'non su questo canale'],
  since: (time: string) => [`since ${time}`, `seit ${time}`, `dal ${time}`],
  byDefault: {
    true: ['may be contacted by default', 'ohne Antwort erlaubt', 'permesso senza risposta'],
    false: ['not contacted by default', 'ohne Antwort nicht erlaubt', 'non permesso senza risposta'],
  },
  addressRefused: ['refused for this address', 'für diese Adresse abgelehnt', 'rifiutato per questo indirizzo'],
  show: ['Show the reason and the evidence', 'Grund und Nachweis zeigen', 'Mostra il motivo e la prova'],
  allowed: {
    email: ['The person may be written to', 'Der Person darf geschrieben werden', 'Si può scrivere alla persona'],
    sms: [
      'The person may be sent text messages',
      'Die Person darf SMS erhalten',
      'Si possono mandare SMS alla persona',
    ],
  },
  forbidden: {
    email: [
      'The person may not be written to',
      'Der Person darf nicht geschrieben werden',
      'Non si può scrivere alla persona',
    ],
    sms: [
      'The person may not be sent text messages',
      'Die Person darf keine SMS erhalten',
      'Non si possono mandare SMS alla persona',
    ],
  },
  because: ['Because:', 'Weil:', 'Perché:'],
  reasons: {
    not_found: ['The person does not exist.', 'Es gibt diese Person nicht.', 'La persona non esiste.'],
    deleted: ['The person was deleted.', 'Die Person wurde gelöscht.', 'La persona è stata eliminata.'],
    erased: [
      'The person was erased.',
      'Die Person wurde endgültig gelöscht.',
      'La persona è stata cancellata definitivamente.',
    ],
    no_address: {
      email: [
        'The person has no email address.',
        'Die Person hat keine E-Mail-Adresse.',
        'La persona non ha un indirizzo email.',
      ],
      sms: [
        'The person has no phone number.',
        'Die Person hat keine Telefonnummer.',
        'La persona non ha un numero di telefono.',
      ],
    },
    addressRefused: {
      email: (when: string | undefined) => [
        `Somebody refused for this email address${when === undefined ? '' : `, on ${when}`}. It may be another person with the same mailbox.`,
        `Für diese E-Mail-Adresse wurde${when === undefined ? '' : ` am ${when}`} abgelehnt, vielleicht von einer anderen Person mit demselben Postfach.`,
        `Per questo indirizzo email il consenso è stato rifiutato${when === undefined ? '' : ` il ${when}`}, forse da un'altra persona con la stessa casella.`,
      ],
      sms: (when: string | undefined) => [
        `Somebody refused for this phone number${when === undefined ? '' : `, on ${when}`}. It may be another person with the same number.`,
        `Für diese Telefonnummer wurde${when === undefined ? '' : ` am ${when}`} abgelehnt, vielleicht von einer anderen Person mit derselben Nummer.`,
        `Per questo numero di telefono il consenso è stato rifiutato${when === undefined ? '' : ` il ${when}`}, forse da un'altra persona con lo stesso numero.`,
      ],
    },
    suppressed: (reason: string, since: string, until: string | undefined, provider: string | null) => [
      `Messages to this address are suppressed since ${since}: ${reason}${provider === null ? '' : `, reported by ${provider}`}. ${until === undefined ? 'Somebody has to lift it.' : `It ends on ${until}.`}`,
      `Der Versand an diese Adresse ist seit ${since} gesperrt: ${reason}${provider === null ? '' : `, gemeldet von ${provider}`}. ${until === undefined ? 'Jemand muss die Sperre aufheben.' : `Die Sperre endet am ${until}.`}`,
      `L’invio a questo indirizzo è sospeso dal ${since}: ${reason}${provider === null ? '' : `, segnalato da ${provider}`}. ${until === undefined ? 'Qualcuno deve togliere la sospensione.' : `Finisce il ${until}.`}`,
    ],
    archived: ['The purpose is archived.', 'Der Zweck ist archiviert.', 'La finalità è archiviata.'],
    mandatory: [
      'The purpose needs no answer.',
      'Der Zweck braucht keine Antwort.',
      'Per la finalità non serve risposta.',
    ],
    granted: (time: string) => [
      `The person granted it, ${time}.`,
      `Die Person hat zugestimmt, ${time}.`,
      `La persona ha acconsentito, ${time}.`,
    ],
    refused: (time: string) => [
      `The person refused it, ${time}.`,
      `Die Person hat abgelehnt, ${time}.`,
      `La persona ha rifiutato, ${time}.`,
    ],
    pending: (time: string) => [
      `The person granted it, ${time}, but has not confirmed it yet.`,
      `Die Person hat zugestimmt, ${time}, es aber noch nicht bestätigt.`,
      `La persona ha acconsentito, ${time}, ma non l’ha ancora confermato.`,
    ],
    allowedByDefault: [
      'The person has not answered. By default, the purpose is allowed.',
      'Die Person hat nicht geantwortet. Ohne Antwort ist der Zweck erlaubt.',
      'La persona non ha risposto. Senza risposta la finalità è permessa.',
    ],
    forbiddenByDefault: [
      'The person has not answered. Without an answer, the purpose is not allowed.',
      'Die Person hat nicht geantwortet. Ohne Antwort ist der Zweck nicht erlaubt.',
      'La persona non ha risposto. Senza risposta la finalità non è permessa.',
    ],
  },
  evidence: ['Answers and their evidence', 'Antworten und ihre Nachweise', 'Risposte e relative prove'],
  noAnswers: ['The person has never answered.', 'Die Person hat nie geantwortet.', 'La persona non ha mai risposto.'],
  needsScope: [
    'The reason and the evidence take the scope consents:read.',
    'Für Grund und Nachweis braucht es das Recht consents:read.',
    'Per il motivo e la prova serve il permesso consents:read.',
  ],
  stands: ['Stands', 'Gilt', 'Valida'],
  superseded: [
    'Arrived late, changed nothing',
    'Kam verspätet an und änderte nichts',
    'Arrivata in ritardo, senza effetto',
  ],
  answered: ['Answered', 'Beantwortet', 'Risposta'],
  recorded: ['Recorded', 'Erfasst', 'Registrazione'],
  recordedBy: (time: string, actor: string) => [`${time} by ${actor}`, `${time} von ${actor}`, `${time} da ${actor}`],
  consentStringHelp: [
    'TCF or GPP, as it was sent. At most 8 KiB.',
    'TCF oder GPP, wie gesendet. Höchstens 8 KiB.',
    'TCF o GPP, così come è stata inviata. Al massimo 8 KiB.',
  ],
  hideText: ['Hide the text', 'Text verbergen', 'Nascondi il testo'],
  showText: ['Show the text', 'Text zeigen', 'Mostra il testo'],
  ofMerged: [
    'Given by a person who was merged into this one',
    'Von einer Person gegeben, die mit dieser zusammengeführt wurde',
    'Data da una persona che è stata unita a questa',
  ],
  receipt: ['Download the receipt', 'Beleg herunterladen', 'Scarica la ricevuta'],
  showOlder: ['Show older answers', 'Ältere Antworten zeigen', 'Mostra le risposte precedenti'],
  record: ['Record an answer', 'Eine Antwort erfassen', 'Registra una risposta'],
  recordAdvice: [
    'Record only what the person said. The answer cannot be removed, because it is evidence.',
    'Erfassen Sie nur, was die Person gesagt hat. Die Antwort lässt sich nicht entfernen, denn sie ist ein Nachweis.',
    'Registra solo ciò che la persona ha detto. La risposta non si può togliere, perché è una prova.',
  ],
  answer: ['Answer', 'Antwort', 'Risposta'],
  collectedAt: ['When the person answered', 'Wann die Person geantwortet hat', 'Quando la persona ha risposto'],
  collectedHelp: [
    'Leave it empty if the person answers now.',
    'Lassen Sie das Feld leer, wenn die Person jetzt antwortet.',
    'Lascia vuoto se la persona risponde ora.',
  ],
  sourceHelp: [
    'The form, the call or the paper, such as “trade fair, 12 May”.',
    'Das Formular, der Anruf oder das Papier, etwa „Messe, 12. Mai“.',
    'Il modulo, la chiamata o il foglio, per esempio “fiera, 12 maggio”.',
  ],
  noText: ['No text', 'Kein Text', 'Nessun testo'],
  doubleOptIn: [
    'This channel asks for a confirmation. Until it is confirmed, a grant waits, unless you choose “Confirmed by link”.',
    'Dieser Kanal verlangt eine Bestätigung. Bis dahin wartet eine Zustimmung, außer Sie wählen „Per Link bestätigt“.',
    'Questo canale chiede una conferma. Fino ad allora il consenso resta in attesa, a meno che tu scelga “Confermato con un link”.',
  ],
  save: ['Record the answer', 'Antwort erfassen', 'Registra la risposta'],
  saving: ['Recording', 'Wird erfasst', 'Registrazione'],
  conflict: [
    'Somebody recorded another answer in the meantime',
    'Inzwischen hat jemand eine andere Antwort erfasst',
    'Nel frattempo qualcuno ha registrato un’altra risposta',
  ],
  conflictAdvice: [
    'It stands above. Your answer is not recorded yet. Record it if it is still what the person said.',
    'Sie steht oben. Ihre Antwort ist noch nicht erfasst. Erfassen Sie sie, wenn die Person das noch immer sagt.',
    'È qui sopra. La tua risposta non è ancora registrata. Registrala se è ancora ciò che la persona ha detto.',
  ],
  needsAnswer: ['Choose an answer.', 'Wählen Sie eine Antwort.', 'Scegli una risposta.'],
})

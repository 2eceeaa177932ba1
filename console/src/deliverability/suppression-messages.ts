import { defineMessages } from '../app/language.tsx'

/** The texts of the suppression of an address, which the page of a person has too. */
export const suppressionMessages = defineMessages({
  en: {
    reasons: { hard_bounce: 'Hard bounce', soft_bounce: 'Three soft bounces', complaint: 'Complaint' },
    states: { suppressed: 'Suppressed', deliverable: 'Deliverable' },
    noAddress: 'The person has no address that messages could reach.',
    reason: 'Reason',
    since: 'Since',
    until: 'Until',
    untilLifted: 'somebody lifts it',
    provider: 'Reported by',
    reference: 'Reference',
    lastDelivered: 'Last delivery',
    lastBounced: 'Last bounce',
    liftedAt: 'Suppression lifted',
    lift: 'Lift…',
    liftTitle: (address: string) => `Lift the suppression of ${address}?`,
    liftAdvice:
      'Messages may go to this address again where the consents allow it. The bounces and complaints until now no longer count, and a new one suppresses the address again.',
    liftAction: 'Lift the suppression',
    complaintAdvice:
      'Somebody with this address reported a message as spam. The refusals recorded with the complaint stay, so no message may go there until a new consent is given. Messages to somebody who complained make providers distrust all your mail.',
    complaintSure: 'The person has asked for messages again',
  },
  de: {
    reasons: {
      hard_bounce: 'Unzustellbar',
      soft_bounce: 'Dreimal vorübergehend unzustellbar',
      complaint: 'Beschwerde',
    },
    states: { suppressed: 'Gesperrt', deliverable: 'Zustellbar' },
    noAddress: 'Die Person hat keine Adresse, die Nachrichten erreichen könnten.',
    reason: 'Grund',
    since: 'Seit',
    until: 'Bis',
    untilLifted: 'jemand sie aufhebt',
    provider: 'Gemeldet von',
    reference: 'Referenz',
    lastDelivered: 'Zuletzt zugestellt',
    lastBounced: 'Zuletzt unzustellbar',
    liftedAt: 'Versandsperre aufgehoben',
    lift: 'Aufheben …',
    liftTitle: address => `Die Versandsperre von ${address} aufheben?`,
    liftAdvice:
      'Nachrichten dürfen wieder an diese Adresse gehen, soweit die Einwilligungen es erlauben. Die bisherigen Rückläufer und Beschwerden zählen nicht mehr; ein neuer Rückläufer oder eine neue Beschwerde sperrt die Adresse wieder.',
    liftAction: 'Versandsperre aufheben',
    complaintAdvice:
      'Jemand mit dieser Adresse hat eine Nachricht als Spam gemeldet. Die Ablehnungen, die mit der Beschwerde erfasst wurden, bleiben: Bis zu einer neuen Einwilligung darf keine Nachricht dorthin gehen. Nachrichten an jemanden, der sich beschwert hat, schaden dem Ruf aller Ihrer Nachrichten.',
    complaintSure: 'Die Person hat wieder um Nachrichten gebeten',
  },
  it: {
    reasons: { hard_bounce: 'Mancato recapito', soft_bounce: 'Tre mancati recapiti temporanei', complaint: 'Reclamo' },
    states: { suppressed: 'Sospeso', deliverable: 'Raggiungibile' },
    noAddress: 'La persona non ha un indirizzo che i messaggi possano raggiungere.',
    reason: 'Motivo',
    since: 'Dal',
    until: 'Fino al',
    untilLifted: 'finché qualcuno la toglie',
    provider: 'Segnalato da',
    reference: 'Riferimento',
    lastDelivered: 'Ultima consegna',
    lastBounced: 'Ultimo mancato recapito',
    liftedAt: 'Sospensione tolta',
    lift: 'Togli…',
    liftTitle: address => `Togliere la sospensione di ${address}?`,
    liftAdvice:
      'I messaggi possono di nuovo andare a questo indirizzo, se i consensi lo permettono. I mancati recapiti e i reclami precedenti non contano più, e uno nuovo sospende di nuovo l’indirizzo.',
    liftAction: 'Togli la sospensione',
    complaintAdvice:
      'Qualcuno con questo indirizzo ha segnalato un messaggio come spam. I rifiuti registrati con il reclamo restano: fino a un nuovo consenso nessun messaggio può andarci. I messaggi a chi ha reclamato danneggiano la reputazione di tutti i tuoi messaggi.',
    complaintSure: 'La persona ha chiesto di nuovo i messaggi',
  },
})

import { defineMessages } from '../app/language.tsx'

/** The texts about a suppressed address, shared with the page of a person. */
export const suppressionMessages = defineMessages({
  reasons: {
    hard_bounce: ['Hard bounce', 'Unzustellbar', 'Mancato recapito'],
    complaint: ['Complaint', 'Beschwerde', 'Reclamo'],
    soft_bounce: ['Three soft bounces', 'Dreimal vorübergehend unzustellbar', 'Tre mancati recapiti temporanei'],
  },
  states: {
    suppressed: ['Suppressed', 'Gesperrt', 'Sospeso'],
    deliverable: ['Deliverable', 'Zustellbar', 'Raggiungibile'],
  },
  noAddress: [
    'The person has no address that messages could reach.',
    'Die Person hat keine Adresse, die Nachrichten erreichen könnten.',
    'La persona non ha un indirizzo che i messaggi possano raggiungere.',
  ],
  since: ['Since', 'Seit', 'Dal'],
  until: ['Until', 'Bis', 'Fino al'],
  untilLifted: ['somebody lifts it', 'jemand sie aufhebt', 'finché qualcuno la toglie'],
  provider: ['Reported by', 'Gemeldet von', 'Segnalato da'],
  lastDelivered: ['Last delivery', 'Zuletzt zugestellt', 'Ultima consegna'],
  lastBounced: ['Last bounce', 'Zuletzt unzustellbar', 'Ultimo mancato recapito'],
  liftedAt: ['Suppression lifted', 'Versandsperre aufgehoben', 'Sospensione tolta'],
  lift: ['Lift…', 'Aufheben …', 'Togli…'],
  liftTitle: (address: string) => [
    `Lift the suppression of ${address}?`,
    `Die Versandsperre von ${address} aufheben?`,
    `Togliere la sospensione di ${address}?`,
  ],
  liftAdvice: [
    'Messages may go to this address again where the consents allow it. The bounces and complaints until now no longer count, and a new one suppresses the address again.',
    'Nachrichten dürfen wieder an diese Adresse gehen, soweit die Einwilligungen es erlauben. Die bisherigen Rückläufer und Beschwerden zählen nicht mehr; ein neuer Rückläufer oder eine neue Beschwerde sperrt die Adresse wieder.',
    'I messaggi possono di nuovo andare a questo indirizzo, se i consensi lo permettono. I mancati recapiti e i reclami precedenti non contano più, e uno nuovo sospende di nuovo l’indirizzo.',
  ],
  liftAction: ['Lift the suppression', 'Versandsperre aufheben', 'Togli la sospensione'],
  complaintAdvice: [
    'Somebody with this address reported a message as spam. The refusals recorded with the complaint stay, so no message may go there until a new consent is given. Messages to somebody who complained make providers distrust all your mail.',
    'Jemand mit dieser Adresse hat eine Nachricht als Spam gemeldet. Die Ablehnungen, die mit der Beschwerde erfasst wurden, bleiben: Bis zu einer neuen Einwilligung darf keine Nachricht dorthin gehen. Nachrichten an jemanden, der sich beschwert hat, schaden dem Ruf aller Ihrer Nachrichten.',
    'Qualcuno con questo indirizzo ha segnalato un messaggio come spam. I rifiuti registrati con il reclamo restano: fino a un nuovo consenso nessun messaggio può andarci. I messaggi a chi ha reclamato danneggiano la reputazione di tutti i tuoi messaggi.',
  ],
  complaintSure: [
    'The person has asked for messages again',
    'Die Person hat wieder um Nachrichten gebeten',
    'La persona ha chiesto di nuovo i messaggi',
  ],
})

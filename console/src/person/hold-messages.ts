import { defineMessages } from '../app/language.tsx'

/** The texts of a legal hold. */
export const holdMessages = defineMessages({
  en: {
    hold: 'Legal hold…',
    holdTitle: (name: string) => `Legal hold of ${name}`,
    holdAdvice: 'No rule erases or deletes a held person, and an erasure by hand must say that it overrides the hold.',
    reason: 'Reason',
    reasonHelp: 'It stays in the change log, so it must not name the person.',
    until: 'Until',
    untilHelp: 'A date. Empty: until somebody ends it.',
    holdNow: 'Hold',
    held: 'This person is under a legal hold.',
    heldFacts: (reason: string, actor: string) => `${reason} (${actor})`,
    heldUntil: (time: string) => `Until ${time}.`,
    endHold: 'End the hold',
    override: 'Erase although the person is under a legal hold',
  },
  de: {
    hold: 'Löschsperre …',
    holdTitle: name => `Löschsperre für ${name}`,
    holdAdvice:
      'Keine Regel löscht eine gesperrte Person, und wer sie von Hand löscht, muss sagen, dass er die Sperre übergeht.',
    reason: 'Grund',
    reasonHelp: 'Er bleibt im Änderungsprotokoll, darf die Person also nicht nennen.',
    until: 'Bis',
    untilHelp: 'Ein Datum. Leer: bis jemand sie aufhebt.',
    holdNow: 'Sperren',
    held: 'Für diese Person gilt eine Löschsperre.',
    heldFacts: (reason, actor) => `${reason} (${actor})`,
    heldUntil: time => `Bis ${time}.`,
    endHold: 'Sperre aufheben',
    override: 'Trotz der Löschsperre löschen',
  },
  it: {
    hold: 'Blocco legale…',
    holdTitle: name => `Blocco legale di ${name}`,
    holdAdvice:
      'Nessuna regola cancella una persona bloccata, e chi la cancella a mano deve dire che supera il blocco.',
    reason: 'Motivo',
    reasonHelp: 'Resta nel registro delle modifiche, quindi non deve nominare la persona.',
    until: 'Fino al',
    untilHelp: 'Una data. Vuoto: finché qualcuno lo toglie.',
    holdNow: 'Blocca',
    held: 'Questa persona ha un blocco legale.',
    heldFacts: (reason, actor) => `${reason} (${actor})`,
    heldUntil: time => `Fino al ${time}.`,
    endHold: 'Togli il blocco',
    override: 'Cancella nonostante il blocco legale',
  },
})

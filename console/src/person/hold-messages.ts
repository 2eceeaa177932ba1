import { defineMessages } from '../app/language.tsx'

/** The texts of a legal hold. */
export const holdMessages = defineMessages({
  hold: ['Legal hold…', 'Löschsperre …', 'Blocco legale…'],
  holdTitle: (name: string) => [`Legal hold of ${name}`, `Löschsperre für ${name}`, `Blocco legale di ${name}`],
  holdAdvice: [
    'No rule erases or deletes a held person, and an erasure by hand must say that it overrides the hold.',
    'Keine Regel löscht eine gesperrte Person, und wer sie von Hand löscht, muss sagen, dass er die Sperre übergeht.',
    'Nessuna regola cancella una persona bloccata, e chi la cancella a mano deve dire che supera il blocco.',
  ],
  reasonHelp: [
    'It stays in the change log, so it must not name the person.',
    'Er bleibt im Änderungsprotokoll, darf die Person also nicht nennen.',
    'Resta nel registro delle modifiche, quindi non deve nominare la persona.',
  ],
  until: ['Until', 'Bis', 'Fino al'],
  untilHelp: [
    'A date. Empty: until somebody ends it.',
    'Ein Datum. Leer: bis jemand sie aufhebt.',
    'Una data. Vuoto: finché qualcuno lo toglie.',
  ],
  holdNow: ['Hold', 'Sperren', 'Blocca'],
  held: [
    'This person is under a legal hold.',
    'Für diese Person gilt eine Löschsperre.',
    'Questa persona ha un blocco legale.',
  ],
  heldFacts: (reason: string, actor: string) => [
    `${reason} (${actor})`,
    `${reason} (${actor})`,
    `${reason} (${actor})`,
  ],
  heldUntil: (time: string) => [`Until ${time}.`, `Bis ${time}.`, `Fino al ${time}.`],
  endHold: ['End the hold', 'Sperre aufheben', 'Togli il blocco'],
  override: [
    'Erase although the person is under a legal hold',
    'Trotz der Löschsperre löschen',
    'Cancella nonostante il blocco legale',
  ],
})

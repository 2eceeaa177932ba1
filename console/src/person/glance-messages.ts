import { defineMessages } from '../app/language.tsx'

/** The texts of the summary on a person's page, and of notes. */
export const glanceMessages = defineMessages({
  glance: ['At a glance', 'Auf einen Blick', 'In breve'],
  contact: ['Contact', 'Kontakt', 'Contatto'],
  email: ['Email', 'E-Mail', 'Email'],
  noContact: [
    'Neither a phone number nor an email address.',
    'Weder Telefonnummer noch E-Mail-Adresse.',
    'Né un numero di telefono né un indirizzo email.',
  ],
  mayWrite: ['May be written to', 'Darf angeschrieben werden', 'Si può scrivere'],
  more: (count: number) => [`${count} more are below.`, `${count} weitere stehen unten.`, `Altre ${count} sono sotto.`],
  lastTwelveMonths: ['Last 12 months', 'Letzte 12 Monate', 'Ultimi 12 mesi'],
  measured: (operation: string, name: string) => [
    `${operation} of ${name}`,
    `${name} (${operation})`,
    `${name} (${operation})`,
  ],
  note: ['Note', 'Notiz', 'Nota'],
  writeNote: ['Write a note', 'Notiz schreiben', 'Scrivi una nota'],
  noteTitle: (name: string) => [`Note about ${name}`, `Notiz zu ${name}`, `Nota su ${name}`],
  noteHelp: [
    'Ctrl and Enter save it. A note never changes, and is erased with the person.',
    'Strg und Eingabe speichern sie. Eine Notiz ändert sich nie und wird mit der Person endgültig gelöscht.',
    'Ctrl e Invio la salvano. Una nota non cambia mai e viene cancellata con la persona.',
  ],
  wroteNote: ['wrote a note', 'schrieb eine Notiz', 'ha scritto una nota'],
})

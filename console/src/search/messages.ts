import { defineMessages } from '../app/language.tsx'

export const messages = defineMessages({
  title: ['Search everything', 'Alles durchsuchen', 'Cerca ovunque'],
  placeholder: [
    'A name, an email, a number of an order, a page …',
    'Ein Name, eine E-Mail, eine Bestellnummer, eine Seite …',
    'Un nome, un’email, il numero di un ordine, una pagina …',
  ],
  recent: ['Looked at last', 'Zuletzt angesehen', 'Visti di recente'],
  found: ['People and records', 'Personen und Datensätze', 'Persone e record'],
  segments: ['Segments', 'Segmente', 'Segmenti'],
  newPerson: ['New person', 'Neue Person', 'Nuova persona'],
  newRecord: (stack: string) => [`New record: ${stack}`, `Neuer Datensatz: ${stack}`, `Nuovo record: ${stack}`],
  importFile: ['Import a file …', 'Datei importieren …', 'Importa un file …'],
  nothing: ['Nothing is found', 'Nichts gefunden', 'Nessun risultato'],
  begin: ['Type what you look for.', 'Geben Sie ein, was Sie suchen.', 'Scrivi che cosa cerchi.'],
  searching: ['Searching', 'Suche läuft', 'Ricerca in corso'],
})

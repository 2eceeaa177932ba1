import { type Sentences, sentenceTranslator } from '../app/sentences.ts'

/** Faults of a file's line before it is sent. */
export const fileSentences: Sentences = {
  'has # cells, but the header has #': ['hat # Zellen, die Kopfzeile aber #', 'ha # celle, ma l’intestazione ne ha #'],
  'has more than # bytes': ['hat mehr als # Byte', 'ha più di # byte'],
  'has a quote that is not closed': [
    'hat ein Anführungszeichen, das nicht geschlossen ist',
    'ha virgolette che non si chiudono',
  ],
  'has a character between a closing quote and the next separator. Write a quote within a cell twice, and leave out spaces around the quotes':
    [
      'hat ein Zeichen zwischen einem schließenden Anführungszeichen und dem nächsten Trennzeichen. Schreiben Sie ein Anführungszeichen in einer Zelle doppelt, und lassen Sie Leerzeichen um die Anführungszeichen weg',
      'ha un carattere tra le virgolette di chiusura e il separatore seguente. Raddoppia le virgolette dentro una cella e togli gli spazi attorno',
    ],
  'has a cell with white space before its opening quote. Leave it out, or enclose the whole cell in quotes and write the quotes within it twice':
    [
      'hat eine Zelle mit Leerraum vor dem öffnenden Anführungszeichen. Lassen Sie ihn weg, oder schließen Sie die ganze Zelle in Anführungszeichen ein und verdoppeln Sie die darin',
      'ha una cella con uno spazio prima delle virgolette di apertura. Toglilo, oppure racchiudi tutta la cella tra virgolette e raddoppia quelle interne',
    ],
  'has a quote after a backslash. Enclose the cell in quotes, and write a quote within it twice, without the backslash':
    [
      'hat ein Anführungszeichen nach einem Backslash. Schließen Sie die Zelle in Anführungszeichen ein, und schreiben Sie eines darin doppelt, ohne Backslash',
      'ha virgolette dopo una barra rovesciata. Racchiudi la cella tra virgolette e raddoppia quelle interne, senza barra rovesciata',
    ],
  'has several lines that no quotes enclose': [
    'hat mehrere Zeilen, die keine Anführungszeichen einschließen',
    'ha più righe che nessuna virgoletta racchiude',
  ],
  '# is not a number such as 12 or 0.5. For a decimal comma use --decimal ,': [
    '# ist keine Zahl wie 12 oder 0.5. Ein Dezimalkomma können Sie wählen',
    '# non è un numero come 12 o 0.5. Puoi scegliere la virgola decimale',
  ],
  '# is not a number such as 12 or 0,5': ['# ist keine Zahl wie 12 oder 0,5', '# non è un numero come 12 o 0,5'],
  'is not UTF-8': ['ist kein UTF-8', 'non è UTF-8'],
  'is not JSON. A JSON text needs double quotes': [
    'ist kein JSON. Ein Text braucht darin doppelte Anführungszeichen',
    'non è JSON. Un testo vi richiede virgolette doppie',
  ],
  'is not a JSON #': ['ist kein JSON: #', 'non è JSON: #'],
  'has an element that cannot have a prefix. Only texts and whole numbers can': [
    'hat ein Element, das kein Präfix haben kann. Das können nur Texte und ganze Zahlen',
    'ha un elemento che non può avere un prefisso. Possono averlo solo testi e numeri interi',
  ],
  '# has more digits than a number can store': [
    '# hat mehr Stellen, als eine Zahl speichern kann',
    '# ha più cifre di quante un numero ne possa contenere',
  ],
  '# is not a boolean. Write yes or no, in English, German, Italian, French or Spanish, x, 1 or 0, or name the words with --true-words and --false-words':
    [
      '# ist weder ja noch nein. Möglich sind ja und nein, yes und no, x, 1 und 0, und die Wörter, die Sie oben angeben',
      '# non è né sì né no. Scrivi sì o no, yes o no, x, 1 o 0, o una delle parole che indichi sopra',
    ],
  '# is not a date such as 1999-12-31 or 31.12.1999': [
    '# ist kein Datum wie 1999-12-31 oder 31.12.1999',
    '# non è una data come 1999-12-31 o 31.12.1999',
  ],
  '# is ambiguous. Use --date-order dmy or mdy': [
    '# ist mehrdeutig. Wählen Sie die Reihenfolge von Tag und Monat',
    '# è ambiguo. Scegli l’ordine di giorno e mese',
  ],
  '# is not a date and time such as 1999-12-31T23:59:59Z': [
    '# ist kein Zeitpunkt wie 1999-12-31T23:59:59Z',
    '# non è una data con ora come 1999-12-31T23:59:59Z',
  ],
  '# is not an existing date and time': ['Den Zeitpunkt # gibt es nicht', 'Il momento # non esiste'],
  '# does not exist in the time zone: clocks are put forward over it': [
    '# gibt es in der Zeitzone nicht: Die Uhren werden darüber hinweg vorgestellt',
    '# non esiste nel fuso orario: gli orologi lo saltano in avanti',
  ],
  '# has no offset. Use --offset, such as --offset Z, or --time-zone, such as --time-zone Europe/Berlin': [
    '# hat keine Zeitzone. Wählen Sie eine',
    '# non ha un fuso orario. Sceglilo',
  ],
  '#, so that the refusal has no time. #': [
    '#, so dass die Ablehnung keinen Zeitpunkt hat. #',
    '#, quindi il rifiuto non ha un momento. #',
  ],
  'are empty': ['sind leer', 'sono vuote'],
  'is empty': ['ist leer', 'è vuota'],
  'has no time beside it': ['hat keinen Zeitpunkt daneben', 'non ha un momento accanto'],
  'Name the time of the export with --exported-at': [
    'Nennen Sie den Zeitpunkt des Exports',
    'Indica il momento dell’esportazione',
  ],
  'is empty, so that the record has no external_id': [
    'ist leer, so dass der Eintrag keine Kennung hat',
    'è vuota, e l’elemento resta senza identificativo',
  ],
  'needs an answer in the column #': ['braucht eine Antwort in der Spalte #', 'richiede una risposta nella colonna #'],
  'the connection broke while the line was stored, so it is not known whether it is. Look it up before you send it again':
    [
      'die Verbindung brach ab, während die Zeile gespeichert wurde. Ob sie es ist, ist unbekannt. Sehen Sie nach, bevor Sie sie noch einmal senden',
      'la connessione si è interrotta mentre si salvava la riga. Non si sa se è salvata: controlla prima di inviarla di nuovo',
    ],
  'was exported from #, not from #': [
    'stammt aus einem Export von #, nicht von #',
    'viene da un’esportazione di #, non di #',
  ],
  'The file is empty. The first line of a CSV file names the columns.': [
    'Die Datei ist leer. Die erste Zeile einer CSV-Datei benennt die Spalten.',
    'Il file è vuoto. La prima riga di un file CSV dà il nome alle colonne.',
  ],
  'The header #.': ['Die Kopfzeile #.', 'L’intestazione #.'],
  'The record that begins in line # does not end. Check for a missing closing quote.': [
    'Der Eintrag, der in Zeile # beginnt, endet nicht. Vielleicht fehlt ein schließendes Anführungszeichen.',
    'L’elemento che comincia alla riga # non finisce. Forse manca una virgoletta di chiusura.',
  ],
  'The encoding of # cannot be found from its bytes. Name it with --encoding.': [
    'Die Zeichencodierung von # ist nicht zu erkennen. Wählen Sie sie.',
    'La codifica di # non si riconosce. Sceglila.',
  ],
  '# is not encoded in #. Use another --encoding.': [
    '# ist nicht in # codiert. Wählen Sie eine andere Zeichencodierung.',
    '# non è codificato in #. Scegli un’altra codifica.',
  ],
  'The word # cannot mean both # and #.': [
    'Das Wort # kann nicht zweierlei bedeuten: # und #.',
    'La parola # non può significare sia # sia #.',
  ],
  'A comma cannot be both the decimal mark and the separator of the values in a cell.': [
    'Ein Komma kann nicht Dezimalzeichen sein und zugleich die Werte einer Zelle trennen.',
    'Una virgola non può essere sia il segno decimale sia il separatore dei valori di una cella.',
  ],
  'refused without a reason, because there were too many; correct the others and import this file': [
    'ohne Grund abgelehnt, denn es waren zu viele; berichtigen Sie die anderen, und importieren Sie diese Datei',
    'rifiutato senza motivo, perché erano troppi; correggi gli altri e importa questo file',
  ],
}

export const translatedFault = sentenceTranslator(fileSentences)

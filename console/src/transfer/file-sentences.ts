import { defineSentences, sentenceTranslator } from '../app/sentences.ts'

/** Faults of a line of a file before it is sent. */
export const fileSentences = defineSentences(
  {
    'has # cells, but the header has #': 'hat # Zellen, die Kopfzeile aber #',
    'has more than # bytes': 'hat mehr als # Byte',
    'is not UTF-8': 'ist kein UTF-8',
    'is not JSON. A JSON text needs double quotes': 'ist kein JSON. Ein Text braucht darin doppelte Anführungszeichen',
    'is not a JSON #': 'ist kein JSON: #',
    'has an element that cannot have a prefix. Only texts and whole numbers can':
      'hat ein Element, das kein Präfix haben kann. Das können nur Texte und ganze Zahlen',
    '# has more digits than a number can store': '# hat mehr Stellen, als eine Zahl speichern kann',
    '# is not a boolean. Write yes or no, true or false, 1 or 0':
      '# ist weder ja noch nein. Möglich sind yes und no, true und false, 1 und 0',
    '# is not a date such as 1999-12-31 or 31.12.1999': '# ist kein Datum wie 1999-12-31 oder 31.12.1999',
    '# is ambiguous. Use --date-order dmy or mdy': '# ist mehrdeutig. Wählen Sie die Reihenfolge von Tag und Monat',
    '# is not a date and time such as 1999-12-31T23:59:59Z': '# ist kein Zeitpunkt wie 1999-12-31T23:59:59Z',
    '# is not an existing date and time': 'Den Zeitpunkt # gibt es nicht',
    '# does not exist in the time zone: clocks are put forward over it':
      '# gibt es in der Zeitzone nicht: Die Uhren werden darüber hinweg vorgestellt',
    '# has no offset. Use --offset, such as --offset Z, or --time-zone, such as --time-zone Europe/Berlin':
      '# hat keine Zeitzone. Wählen Sie eine',
    '#, so that the answer has no time. #': '#, so dass die Antwort keinen Zeitpunkt hat. #',
    'are empty': 'sind leer',
    'is empty': 'ist leer',
    'has no time beside it': 'hat keinen Zeitpunkt daneben',
    'Name the time of the export with --exported-at': 'Nennen Sie den Zeitpunkt des Exports',
    'is empty, so that the record has no external_id': 'ist leer, so dass der Eintrag keine Kennung hat',
    'needs an answer in the column #': 'braucht eine Antwort in der Spalte #',
    'refused without a reason, because there were too many; correct the others and import this file':
      'ohne Grund abgelehnt, denn es waren zu viele; berichtigen Sie die anderen, und importieren Sie diese Datei',
  },
  {
    'has # cells, but the header has #': 'ha # celle, ma l’intestazione ne ha #',
    'has more than # bytes': 'ha più di # byte',
    'is not UTF-8': 'non è UTF-8',
    'is not JSON. A JSON text needs double quotes': 'non è JSON. Un testo vi richiede virgolette doppie',
    'is not a JSON #': 'non è JSON: #',
    'has an element that cannot have a prefix. Only texts and whole numbers can':
      'ha un elemento che non può avere un prefisso. Possono averlo solo testi e numeri interi',
    '# has more digits than a number can store': '# ha più cifre di quante un numero ne possa contenere',
    '# is not a boolean. Write yes or no, true or false, 1 or 0':
      '# non è né sì né no. Scrivi yes o no, true o false, 1 o 0',
    '# is not a date such as 1999-12-31 or 31.12.1999': '# non è una data come 1999-12-31 o 31.12.1999',
    '# is ambiguous. Use --date-order dmy or mdy': '# è ambiguo. Scegli l’ordine di giorno e mese',
    '# is not a date and time such as 1999-12-31T23:59:59Z': '# non è una data con ora come 1999-12-31T23:59:59Z',
    '# is not an existing date and time': 'Il momento # non esiste',
    '# does not exist in the time zone: clocks are put forward over it':
      '# non esiste nel fuso orario: gli orologi lo saltano in avanti',
    '# has no offset. Use --offset, such as --offset Z, or --time-zone, such as --time-zone Europe/Berlin':
      '# non ha un fuso orario. Sceglilo',
    '#, so that the answer has no time. #': '#, quindi la risposta non ha un momento. #',
    'are empty': 'sono vuote',
    'is empty': 'è vuota',
    'has no time beside it': 'non ha un momento accanto',
    'Name the time of the export with --exported-at': 'Indica il momento dell’esportazione',
    'is empty, so that the record has no external_id': 'è vuota, e l’elemento resta senza identificativo',
    'needs an answer in the column #': 'richiede una risposta nella colonna #',
    'refused without a reason, because there were too many; correct the others and import this file':
      'rifiutato senza motivo, perché erano troppi; correggi gli altri e importa questo file',
  },
)

export const translatedFault = sentenceTranslator(fileSentences)

import { type Sentences, sentenceTranslator } from '../app/sentences.ts'

/** Sentences of the client about an invalid receipt. A malformed part is named, with the sentence in English. */
export const receiptSentences: Sentences = {
  'This version of kith verifies receipts of the format "#" only.': [
    'Diese Version von kith prüft nur Belege der Form „#“.',
    'Questa versione di kith verifica solo ricevute del formato «#».',
  ],
  'The receipt is larger than 1 MiB.': ['Der Beleg ist größer als 1 MiB.', 'La ricevuta supera 1 MiB.'],
  'The receipt is not a JSON object.': ['Der Beleg ist kein JSON-Objekt.', 'La ricevuta non è un oggetto JSON.'],
  'The receipt has no member #.': ['Dem Beleg fehlt #.', 'Alla ricevuta manca #.'],
  'The # is not JSON in UTF-8.': ['Das ist kein JSON in UTF-8: #.', 'Non è JSON in UTF-8: #.'],
  'An object of the # has the member # twice. Programs differ in which of the two they read.': [
    'Ein Objekt (#) enthält # zweimal. Programme lesen davon mal das eine, mal das andere.',
    'Un oggetto (#) contiene # due volte. I programmi leggono a volte l’uno, a volte l’altro.',
  ],
  receipt: ['der Beleg', 'la ricevuta'],
  'header of the signature': ['der Kopf der Unterschrift', 'l’intestazione della firma'],
  'content of the signature': ['der Inhalt der Unterschrift', 'il contenuto della firma'],
  'The receipt is signed by the key #, not by the key that you gave.': [
    'Den Beleg hat der Schlüssel # unterschrieben, nicht der angegebene.',
    'La ricevuta è firmata dalla chiave #, non da quella indicata.',
  ],
  'The signature of the receipt is wrong: it is not by the key of the receipt, or it was changed.': [
    'Die Unterschrift des Belegs ist falsch: Sie ist nicht vom Schlüssel des Belegs, oder sie wurde geändert.',
    'La firma della ricevuta è sbagliata: non è della chiave della ricevuta, o è stata modificata.',
  ],
  'The member # was added: the signature does not cover it.': [
    '# wurde hinzugefügt: Die Unterschrift deckt es nicht.',
    '# è stato aggiunto: la firma non lo copre.',
  ],
  'The member # was changed after the receipt was signed.': [
    '# wurde geändert, nachdem der Beleg unterschrieben war.',
    '# è stato modificato dopo la firma della ricevuta.',
  ],
  'The member # was removed from the receipt.': ['# wurde aus dem Beleg entfernt.', '# è stato tolto dalla ricevuta.'],
  'The checkpoint is of the log #, but its key is that of the log #.': [
    'Der Prüfpunkt gehört zum Verzeichnis #, sein Schlüssel aber zum Verzeichnis #.',
    'Il checkpoint è del registro #, ma la sua chiave è quella del registro #.',
  ],
  'The salt is not base64 of 32 bytes.': ['Das Salz hat nicht 32 Byte in Base64.', 'Il sale non è Base64 di 32 byte.'],
  'The proof does not lead from the entry and its salt to the checkpoint: the entry is not in the log.': [
    'Der Nachweis führt von der Antwort und ihrem Salz nicht zum Prüfpunkt: Die Antwort ist nicht im Verzeichnis.',
    'La prova non porta dalla risposta e dal suo sale al checkpoint: la risposta non è nel registro.',
  ],
  'The entry names no text, so the receipt proves nothing about the text that you gave.': [
    'Die Antwort nennt keinen Text. Der Beleg beweist also nichts über den angegebenen.',
    'La risposta non indica un testo, quindi la ricevuta non prova nulla su quello indicato.',
  ],
  'The text of the receipt is not the one whose hash the log sealed.': [
    'Der Text des Belegs ist nicht der, dessen Hash das Verzeichnis versiegelt hat.',
    'Il testo della ricevuta non è quello il cui hash è sigillato nel registro.',
  ],
  'The text that you gave is not the one that the person answered to, byte for byte: the log sealed another hash.': [
    'Der angegebene Text ist nicht Byte für Byte der, auf den die Person geantwortet hat: Das Verzeichnis hat einen anderen Hash versiegelt.',
    'Il testo indicato non è, byte per byte, quello a cui la persona ha risposto: il registro ha sigillato un altro hash.',
  ],
  'The hash of the verifier key is not that of its name and key: a part of it was changed.': [
    'Der Hash des Schlüssels passt nicht zu seinem Namen und seinem Schlüssel: Ein Teil davon wurde geändert.',
    'L’hash della chiave non corrisponde al suo nome e alla chiave: una parte è stata modificata.',
  ],
  'The note is not signed by the key #.': [
    'Den Prüfpunkt hat der Schlüssel # nicht unterschrieben.',
    'Il checkpoint non è firmato dalla chiave #.',
  ],
  'The signature of the note by the key # is wrong.': [
    'Die Unterschrift des Prüfpunkts mit dem Schlüssel # ist falsch.',
    'La firma del checkpoint con la chiave # è sbagliata.',
  ],
}

export const translatedReceipt = sentenceTranslator(receiptSentences)

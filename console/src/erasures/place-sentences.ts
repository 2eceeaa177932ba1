import { type Sentences, sentenceTranslator } from '../app/sentences.ts'

/** The places that an erasure does not reach, as the service names them. */
export const placeSentences: Sentences = {
  'the write-ahead log and dead row versions of PostgreSQL, until it reuses their space, and its statistics, until the next ANALYZE':
    [
      'das Write-Ahead-Log und alte Zeilenversionen von PostgreSQL, bis ihr Platz neu belegt wird, und seine Statistik bis zum nächsten ANALYZE',
      'il write-ahead log e le vecchie versioni delle righe di PostgreSQL, finché lo spazio non viene riusato, e le sue statistiche, fino al prossimo ANALYZE',
    ],
  'backups, dumps, archives and replicas of the database': [
    'Sicherungen, Dumps, Archive und Kopien (Replikate) der Datenbank',
    'copie di sicurezza, dump, archivi e repliche del database',
  ],
  'what webhooks have delivered, what exports, feeds and reads have returned, and what their receivers hold': [
    'was Webhooks zugestellt und was Exporte, Feeds und Abfragen ausgegeben haben, und was deren Empfänger davon haben',
    'ciò che i webhook hanno consegnato e che esportazioni, feed e letture hanno restituito, e ciò che i destinatari ne conservano',
  ],
  'the log files of proxies, which may have paths of requests, and of PostgreSQL, which may quote statements': [
    'die Protokolle von Proxys, die Pfade von Anfragen enthalten können, und die von PostgreSQL, die Befehle zitieren können',
    'i registri dei proxy, che possono contenere percorsi di richieste, e quelli di PostgreSQL, che possono citare istruzioni',
  ],
  'the plain values of other entities, such as a name in a note': [
    'gewöhnliche Werte anderer Einträge, etwa ein Name in einer Notiz',
    'i valori semplici di altri elementi, per esempio un nome in una nota',
  ],
}

export const translatedPlace = sentenceTranslator(placeSentences)

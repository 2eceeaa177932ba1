import { type Sentences, sentenceTranslator } from '../app/sentences.ts'

/** Sentences of the checks of `kith doctor`. Names of settings and commands stay as they are. */
export const doctorSentences: Sentences = {
  'the environment is valid': ['Die Einstellungen sind gültig', 'Le impostazioni sono valide'],
  'See the server’s log.': ['Siehe das Protokoll des Datenbankservers.', 'Guarda il registro del server del database.'],
  'PostgreSQL # responds': ['PostgreSQL # antwortet', 'PostgreSQL # risponde'],
  '#, but kith is not tested with this version': [
    '#, aber kith ist mit dieser Version nicht getestet',
    '#, ma kith non è provato con questa versione',
  ],
  'Use PostgreSQL 15 to #.': ['Verwenden Sie PostgreSQL 15 bis #.', 'Usa PostgreSQL da 15 a #.'],
  'the encoding of the database is #, and kith needs UTF8': [
    'Die Datenbank hat die Zeichenkodierung #, und kith braucht UTF8',
    'La codifica del database è #, e kith ha bisogno di UTF8',
  ],
  'Make a database with UTF8 (encoding UTF8, template template0), and restore a backup into it.': [
    'Legen Sie eine Datenbank mit UTF8 an (encoding UTF8, template template0), und spielen Sie eine Sicherung ein.',
    'Crea un database con UTF8 (encoding UTF8, template template0), e ripristina un backup.',
  ],
  'the server is a read-only standby': [
    'Der Server ist ein Standby, auf dem sich nur lesen lässt',
    'Il server è uno standby in sola lettura',
  ],
  'Set DATABASE_URL to the primary.': [
    'Setzen Sie DATABASE_URL auf den Primärserver.',
    'Imposta DATABASE_URL sul server primario.',
  ],
  'acknowledged writes are on disk': [
    'Bestätigte Schreibvorgänge sind auf der Platte',
    'Le scritture confermate sono su disco',
  ],
  '# is off: a crash can lose acknowledged writes or the whole database': [
    '# ist ausgeschaltet: Ein Absturz kann bestätigte Schreibvorgänge oder die ganze Datenbank kosten',
    '# è disattivato: un arresto improvviso può perdere scritture confermate o tutto il database',
  ],
  'Set # = on, for the server, this database and this role.': [
    'Setzen Sie # = on, für den Server, diese Datenbank und diese Rolle.',
    'Imposta # = on, per il server, questo database e questo ruolo.',
  ],
  'synchronous_standby_names is empty, and #: a failover can lose acknowledged writes': [
    'synchronous_standby_names ist leer, und #: Ein Wechsel des Servers kann bestätigte Schreibvorgänge kosten',
    'synchronous_standby_names è vuoto, e #: un cambio di server può perdere scritture confermate',
  ],
  'one standby streams': ['ein Standby liest mit', 'uno standby è collegato'],
  '# standbys stream': ['# Standbys lesen mit', '# standby sono collegati'],
  'Set synchronous_standby_names, or synchronous_mode of Patroni (docs/more-servers.md, Failover).': [
    'Setzen Sie synchronous_standby_names, oder synchronous_mode von Patroni (docs/more-servers.md, Failover).',
    'Imposta synchronous_standby_names, o synchronous_mode di Patroni (docs/more-servers.md, Failover).',
  ],
  'synchronous_commit is local: a failover can lose acknowledged writes': [
    'synchronous_commit ist local: Ein Wechsel des Servers kann bestätigte Schreibvorgänge kosten',
    'synchronous_commit è local: un cambio di server può perdere scritture confermate',
  ],
  'a process of the service needs # connections, and # are available': [
    'Ein Prozess des Dienstes braucht # Verbindungen, und # sind frei',
    'Un processo del servizio ha bisogno di # connessioni, e # sono libere',
  ],
  '#: enough for #': ['#: genug für #', '#: abbastanza per #'],
  'one worker': ['einen Prozess', 'un processo'],
  '# workers': ['# Prozesse', '# processi'],
  'Lower KITH_DATABASE_CONNECTIONS, or raise max_connections.': [
    'Senken Sie KITH_DATABASE_CONNECTIONS, oder erhöhen Sie max_connections.',
    'Riduci KITH_DATABASE_CONNECTIONS, o aumenta max_connections.',
  ],
  'wal_level is #, and no WAL is archived: a restore ends at the last dump': [
    'wal_level ist #, und WAL wird nicht archiviert: Eine Wiederherstellung endet beim letzten Dump',
    'wal_level è #, e il WAL non viene archiviato: un ripristino arriva fino all’ultimo dump',
  ],
  'archiving of WAL fails, last for #': [
    'WAL lässt sich nicht archivieren, zuletzt #',
    'L’archiviazione del WAL non riesce, l’ultima volta per #',
  ],
  'See archive_command and the server’s log.': [
    'Siehe archive_command und das Protokoll des Datenbankservers.',
    'Guarda archive_command e il registro del server del database.',
  ],
  'wal_level is #, and # segments of WAL have been archived': [
    'wal_level ist #, und # Segmente von WAL sind archiviert',
    'wal_level è #, e # segmenti del WAL sono archiviati',
  ],
  'the clocks of this machine and of the database are # s apart': [
    'Die Uhren dieses Rechners und der Datenbank gehen um # s auseinander',
    'Gli orologi di questa macchina e del database differiscono di # s',
  ],
  'Synchronize both with one time server (NTP).': [
    'Stellen Sie beide nach demselben Zeitserver (NTP).',
    'Sincronizzali con lo stesso server orario (NTP).',
  ],
  'an earlier beta of kith made the database, and this version does not read its data': [
    'Die Datenbank stammt von einer früheren Beta, deren Daten diese Version nicht liest',
    'Il database è di una beta precedente, di cui questa versione non legge i dati',
  ],
  'Carry every organization over by export and import, as docs/scale.md describes.': [
    'Übertragen Sie jede Organisation durch Export und Import, wie docs/scale.md beschreibt.',
    'Trasferisci ogni organizzazione con esportazione e importazione, come descrive docs/scale.md.',
  ],
  'the database has #, which this version does not know': [
    'Die Datenbank hat #, was diese Version nicht kennt',
    'Il database ha #, che questa versione non conosce',
  ],
  'Run the newer version of kith that migrated the database.': [
    'Starten Sie die neuere Version von kith, die die Datenbank migriert hat.',
    'Avvia la versione più recente di kith, che ha migrato il database.',
  ],
  'the tables of kith are not in the schema public, so a backup would have none of them': [
    'Die Tabellen von kith sind nicht im Schema public, eine Sicherung enthielte also keine von ihnen',
    'Le tabelle di kith non sono nello schema public, quindi un backup non ne conterrebbe nessuna',
  ],
  'Move them, as docs/backups.md describes (What a backup holds).': [
    'Verschieben Sie sie, wie docs/backups.md beschreibt (What a backup holds).',
    'Spostale, come descrive docs/backups.md (What a backup holds).',
  ],
  'the role # may not create tables': ['Die Rolle # darf keine Tabellen anlegen', 'Il ruolo # non può creare tabelle'],
  'Run, as the owner of the database: grant usage, create on schema public to #': [
    'Führen Sie als Eigentümer der Datenbank aus: grant usage, create on schema public to #',
    'Esegui come proprietario del database: grant usage, create on schema public to #',
  ],
  'the role # may not write the tables of kith': [
    'Die Rolle # darf in die Tabellen von kith nicht schreiben',
    'Il ruolo # non può scrivere nelle tabelle di kith',
  ],
  'Set DATABASE_URL to the role that owns the tables.': [
    'Nennen Sie in DATABASE_URL die Rolle, der die Tabellen gehören.',
    'Indica in DATABASE_URL il ruolo a cui appartengono le tabelle.',
  ],
  'the database has every migration, up to #': [
    'Die Datenbank hat alle Migrationen, bis #',
    'Il database ha tutte le migrazioni, fino a #',
  ],
  'not all have run, and these are missing: #': [
    'Nicht alle sind gelaufen, und diese fehlen: #',
    'Non tutte sono state eseguite, e mancano queste: #',
  ],
  'Run kith migrate. The start of the service runs them too.': [
    'Führen Sie kith migrate aus. Auch der Start des Dienstes holt sie nach.',
    'Esegui kith migrate. Lo fa anche l’avvio del servizio.',
  ],
  'there is no signing key': ['Es gibt keinen Schlüssel, der unterschreibt', 'Non c’è una chiave che firma'],
  'Run kith migrate. The first start of the service creates one too.': [
    'Führen Sie kith migrate aus. Auch der erste Start des Dienstes legt einen an.',
    'Esegui kith migrate. Anche il primo avvio del servizio ne crea una.',
  ],
  'days since the signing key was made: #, older keys that verify tokens: #': [
    'Alter des Schlüssels, der unterschreibt, in Tagen: #, ältere, die noch Token prüfen: #',
    'Età in giorni della chiave che firma: #, chiavi più vecchie che verificano ancora i token: #',
  ],
  'Run kith keys rotate. Tokens in use stay valid.': [
    'Führen Sie kith keys rotate aus. Token, die benutzt werden, bleiben gültig.',
    'Esegui kith keys rotate. I token in uso restano validi.',
  ],
  'the master key # wraps all keys and secrets': [
    'Der Hauptschlüssel # verschließt alle Schlüssel und Geheimnisse',
    'La chiave principale # protegge tutte le chiavi e i segreti',
  ],
  'keys and secrets that do not open, because their master key is missing: #': [
    'Schlüssel und Geheimnisse, die sich nicht öffnen lassen, weil ihr Hauptschlüssel fehlt: #',
    'Chiavi e segreti che non si aprono, perché manca la loro chiave principale: #',
  ],
  'Put it into the file of the master key. If it is lost, run kith keys forget (docs/keys.md).': [
    'Schreiben Sie ihn in die Datei des Hauptschlüssels. Ist er verloren, führen Sie kith keys forget aus (docs/keys.md).',
    'Scrivila nel file della chiave principale. Se è persa, esegui kith keys forget (docs/keys.md).',
  ],
  'there is no master key: who reads the database or a backup can sign tokens, links and deliveries': [
    'Es gibt keinen Hauptschlüssel: Wer die Datenbank oder eine Sicherung liest, kann Token, Links und Zustellungen unterschreiben',
    'Non c’è una chiave principale: chi legge il database o un backup può firmare token, link e consegne',
  ],
  'Set KITH_MASTER_KEY_FILE, as docs/keys.md describes.': [
    'Setzen Sie KITH_MASTER_KEY_FILE, wie docs/keys.md beschreibt.',
    'Imposta KITH_MASTER_KEY_FILE, come descrive docs/keys.md.',
  ],
  'keys and secrets that the first master key does not wrap: #': [
    'Schlüssel und Geheimnisse, die nicht mit dem ersten Hauptschlüssel verschlossen sind: #',
    'Chiavi e segreti che la prima chiave principale non protegge: #',
  ],
  'Run kith keys rewrap. The next start of the service does the same.': [
    'Führen Sie kith keys rewrap aus. Der nächste Start des Dienstes tut dasselbe.',
    'Esegui kith keys rewrap. Il prossimo avvio del servizio fa lo stesso.',
  ],
  '# is a backup beside the master key, which opens its keys': [
    '# ist eine Sicherung neben dem Hauptschlüssel, der ihre Schlüssel öffnet',
    '# è un backup accanto alla chiave principale, che ne apre le chiavi',
  ],
  'Move it to another machine, or encrypt backups with kith backup --recipient.': [
    'Verschieben Sie sie auf einen anderen Rechner, oder verschlüsseln Sie Sicherungen mit kith backup --recipient.',
    'Spostalo su un’altra macchina, o cifra i backup con kith backup --recipient.',
  ],
  'See docs/keys.md.': ['Siehe docs/keys.md.', 'Guarda docs/keys.md.'],
  'kith backup has written no backup of this database': [
    'kith backup hat diese Datenbank noch nie gesichert',
    'kith backup non ha mai salvato questo database',
  ],
  'Run kith backup every day, and keep the file on another machine.': [
    'Führen Sie täglich kith backup aus, und bewahren Sie die Datei auf einem anderen Rechner auf.',
    'Esegui kith backup ogni giorno, e conserva il file su un’altra macchina.',
  ],
  'the last kith backup is of #': ['Die letzte Sicherung von kith ist von #', 'L’ultimo backup di kith è del #'],
  'the last kith backup is of #, more than # days ago': [
    'Die letzte Sicherung von kith ist von #, mehr als # Tage alt',
    'L’ultimo backup di kith è del #, più di # giorni fa',
  ],
  'no transaction is older than 10 minutes': [
    'Keine Transaktion ist älter als 10 Minuten',
    'Nessuna transazione ha più di 10 minuti',
  ],
  '# has had a transaction open for # minutes: vacuum removes no dead row that it may see': [
    '# hat seit # Minuten eine Transaktion offen: vacuum entfernt keine Zeile, die sie noch sehen kann',
    '# ha una transazione aperta da # minuti: vacuum non rimuove le righe che può ancora vedere',
  ],
  'Wait if it is a backup or an export. Else end it with pg_terminate_backend, or rollback prepared.': [
    'Warten Sie, wenn es eine Sicherung oder ein Export ist. Sonst beenden Sie sie mit pg_terminate_backend oder rollback prepared.',
    'Aspetta, se è un backup o un’esportazione. Altrimenti chiudila con pg_terminate_backend o rollback prepared.',
  ],
  'no follower of the change log fails': [
    'Alles, was den Änderungen folgt, arbeitet',
    'Tutto ciò che segue le modifiche funziona',
  ],
  '# of # fails after change #: # (failures: #)': [
    '# von # scheitert nach der Änderung #: # (Fehler: #)',
    '# di # non riesce dopo la modifica #: # (errori: #)',
  ],
  'kith retries #. The log of the service has the error, with "task":"follow".': [
    'kith versucht es wieder: #. Das Protokoll des Dienstes hat den Fehler, mit "task":"follow".',
    'kith riprova: #. Il registro del servizio ha l’errore, con "task":"follow".',
  ],
  'at once': ['sofort', 'subito'],
  'at #': ['um #', 'alle #'],
  'Citus distributes every table': ['Citus verteilt alle Tabellen', 'Citus distribuisce tutte le tabelle'],
  'the database has Citus, and no table is distributed': [
    'Die Datenbank hat Citus, und keine Tabelle ist verteilt',
    'Il database ha Citus, e nessuna tabella è distribuita',
  ],
  'the database has Citus, and these tables are not distributed: #': [
    'Die Datenbank hat Citus, und diese Tabellen sind nicht verteilt: #',
    'Il database ha Citus, e queste tabelle non sono distribuite: #',
  ],
  'the database has Citus, and these settings of it are missing: #': [
    'Die Datenbank hat Citus, und diese Einstellungen davon fehlen: #',
    'Il database ha Citus, e mancano queste sue impostazioni: #',
  ],
  'Stop the service, and run kith distribute. It does what is left to do.': [
    'Halten Sie den Dienst an, und führen Sie kith distribute aus. Der Befehl erledigt den Rest.',
    'Ferma il servizio, ed esegui kith distribute. Il comando fa ciò che resta da fare.',
  ],
  'the index of the attribute # of # differs from the values of #: filters are wrong': [
    'Der Index des Attributs # von # weicht von den Werten von # ab: Filter finden das Falsche',
    'L’indice dell’attributo # di # differisce dai valori di #: i filtri trovano dati sbagliati',
  ],
  'PATCH the attribute with {"indexed": false}, and then with {"indexed": true}: that fills its index anew.': [
    'Schalten Sie auf der Seite des Attributs den Index aus und wieder ein: Das füllt ihn neu.',
    'Nella pagina dell’attributo disattiva l’indice e riattivalo: così viene riempito di nuovo.',
  ],
  'the values of a sample are those of their rows (indexes: #, values: #)': [
    'Die Werte einer Stichprobe sind die ihrer Zeilen (Indizes: #, Werte: #)',
    'I valori di un campione sono quelli delle loro righe (indici: #, valori: #)',
  ],
  'no webhook fails': ['Kein Webhook scheitert', 'Tutti i webhook funzionano'],
  '# has delivered nothing since #': ['# hat nichts zugestellt seit #', '# non ha consegnato nulla da #'],
  'webhook # of # (#)': ['Webhook # von # (#)', 'Il webhook # di # (#)'],
  'GET /v1/webhooks/#/deliveries shows the responses.': [
    'GET /v1/webhooks/#/deliveries zeigt die Antworten.',
    'GET /v1/webhooks/#/deliveries mostra le risposte.',
  ],
  '# was disabled at #: #': ['# wurde abgeschaltet am #: #', '# è stato disattivato il #: #'],
  'its receiver responded with 410': ['Der Empfänger hat mit 410 geantwortet', 'il destinatario ha risposto con 410'],
  'it delivered nothing for five days': [
    'Er hat fünf Tage lang nichts zugestellt',
    'non ha consegnato nulla per cinque giorni',
  ],
  'When the receiver works again, PATCH the webhook with {"active": true}, or delete it.': [
    'Wenn der Empfänger wieder arbeitet, aktivieren Sie den Webhook, oder löschen Sie ihn.',
    'Quando il destinatario funziona di nuovo, riattiva il webhook, o eliminalo.',
  ],
  '# does not exist yet': ['# gibt es noch nicht', '# non esiste ancora'],
  'Nothing to do before the first start. After it, check KITH_DATA_DIR.': [
    'Vor dem ersten Start ist nichts zu tun. Danach prüfen Sie KITH_DATA_DIR.',
    'Prima del primo avvio non c’è nulla da fare. Dopo, controlla KITH_DATA_DIR.',
  ],
  '# may be # by other users': ['# ist für andere Benutzer offen', '# è aperto ad altri utenti'],
  '# is closed to other users': ['# ist für andere Benutzer geschlossen', '# è chiuso agli altri utenti'],
  'See KITH_DATA_DIR.': ['Siehe KITH_DATA_DIR.', 'Guarda KITH_DATA_DIR.'],
  '# are free on the disk of #': ['# sind frei auf der Platte von #', '# sono liberi sul disco di #'],
  'Free disk space. PostgreSQL stops writing when the disk is full.': [
    'Schaffen Sie Platz. PostgreSQL schreibt nicht mehr, wenn die Platte voll ist.',
    'Libera spazio. PostgreSQL non scrive più quando il disco è pieno.',
  ],
  'Correct the files that TLS_CERT_FILE and TLS_KEY_FILE name.': [
    'Berichtigen Sie die Dateien, die TLS_CERT_FILE und TLS_KEY_FILE nennen.',
    'Correggi i file indicati da TLS_CERT_FILE e TLS_KEY_FILE.',
  ],
  'the certificate expired on #': ['Das Zertifikat ist abgelaufen am #', 'Il certificato è scaduto il #'],
  'the certificate is not valid yet': ['Das Zertifikat gilt noch nicht', 'Il certificato non è ancora valido'],
  'Check the clock of this machine.': [
    'Prüfen Sie die Uhr dieses Rechners.',
    'Controlla l’orologio di questa macchina.',
  ],
  'the certificate expires on #': ['Das Zertifikat läuft ab am #', 'Il certificato scade il #'],
  'Renew #, then send the service SIGHUP.': [
    'Erneuern Sie #, und senden Sie dem Dienst SIGHUP.',
    'Rinnova #, poi invia SIGHUP al servizio.',
  ],
  'certificate and key match, valid until #': [
    'Zertifikat und Schlüssel passen zusammen, gültig bis #',
    'Certificato e chiave corrispondono, validi fino al #',
  ],
  '# can be read by every user': ['# kann jeder Benutzer lesen', '# è leggibile da ogni utente'],
  'Check AUTH_JWKS_URL, and that this machine reaches it.': [
    'Prüfen Sie AUTH_JWKS_URL, und ob dieser Rechner die Adresse erreicht.',
    'Controlla AUTH_JWKS_URL, e che questa macchina la raggiunga.',
  ],
  '# has # usable keys': ['# hat # brauchbare Schlüssel', '# ha # chiavi utilizzabili'],
  '# has no usable key': ['# hat keinen brauchbaren Schlüssel', '# non ha una chiave utilizzabile'],
  'The key set needs a key with a kid, for ES256, RS256 or EdDSA.': [
    'Nötig ist ein Schlüssel mit einer kid, für ES256, RS256 oder EdDSA.',
    'Serve una chiave con un kid, per ES256, RS256 o EdDSA.',
  ],
  '1 finding concerns another organization': [
    '1 Befund betrifft eine andere Organisation',
    '1 segnalazione riguarda un’altra organizzazione',
  ],
  '# findings concern other organizations': [
    '# Befunde betreffen andere Organisationen',
    '# segnalazioni riguardano altre organizzazioni',
  ],
  'Run kith doctor on the machine of the service. It names them.': [
    'Führen Sie kith doctor auf dem Rechner des Dienstes aus. Er nennt sie.',
    'Esegui kith doctor sulla macchina del servizio. Le nomina.',
  ],
}

export const translatedFinding = sentenceTranslator(doctorSentences)

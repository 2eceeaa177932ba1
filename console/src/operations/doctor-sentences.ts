import { defineSentences, sentenceTranslator } from '../app/sentences.ts'

/** Sentences of the checks of `kith doctor`. Names of settings and commands stay as they are. */
export const doctorSentences = defineSentences(
  {
    'the environment is valid': 'Die Einstellungen sind gültig',
    'See the server’s log.': 'Siehe das Protokoll des Datenbankservers.',
    'PostgreSQL # responds': 'PostgreSQL # antwortet',
    '#, but kith is not tested with this version': '#, aber kith ist mit dieser Version nicht getestet',
    'Use PostgreSQL 15 to #.': 'Verwenden Sie PostgreSQL 15 bis #.',
    'the server is a read-only standby': 'Der Server ist ein Standby, auf dem sich nur lesen lässt',
    'Set DATABASE_URL to the primary.': 'Setzen Sie DATABASE_URL auf den Primärserver.',
    'acknowledged writes are on disk': 'Bestätigte Schreibvorgänge sind auf der Platte',
    '# is off: a crash can lose acknowledged writes or the whole database':
      '# ist ausgeschaltet: Ein Absturz kann bestätigte Schreibvorgänge oder die ganze Datenbank kosten',
    'Set # = on, for the server, this database and this role.':
      'Setzen Sie # = on, für den Server, diese Datenbank und diese Rolle.',
    'synchronous_standby_names is empty, and #: a failover can lose acknowledged writes':
      'synchronous_standby_names ist leer, und #: Ein Wechsel des Servers kann bestätigte Schreibvorgänge kosten',
    'one standby streams': 'ein Standby liest mit',
    '# standbys stream': '# Standbys lesen mit',
    'Set synchronous_standby_names, or synchronous_mode of Patroni (docs/more-servers.md, Failover).':
      'Setzen Sie synchronous_standby_names, oder synchronous_mode von Patroni (docs/more-servers.md, Failover).',
    'synchronous_commit is local: a failover can lose acknowledged writes':
      'synchronous_commit ist local: Ein Wechsel des Servers kann bestätigte Schreibvorgänge kosten',
    'a process of the service needs # connections, and # are available':
      'Ein Prozess des Dienstes braucht # Verbindungen, und # sind frei',
    '#: enough for #': '#: genug für #',
    'one worker': 'einen Prozess',
    '# workers': '# Prozesse',
    'Lower KITH_DATABASE_CONNECTIONS, or raise max_connections.':
      'Senken Sie KITH_DATABASE_CONNECTIONS, oder erhöhen Sie max_connections.',
    'wal_level is #, and no WAL is archived: a restore ends at the last dump':
      'wal_level ist #, und WAL wird nicht archiviert: Eine Wiederherstellung endet beim letzten Dump',
    'archiving of WAL fails, last for #': 'WAL lässt sich nicht archivieren, zuletzt #',
    'See archive_command and the server’s log.': 'Siehe archive_command und das Protokoll des Datenbankservers.',
    'wal_level is #, and # segments of WAL have been archived':
      'wal_level ist #, und # Segmente von WAL sind archiviert',
    'the clocks of this machine and of the database are # s apart':
      'Die Uhren dieses Rechners und der Datenbank gehen um # s auseinander',
    'Synchronize both with one time server (NTP).': 'Stellen Sie beide nach demselben Zeitserver (NTP).',
    'an earlier beta of kith made the database, and this version does not read its data':
      'Die Datenbank stammt von einer früheren Beta, deren Daten diese Version nicht liest',
    'Carry every organization over by export and import, as docs/scale.md describes.':
      'Übertragen Sie jede Organisation durch Export und Import, wie docs/scale.md beschreibt.',
    'the database has #, which this version does not know': 'Die Datenbank hat #, was diese Version nicht kennt',
    'Run the newer version of kith that migrated the database.':
      'Starten Sie die neuere Version von kith, die die Datenbank migriert hat.',
    'the database has every migration, up to #': 'Die Datenbank hat alle Migrationen, bis #',
    '# have not run: #': '# sind nicht gelaufen: #',
    'Run kith migrate. The start of the service runs them too.':
      'Führen Sie kith migrate aus. Auch der Start des Dienstes holt sie nach.',
    'there is no signing key': 'Es gibt keinen Schlüssel, der unterschreibt',
    'Run kith migrate. The first start of the service creates one too.':
      'Führen Sie kith migrate aus. Auch der erste Start des Dienstes legt einen an.',
    'the signing key is # days old, and # older keys verify tokens':
      'Der Schlüssel, der unterschreibt, ist # Tage alt, und # ältere prüfen noch Token',
    'Run kith keys rotate. Tokens in use stay valid.':
      'Führen Sie kith keys rotate aus. Token, die benutzt werden, bleiben gültig.',
    'the master key # wraps all keys and secrets': 'Der Hauptschlüssel # verschließt alle Schlüssel und Geheimnisse',
    '# keys and secrets do not open, because their master key is missing':
      '# Schlüssel und Geheimnisse lassen sich nicht öffnen, weil ihr Hauptschlüssel fehlt',
    'Put it into the file of the master key. If it is lost, run kith keys forget (docs/keys.md).':
      'Schreiben Sie ihn in die Datei des Hauptschlüssels. Ist er verloren, führen Sie kith keys forget aus (docs/keys.md).',
    'there is no master key: who reads the database or a backup can sign tokens, links and deliveries':
      'Es gibt keinen Hauptschlüssel: Wer die Datenbank oder eine Sicherung liest, kann Token, Links und Zustellungen unterschreiben',
    'Set KITH_MASTER_KEY_FILE, as docs/keys.md describes.':
      'Setzen Sie KITH_MASTER_KEY_FILE, wie docs/keys.md beschreibt.',
    '# keys and secrets are not wrapped by the first master key':
      '# Schlüssel und Geheimnisse sind nicht mit dem ersten Hauptschlüssel verschlossen',
    'Run kith keys rewrap. The next start of the service does the same.':
      'Führen Sie kith keys rewrap aus. Der nächste Start des Dienstes tut dasselbe.',
    '# is a backup beside the master key, which opens its keys':
      '# ist eine Sicherung neben dem Hauptschlüssel, der ihre Schlüssel öffnet',
    'Move it to another machine, or encrypt backups with kith backup --recipient.':
      'Verschieben Sie sie auf einen anderen Rechner, oder verschlüsseln Sie Sicherungen mit kith backup --recipient.',
    'See docs/keys.md.': 'Siehe docs/keys.md.',
    'kith backup has written no backup of this database': 'kith backup hat diese Datenbank noch nie gesichert',
    'Run kith backup every day, and keep the file on another machine.':
      'Führen Sie täglich kith backup aus, und bewahren Sie die Datei auf einem anderen Rechner auf.',
    'the last kith backup is of #': 'Die letzte Sicherung von kith ist von #',
    'the last kith backup is of #, more than # days ago':
      'Die letzte Sicherung von kith ist von #, mehr als # Tage alt',
    'no transaction is older than 10 minutes': 'Keine Transaktion ist älter als 10 Minuten',
    '# has had a transaction open for # minutes: vacuum removes no dead row that it may see':
      '# hat seit # Minuten eine Transaktion offen: vacuum entfernt keine Zeile, die sie noch sehen kann',
    'Wait if it is a backup or an export. Else end it with pg_terminate_backend, or rollback prepared.':
      'Warten Sie, wenn es eine Sicherung oder ein Export ist. Sonst beenden Sie sie mit pg_terminate_backend oder rollback prepared.',
    'no follower of the change log fails': 'Alles, was den Änderungen folgt, arbeitet',
    '# of # fails after change #: # (failures: #)': '# von # scheitert nach der Änderung #: # (Fehler: #)',
    'kith retries #. The log of the service has the error, with "task":"follow".':
      'kith versucht es wieder: #. Das Protokoll des Dienstes hat den Fehler, mit "task":"follow".',
    'at once': 'sofort',
    'at #': 'um #',
    'Citus distributes every table': 'Citus verteilt alle Tabellen',
    'the database has Citus, and no table is distributed': 'Die Datenbank hat Citus, und keine Tabelle ist verteilt',
    'the database has Citus, and these tables are not distributed: #':
      'Die Datenbank hat Citus, und diese Tabellen sind nicht verteilt: #',
    'the database has Citus, and these settings of it are missing: #':
      'Die Datenbank hat Citus, und diese Einstellungen davon fehlen: #',
    'Stop the service, and run kith distribute. It does what is left to do.':
      'Halten Sie den Dienst an, und führen Sie kith distribute aus. Der Befehl erledigt den Rest.',
    'the index of the attribute # of # differs from the values of #: filters are wrong':
      'Der Index des Attributs # von # weicht von den Werten von # ab: Filter finden das Falsche',
    'PATCH the attribute with {"indexed": false}, and then with {"indexed": true}: that fills its index anew.':
      'Schalten Sie auf der Seite des Attributs den Index aus und wieder ein: Das füllt ihn neu.',
    '# values of # indexes are those of their rows': '# Werte von # Indizes sind die ihrer Zeilen',
    'no webhook fails': 'Kein Webhook scheitert',
    '# has delivered nothing since #': '# hat nichts zugestellt seit #',
    'webhook # of # (#)': 'Webhook # von # (#)',
    'GET /v1/webhooks/#/deliveries shows the responses.': 'GET /v1/webhooks/#/deliveries zeigt die Antworten.',
    '# was disabled at #: #': '# wurde abgeschaltet am #: #',
    'its receiver responded with 410': 'Der Empfänger hat mit 410 geantwortet',
    'it delivered nothing for five days': 'Er hat fünf Tage lang nichts zugestellt',
    'When the receiver works again, PATCH the webhook with {"active": true}, or delete it.':
      'Wenn der Empfänger wieder arbeitet, aktivieren Sie den Webhook, oder löschen Sie ihn.',
    '# does not exist yet': '# gibt es noch nicht',
    'Nothing to do before the first start. After it, check KITH_DATA_DIR.':
      'Vor dem ersten Start ist nichts zu tun. Danach prüfen Sie KITH_DATA_DIR.',
    '# may be # by other users': '# ist für andere Benutzer offen',
    '# is closed to other users': '# ist für andere Benutzer geschlossen',
    'See KITH_DATA_DIR.': 'Siehe KITH_DATA_DIR.',
    '# are free on the disk of #': '# sind frei auf der Platte von #',
    'Free disk space. PostgreSQL stops writing when the disk is full.':
      'Schaffen Sie Platz. PostgreSQL schreibt nicht mehr, wenn die Platte voll ist.',
    'Correct the files that TLS_CERT_FILE and TLS_KEY_FILE name.':
      'Berichtigen Sie die Dateien, die TLS_CERT_FILE und TLS_KEY_FILE nennen.',
    'the certificate expired on #': 'Das Zertifikat ist abgelaufen am #',
    'the certificate is not valid yet': 'Das Zertifikat gilt noch nicht',
    'Check the clock of this machine.': 'Prüfen Sie die Uhr dieses Rechners.',
    'the certificate expires on #': 'Das Zertifikat läuft ab am #',
    'Renew #, then send the service SIGHUP.': 'Erneuern Sie #, und senden Sie dem Dienst SIGHUP.',
    'certificate and key match, valid until #': 'Zertifikat und Schlüssel passen zusammen, gültig bis #',
    '# can be read by every user': '# kann jeder Benutzer lesen',
    'Check AUTH_JWKS_URL, and that this machine reaches it.':
      'Prüfen Sie AUTH_JWKS_URL, und ob dieser Rechner die Adresse erreicht.',
    '# has # usable keys': '# hat # brauchbare Schlüssel',
    '# has no usable key': '# hat keinen brauchbaren Schlüssel',
    'The key set needs a key with a kid, for ES256, RS256 or EdDSA.':
      'Nötig ist ein Schlüssel mit einer kid, für ES256, RS256 oder EdDSA.',
    '1 finding concerns another organization': '1 Befund betrifft eine andere Organisation',
    '# findings concern other organizations': '# Befunde betreffen andere Organisationen',
    'Run kith doctor on the machine of the service. It names them.':
      'Führen Sie kith doctor auf dem Rechner des Dienstes aus. Er nennt sie.',
  },
  {
    'the environment is valid': 'Le impostazioni sono valide',
    'See the server’s log.': 'Guarda il registro del server del database.',
    'PostgreSQL # responds': 'PostgreSQL # risponde',
    '#, but kith is not tested with this version': '#, ma kith non è provato con questa versione',
    'Use PostgreSQL 15 to #.': 'Usa PostgreSQL da 15 a #.',
    'the server is a read-only standby': 'Il server è uno standby in sola lettura',
    'Set DATABASE_URL to the primary.': 'Imposta DATABASE_URL sul server primario.',
    'acknowledged writes are on disk': 'Le scritture confermate sono su disco',
    '# is off: a crash can lose acknowledged writes or the whole database':
      '# è disattivato: un arresto improvviso può perdere scritture confermate o tutto il database',
    'Set # = on, for the server, this database and this role.':
      'Imposta # = on, per il server, questo database e questo ruolo.',
    'synchronous_standby_names is empty, and #: a failover can lose acknowledged writes':
      'synchronous_standby_names è vuoto, e #: un cambio di server può perdere scritture confermate',
    'one standby streams': 'uno standby è collegato',
    '# standbys stream': '# standby sono collegati',
    'Set synchronous_standby_names, or synchronous_mode of Patroni (docs/more-servers.md, Failover).':
      'Imposta synchronous_standby_names, o synchronous_mode di Patroni (docs/more-servers.md, Failover).',
    'synchronous_commit is local: a failover can lose acknowledged writes':
      'synchronous_commit è local: un cambio di server può perdere scritture confermate',
    'a process of the service needs # connections, and # are available':
      'Un processo del servizio ha bisogno di # connessioni, e # sono libere',
    '#: enough for #': '#: abbastanza per #',
    'one worker': 'un processo',
    '# workers': '# processi',
    'Lower KITH_DATABASE_CONNECTIONS, or raise max_connections.':
      'Riduci KITH_DATABASE_CONNECTIONS, o aumenta max_connections.',
    'wal_level is #, and no WAL is archived: a restore ends at the last dump':
      'wal_level è #, e il WAL non viene archiviato: un ripristino arriva fino all’ultimo dump',
    'archiving of WAL fails, last for #': 'L’archiviazione del WAL non riesce, l’ultima volta per #',
    'See archive_command and the server’s log.': 'Guarda archive_command e il registro del server del database.',
    'wal_level is #, and # segments of WAL have been archived': 'wal_level è #, e # segmenti del WAL sono archiviati',
    'the clocks of this machine and of the database are # s apart':
      'Gli orologi di questa macchina e del database differiscono di # s',
    'Synchronize both with one time server (NTP).': 'Sincronizzali con lo stesso server orario (NTP).',
    'an earlier beta of kith made the database, and this version does not read its data':
      'Il database è di una beta precedente, di cui questa versione non legge i dati',
    'Carry every organization over by export and import, as docs/scale.md describes.':
      'Trasferisci ogni organizzazione con esportazione e importazione, come descrive docs/scale.md.',
    'the database has #, which this version does not know': 'Il database ha #, che questa versione non conosce',
    'Run the newer version of kith that migrated the database.':
      'Avvia la versione più recente di kith, che ha migrato il database.',
    'the database has every migration, up to #': 'Il database ha tutte le migrazioni, fino a #',
    '# have not run: #': '# non sono state eseguite: #',
    'Run kith migrate. The start of the service runs them too.':
      'Esegui kith migrate. Lo fa anche l’avvio del servizio.',
    'there is no signing key': 'Non c’è una chiave che firma',
    'Run kith migrate. The first start of the service creates one too.':
      'Esegui kith migrate. Anche il primo avvio del servizio ne crea una.',
    'the signing key is # days old, and # older keys verify tokens':
      'La chiave che firma ha # giorni, e # più vecchie verificano ancora i token',
    'Run kith keys rotate. Tokens in use stay valid.': 'Esegui kith keys rotate. I token in uso restano validi.',
    'the master key # wraps all keys and secrets': 'La chiave principale # protegge tutte le chiavi e i segreti',
    '# keys and secrets do not open, because their master key is missing':
      '# chiavi e segreti non si aprono, perché manca la loro chiave principale',
    'Put it into the file of the master key. If it is lost, run kith keys forget (docs/keys.md).':
      'Scrivila nel file della chiave principale. Se è persa, esegui kith keys forget (docs/keys.md).',
    'there is no master key: who reads the database or a backup can sign tokens, links and deliveries':
      'Non c’è una chiave principale: chi legge il database o un backup può firmare token, link e consegne',
    'Set KITH_MASTER_KEY_FILE, as docs/keys.md describes.': 'Imposta KITH_MASTER_KEY_FILE, come descrive docs/keys.md.',
    '# keys and secrets are not wrapped by the first master key':
      '# chiavi e segreti non sono protetti dalla prima chiave principale',
    'Run kith keys rewrap. The next start of the service does the same.':
      'Esegui kith keys rewrap. Il prossimo avvio del servizio fa lo stesso.',
    '# is a backup beside the master key, which opens its keys':
      '# è un backup accanto alla chiave principale, che ne apre le chiavi',
    'Move it to another machine, or encrypt backups with kith backup --recipient.':
      'Spostalo su un’altra macchina, o cifra i backup con kith backup --recipient.',
    'See docs/keys.md.': 'Guarda docs/keys.md.',
    'kith backup has written no backup of this database': 'kith backup non ha mai salvato questo database',
    'Run kith backup every day, and keep the file on another machine.':
      'Esegui kith backup ogni giorno, e conserva il file su un’altra macchina.',
    'the last kith backup is of #': 'L’ultimo backup di kith è del #',
    'the last kith backup is of #, more than # days ago': 'L’ultimo backup di kith è del #, più di # giorni fa',
    'no transaction is older than 10 minutes': 'Nessuna transazione ha più di 10 minuti',
    '# has had a transaction open for # minutes: vacuum removes no dead row that it may see':
      '# ha una transazione aperta da # minuti: vacuum non rimuove le righe che può ancora vedere',
    'Wait if it is a backup or an export. Else end it with pg_terminate_backend, or rollback prepared.':
      'Aspetta, se è un backup o un’esportazione. Altrimenti chiudila con pg_terminate_backend o rollback prepared.',
    'no follower of the change log fails': 'Tutto ciò che segue le modifiche funziona',
    '# of # fails after change #: # (failures: #)': '# di # non riesce dopo la modifica #: # (errori: #)',
    'kith retries #. The log of the service has the error, with "task":"follow".':
      'kith riprova: #. Il registro del servizio ha l’errore, con "task":"follow".',
    'at once': 'subito',
    'at #': 'alle #',
    'Citus distributes every table': 'Citus distribuisce tutte le tabelle',
    'the database has Citus, and no table is distributed': 'Il database ha Citus, e nessuna tabella è distribuita',
    'the database has Citus, and these tables are not distributed: #':
      'Il database ha Citus, e queste tabelle non sono distribuite: #',
    'the database has Citus, and these settings of it are missing: #':
      'Il database ha Citus, e mancano queste sue impostazioni: #',
    'Stop the service, and run kith distribute. It does what is left to do.':
      'Ferma il servizio, ed esegui kith distribute. Il comando fa ciò che resta da fare.',
    'the index of the attribute # of # differs from the values of #: filters are wrong':
      'L’indice dell’attributo # di # differisce dai valori di #: i filtri trovano dati sbagliati',
    'PATCH the attribute with {"indexed": false}, and then with {"indexed": true}: that fills its index anew.':
      'Nella pagina dell’attributo disattiva l’indice e riattivalo: così viene riempito di nuovo.',
    '# values of # indexes are those of their rows': '# valori di # indici sono quelli delle loro righe',
    'no webhook fails': 'Tutti i webhook funzionano',
    '# has delivered nothing since #': '# non ha consegnato nulla da #',
    'webhook # of # (#)': 'Il webhook # di # (#)',
    'GET /v1/webhooks/#/deliveries shows the responses.': 'GET /v1/webhooks/#/deliveries mostra le risposte.',
    '# was disabled at #: #': '# è stato disattivato il #: #',
    'its receiver responded with 410': 'il destinatario ha risposto con 410',
    'it delivered nothing for five days': 'non ha consegnato nulla per cinque giorni',
    'When the receiver works again, PATCH the webhook with {"active": true}, or delete it.':
      'Quando il destinatario funziona di nuovo, riattiva il webhook, o eliminalo.',
    '# does not exist yet': '# non esiste ancora',
    'Nothing to do before the first start. After it, check KITH_DATA_DIR.':
      'Prima del primo avvio non c’è nulla da fare. Dopo, controlla KITH_DATA_DIR.',
    '# may be # by other users': '# è aperto ad altri utenti',
    '# is closed to other users': '# è chiuso agli altri utenti',
    'See KITH_DATA_DIR.': 'Guarda KITH_DATA_DIR.',
    '# are free on the disk of #': '# sono liberi sul disco di #',
    'Free disk space. PostgreSQL stops writing when the disk is full.':
      'Libera spazio. PostgreSQL non scrive più quando il disco è pieno.',
    'Correct the files that TLS_CERT_FILE and TLS_KEY_FILE name.':
      'Correggi i file indicati da TLS_CERT_FILE e TLS_KEY_FILE.',
    'the certificate expired on #': 'Il certificato è scaduto il #',
    'the certificate is not valid yet': 'Il certificato non è ancora valido',
    'Check the clock of this machine.': 'Controlla l’orologio di questa macchina.',
    'the certificate expires on #': 'Il certificato scade il #',
    'Renew #, then send the service SIGHUP.': 'Rinnova #, poi invia SIGHUP al servizio.',
    'certificate and key match, valid until #': 'Certificato e chiave corrispondono, validi fino al #',
    '# can be read by every user': '# è leggibile da ogni utente',
    'Check AUTH_JWKS_URL, and that this machine reaches it.':
      'Controlla AUTH_JWKS_URL, e che questa macchina la raggiunga.',
    '# has # usable keys': '# ha # chiavi utilizzabili',
    '# has no usable key': '# non ha una chiave utilizzabile',
    'The key set needs a key with a kid, for ES256, RS256 or EdDSA.':
      'Serve una chiave con un kid, per ES256, RS256 o EdDSA.',
    '1 finding concerns another organization': '1 segnalazione riguarda un’altra organizzazione',
    '# findings concern other organizations': '# segnalazioni riguardano altre organizzazioni',
    'Run kith doctor on the machine of the service. It names them.':
      'Esegui kith doctor sulla macchina del servizio. Le nomina.',
  },
)

export const translatedFinding = sentenceTranslator(doctorSentences)

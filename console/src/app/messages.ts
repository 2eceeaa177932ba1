import { defineMessages } from './language.tsx'

export const messages = defineMessages({
  import: ['Import', 'Import', 'Importa'],
  reports: ['Reports', 'Auswertungen', 'Report'],
  export: ['Export', 'Export', 'Esporta'],
  ledger: ['Ledger', 'Nachweise', 'Registro'],
  changes: ['Changes', 'Änderungen', 'Modifiche'],
  operations: ['Operations', 'Betrieb', 'Operatività'],
  access: ['Access', 'Zugänge', 'Accessi'],
  accessLog: ['Access log', 'Zugriffsprotokoll', 'Registro accessi'],
  pages: ['Pages', 'Seiten', 'Pagine'],
  search: [
    'Search people, records, pages and actions',
    'Personen, Datensätze, Seiten und Aktionen suchen',
    'Cerca persone, record, pagine e azioni',
  ],
  searchButton: ['Search', 'Suchen', 'Cerca'],
  menu: ['Menu', 'Menü', 'Menu'],
  skipToContent: ['Skip to the content', 'Zum Inhalt', 'Vai al contenuto'],
  goTo: (page: string) => [`Go to ${page}`, `Zu ${page}`, `Vai a ${page}`],
  signedInAs: ['Signed in as', 'Angemeldet als', 'Accesso come'],
  signOut: ['Sign out', 'Abmelden', 'Esci'],
  keys: ['Keys', 'Tasten', 'Tasti'],
  listKeys: ['List the keys of this page', 'Die Tasten dieser Seite anzeigen', 'Elenca i tasti di questa pagina'],
  notFound: ['Page not found', 'Seite nicht gefunden', 'Pagina non trovata'],
  notFoundAdvice: [
    'The console has no page at this address.',
    'Unter dieser Adresse hat die Konsole keine Seite.',
    'La console non ha una pagina a questo indirizzo.',
  ],
  fault: ['This page failed', 'Diese Seite ist fehlgeschlagen', 'Questa pagina non è riuscita'],
  missingCode: [
    'The page could not be loaded: the connection broke, or kith was updated meanwhile.',
    'Die Seite konnte nicht geladen werden: Die Verbindung ist abgebrochen, oder kith wurde inzwischen aktualisiert.',
    'La pagina non è stata caricata: la connessione si è interrotta oppure kith è stato aggiornato nel frattempo.',
  ],
  unreadableFilter: [
    'The filter of this address cannot be read',
    'Der Filter dieser Adresse ist nicht lesbar',
    'Il filtro di questo indirizzo non è leggibile',
  ],
  unreadableFilterAdvice: [
    'The address is probably cut or misspelt. Without its filter, the list shows everything.',
    'Die Adresse ist vermutlich abgeschnitten oder falsch geschrieben. Ohne ihren Filter zeigt die Liste alles.',
    'L’indirizzo è probabilmente troncato o scritto male. Senza il suo filtro, l’elenco mostra tutto.',
  ],
  withoutFilter: [
    'Show the list without the filter',
    'Die Liste ohne den Filter zeigen',
    'Mostra l’elenco senza il filtro',
  ],
  reload: ['Reload', 'Neu laden', 'Ricarica'],
  signInWith: (issuer: string) => [`Sign in with ${issuer}`, `Mit ${issuer} anmelden`, `Accedi con ${issuer}`],
  signingIn: ['Signing you in', 'Sie werden angemeldet', 'Accesso in corso'],
  clientHelp: [
    'Created by the command kith client create.',
    'Der Befehl kith client create legt einen Client an.',
    'Si crea con il comando kith client create.',
  ],
  linkAdvice: [
    'Or run this command where kith runs, and open the link that it prints:',
    'Oder führen Sie diesen Befehl dort aus, wo kith läuft, und öffnen Sie den ausgegebenen Link:',
    'Oppure esegui questo comando dove gira kith e apri il link che stampa:',
  ],
  codeRefused: ['This link no longer works.', 'Dieser Link gilt nicht mehr.', 'Questo link non è più valido.'],
  codeRefusedAdvice: [
    'A sign-in link works once, for 60 seconds. Make a new one:',
    'Ein Anmeldelink gilt einmal, 60 Sekunden lang. Einen neuen erzeugt:',
    'Un link di accesso vale una volta, per 60 secondi. Creane uno nuovo:',
  ],
  wrongCredentials: [
    'The client id or the secret is wrong.',
    'Die Client-ID oder das Geheimnis ist falsch.',
    'L’ID del client o il segreto non è corretto.',
  ],
  issuerFaults: {
    denied: [
      'The sign-in was refused. Sign in again, or ask for access where you have your account.',
      'Die Anmeldung wurde abgelehnt. Melden Sie sich noch einmal an, oder bitten Sie dort um Zugang, wo Sie Ihr Konto haben.',
      'L’accesso è stato rifiutato. Accedi di nuovo, oppure chiedi l’accesso dove hai il tuo account.',
    ],
    expired: [
      'The sign-in took too long, or began in another browser. Sign in again.',
      'Die Anmeldung hat zu lange gedauert oder in einem anderen Browser begonnen. Melden Sie sich noch einmal an.',
      'L’accesso ha richiesto troppo tempo o è iniziato in un altro browser. Accedi di nuovo.',
    ],
    no_access: [
      'Your account has no access to kith. Ask its administrator for the claims org and scope.',
      'Ihr Konto hat keinen Zugang zu kith. Bitten Sie die Verwaltung des Kontos um die Angaben org und scope.',
      'Il tuo account non ha accesso a kith. Chiedi all’amministratore i campi org e scope.',
    ],
    unavailable: [
      'The sign-in service does not respond. Sign in again later.',
      'Der Anmeldedienst reagiert nicht. Melden Sie sich später noch einmal an.',
      'Il servizio di accesso non è raggiungibile. Riprova più tardi.',
    ],
    failed: [
      'The sign-in did not succeed. The log of kith says why.',
      'Die Anmeldung ist nicht gelungen. Das Protokoll von kith nennt den Grund.',
      'L’accesso non è riuscito. Il log di kith dice perché.',
    ],
    throttled: [
      'Too many sign-ins have failed. Sign in again after a minute.',
      'Zu viele Anmeldungen sind fehlgeschlagen. Versuchen Sie es in einer Minute noch einmal.',
      'Troppi accessi non riusciti. Riprova tra un minuto.',
    ],
    read_only: [
      'This server only reads. Sign in at one that also writes.',
      'Dieser Server liest nur. Melden Sie sich an einem an, der auch schreibt.',
      'Questo server è di sola lettura. Accedi a uno che scrive anche.',
    ],
  },
})

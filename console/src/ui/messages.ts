import { defineMessages } from '../app/language.tsx'

export const messages = defineMessages({
  tryAgain: ['Try again', 'Noch einmal versuchen', 'Riprova'],
  unreachable: [
    'The service cannot be reached.',
    'Der Dienst ist nicht erreichbar.',
    'Il servizio non è raggiungibile.',
  ],
  tooSlow: [
    'The service did not respond in time.',
    'Der Dienst hat nicht rechtzeitig reagiert.',
    'Il servizio non ha reagito in tempo.',
  ],
  unreachableAdvice: [
    'Your input is kept on this page. Check the connection, then try again.',
    'Ihre Eingaben bleiben auf dieser Seite. Prüfen Sie die Verbindung und versuchen Sie es noch einmal.',
    'I dati inseriti restano in questa pagina. Controlla la connessione e riprova.',
  ],
  overloaded: [
    'The service is not available at the moment.',
    'Der Dienst ist gerade nicht verfügbar.',
    'Il servizio al momento non è disponibile.',
  ],
  overloadedAdvice: [
    'Your input is kept on this page. Try again in a moment.',
    'Ihre Eingaben bleiben auf dieser Seite. Versuchen Sie es gleich noch einmal.',
    'I dati inseriti restano in questa pagina. Riprova tra poco.',
  ],
  signedOut: ['Your session has ended.', 'Ihre Sitzung ist beendet.', 'La sessione è terminata.'],
  signedOutAdvice: [
    'Sign in again, and come back to this page. To keep your input, use another tab to sign in, then try again here.',
    'Melden Sie sich wieder an; danach sind Sie zurück auf dieser Seite. Um Ihre Eingaben zu behalten, melden Sie sich in einem anderen Tab an und versuchen Sie es dann hier.',
    'Accedi di nuovo e torna a questa pagina. Per conservare i dati inseriti, accedi in un’altra scheda, poi riprova qui.',
  ],
  changedMeanwhile: [
    'Somebody changed it in the meantime. Look again before you go on.',
    'Inzwischen gab es eine Änderung von jemand anderem. Sehen Sie nach, bevor Sie fortfahren.',
    'Nel frattempo qualcuno ha apportato una modifica. Ricontrolla prima di continuare.',
  ],
  forbidden: [
    'You do not have permission for this.',
    'Dafür fehlt Ihnen die Berechtigung.',
    'Non hai il permesso per questa operazione.',
  ],
  forbiddenAdvice: [
    'Ask an administrator of kith for access, then sign in again.',
    'Bitten Sie die Verwaltung von kith um Zugang, und melden Sie sich dann neu an.',
    'Chiedi l’accesso a un amministratore di kith, poi accedi di nuovo.',
  ],
  loading: ['Loading', 'Wird geladen', 'Caricamento'],
  loadingMore: ['Loading more', 'Weitere werden geladen', 'Caricamento di altri'],
  valueAt: (number: number) => [`Value ${number}`, `Wert ${number}`, `Valore ${number}`],
  discard: [
    'What you entered is not saved. Close the dialog and lose it?',
    'Ihre Eingaben sind nicht gespeichert. Den Dialog schließen und sie verlieren?',
    'I dati inseriti non sono salvati. Chiudere la finestra e perderli?',
  ],
  unsaved: [
    'You have changes that are not saved. Leave the page and lose them?',
    'Es gibt Änderungen, die nicht gespeichert sind. Die Seite verlassen und sie verlieren?',
    'Ci sono modifiche non salvate. Lasciare la pagina e perderle?',
  ],
})

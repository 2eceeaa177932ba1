import { defineMessages } from '../app/language.tsx'

export const messages = defineMessages({
  en: {
    tryAgain: 'Try again',
    unreachable: 'The service cannot be reached.',
    tooSlow: 'The service did not respond in time.',
    unreachableAdvice: 'Your input is kept on this page. Check the connection, then try again.',
    overloaded: 'The service is not available at the moment.',
    overloadedAdvice: 'Your input is kept on this page. Try again in a moment.',
    signedOut: 'Your session has ended.',
    signedOutAdvice:
      'Sign in again, and come back to this page. To keep your input, use another tab to sign in, then try again here.',
    changedMeanwhile: 'Somebody changed it in the meantime. Look again before you go on.',
    forbidden: 'You do not have permission for this.',
    forbiddenAdvice: 'Ask an administrator of kith for access, then sign in again.',
    loading: 'Loading',
    loadingMore: 'Loading more',
    valueAt: (number: number) => `Value ${number}`,
    discard: 'What you entered is not saved. Close the dialog and lose it?',
  },
  de: {
    tryAgain: 'Noch einmal versuchen',
    unreachable: 'Der Dienst ist nicht erreichbar.',
    tooSlow: 'Der Dienst hat nicht rechtzeitig reagiert.',
    unreachableAdvice:
      'Ihre Eingaben bleiben auf dieser Seite. Prüfen Sie die Verbindung und versuchen Sie es noch einmal.',
    overloaded: 'Der Dienst ist gerade nicht verfügbar.',
    overloadedAdvice: 'Ihre Eingaben bleiben auf dieser Seite. Versuchen Sie es gleich noch einmal.',
    signedOut: 'Ihre Sitzung ist beendet.',
    signedOutAdvice:
      'Melden Sie sich wieder an; danach sind Sie zurück auf dieser Seite. Um Ihre Eingaben zu behalten, melden Sie sich in einem anderen Tab an und versuchen Sie es dann hier.',
    changedMeanwhile: 'Inzwischen gab es eine Änderung von jemand anderem. Sehen Sie nach, bevor Sie fortfahren.',
    forbidden: 'Dafür fehlt Ihnen die Berechtigung.',
    forbiddenAdvice: 'Bitten Sie die Verwaltung von kith um Zugang, und melden Sie sich dann neu an.',
    loading: 'Wird geladen',
    loadingMore: 'Weitere werden geladen',
    valueAt: (number: number) => `Wert ${number}`,
    discard: 'Ihre Eingaben sind nicht gespeichert. Den Dialog schließen und sie verlieren?',
  },
  it: {
    tryAgain: 'Riprova',
    unreachable: 'Il servizio non è raggiungibile.',
    tooSlow: 'Il servizio non ha reagito in tempo.',
    unreachableAdvice: 'I dati inseriti restano in questa pagina. Controlla la connessione e riprova.',
    overloaded: 'Il servizio al momento non è disponibile.',
    overloadedAdvice: 'I dati inseriti restano in questa pagina. Riprova tra poco.',
    signedOut: 'La sessione è terminata.',
    signedOutAdvice:
      'Accedi di nuovo e torna a questa pagina. Per conservare i dati inseriti, accedi in un’altra scheda, poi riprova qui.',
    changedMeanwhile: 'Nel frattempo qualcuno ha apportato una modifica. Ricontrolla prima di continuare.',
    forbidden: 'Non hai il permesso per questa operazione.',
    forbiddenAdvice: 'Chiedi l’accesso a un amministratore di kith, poi accedi di nuovo.',
    loading: 'Caricamento',
    loadingMore: 'Caricamento di altri',
    valueAt: (number: number) => `Valore ${number}`,
    discard: 'I dati inseriti non sono salvati. Chiudere la finestra e perderli?',
  },
})

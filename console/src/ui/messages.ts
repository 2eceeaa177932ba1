import { defineMessages } from '../app/language.tsx'

export const messages = defineMessages({
  en: {
    tryAgain: 'Try again',
    unreachable: 'The service cannot be reached.',
    tooSlow: 'The service did not answer in time.',
    unreachableAdvice: 'Your input is kept on this page. Check the connection, then try again.',
    overloaded: 'The service cannot answer at the moment.',
    overloadedAdvice: 'Your input is kept on this page. Try again in a moment.',
    signedOut: 'Your session has ended.',
    signedOutAdvice: 'Sign in again in another tab, then try again here. Your input is kept on this page.',
    loading: 'Loading',
    loadingMore: 'Loading more',
    close: 'Close',
    cancel: 'Cancel',
  },
  de: {
    tryAgain: 'Noch einmal versuchen',
    unreachable: 'Der Dienst ist nicht erreichbar.',
    tooSlow: 'Der Dienst hat nicht rechtzeitig geantwortet.',
    unreachableAdvice:
      'Ihre Eingaben bleiben auf dieser Seite. Prüfen Sie die Verbindung und versuchen Sie es noch einmal.',
    overloaded: 'Der Dienst kann gerade nicht antworten.',
    overloadedAdvice: 'Ihre Eingaben bleiben auf dieser Seite. Versuchen Sie es gleich noch einmal.',
    signedOut: 'Ihre Sitzung ist beendet.',
    signedOutAdvice:
      'Melden Sie sich in einem anderen Tab wieder an und versuchen Sie es dann hier. Ihre Eingaben bleiben auf dieser Seite.',
    loading: 'Wird geladen',
    loadingMore: 'Weitere werden geladen',
    close: 'Schließen',
    cancel: 'Abbrechen',
  },
  it: {
    tryAgain: 'Riprova',
    unreachable: 'Il servizio non è raggiungibile.',
    tooSlow: 'Il servizio non ha risposto in tempo.',
    unreachableAdvice: 'I dati inseriti restano in questa pagina. Controlla la connessione e riprova.',
    overloaded: 'Il servizio al momento non può rispondere.',
    overloadedAdvice: 'I dati inseriti restano in questa pagina. Riprova tra poco.',
    signedOut: 'La sessione è terminata.',
    signedOutAdvice: 'Accedi di nuovo in un’altra scheda, poi riprova qui. I dati inseriti restano in questa pagina.',
    loading: 'Caricamento',
    loadingMore: 'Caricamento di altri',
    close: 'Chiudi',
    cancel: 'Annulla',
  },
})

import type { PageLanguage } from '../organizations/settings-schema.ts'
import type { Channel } from '../values/channels.ts'

/** The words of the pages in one language. */
export type Words = {
  channels: Record<Channel, string>
  /** A purpose on a channel, in a sentence or a list. */
  by: (purpose: string, channel: string) => string
  preferencesTitle: string
  preferencesIntroduction: string
  noPurposes: string
  moreAbout: (purpose: string) => string
  waits: string
  save: string
  savedTitle: string
  savedIntroduction: string
  nothingChanged: string
  outdated: string
  granted: string
  refused: string
  backToPreferences: string
  unsubscribeTitle: string
  unsubscribeQuestion: string
  unsubscribe: string
  unsubscribedTitle: string
  unsubscribedIntroduction: string
  toPreferences: string
  confirmTitle: string
  confirmQuestion: string
  confirm: string
  confirmedTitle: string
  confirmedIntroduction: string
  nothingToConfirmTitle: string
  nothingToConfirm: string
  privacy: string
  contact: string
  invalidTitle: string
  invalid: string
  tooManyTitle: string
  tooMany: string
  unreadableTitle: string
  unreadable: string
  failedTitle: string
  failed: string
}

export const words: Record<PageLanguage, Words> = {
  en: {
    channels: { email: 'Email', sms: 'SMS' },
    by: (purpose, channel) => `${purpose}, by ${channel === 'Email' ? 'email' : channel}`,
    preferencesTitle: 'Your preferences',
    preferencesIntroduction: 'Choose what you agree to. You can change your choice at any time.',
    noPurposes: 'There is nothing to choose at the moment.',
    moreAbout: purpose => `More about ${purpose}`,
    waits: 'waits for your confirmation',
    save: 'Save',
    savedTitle: 'Your choice is saved',
    savedIntroduction: 'You changed this:',
    nothingChanged: 'You changed nothing.',
    outdated: 'This page was out of date. Nothing was saved. Please check your choice and save again.',
    granted: 'agreed',
    refused: 'not agreed',
    backToPreferences: 'Back to your preferences',
    unsubscribeTitle: 'Unsubscribe',
    unsubscribeQuestion: 'Do you want to stop receiving this?',
    unsubscribe: 'Unsubscribe',
    unsubscribedTitle: 'You are unsubscribed',
    unsubscribedIntroduction: 'You will not receive this any more:',
    toPreferences: 'See all your preferences',
    confirmTitle: 'Please confirm',
    confirmQuestion: 'Do you agree to this?',
    confirm: 'Confirm',
    confirmedTitle: 'Thank you, it is confirmed',
    confirmedIntroduction: 'You agreed to this:',
    nothingToConfirmTitle: 'There is nothing to confirm',
    nothingToConfirm:
      'No agreement waits for your confirmation. You can see and change your choice on the page of your preferences.',
    privacy: 'Privacy notice',
    contact: 'Contact',
    invalidTitle: 'This link is not valid',
    invalid: 'It may be incomplete or too old. Please use the link in the newest message.',
    tooManyTitle: 'Too many requests',
    tooMany: 'Please wait a moment and try again.',
    unreadableTitle: 'This did not work',
    unreadable: 'Nothing was changed. Please open the link again and use the button on the page.',
    failedTitle: 'Please try again later',
    failed: 'The service is not available at the moment.',
  },
  de: {
    channels: { email: 'E-Mail', sms: 'SMS' },
    by: (purpose, channel) => `${purpose}, per ${channel}`,
    preferencesTitle: 'Ihre Einstellungen',
    preferencesIntroduction: 'Wählen Sie, womit Sie einverstanden sind. Sie können Ihre Wahl jederzeit ändern.',
    noPurposes: 'Zurzeit gibt es nichts zu wählen.',
    moreAbout: purpose => `Mehr über ${purpose}`,
    waits: 'wartet auf Ihre Bestätigung',
    save: 'Speichern',
    savedTitle: 'Ihre Wahl ist gespeichert',
    savedIntroduction: 'Das haben Sie geändert:',
    nothingChanged: 'Sie haben nichts geändert.',
    outdated:
      'Die Seite war veraltet. Es wurde nichts gespeichert. Bitte prüfen Sie Ihre Wahl und speichern Sie noch einmal.',
    granted: 'einverstanden',
    refused: 'nicht einverstanden',
    backToPreferences: 'Zurück zu Ihren Einstellungen',
    unsubscribeTitle: 'Abmelden',
    unsubscribeQuestion: 'Möchten Sie dies nicht mehr erhalten?',
    unsubscribe: 'Abmelden',
    unsubscribedTitle: 'Sie sind abgemeldet',
    unsubscribedIntroduction: 'Das erhalten Sie nicht mehr:',
    toPreferences: 'Alle Ihre Einstellungen ansehen',
    confirmTitle: 'Bitte bestätigen Sie',
    confirmQuestion: 'Sind Sie damit einverstanden?',
    confirm: 'Bestätigen',
    confirmedTitle: 'Vielen Dank, es ist bestätigt',
    confirmedIntroduction: 'Damit sind Sie einverstanden:',
    nothingToConfirmTitle: 'Es gibt nichts zu bestätigen',
    nothingToConfirm:
      'Keine Einwilligung wartet auf Ihre Bestätigung. Ihre Wahl sehen und ändern Sie auf der Seite Ihrer Einstellungen.',
    privacy: 'Datenschutzhinweise',
    contact: 'Kontakt',
    invalidTitle: 'Dieser Link ist nicht gültig',
    invalid: 'Er ist vielleicht unvollständig oder zu alt. Bitte verwenden Sie den Link in der neuesten Nachricht.',
    tooManyTitle: 'Zu viele Anfragen',
    tooMany: 'Bitte warten Sie einen Moment und versuchen Sie es noch einmal.',
    unreadableTitle: 'Das hat nicht funktioniert',
    unreadable:
      'Es wurde nichts geändert. Bitte öffnen Sie den Link noch einmal und verwenden Sie die Schaltfläche der Seite.',
    failedTitle: 'Bitte versuchen Sie es später noch einmal',
    failed: 'Der Dienst ist gerade nicht verfügbar.',
  },
  fr: {
    channels: { email: 'E-mail', sms: 'SMS' },
    by: (purpose, channel) => `${purpose}, par ${channel === 'E-mail' ? 'e-mail' : channel}`,
    preferencesTitle: 'Vos préférences',
    preferencesIntroduction: 'Choisissez ce que vous acceptez. Vous pouvez modifier votre choix à tout moment.',
    noPurposes: 'Il n’y a rien à choisir pour le moment.',
    moreAbout: purpose => `En savoir plus sur ${purpose}`,
    waits: 'en attente de votre confirmation',
    save: 'Enregistrer',
    savedTitle: 'Votre choix est enregistré',
    savedIntroduction: 'Voici ce que vous avez modifié :',
    nothingChanged: 'Vous n’avez rien modifié.',
    outdated:
      'Cette page n’était plus à jour. Rien n’a été enregistré. Veuillez vérifier votre choix et l’enregistrer à nouveau.',
    granted: 'accepté',
    refused: 'pas accepté',
    backToPreferences: 'Retour à vos préférences',
    unsubscribeTitle: 'Se désabonner',
    unsubscribeQuestion: 'Voulez-vous ne plus recevoir ceci ?',
    unsubscribe: 'Se désabonner',
    unsubscribedTitle: 'Vous êtes désabonné(e)',
    unsubscribedIntroduction: 'Vous ne recevrez plus :',
    toPreferences: 'Voir toutes vos préférences',
    confirmTitle: 'Veuillez confirmer',
    confirmQuestion: 'Acceptez-vous ceci ?',
    confirm: 'Confirmer',
    confirmedTitle: 'Merci, c’est confirmé',
    confirmedIntroduction: 'Vous avez accepté :',
    nothingToConfirmTitle: 'Il n’y a rien à confirmer',
    nothingToConfirm:
      'Aucun accord n’attend votre confirmation. Vous pouvez voir et modifier votre choix sur la page de vos préférences.',
    privacy: 'Protection des données',
    contact: 'Contact',
    invalidTitle: 'Ce lien n’est pas valide',
    invalid: 'Il est peut-être incomplet ou trop ancien. Veuillez utiliser le lien du message le plus récent.',
    tooManyTitle: 'Trop de demandes',
    tooMany: 'Veuillez patienter un instant et réessayer.',
    unreadableTitle: 'Cela n’a pas fonctionné',
    unreadable: 'Rien n’a été modifié. Veuillez rouvrir le lien et utiliser le bouton de la page.',
    failedTitle: 'Veuillez réessayer plus tard',
    failed: 'Le service n’est pas disponible pour le moment.',
  },
  it: {
    channels: { email: 'E-mail', sms: 'SMS' },
    by: (purpose, channel) => `${purpose}, via ${channel === 'E-mail' ? 'e-mail' : channel}`,
    preferencesTitle: 'Le sue preferenze',
    preferencesIntroduction: 'Scelga a che cosa acconsente. Può cambiare la scelta in qualsiasi momento.',
    noPurposes: 'Al momento non c’è nulla da scegliere.',
    moreAbout: purpose => `Altre informazioni su ${purpose}`,
    waits: 'in attesa della sua conferma',
    save: 'Salva',
    savedTitle: 'La sua scelta è salvata',
    savedIntroduction: 'Ha cambiato questo:',
    nothingChanged: 'Non ha cambiato nulla.',
    outdated: 'La pagina non era aggiornata. Non è stato salvato nulla. Controlli la scelta e la salvi di nuovo.',
    granted: 'acconsentito',
    refused: 'non acconsentito',
    backToPreferences: 'Torna alle sue preferenze',
    unsubscribeTitle: 'Annulla l’iscrizione',
    unsubscribeQuestion: 'Desidera non ricevere più questo?',
    unsubscribe: 'Annulla l’iscrizione',
    unsubscribedTitle: 'L’iscrizione è annullata',
    unsubscribedIntroduction: 'Non riceverà più:',
    toPreferences: 'Vedi tutte le sue preferenze',
    confirmTitle: 'Confermi, per favore',
    confirmQuestion: 'Acconsente a questo?',
    confirm: 'Conferma',
    confirmedTitle: 'Grazie, è confermato',
    confirmedIntroduction: 'Ha acconsentito a questo:',
    nothingToConfirmTitle: 'Non c’è nulla da confermare',
    nothingToConfirm:
      'Nessun consenso attende la sua conferma. Può vedere e cambiare la scelta nella pagina delle sue preferenze.',
    privacy: 'Informativa sulla privacy',
    contact: 'Contatto',
    invalidTitle: 'Questo link non è valido',
    invalid: 'Forse è incompleto o troppo vecchio. Usi il link del messaggio più recente.',
    tooManyTitle: 'Troppe richieste',
    tooMany: 'Attenda un momento e riprovi.',
    unreadableTitle: 'Non ha funzionato',
    unreadable: 'Non è stato cambiato nulla. Apra di nuovo il link e usi il pulsante della pagina.',
    failedTitle: 'Riprovi più tardi',
    failed: 'Al momento il servizio non è disponibile.',
  },
  es: {
    channels: { email: 'Correo electrónico', sms: 'SMS' },
    by: (purpose, channel) => `${purpose}, por ${channel === 'SMS' ? channel : 'correo electrónico'}`,
    preferencesTitle: 'Sus preferencias',
    preferencesIntroduction: 'Elija qué acepta. Puede cambiar su elección en cualquier momento.',
    noPurposes: 'Por el momento no hay nada que elegir.',
    moreAbout: purpose => `Más información sobre ${purpose}`,
    waits: 'pendiente de su confirmación',
    save: 'Guardar',
    savedTitle: 'Su elección se ha guardado',
    savedIntroduction: 'Ha cambiado esto:',
    nothingChanged: 'No ha cambiado nada.',
    outdated: 'La página no estaba actualizada. No se ha guardado nada. Revise su elección y guárdela de nuevo.',
    granted: 'aceptado',
    refused: 'no aceptado',
    backToPreferences: 'Volver a sus preferencias',
    unsubscribeTitle: 'Darse de baja',
    unsubscribeQuestion: '¿Desea dejar de recibir esto?',
    unsubscribe: 'Darse de baja',
    unsubscribedTitle: 'Se ha dado de baja',
    unsubscribedIntroduction: 'Ya no recibirá:',
    toPreferences: 'Ver todas sus preferencias',
    confirmTitle: 'Confirme, por favor',
    confirmQuestion: '¿Acepta esto?',
    confirm: 'Confirmar',
    confirmedTitle: 'Gracias, está confirmado',
    confirmedIntroduction: 'Ha aceptado esto:',
    nothingToConfirmTitle: 'No hay nada que confirmar',
    nothingToConfirm:
      'Ninguna autorización espera su confirmación. Puede ver y cambiar su elección en la página de sus preferencias.',
    privacy: 'Aviso de privacidad',
    contact: 'Contacto',
    invalidTitle: 'Este enlace no es válido',
    invalid: 'Puede que esté incompleto o sea demasiado antiguo. Use el enlace del mensaje más reciente.',
    tooManyTitle: 'Demasiadas solicitudes',
    tooMany: 'Espere un momento e inténtelo de nuevo.',
    unreadableTitle: 'No ha funcionado',
    unreadable: 'No se ha cambiado nada. Abra de nuevo el enlace y use el botón de la página.',
    failedTitle: 'Inténtelo de nuevo más tarde',
    failed: 'El servicio no está disponible en este momento.',
  },
}

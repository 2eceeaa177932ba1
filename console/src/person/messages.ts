import { defineMessages } from '../app/language.tsx'

export const messages = defineMessages({
  en: {
    more: 'More',
    copy: 'Copy',
    copied: 'Copied',
    cancel: 'Cancel',
    close: 'Close',
    delete: 'Delete…',
    certificateOfErasure: 'Download the certificate',
    noCertificate: 'There is no certificate yet.',
  },
  de: {
    more: 'Mehr',
    copy: 'Kopieren',
    copied: 'Kopiert',
    cancel: 'Abbrechen',
    close: 'Schließen',
    delete: 'Löschen …',
    certificateOfErasure: 'Bescheinigung herunterladen',
    noCertificate: 'Es gibt noch keine Bescheinigung.',
  },
  it: {
    more: 'Altro',
    copy: 'Copia',
    copied: 'Copiato',
    cancel: 'Annulla',
    close: 'Chiudi',
    delete: 'Elimina…',
    certificateOfErasure: 'Scarica il certificato',
    noCertificate: 'Non c’è ancora un certificato.',
  },
})

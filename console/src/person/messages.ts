import { defineMessages } from '../app/language.tsx'

export const messages = defineMessages({
  en: {
    more: 'More',
    delete: 'Delete…',
    certificateOfErasure: 'Download the certificate',
    noCertificate: 'There is no certificate yet.',
  },
  de: {
    more: 'Mehr',
    delete: 'Löschen …',
    certificateOfErasure: 'Bescheinigung herunterladen',
    noCertificate: 'Es gibt noch keine Bescheinigung.',
  },
  it: {
    more: 'Altro',
    delete: 'Elimina…',
    certificateOfErasure: 'Scarica il certificato',
    noCertificate: 'Non c’è ancora un certificato.',
  },
})

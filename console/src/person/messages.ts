import { defineMessages } from '../app/language.tsx'

export const messages = defineMessages({
  more: ['More', 'Mehr', 'Altro'],
  delete: ['Delete…', 'Löschen …', 'Elimina…'],
  certificateOfErasure: ['Download the certificate', 'Bescheinigung herunterladen', 'Scarica il certificato'],
  noCertificate: [
    'There is no certificate yet.',
    'Es gibt noch keine Bescheinigung.',
    'Non c’è ancora un certificato.',
  ],
})

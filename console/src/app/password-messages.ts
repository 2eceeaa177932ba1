import { defineMessages } from './language.tsx'

export const messages = defineMessages({
  password: ['Password', 'Passwort', 'Password'],
  organization: ['Organization', 'Organisation', 'Organizzazione'],
  withAccount: ['Sign in with your account', 'Mit Ihrem Konto anmelden', 'Accedi con il tuo account'],
  withClient: ['Sign in as a program', 'Als Programm anmelden', 'Accedi come programma'],
  noAccount: [
    'No account has this name and password.',
    'Kein Konto hat diesen Namen und dieses Passwort.',
    'Nessun account ha questo nome e questa password.',
  ],
  welcome: (name: string) => [`Welcome, ${name}`, `Willkommen, ${name}`, `Benvenuto, ${name}`],
  invitationAdvice: (organization: string) => [
    `Choose a password for your account in the organization ${organization}. Your name stands beside your changes.`,
    `Wählen Sie ein Passwort für Ihr Konto in der Organisation ${organization}. Ihr Name steht bei Ihren Änderungen.`,
    `Scegli una password per il tuo account nell’organizzazione ${organization}. Il tuo nome compare accanto alle tue modifiche.`,
  ],
  passwordHelp: [
    'At least 12 characters. A few words that only you put together are best.',
    'Mindestens 12 Zeichen. Am besten einige Wörter, die nur Sie so verbinden.',
    'Almeno 12 caratteri. Meglio alcune parole che solo tu metti insieme.',
  ],
  repeat: ['The password again', 'Das Passwort noch einmal', 'La password di nuovo'],
  isDifferent: ['differs from the password', 'weicht vom Passwort ab', 'è diversa dalla password'],
  accept: ['Set the password and sign in', 'Passwort setzen und anmelden', 'Imposta la password e accedi'],
  invitationRefused: [
    'This invitation no longer works.',
    'Diese Einladung gilt nicht mehr.',
    'Questo invito non è più valido.',
  ],
  invitationRefusedAdvice: [
    'It works once, for three days. Ask for a new one.',
    'Sie gilt einmal, drei Tage lang. Bitten Sie um eine neue.',
    'Vale una volta, per tre giorni. Chiedine uno nuovo.',
  ],
  changePassword: ['Change password', 'Passwort ändern', 'Cambia password'],
  currentPassword: ['Your password now', 'Ihr jetziges Passwort', 'La tua password attuale'],
  newPassword: ['The new password', 'Das neue Passwort', 'La nuova password'],
  passwordAdvice: ['Your other sessions end.', 'Ihre anderen Sitzungen enden.', 'Le tue altre sessioni finiscono.'],
  passwordChanged: ['The password is changed.', 'Das Passwort ist geändert.', 'La password è cambiata.'],
})

import type { Channel, ProfileField } from '@kith/client'
import type { Language } from '../app/language.tsx'

/** A field that every person has. Records have those that are no {@link ProfileField}. */
export type FixedField = ProfileField | 'external_id' | 'state' | 'created_at' | 'updated_at'

/** The labels of the fields, one set for each language. */
export const fieldLabels = {
  en: {
    first_name: 'First name',
    last_name: 'Last name',
    email: 'Email',
    mobile_prefix: 'Phone prefix',
    mobile_number: 'Phone number',
    date_of_birth: 'Date of birth',
    language: 'Language',
    email_consent: 'Email consent',
    sms_consent: 'SMS consent',
    push_notification_consent: 'Push notifications',
    external_id: 'Identifier',
    state: 'State',
    created_at: 'Created',
    updated_at: 'Changed',
  },
  de: {
    first_name: 'Vorname',
    last_name: 'Nachname',
    email: 'E-Mail',
    mobile_prefix: 'Ländervorwahl',
    mobile_number: 'Telefonnummer',
    date_of_birth: 'Geburtsdatum',
    language: 'Sprache',
    email_consent: 'E-Mail-Einwilligung',
    sms_consent: 'SMS-Einwilligung',
    push_notification_consent: 'Push-Mitteilungen',
    external_id: 'Kennung',
    state: 'Zustand',
    created_at: 'Angelegt',
    updated_at: 'Geändert',
  },
  it: {
    first_name: 'Nome',
    last_name: 'Cognome',
    email: 'Email',
    mobile_prefix: 'Prefisso',
    mobile_number: 'Numero di telefono',
    date_of_birth: 'Data di nascita',
    language: 'Lingua',
    email_consent: 'Consenso email',
    sms_consent: 'Consenso SMS',
    push_notification_consent: 'Notifiche push',
    external_id: 'Identificativo',
    state: 'Stato',
    created_at: 'Creata',
    updated_at: 'Modificata',
  },
} satisfies Record<Language, Record<FixedField, string>>

/** The names of the channels. */
export const channelLabels = {
  en: { email: 'Email', sms: 'SMS' },
  de: { email: 'E-Mail', sms: 'SMS' },
  it: { email: 'Email', sms: 'SMS' },
} satisfies Record<Language, Record<Channel, string>>

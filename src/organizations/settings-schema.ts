import type { Static } from 'typebox'
import { closedObject, filledText, nullable, optionals, Type, time } from '../values/json-schema.ts'

/** The languages of the pages of links. */
export const pageLanguages = ['en', 'de', 'fr', 'it', 'es'] as const
export type PageLanguage = (typeof pageLanguages)[number]

const pageText = closedObject(
  {
    title: Type.Optional(filledText(2_048, 'The heading. At most 2 KiB.')),
    introduction: Type.Optional(filledText(2_048, 'The text below it. At most 2 KiB.')),
  },
  { title: 'PageText' },
)
export type PageText = Static<typeof pageText>

const forEachLanguage = <Value>(createValue: () => Value) =>
  Object.fromEntries(pageLanguages.map(language => [language, createValue()])) as Record<PageLanguage, Value>

const fields = {
  display_name: nullable(filledText(255, 'The name that people know the organization by.')),
  accent_color: nullable(
    Type.String({
      pattern: '^#[0-9A-Fa-f]{6}$',
      description: 'The color of buttons, `#rrggbb`. kith writes on it in black or white, whichever reads better.',
    }),
  ),
  language: nullable(
    Type.Enum([...pageLanguages], {
      description: 'The language of a page if neither the person nor the browser names one that the pages exist in.',
    }),
  ),
  privacy_url: nullable(
    Type.String({ maxLength: 2_048, description: 'The privacy notice: an https URL without a user.' }),
  ),
  contact_email: nullable(Type.String({ format: 'email', maxLength: 254, description: 'Where people can ask.' })),
  time_zone: nullable(
    Type.String({
      format: 'time-zone',
      maxLength: 64,
      description: 'The IANA time zone of the days of relative times in filters, such as `Europe/Rome`. Null is UTC.',
    }),
  ),
  default_country: nullable(
    Type.String({
      pattern: '^[A-Z]{2}$',
      description:
        'The country (ISO 3166) of phone numbers that are written without a prefix, such as `IT`. It applies to later writes and look-ups. ' +
        'Null: such a number is stored as sent, and is no address.',
    }),
  ),
  suppression_days: nullable(
    Type.Integer({
      minimum: 1,
      maximum: 3_650,
      description: 'How many days a bounce suppresses its address. Null: 180.',
    }),
  ),
}

/** The settings other than the texts of the pages. */
export const settingNames = Object.keys(fields) as (keyof typeof fields)[]

const example = {
  display_name: 'Northwind Books',
  accent_color: '#0b6e4f',
  language: 'en',
  privacy_url: 'https://books.example/privacy',
  contact_email: 'privacy@books.example',
  time_zone: 'Europe/Berlin',
  default_country: 'DE',
  suppression_days: 180,
  page_texts: {
    en: { title: 'What may we write to you about?', introduction: 'You can change this at any time.' },
  },
}

export const settings = Type.Object(
  {
    ...fields,
    page_texts: Type.Object(forEachLanguage(() => Type.Optional(pageText))),
    updated_at: nullable(time('Null if the settings were never changed.')),
  },
  {
    title: 'Settings',
    description: 'The settings of the pages for people. Unset ones are null.',
    examples: [{ ...example, updated_at: '2026-01-01T12:00:00.000Z' }],
  },
)
export type SettingsShape = Static<typeof settings>

export const settingsPatch = closedObject(
  {
    ...optionals(fields),
    page_texts: Type.Optional(
      nullable(
        closedObject(
          forEachLanguage(() => Type.Optional(nullable(pageText))),
          {
            description:
              'Title and introduction of the preference page by language. A language that is given is replaced; null removes it.',
          },
        ),
      ),
    ),
  },
  { title: 'SettingsPatch', description: 'A null clears the setting.', examples: [{}] },
)
export type SettingsPatch = Static<typeof settingsPatch>

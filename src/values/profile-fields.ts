import type { Limits } from '../process/config.ts'

/**
 * A text field of a person. `type` is `text` by default. `format` names the rule of formats.ts for its values, which
 * are then never empty. `limit` is the maximum length, `profileCharacters` by default. With `isSearched`, a search
 * finds people by its words.
 */
type TextField = Readonly<{
  description: string
  type?: 'text' | 'date'
  format?: 'email' | 'date-of-birth' | 'language'
  limit?: keyof Limits
  isSearched?: true
}>

/** The prefix of attribute names among the names of fields, as in `attribute_values.city`. */
export const attributePrefix = 'attribute_values.'

/** A boolean field of a person. A summary is computed from the person's consent answers (consents/answers.ts). */
type FlagField = Readonly<{ description: string; isSummary?: true }>

// The name of a field is also its name on the wire and the name of its column, which is null for records. The schemas,
// statements, filters and CSV columns of all fields derive from these two lists, in this order.

const texts = {
  first_name: { description: 'First name.', isSearched: true },
  last_name: { description: 'Last name.', isSearched: true },
  email: { description: 'Email address.', format: 'email', limit: 'emailCharacters', isSearched: true },
  mobile_prefix: { description: 'Mobile phone country prefix.' },
  mobile_number: { description: 'Mobile phone number.' },
  date_of_birth: {
    description: 'YYYY-MM-DD, from 1850-01-01 to today, anywhere on earth.',
    type: 'date',
    format: 'date-of-birth',
  },
  language: { description: 'Preferred language, a BCP 47 tag.', format: 'language' },
} satisfies Record<string, TextField>

const flags = {
  email_consent: {
    description:
      'Summary of the email answers. Writing false refuses every purpose, writing true grants the default one.',
    isSummary: true,
  },
  sms_consent: {
    description:
      'Summary of the SMS answers. Writing false refuses every purpose, writing true grants the default one.',
    isSummary: true,
  },
  push_notification_consent: { description: 'A plain flag without purposes.' },
} satisfies Record<string, FlagField>

export type ProfileText = keyof typeof texts
export type ProfileFlag = keyof typeof flags

export const textFields: Readonly<Record<ProfileText, TextField>> = texts
export const flagFields: Readonly<Record<ProfileFlag, FlagField>> = flags

/** The columns of the text fields, in the order of reads. */
export const profileTexts = Object.keys(texts) as ProfileText[]
/** The columns of the boolean fields, in the order of reads. */
export const profileFlags = Object.keys(flags) as ProfileFlag[]

/**
 * The phone number in E.164, a member of reads that writes ignore. It is computed from the phone and the country of the
 * settings.
 */
export const phoneMember = 'mobile_e164'

/** The text fields of a read, in order. */
export const readTexts = profileTexts.flatMap(name => (name === 'mobile_number' ? [name, phoneMember] : [name])) as (
  | ProfileText
  | typeof phoneMember
)[]

/** The columns whose words a search finds. */
export const wordColumns = profileTexts.filter(text => textFields[text].isSearched)
/** The columns of the phone number, which a search finds by its digits (entities/indexes/search-index.ts). */
export const phoneColumns = ['mobile_prefix', 'mobile_number'] as const satisfies ProfileText[]

/** The fields with the addresses of a person. */
export const addressFields = ['email', ...phoneColumns] as const satisfies ProfileText[]

/** The columns that a write sets directly from its body. No rule relates them to each other. */
export const plainColumns = [...profileTexts, ...profileFlags.filter(flag => !flagFields[flag].isSummary)]
/** The columns that are computed from consent answers. */
export const summaryColumns = profileFlags.filter(flag => flagFields[flag].isSummary)

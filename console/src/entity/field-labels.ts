import type { Channel, ProfileField } from '@kith/client'
import { profileLabels } from '../../../src/values/profile-labels.ts'
import type { Entries, Language } from '../app/words.ts'

/** A field that every person has. Records have those fields that are no {@link ProfileField}. */
export type FixedField = ProfileField | 'external_id' | 'state' | 'created_at' | 'updated_at'

/** The labels of the fields, one set for each language. */
export const fieldLabels: Record<Language, Record<FixedField, string>> = profileLabels

/** The names of the channels. */
export const channelLabels = {
  email: ['Email', 'E-Mail', 'Email'],
  sms: ['SMS', 'SMS', 'SMS'],
} as const satisfies Record<Channel, Entries[string]>

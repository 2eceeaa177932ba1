import type { Reading } from '../db/context.ts'
import type { Signal } from '../process/signal.ts'
import { pointer, throwBrokenRule } from '../values/errors.ts'
import { isCountry } from '../values/phone-numbers.ts'
import { type DefinitionCall, differences } from './change-definitions.ts'
import { changeOrganization } from './change-organization.ts'
import {
  type PageText,
  pageLanguages,
  type SettingsPatch,
  type SettingsShape,
  settingNames,
} from './settings-schema.ts'
import { readSettingsSql, setSuppressionDaysSql, storeSettingsSql } from './sql.ts'

const maxPageTextBytes = 2_048

const unset = {
  ...Object.fromEntries(settingNames.map(name => [name, null])),
  page_texts: {},
  updated_at: null,
} as SettingsShape

/** Reads the settings of an organization. Unset ones are null. */
export async function readSettings({ db, organization_id }: Reading, signal?: Signal): Promise<SettingsShape> {
  const [stored] = await db.query<SettingsShape>(readSettingsSql, [organization_id], signal)
  return stored ?? unset
}

/**
 * Changes the settings that the patch names, and logs them as a change of the subject `settings`. Throws a Fault of
 * 400.
 */
export function patchSettings(call: Omit<DefinitionCall, 'limits'>, patch: SettingsPatch): Promise<SettingsShape> {
  checkPatch(patch)
  const { organization_id } = call
  return changeOrganization<SettingsShape>(call, call, async ({ tx, at }) => {
    const { updated_at, ...stored } = await readSettings({ db: tx, organization_id })
    const current = { ...stored, page_texts: mergeTexts(stored.page_texts, {}) }
    const next = { ...current, ...patch, page_texts: mergeTexts(current.page_texts, patch.page_texts) }
    const changed = differences(current, next)
    if (!changed) return { changes: [], result: { ...current, updated_at } }
    const values = [...settingNames.map(name => next[name]), JSON.stringify(next.page_texts), at]
    const operation = updated_at === null ? 'create' : 'update'
    return {
      statements: [
        tx.query(storeSettingsSql, [organization_id, ...values]),
        ...('suppression_days' in changed.after
          ? [tx.query(setSuppressionDaysSql, [organization_id, next.suppression_days])]
          : []),
      ],
      // The settings of an organization have the id 1.
      changes: [{ subject: 'settings', id: 1, operation, ...changed }],
      // The definitions contain the time zone and the country.
      changesDefinitions: 'time_zone' in changed.after || 'default_country' in changed.after,
      result: { ...next, updated_at: at },
    }
  })
}

/** The texts after a patch, in a fixed order, so that equal texts compare as equal. */
function mergeTexts(
  current: SettingsShape['page_texts'],
  patch: SettingsPatch['page_texts'],
): SettingsShape['page_texts'] {
  if (patch === null) return {}
  const merged = pageLanguages.flatMap(language => {
    const text = patch?.[language] === undefined ? current[language] : patch[language]
    return text?.title || text?.introduction ? [[language, orderedText(text)] as const] : []
  })
  return Object.fromEntries(merged)
}

const orderedText = ({ title, introduction }: PageText): PageText => ({
  ...(title !== undefined && { title }),
  ...(introduction !== undefined && { introduction }),
})

function checkPatch({ privacy_url, page_texts, default_country }: SettingsPatch) {
  if (default_country != null && !isCountry(default_country))
    throwBrokenRule('/default_country', 'must be the ISO 3166 code of a country with phone numbers, such as IT')
  if (privacy_url != null && !isPublicLink(privacy_url))
    throwBrokenRule('/privacy_url', 'must be an https URL without a user')
  for (const language of pageLanguages)
    for (const name of ['title', 'introduction'] as const)
      if (Buffer.byteLength(page_texts?.[language]?.[name] ?? '') > maxPageTextBytes)
        throwBrokenRule(pointer('page_texts', language, name), `must have at most ${maxPageTextBytes} bytes`)
}

function isPublicLink(text: string): boolean {
  const url = URL.parse(text)
  return url?.protocol === 'https:' && url.username === '' && url.password === ''
}

import { pageLanguages, type Settings, type SettingsPatch } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { Fragment, useState } from 'react'
import { client, useWrite } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { queryClient } from '../app/query-client.ts'
import { useScope } from '../app/session.tsx'
import { useCountries } from '../entity/countries.ts'
import { isEqual } from '../entity/equal.ts'
import { FieldGroup, fieldsOf, TextField, useDraft } from '../ui/field.tsx'
import { Form } from '../ui/form.tsx'
import { Loaded } from '../ui/loaded.tsx'
import { Notice, Section } from '../ui/page.tsx'
import { Select } from '../ui/select.tsx'
import { messages } from './messages.ts'
import { settingsQuery } from './queries.ts'
import styles from './schema.module.css'

type PageLanguage = (typeof pageLanguages)[number]
const textFields = ['display_name', 'accent_color', 'privacy_url', 'contact_email', 'time_zone'] as const
const plainFields = [...textFields, 'default_country', 'language'] as const

type Draft = Record<(typeof plainFields)[number], string> & {
  page_texts: Record<PageLanguage, { title: string; introduction: string }>
}

function draftOf(settings: Settings): Draft {
  const plain = plainFields.map(name => [name, settings[name] ?? ''])
  const texts = pageLanguages.map(language => {
    const { title = '', introduction = '' } = settings.page_texts[language] ?? {}
    return [language, { title, introduction }]
  })
  return { ...Object.fromEntries(plain), page_texts: Object.fromEntries(texts) }
}

/** The body with the settings that differ from the stored ones. */
function patchOf(settings: Settings, draft: Draft): SettingsPatch {
  const before = draftOf(settings)
  const plain = plainFields.filter(name => draft[name].trim() !== before[name])
  const texts = pageLanguages.filter(language => !isEqual(draft.page_texts[language], before.page_texts[language]))
  const textOf = (language: PageLanguage) => {
    const given = Object.entries(draft.page_texts[language]).filter(([, text]) => text.trim() !== '')
    return given.length > 0 ? Object.fromEntries(given) : null
  }
  return {
    ...Object.fromEntries(plain.map(name => [name, draft[name].trim() || null])),
    ...(texts.length > 0 && { page_texts: Object.fromEntries(texts.map(language => [language, textOf(language)])) }),
  }
}

/** The settings of the pages that people open from consent links, the time zone of relative times, and the country of phone numbers. */
export function SettingsTab() {
  const query = useQuery(settingsQuery)
  return <Loaded query={query}>{settings => <SettingsForm key={settings.updated_at} settings={settings} />}</Loaded>
}

function SettingsForm({ settings }: { settings: Settings }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const languages = useLanguageNames()
  const choices = [
    ['default_country', Object.fromEntries(useCountries().map(({ code, name }) => [code, name]))],
    ['language', languages],
  ] as const
  const mayWrite = useScope('schema:write')
  const { draft, change, field } = useDraft(() => draftOf(settings))
  const patch = patchOf(settings, draft)
  const isChanged = Object.keys(patch).length > 0
  const save = useWrite((patch: SettingsPatch) => client.schema.patchSettings(patch), {
    onSuccess: saved => queryClient.setQueryData(settingsQuery.queryKey, saved),
  })
  return (
    <Form
      onSubmit={() => save.mutate(patch)}
      write={save}
      {...(mayWrite && { submit: texts.save })}
      isDisabled={!isChanged}
      isUnsaved={isChanged}
    >
      <p className="small">{texts.settingsHelp}</p>
      <FieldGroup look="frame" legend={texts.tabs.settings} isDisabled={!mayWrite}>
        {textFields.map(name => (
          <Fragment key={name}>
            <TextField
              label={texts.settingNames[name]}
              help={texts.settingHelps[name]}
              {...field(name)}
              isReadOnly={!mayWrite}
            />
            {name === 'accent_color' && <Swatch color={draft.accent_color} />}
          </Fragment>
        ))}
        {choices.map(([name, options]) => (
          <Select
            key={name}
            label={texts.settingNames[name]}
            help={texts.settingHelps[name]}
            options={{ none: texts.noLanguage, ...options }}
            {...field(name)}
            value={draft[name] || 'none'}
            onChange={chosen => change({ [name]: chosen === 'none' ? '' : chosen })}
            isDisabled={!mayWrite}
          />
        ))}
      </FieldGroup>
      <PageTexts draft={draft} onChange={change} mayWrite={mayWrite} />
      {mayWrite && settings.updated_at && (
        <p className="small">{texts.savedAt(formats.dateTime(settings.updated_at))}</p>
      )}
    </Form>
  )
}

/** The accent colour as a sample. */
function Swatch({ color }: { color: string }) {
  if (!/^#[\da-f]{6}$/i.test(color)) return null
  return <span className={styles.swatch} style={{ background: color }} aria-hidden="true" />
}

function useLanguageNames() {
  const formats = useFormats()
  const names = pageLanguages.map(language => [language, formats.language(language)])
  return Object.fromEntries(names) as Record<PageLanguage, string>
}

type PageTextsProps = { draft: Draft; onChange: (change: Partial<Draft>) => void; mayWrite: boolean }

function PageTexts({ draft, onChange, mayWrite }: PageTextsProps) {
  const texts = useMessages(messages)
  const [language, setLanguage] = useState<PageLanguage>('en')
  const current = draft.page_texts[language]
  const set = (change: Partial<typeof current>) =>
    onChange({ page_texts: { ...draft.page_texts, [language]: { ...current, ...change } } })
  const field = fieldsOf(current, set, `/page_texts/${language}`)
  return (
    <Section title={texts.pageTexts}>
      <Select<PageLanguage>
        label={texts.language}
        options={useLanguageNames()}
        value={language}
        onChange={setLanguage}
      />
      <TextField label={texts.pageTitle} isReadOnly={!mayWrite} {...field('title')} />
      <TextField label={texts.pageIntroduction} rows={3} isReadOnly={!mayWrite} {...field('introduction')} />
      <Notice>{texts.pageTextsHelp}</Notice>
    </Section>
  )
}

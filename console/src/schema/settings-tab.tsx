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
import { Loading, Notice, Problem, Section } from '../ui/page.tsx'
import { Select } from '../ui/select.tsx'
import { messages } from './messages.ts'
import { settingsQuery } from './queries.ts'
import styles from './schema.module.css'

type PageLanguage = (typeof pageLanguages)[number]
const plainFields = [
  'display_name',
  'accent_color',
  'privacy_url',
  'contact_email',
  'time_zone',
  'default_country',
] as const

type Draft = Record<(typeof plainFields)[number], string> & {
  language: PageLanguage | ''
  page_texts: Record<PageLanguage, { title: string; introduction: string }>
}

function draftOf(settings: Settings): Draft {
  const texts = pageLanguages.map(language => {
    const { title = '', introduction = '' } = settings.page_texts[language] ?? {}
    return [language, { title, introduction }] as const
  })
  return {
    display_name: settings.display_name ?? '',
    accent_color: settings.accent_color ?? '',
    privacy_url: settings.privacy_url ?? '',
    contact_email: settings.contact_email ?? '',
    time_zone: settings.time_zone ?? '',
    default_country: settings.default_country ?? '',
    language: settings.language ?? '',
    page_texts: Object.fromEntries(texts) as Draft['page_texts'],
  }
}

/** The body that sets what differs from the stored settings. */
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
    ...(draft.language !== before.language && { language: draft.language || null }),
    ...(texts.length > 0 && { page_texts: Object.fromEntries(texts.map(language => [language, textOf(language)])) }),
  }
}

/** The settings of the pages that people open from consent links, the time zone of relative times, and the country of phone numbers. */
export function SettingsTab() {
  const { data, error, refetch } = useQuery(settingsQuery)
  if (!data) return error ? <Problem error={error} onRetry={() => refetch()} /> : <Loading />
  return <SettingsForm key={data.updated_at} settings={data} />
}

function SettingsForm({ settings }: { settings: Settings }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const countries = useCountries()
  const mayWrite = useScope('schema:write')
  const { draft, change: set, field } = useDraft(() => draftOf(settings))
  const patch = patchOf(settings, draft)
  const save = useWrite((patch: SettingsPatch) => client.schema.patchSettings(patch), {
    onSuccess: saved => queryClient.setQueryData(settingsQuery.queryKey, saved),
  })
  return (
    <Form
      onSubmit={() => save.mutate(patch)}
      write={save}
      {...(mayWrite && { submit: texts.save })}
      isDisabled={Object.keys(patch).length === 0}
    >
      <p className="small">{texts.settingsHelp}</p>
      <FieldGroup look="frame" legend={texts.tabs.settings} isDisabled={!mayWrite}>
        {plainFields.map(name => (
          <Fragment key={name}>
            {name === 'default_country' ? (
              <Select
                label={texts.settingNames[name]}
                help={texts.settingHelps[name]}
                options={[
                  { value: 'none', label: texts.noLanguage },
                  ...countries.map(({ code, name }) => ({ value: code, label: name })),
                ]}
                {...field(name)}
                value={draft[name] || 'none'}
                onChange={country => set({ [name]: country === 'none' ? '' : country })}
                isDisabled={!mayWrite}
              />
            ) : (
              <TextField
                label={texts.settingNames[name]}
                help={texts.settingHelps[name]}
                {...field(name)}
                isReadOnly={!mayWrite}
              />
            )}
            {name === 'accent_color' && <Swatch color={draft.accent_color} />}
          </Fragment>
        ))}
        <Select
          label={texts.pageLanguage}
          help={texts.pageLanguageHelp}
          options={[
            { value: 'none', label: texts.noLanguage },
            ...pageLanguages.map(language => ({ value: language, label: formats.language(language) })),
          ]}
          value={draft.language || 'none'}
          onChange={language => set({ language: language === 'none' ? '' : (language as PageLanguage) })}
          name="/language"
          isDisabled={!mayWrite}
        />
      </FieldGroup>
      <PageTexts draft={draft} onChange={set} mayWrite={mayWrite} />
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

type PageTextsProps = { draft: Draft; onChange: (change: Partial<Draft>) => void; mayWrite: boolean }

function PageTexts({ draft, onChange, mayWrite }: PageTextsProps) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const [language, setLanguage] = useState<PageLanguage>('en')
  const current = draft.page_texts[language]
  const set = (change: Partial<typeof current>) =>
    onChange({ page_texts: { ...draft.page_texts, [language]: { ...current, ...change } } })
  const field = fieldsOf(current, set, `/page_texts/${language}`)
  return (
    <Section title={texts.pageTexts}>
      <Select<PageLanguage>
        label={texts.language}
        options={pageLanguages.map(value => ({ value, label: formats.language(value) }))}
        value={language}
        onChange={setLanguage}
      />
      <TextField label={texts.pageTitle} isReadOnly={!mayWrite} {...field('title')} />
      <TextField label={texts.pageIntroduction} rows={3} isReadOnly={!mayWrite} {...field('introduction')} />
      <Notice>{texts.pageTextsHelp}</Notice>
    </Section>
  )
}

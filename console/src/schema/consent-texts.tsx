import type { ConsentText, ConsentTextBody, ConsentType } from '@kith/client'
import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { client, pagedQuery, useWrite } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { schemaQuery } from '../entity/schema.ts'
import { LongText } from '../entity/value.tsx'
import { Button } from '../ui/button.tsx'
import { TextField, useDraft } from '../ui/field.tsx'
import { Form } from '../ui/form.tsx'
import { EmptyState } from '../ui/page.tsx'
import { PagedList } from '../ui/paged-list.tsx'
import { messages } from './messages.ts'
import styles from './schema.module.css'

/** The texts of a purpose, oldest first. */
const consentTextsQuery = (id: number) =>
  pagedQuery(['consent-texts', id], at => client.schema.consentTypes.texts(id, { size: 100, ...at }).page())

/** The texts of a purpose, newest first. A text never changes: a correction is a new version. */
export function ConsentTexts({ type }: { type: ConsentType }) {
  const texts = useMessages(messages)
  const mayWrite = useScope('schema:write')
  const [isAdding, setAdding] = useState(false)
  const query = useInfiniteQuery(consentTextsQuery(type.id))
  const latest = query.data?.pages.at(-1)?.items.at(-1)
  const none = <EmptyState title={texts.noTexts}>{texts.noTextsAdvice}</EmptyState>
  return (
    <>
      {isAdding && <NewText type={type} latest={latest} onClose={() => setAdding(false)} />}
      {query.data && !isAdding && mayWrite && type.state === 'active' && (
        <div>
          <Button onPress={() => setAdding(true)}>{texts.addText}</Button>
        </div>
      )}
      <PagedList query={query} none={!isAdding && none} more={texts.showMore}>
        {versions => (
          <ol className={styles.versions} aria-label={texts.texts}>
            {versions.toReversed().map(version => (
              <TextVersion key={version.version} text={version} />
            ))}
          </ol>
        )}
      </PagedList>
    </>
  )
}

function TextVersion({ text: { version, language, text, url, sha256, created_at } }: { text: ConsentText }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  return (
    <li>
      <p>
        <strong>{texts.version(version)}</strong> · <bdi>{language}</bdi> · {formats.dateTime(created_at)}
      </p>
      <blockquote lang={language}>
        <LongText text={text} />
      </blockquote>
      {url && (
        <p className="small">
          {texts.shownAt} <bdi>{url}</bdi>
        </p>
      )}
      <p className="small">
        SHA-256 <code>{sha256}</code>
      </p>
    </li>
  )
}

type NewTextProps = { type: ConsentType; latest: ConsentText | undefined; onClose: () => void }

function NewText({ type, latest, onClose }: NewTextProps) {
  const texts = useMessages(messages)
  const { draft, field } = useDraft({ language: latest?.language ?? '', text: '', url: '' })
  const add = useWrite(
    (body: ConsentTextBody, idempotencyKey) => client.schema.consentTypes.addText(type.id, body, { idempotencyKey }),
    { refresh: [schemaQuery.queryKey, consentTextsQuery(type.id).queryKey], onSuccess: onClose },
  )
  const [language, url] = [draft.language.trim(), draft.url.trim()]
  const body = { language, text: draft.text, ...(url && { url }) }
  return (
    <Form
      onSubmit={() => add.mutate(body)}
      label={texts.addText}
      write={add}
      submit={texts.addText}
      isUnsaved={draft.text !== ''}
      onCancel={onClose}
    >
      <p className="small">{texts.addTextHelp}</p>
      <TextField label={texts.language} help={texts.textLanguageHelp} isRequired {...field('language')} />
      <TextField label={texts.text} rows={5} isRequired {...field('text')} />
      <TextField label={texts.textUrl} type="url" {...field('url')} />
    </Form>
  )
}

import type { ConsentText, ConsentType, NewConsentText } from '@kith/client'
import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { client } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { LongText } from '../entity/value.tsx'
import { Button } from '../ui/button.tsx'
import { Actions } from '../ui/dialog.tsx'
import { TextField } from '../ui/field.tsx'
import { Problem } from '../ui/notice.tsx'
import { EmptyState, Loading } from '../ui/page.tsx'
import { fieldErrors, isShownAtFields, useDefinitionWrite } from './definitions.ts'
import { messages } from './messages.ts'
import styles from './schema.module.css'

const textsKey = (id: number) => ['consent-texts', id]

/** The texts of a purpose, newest first. A text never changes: a correction is a new version. */
export function ConsentTexts({ type }: { type: ConsentType }) {
  const texts = useMessages(messages)
  const mayWrite = useScope('schema:write')
  const [isAdding, setAdding] = useState(false)
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery({
    queryKey: textsKey(type.id),
    queryFn: ({ pageParam, signal }) =>
      client.schema.consentTypes.texts(type.id, { after: pageParam, size: 100, signal }).page(),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next,
  })
  if (!data) return error ? <Problem error={error} onRetry={() => refetch()} /> : <Loading />
  const versions = data.pages.flatMap(({ items }) => items).toReversed()
  return (
    <>
      {isAdding && <NewText type={type} latest={versions[0]} onClose={() => setAdding(false)} />}
      {!isAdding && mayWrite && type.state === 'active' && (
        <div>
          <Button onPress={() => setAdding(true)}>{texts.addText}</Button>
        </div>
      )}
      {versions.length === 0 && !isAdding && (
        <EmptyState title={texts.noTexts}>
          <p>{texts.noTextsAdvice}</p>
        </EmptyState>
      )}
      <ol className={styles.versions!} aria-label={texts.texts}>
        {versions.map(version => (
          <TextVersion key={version.version} text={version} />
        ))}
      </ol>
      {hasNextPage && (
        <div>
          <Button onPress={() => fetchNextPage()} isPending={isFetchingNextPage}>
            {texts.showMore}
          </Button>
        </div>
      )}
    </>
  )
}

function TextVersion({ text: { version, language, text, url, sha256, created_at } }: { text: ConsentText }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  return (
    <li className={styles.version!}>
      <p>
        <strong>{texts.version(version)}</strong> · <bdi>{language}</bdi> · {formats.dateTime(created_at)}
      </p>
      <blockquote className={styles.quote!} lang={language}>
        <LongText text={text} />
      </blockquote>
      {url && (
        <p className={styles.muted!}>
          {texts.shownAt} <bdi>{url}</bdi>
        </p>
      )}
      <p className={styles.muted!}>
        SHA-256 <code>{sha256}</code>
      </p>
    </li>
  )
}

type NewTextProps = { type: ConsentType; latest: ConsentText | undefined; onClose: () => void }

function NewText({ type, latest, onClose }: NewTextProps) {
  const texts = useMessages(messages)
  const queryClient = useQueryClient()
  const [language, setLanguage] = useState(latest?.language ?? '')
  const [text, setText] = useState('')
  const [url, setUrl] = useState('')
  const add = useDefinitionWrite((body: NewConsentText, idempotencyKey) =>
    client.schema.consentTypes.addText(type.id, body, { idempotencyKey }),
  )
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const body = { language: language.trim(), text, ...(url.trim() && { url: url.trim() }) }
    add.mutate(body, {
      onSuccess: async () => {
        await queryClient.invalidateQueries({ queryKey: textsKey(type.id) })
        onClose()
      },
    })
  }
  const errors = fieldErrors(add.error)
  return (
    <form noValidate className={styles.form!} onSubmit={submit} aria-label={texts.addText}>
      <p className={styles.muted!}>{texts.addTextHelp}</p>
      <TextField
        label={texts.textLanguage}
        help={texts.textLanguageHelp}
        isRequired
        value={language}
        onChange={setLanguage}
        error={errors.language}
      />
      <TextField label={texts.text} rows={5} isRequired value={text} onChange={setText} error={errors.text} />
      <TextField label={texts.textUrl} type="url" value={url} onChange={setUrl} error={errors.url} />
      {add.error && !isShownAtFields(add.error, ['language', 'text', 'url']) && <Problem error={add.error} />}
      <Actions>
        <Button onPress={onClose}>{texts.cancel}</Button>
        <Button type="submit" look="primary" isPending={add.isPending}>
          {texts.addText}
        </Button>
      </Actions>
    </form>
  )
}

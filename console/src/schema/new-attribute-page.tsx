import type { NewAttribute as AttributeBody, Declared, Definitions } from '@kith/client'
import { useMutation } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { Actions } from '../ui/dialog.tsx'
import { Select } from '../ui/field.tsx'
import { LinkButton } from '../ui/link-button.tsx'
import { Problem } from '../ui/notice.tsx'
import { Loading, Page } from '../ui/page.tsx'
import { type AttributeDraft, emptyDraft, newAttributeOf } from './attribute-draft.ts'
import { AttributeFields, attributeFields } from './attribute-form.tsx'
import { fieldErrors, isShownAtFields, ownersOf, useDefinitions, useDefinitionWrite } from './definitions.ts'
import { FitResult } from './fit-result.tsx'
import { messages } from './messages.ts'
import styles from './schema.module.css'

const route = getRouteApi('/shell/schema/new-attribute')

/** Declares an attribute of people or of a stack. */
export function NewAttributePage() {
  const texts = useMessages(messages)
  const { data, error, refetch } = useDefinitions()
  return (
    <Page title={texts.newAttribute}>
      {data ? (
        <NewAttribute definitions={data} />
      ) : error ? (
        <Problem error={error} onRetry={() => refetch()} />
      ) : (
        <Loading />
      )}
    </Page>
  )
}

/** Checks the declaration without storing it, and counts the stored values that fit it. A relationship takes no stored values. */
async function previewDeclaration(owner: string, draft: AttributeDraft): Promise<Declared | null> {
  const body = newAttributeOf(owner, draft)
  await client.schema.attributes.create(body, { dryRun: true })
  const { key, type, cardinality, indexed } = draft
  if (type === 'person' || type === 'stack') return null
  return client.schema.declare({ owner, key: key.trim(), type, cardinality, indexed }, { dryRun: true })
}

function NewAttribute({ definitions }: { definitions: Definitions }) {
  const texts = useMessages(messages)
  const navigate = route.useNavigate()
  const { owner: asked = 'people' } = route.useSearch()
  const [owner, setOwner] = useState(asked)
  const [draft, setDraft] = useState(emptyDraft)
  const preview = useMutation({ mutationFn: () => previewDeclaration(owner, draft) })
  const create = useDefinitionWrite((body: AttributeBody, idempotencyKey) =>
    client.schema.attributes.create(body, { idempotencyKey }),
  )
  const error = create.error ?? preview.error
  const reset = () => {
    preview.reset()
    create.reset()
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    preview.mutate()
  }
  const save = () =>
    create.mutate(newAttributeOf(owner, draft), {
      onSuccess: () => navigate({ to: '/schema', search: { tab: 'attributes', owner } }),
    })
  return (
    <form noValidate className={styles.form!} onSubmit={submit}>
      <Select
        label={texts.owner}
        options={ownersOf(definitions).map(key => ({
          value: key,
          label: key === 'people' ? texts.people : (definitions.stacks.find(stack => stack.key === key)?.name ?? key),
        }))}
        value={owner}
        onChange={key => {
          setOwner(key)
          reset()
        }}
      />
      <AttributeFields
        draft={draft}
        onChange={next => {
          setDraft(next)
          reset()
        }}
        errors={fieldErrors(error)}
        isDeclared={false}
        stacks={definitions.stacks}
      />
      {error && !isShownAtFields(error, attributeFields) && <Problem error={error} />}
      {preview.isSuccess && <FitResult owner={owner} declared={preview.data} />}
      <Actions>
        <LinkButton to="/schema" search={{ tab: 'attributes', owner }}>
          {texts.cancel}
        </LinkButton>
        <Button type="submit" {...(!preview.isSuccess && { look: 'primary' as const })} isPending={preview.isPending}>
          {texts.preview}
        </Button>
        {preview.isSuccess && (
          <Button look="primary" onPress={save} isPending={create.isPending}>
            {texts.create}
          </Button>
        )}
      </Actions>
    </form>
  )
}

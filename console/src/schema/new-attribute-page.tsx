import type { AttributeBody, Declared } from '@kith/client'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { useNavigateAfter } from '../app/use-navigate-after.ts'
import { ownerName } from '../entity/address.ts'
import { ownersOf, useDefinitions } from '../entity/schema.ts'
import { LinkButton } from '../ui/button.tsx'
import { Page } from '../ui/page.tsx'
import { Select } from '../ui/select.tsx'
import { emptyDraft, newAttributeOf } from './attribute-draft.ts'
import { AttributeFields } from './attribute-form.tsx'
import { FitResult } from './fit-result.tsx'
import { messages } from './messages.ts'
import { PreviewedForm } from './previewed-form.tsx'

const route = getRouteApi('/shell/schema/new-attribute')

/** Checks the declaration without storing it, and counts the stored values that fit it. A relationship takes no stored values. */
async function previewDeclaration(body: AttributeBody): Promise<Declared | null> {
  await client.schema.attributes.create(body, { dryRun: true })
  const { owner, key, type, cardinality, indexed } = body
  if (type === 'person' || type === 'stack') return null
  return client.schema.declare(
    { owner, key, type, ...(cardinality && { cardinality }), ...(indexed && { indexed }) },
    { dryRun: true },
  )
}

/** Declares an attribute of people or of a stack. */
export function NewAttributePage() {
  const texts = useMessages(messages)
  const { definitions } = useDefinitions()
  const navigate = useNavigateAfter()
  const { owner: asked = 'people' } = route.useSearch()
  const [owner, setOwner] = useState(asked)
  const [draft, setDraft] = useState(emptyDraft)
  const list = { to: '/schema', search: { tab: 'attributes', owner }, ignoreBlocker: true } as const
  return (
    <Page title={texts.newAttribute}>
      <PreviewedForm
        body={newAttributeOf(owner, draft)}
        preview={previewDeclaration}
        result={declared => <FitResult owner={owner} declared={declared} />}
        save={(body, idempotencyKey) => client.schema.attributes.create(body, { idempotencyKey })}
        onSaved={() => navigate(list)}
        action={texts.create}
        isUnsaved={draft !== emptyDraft}
        back={<LinkButton {...list}>{texts.cancel}</LinkButton>}
      >
        <Select
          label={texts.owner}
          name="/owner"
          options={ownersOf(definitions).map(key => ({ value: key, label: ownerName(key, definitions, texts.people) }))}
          value={owner}
          onChange={setOwner}
        />
        <AttributeFields draft={draft} onChange={setDraft} stacks={definitions.stacks} />
      </PreviewedForm>
    </Page>
  )
}

import {
  type Attribute,
  type AttributePatch,
  attributeRules,
  type ProposedRules,
  type Stack,
  type Violation,
} from '@kith/client'
import { useState } from 'react'
import { client } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { scopesOf } from '../entity/entities.ts'
import { Notice } from '../ui/page.tsx'
import { draftOf, patchOf } from './attribute-draft.ts'
import { AttributeFields } from './attribute-form.tsx'
import { messages } from './messages.ts'
import { PreviewedForm } from './previewed-form.tsx'
import { ViolationList } from './violations.tsx'

type AttributeChangeProps = { attribute: Attribute; stacks: readonly Stack[]; onClose: () => void }

/** The form that changes an attribute. A change is previewed on the stored values before it can be saved. */
export function AttributeChange({ attribute, stacks, onClose }: AttributeChangeProps) {
  const texts = useMessages(messages)
  const mayReadValues = useScope(scopesOf(attribute.owner).read)
  const [draft, setDraft] = useState(() => draftOf(attribute))
  const patch = patchOf(attribute, draft)
  const isChanged = Object.keys(patch).length > 0
  return (
    <PreviewedForm
      body={patch}
      preview={patch => previewRules(attribute, patch, mayReadValues)}
      result={preview => <PreviewResult owner={attribute.owner} preview={preview} />}
      save={patch => client.schema.attributes.patch(attribute.id, patch)}
      onSaved={onClose}
      action={texts.save}
      isDisabled={!isChanged}
      isUnsaved={isChanged}
      onCancel={onClose}
    >
      <AttributeFields draft={draft} onChange={setDraft} declared={attribute} stacks={stacks} />
      {!isChanged && <Notice>{texts.nothingChanged}</Notice>}
    </PreviewedForm>
  )
}

/** The preview ends after it has found this number of violations. */
const maxFound = 1_000

/** The stored values that would break the changed rules, and whether more may follow. */
type RulePreview = { found: Violation[]; isCut: boolean }

/** The rules that a change adds or modifies, except `unique`, which the service checks itself. */
function proposedRules({ unique: _, ...patch }: AttributePatch): ProposedRules {
  const isProposed = (name: string, operand: unknown) =>
    name in attributeRules && operand !== null && operand !== false && operand !== undefined
  return Object.fromEntries(Object.entries(patch).filter(([name, operand]) => isProposed(name, operand)))
}

/**
 * Sends the change as a dry run, and finds the values that would break the new rules. Throws the refusal of the change.
 */
async function previewRules(
  attribute: Attribute,
  patch: AttributePatch,
  mayReadValues: boolean,
): Promise<RulePreview | undefined> {
  await client.schema.attributes.patch(attribute.id, patch, { dryRun: true })
  const proposed = proposedRules(patch)
  if (Object.keys(proposed).length === 0) return { found: [], isCut: false }
  if (!mayReadValues) return undefined
  const found: Violation[] = []
  for await (const violation of client.schema.attributes.violations(attribute.id, { proposed, size: 500 })) {
    if (found.length === maxFound) return { found, isCut: true }
    found.push(violation)
  }
  return { found, isCut: false }
}

const maxShown = 20

/** The result of a preview. Undefined means that the session may not read the values. */
function PreviewResult({ owner, preview }: { owner: string; preview: RulePreview | undefined }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  if (preview === undefined) return <Notice kind="caution" title={texts.previewHidden} />
  const { found, isCut } = preview
  if (found.length === 0) return <Notice kind="success" title={texts.previewFits} />
  const count = formats.number(found.length)
  return (
    <Notice kind="caution" title={texts.previewMisfits(found.length, isCut ? texts.moreThan(count) : count)}>
      <p>{texts.previewMeaning}</p>
      <ViolationList label={texts.misfits} owner={owner} violations={found.slice(0, maxShown)} />
      {found.length > maxShown && <p>{texts.firstShown(formats.number(maxShown))}</p>}
    </Notice>
  )
}

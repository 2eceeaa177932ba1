import type { Attribute, AttributePatch, Stack } from '@kith/client'
import { useState } from 'react'
import { client, useWrite } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { scopesOf } from '../entity/entities.ts'
import { useDefinitionWrite } from '../entity/schema.ts'
import { Button } from '../ui/button.tsx'
import { Notice, Problem, Section } from '../ui/page.tsx'
import { type AttributeDraft, draftOf, patchOf } from './attribute-draft.ts'
import { AttributeFields } from './attribute-form.tsx'
import { messages } from './messages.ts'
import { PreviewedForm } from './previewed-form.tsx'
import { previewRules, type RulePreview } from './rule-preview.ts'
import styles from './schema.module.css'
import { ViolationItem } from './violations.tsx'

type AttributeEditorProps = {
  attribute: Attribute
  stacks: readonly Stack[]
  isOpen: boolean
  onOpen: () => void
  onClose: () => void
}

/** The form that changes an attribute. A change is previewed on the stored values before it can be saved. */
export function AttributeEditor({ attribute, stacks, isOpen, onOpen, onClose }: AttributeEditorProps) {
  const texts = useMessages(messages)
  const archive = useDefinitionWrite((state: Attribute['state']) =>
    client.schema.attributes.patch(attribute.id, { state }),
  )
  if (isOpen)
    return (
      <Section title={texts.editAttribute}>
        <AttributeChange attribute={attribute} stacks={stacks} onClose={onClose} />
      </Section>
    )
  const isActive = attribute.state === 'active'
  return (
    <>
      <div className={styles.actions}>
        {isActive && <Button onPress={onOpen}>{texts.editAttribute}</Button>}
        <Button onPress={() => archive.mutate(isActive ? 'archived' : 'active')} isPending={archive.isPending}>
          {isActive ? texts.archive : texts.activate}
        </Button>
        <p className="small">{isActive ? texts.archiveHelp : texts.archivedHelp}</p>
      </div>
      {archive.error && <Problem error={archive.error} />}
    </>
  )
}

function AttributeChange({
  attribute,
  stacks,
  onClose,
}: Pick<AttributeEditorProps, 'attribute' | 'stacks' | 'onClose'>) {
  const texts = useMessages(messages)
  const mayReadValues = useScope(scopesOf(attribute.owner).read)
  const [draft, setDraft] = useState(() => draftOf(attribute))
  const patch = patchOf(attribute, draft)
  const preview = useWrite((patch: AttributePatch) => previewRules(attribute, patch, mayReadValues))
  const save = useDefinitionWrite(
    (patch: AttributePatch) => client.schema.attributes.patch(attribute.id, patch),
    onClose,
  )
  const change = (next: AttributeDraft) => {
    setDraft(next)
    preview.reset()
    save.reset()
  }
  const isChanged = Object.keys(patch).length > 0
  return (
    <PreviewedForm {...{ preview, save }} body={patch} action={texts.save} isDisabled={!isChanged} onCancel={onClose}>
      <AttributeFields draft={draft} onChange={change} declared={attribute} stacks={stacks} />
      {preview.isSuccess && <PreviewResult owner={attribute.owner} preview={preview.data} />}
      {!isChanged && <Notice>{texts.nothingChanged}</Notice>}
    </PreviewedForm>
  )
}

const maxShown = 20

/** The result of a preview. Undefined means that the session may not read the values. */
export function PreviewResult({ owner, preview }: { owner: string; preview: RulePreview | undefined }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  if (preview === undefined) return <Notice kind="caution" title={texts.previewHidden} />
  const { found, isCut } = preview
  if (found.length === 0) return <Notice kind="success" title={texts.previewFits} />
  const count = formats.number(found.length)
  return (
    <Notice kind="caution" title={texts.previewMisfits(found.length, isCut ? texts.moreThan(count) : count)}>
      <p>{texts.previewMeaning}</p>
      <ul className={styles.found} aria-label={texts.misfits}>
        {found.slice(0, maxShown).map(violation => (
          <ViolationItem key={violation.id ?? violation.record_id} owner={owner} violation={violation} />
        ))}
      </ul>
      {found.length > maxShown && <p>{texts.firstShown(formats.number(maxShown))}</p>}
    </Notice>
  )
}

import { type AnySchema, isKithError, type MergeFrom, type Person, type Unmerged } from '@kith/client'
import type { ReactNode } from 'react'
import { client, useWrite } from '../app/client.ts'
import { isWhole } from '../app/field-rights.ts'
import { useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { duplicatesKey } from '../duplicates/queries.ts'
import { EntityLink } from '../entity/entity-link.tsx'
import { attributeField } from '../entity/fields.ts'
import { messages as entityMessages } from '../entity/messages.ts'
import { attributesOf, useDefinitions } from '../entity/schema.ts'
import { Button } from '../ui/button.tsx'
import { Notice, Problem } from '../ui/page.tsx'
import { rightsMessages } from './rights-messages.ts'

type Kept = Unmerged<AnySchema>['changes']['kept']

/** The values that the survivor kept of the merged person, by reason. */
function KeptValues({ kept }: { kept: Kept }) {
  const texts = useMessages(rightsMessages)
  const { fields } = useMessages(entityMessages)
  const attributes = attributesOf(useDefinitions().definitions, 'people')
  const labels = new Map(Object.entries(fields).map(([key, label]) => [`/${key}`, label as string]))
  for (const attribute of attributes.values()) {
    const { path, label } = attributeField(attribute, undefined)
    labels.set(path, label)
  }
  const byReason = Map.groupBy(kept, ({ reason }) => reason)
  return [...byReason].map(([reason, values]) => (
    <p key={reason}>{texts.kept[reason](values.map(({ path }) => labels.get(path) ?? path).join(', '))}</p>
  ))
}

type MergeNoticeProps = {
  /** The person who survived. */
  survivorId: string
  from: MergeFrom
  title: string
  children?: ReactNode
  onShow(person: Person): void
}

/** Says that another person was merged into this one, and offers to undo it. */
export function MergeNotice({ survivorId, from, title, children, onShow }: MergeNoticeProps) {
  const texts = useMessages(rightsMessages)
  const mayWrite = useScope('people:write') && isWhole('people')
  const undo = useWrite(() => client.people.unmerge({ id: survivorId }, from), {
    refresh: [duplicatesKey],
    onSuccess: ({ person }) => onShow(person as Person),
  })
  if (undo.data)
    return (
      <Notice kind="success" title={texts.unmerged}>
        <KeptValues kept={undo.data.changes.kept} />
        <EntityLink owner="people" id={undo.data.unmerged.id} externalId={undo.data.unmerged.external_id}>
          {texts.unmergedLink}
        </EntityLink>
      </Notice>
    )
  return (
    <Notice kind="success" title={title}>
      {children}
      {undo.error && (isKithError(undo.error, 'not_found') ? <p>{texts.notMerged}</p> : <Problem error={undo.error} />)}
      {mayWrite && (
        <Button onPress={() => undo.mutate()} isPending={undo.isPending}>
          {undo.isPending ? `${texts.undoingMerge}…` : texts.undoMerge}
        </Button>
      )}
    </Notice>
  )
}

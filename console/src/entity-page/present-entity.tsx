import { isKithError, type Person } from '@kith/client'
import { type ReactNode, useState } from 'react'
import { SeenBy } from '../access-log/entry-table.tsx'
import { useWrite } from '../app/client.ts'
import { mayReadAddresses } from '../app/field-rights.ts'
import { useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { useNavigateAfter } from '../app/use-navigate-after.ts'
import { entityAddress, nameOf } from '../entity/address.ts'
import { type Entity, entitiesOf, idOf, scopesOf } from '../entity/entities.ts'
import type { SetMoment } from '../entity/search.ts'
import { AtAGlance } from '../person/at-a-glance.tsx'
import { ConsentsSection } from '../person/consents-section.tsx'
import { DeliverabilitySection } from '../person/deliverability-section.tsx'
import { HoldNotice } from '../person/hold.tsx'
import { MergeNotice } from '../person/merge-notice.tsx'
import { NoteButton } from '../person/note-button.tsx'
import { PersonMenu } from '../person/person-menu.tsx'
import { Button } from '../ui/button.tsx'
import { ConfirmDialog } from '../ui/dialog.tsx'
import { Notice } from '../ui/page.tsx'
import { AsOfButton } from './as-of.tsx'
import { EntityFrame, EntitySubtitle, useIsEvent } from './entity-frame.tsx'
import { LinksSection } from './links-section.tsx'
import { kindOf, messages } from './messages.ts'
import { RecordEntry, useTimeline } from './timeline.tsx'
import { EntityValues } from './values-section.tsx'

type PresentEntityProps = {
  owner: string
  entity: Entity
  alias: string | undefined
  /** Shows the entity that a write returned. */
  onShow(entity: Entity): void
  /** Reads the entity again. */
  onRefresh(): void
  setMoment: SetMoment
}

/** The current state of a person or record, with all actions. */
export function PresentEntity({ owner, entity, alias, onShow, onRefresh, setMoment }: PresentEntityProps) {
  const texts = useMessages(messages)
  const kind = texts[kindOf(owner)]
  const mayWrite = useScope(scopesOf(owner).write)
  const isEvent = useIsEvent(owner)
  const [notice, setNotice] = useState<ReactNode>()
  const [isDeleting, setDeleting] = useState(false)
  // The first write removes the other identifier from the address, but the message stays.
  const [shownAlias, setShownAlias] = useState(alias)
  if (alias !== undefined && alias !== shownAlias) setShownAlias(alias)
  const id = idOf(entity)
  const { sources, linked } = useTimeline(entity)
  const person = owner === 'people' ? (entity as unknown as Person) : undefined
  const showPerson = (person: Person) => onShow(person as unknown as Entity)
  return (
    <EntityFrame
      title={nameOf(entity)}
      subtitle={<EntitySubtitle owner={owner} entity={entity} />}
      actions={
        <>
          {person && <NoteButton id={id} name={nameOf(entity)} />}
          <AsOfButton setMoment={setMoment} />
          {person ? (
            <PersonMenu
              id={id}
              person={person}
              onShow={showPerson}
              onDelete={() => setDeleting(true)}
              onNotice={setNotice}
            />
          ) : (
            mayWrite && <Button onPress={() => setDeleting(true)}>{texts.delete}</Button>
          )}
        </>
      }
      top={
        <>
          {person && shownAlias !== undefined && (
            <MergeNotice
              key={shownAlias}
              survivorId={id}
              from={{ from: shownAlias }}
              title={texts.aliasTitle(shownAlias)}
              onShow={showPerson}
            >
              <p>{texts.aliasAdvice}</p>
            </MergeNotice>
          )}
          {notice}
          {person && <HoldNotice id={id} />}
          {entity.state === 'placeholder' && (
            <Notice kind="caution" title={kind.placeholderTitle}>
              <p>{texts.placeholderAdvice(entity.external_id ?? id)}</p>
            </Notice>
          )}
          {person && <AtAGlance person={person} />}
        </>
      }
      history={{
        owner,
        id,
        version: entity.version,
        canUndo: !isEvent,
        onShowVersion: version => setMoment({ version }),
        onChanged: onRefresh,
        ...(person && {
          sources,
          showRecord: (of, record) => <RecordEntry linked={linked.get(of)!} record={record} />,
        }),
      }}
    >
      <EntityValues owner={owner} entity={entity} onSaved={isEvent ? undefined : onShow} />
      {person?.consents && <ConsentsSection person={person} onShow={showPerson} />}
      {person && mayReadAddresses() && <DeliverabilitySection person={person} onRefresh={onRefresh} />}
      <LinksSection owner={owner} entity={entity} />
      {person && <SeenBy id={id} />}
      {isDeleting && (
        <DeleteDialog owner={owner} entity={entity} onClose={() => setDeleting(false)} onRefresh={onRefresh} />
      )}
    </EntityFrame>
  )
}

type DeleteDialogProps = { owner: string; entity: Entity; onClose: () => void; onRefresh: () => void }

/** Asks before a person or record is deleted. The page then shows the deleted entity, which can be restored. */
export function DeleteDialog({ owner, entity, onClose, onRefresh }: DeleteDialogProps) {
  const texts = useMessages(messages)
  const kind = texts[kindOf(owner)]
  const navigate = useNavigateAfter()
  const id = idOf(entity)
  const remove = useWrite(() => entitiesOf(owner).delete({ id }, { ifMatch: entity.version }), {
    onSuccess: () => {
      onClose()
      return navigate({ ...entityAddress(owner, { id, externalId: null }), replace: true })
    },
    refresh: [['entities', owner]],
    onError: error => isKithError(error) && error.status === 412 && onRefresh(),
  })
  return (
    <ConfirmDialog
      title={texts.deleteTitle(nameOf(entity))}
      action={remove.isPending ? `${texts.deleting}…` : kind.deleteNow}
      write={remove}
      onClose={onClose}
    >
      <p>{kind.deleteAdvice}</p>
    </ConfirmDialog>
  )
}

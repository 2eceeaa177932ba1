import type { Person } from '@kith/client'
import { type ReactNode, useState } from 'react'
import { useWrite } from '../app/client.ts'
import { isWhole } from '../app/field-rights.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { nameOf } from '../entity/address.ts'
import { type Entity, entitiesOf, scopesOf } from '../entity/entities.ts'
import type { SetMoment } from '../entity/search.ts'
import { CertificateButton } from '../person/certificate.tsx'
import { PersonMenu } from '../person/person-menu.tsx'
import { Button } from '../ui/button.tsx'
import { Notice, Problem } from '../ui/page.tsx'
import { EntityFrame, StackLink } from './entity-frame.tsx'
import styles from './entity-page.module.css'
import { kindOf, messages } from './messages.ts'
import type { Found } from './queries.ts'
import { EntityValues } from './values-section.tsx'

type AbsentEntityProps = {
  owner: string
  found: Extract<Found, { kind: 'absent' }>
  onShow(entity: Entity): void
  setMoment: SetMoment
}

/** The page of a deleted or erased person or record: the remaining data, and the restore if possible. */
export function AbsentEntity({ owner, found, onShow, setMoment }: AbsentEntityProps) {
  const { id, change, last } = found
  const texts = useMessages(messages)
  const kind = texts[kindOf(owner)]
  const [notice, setNotice] = useState<ReactNode>()
  const isErased = change.operation === 'erase'
  const isPerson = owner === 'people'
  const name = last ? nameOf(last) : (change.external_id ?? id)
  const title = change.operation === 'merge' ? texts.mergedTitle(name) : texts.deletedTitle(name)
  return (
    <EntityFrame
      title={isErased ? kind.erasedTitle : title}
      subtitle={
        <div className={`row centered ${styles.subtitle}`}>
          {!isPerson && <StackLink owner={owner} />}
          <code className={styles.identifier}>{isPerson ? (change.external_id ?? id) : id}</code>
        </div>
      }
      actions={
        isPerson &&
        !isErased && (
          <PersonMenu
            id={id}
            last={last as unknown as Person}
            onShow={person => onShow(person as unknown as Entity)}
            onNotice={setNotice}
          />
        )
      }
      top={
        <>
          {notice}
          <Ending owner={owner} found={found} onShow={onShow} />
        </>
      }
      history={{ owner, id, canUndo: false, onShowVersion: isErased ? undefined : version => setMoment({ version }) }}
    >
      {last && (
        <>
          <p className="muted">{texts.lastValues}</p>
          <EntityValues owner={owner} entity={last} />
        </>
      )}
    </EntityFrame>
  )
}

/** The message that names the author of the deletion, with the remaining actions. */
function Ending({ owner, found: { id, change }, onShow }: Omit<AbsentEntityProps, 'setMoment'>) {
  const texts = useMessages(messages)
  const kind = texts[kindOf(owner)]
  const formats = useFormats()
  const [mayWrite, mayErase] = [useScope(scopesOf(owner).write) && isWhole(owner), useScope('people:erase')]
  const restore = useWrite(() => entitiesOf(owner).restore({ id }), { onSuccess: onShow })
  const when = formats.exactTime(change.at)
  if (change.operation === 'erase')
    return (
      <Notice kind="caution" title={kind.erasedBy(change.actor, when)}>
        {mayErase && owner === 'people' && (
          <div>
            <CertificateButton id={id} />
          </div>
        )}
      </Notice>
    )
  return (
    <Notice kind="caution" title={kind.deletedBy(change.actor, when)}>
      {mayWrite && change.operation === 'delete' && (
        <>
          <p>{texts.restoreAdvice}</p>
          {restore.error && <Problem error={restore.error} />}
          <Button onPress={() => restore.mutate()} isPending={restore.isPending}>
            {restore.isPending ? `${texts.restoring}…` : kind.restore}
          </Button>
        </>
      )}
    </Notice>
  )
}

import { isKithError, type Person } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { nameOf } from '../entity/address.ts'
import { type Entity, entitiesOf, scopesOf } from '../entity/entities.ts'
import type { EntitySearch, SetMoment } from '../entity/search.ts'
import { SetBackDialog } from '../history/set-back-dialog.tsx'
import { ConsentsSection } from '../person/consents-section.tsx'
import { Button } from '../ui/button.tsx'
import { DialogButton } from '../ui/dialog.tsx'
import { Loading, Notice, Page, Problem } from '../ui/page.tsx'
import { AsOfButton } from './as-of.tsx'
import { EntityFrame, EntitySubtitle, useIsEvent } from './entity-frame.tsx'
import { LinksOfThen } from './links-section.tsx'
import { kindOf, messages } from './messages.ts'
import type { Found } from './queries.ts'
import { pastQuery } from './queries.ts'
import { EntityValues } from './values-section.tsx'

type PastEntityProps = {
  owner: string
  id: string
  found: Found
  moment: Pick<EntitySearch, 'at' | 'version'>
  setMoment: SetMoment
  onShow(entity: Entity): void
}

/** A person or record as of a past moment. The page is marked as past and read only. */
export function PastEntity({ owner, id, found, moment: { at, version }, setMoment, onShow }: PastEntityProps) {
  const texts = useMessages(messages)
  const kind = texts[kindOf(owner)]
  const formats = useFormats()
  const mayWrite = useScope(scopesOf(owner).write)
  const isEvent = useIsEvent(owner)
  const moment = at !== undefined ? { at } : { version: version! }
  const { data, error, refetch } = useQuery(pastQuery(owner, id, moment))
  const back = <Button onPress={() => setMoment({})}>{texts.toNow}</Button>
  if (!data) {
    if (!error) return <Loading />
    return (
      <Page title={kind.title} actions={back}>
        {isKithError(error, 'not_found') ? (
          <Notice kind="caution" title={kind.didNotExist} />
        ) : (
          <Problem error={error} onRetry={() => refetch()} />
        )}
      </Page>
    )
  }
  const isOld = found.kind === 'present' && found.entity.version !== data.version
  return (
    <EntityFrame
      title={nameOf(data)}
      subtitle={<EntitySubtitle owner={owner} entity={data} />}
      actions={<AsOfButton at={at} setMoment={setMoment} />}
      top={
        <Notice kind="caution" title={kind.pastTitle(formats.exactTime(at ?? data.as_of?.at ?? data.updated_at))}>
          <p>{texts.pastVersion(data.version)}</p>
          <div>
            {back}{' '}
            {mayWrite && isOld && !isEvent && (
              <DialogButton
                dialog={close => (
                  <SetBackDialog
                    {...{ owner, id }}
                    version={data.version}
                    onClose={close}
                    onSaved={async () => onShow(await entitiesOf(owner).get({ id }))}
                  />
                )}
              >
                {texts.restoreVersion}
              </DialogButton>
            )}
          </div>
        </Notice>
      }
      history={{
        owner,
        id,
        shownVersion: data.version,
        onShowVersion: version => setMoment({ version }),
        canUndo: false,
      }}
    >
      <EntityValues owner={owner} entity={data} />
      {owner === 'people' && 'consents' in data && (
        <ConsentsSection person={data as unknown as Person} at={data.as_of?.at} />
      )}
      <LinksOfThen owner={owner} entity={data} />
    </EntityFrame>
  )
}

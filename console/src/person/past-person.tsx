import { isKithError, type Person } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { client } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { History } from '../history/history.tsx'
import { SetBackDialog } from '../history/set-back-dialog.tsx'
import { Button } from '../ui/button.tsx'
import { Notice, Problem } from '../ui/notice.tsx'
import { Loading, Page, Section } from '../ui/page.tsx'
import { AsOfButton } from './as-of.tsx'
import { AttributesSection } from './attributes-section.tsx'
import { ConsentsSection } from './consents-section.tsx'
import { LinksOfThen } from './links-section.tsx'
import { messages } from './messages.ts'
import styles from './person.module.css'
import { nameOf } from './person-address.ts'
import { PersonSubtitle } from './person-subtitle.tsx'
import { ProfileSection } from './profile-section.tsx'
import type { FoundPerson } from './read-person.ts'
import type { SetMoment } from './search.ts'

type PastPersonProps = {
  id: string
  found: FoundPerson
  moment: { at?: string; version?: number }
  setMoment: SetMoment
  onShow(person: Person): void
}

/** A person as of a past moment. It is marked as such, and nothing can be changed in it. */
export function PastPerson({ id, found, moment: { at, version }, setMoment, onShow }: PastPersonProps) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const mayWrite = useScope('people:write')
  const [isRestoring, setRestoring] = useState(false)
  const { data, error, refetch } = useQuery({
    queryKey: ['people', 'past', id, at ?? version],
    queryFn: async ({ signal }) => {
      const when = at !== undefined ? { at } : { version: version! }
      return (await client.people.get({ id }, { ...when, signal })) as Person
    },
  })
  const back = <Button onPress={() => setMoment({})}>{texts.toNow}</Button>
  if (!data) {
    if (!error) return <Loading />
    return (
      <Page title={texts.person} actions={back}>
        {isKithError(error, 'not_found') ? (
          <Notice kind="caution" title={texts.didNotExist} />
        ) : (
          <Problem error={error} onRetry={() => refetch()} />
        )}
      </Page>
    )
  }
  const isOld = found.kind === 'present' && found.person.version !== data.version
  return (
    <Page
      title={nameOf(data)}
      subtitle={<PersonSubtitle person={data} />}
      actions={<AsOfButton at={at} setMoment={setMoment} />}
    >
      <Notice kind="caution" title={texts.pastTitle(formats.exactTime(at ?? data.as_of?.at ?? data.updated_at))}>
        <p>{texts.pastVersion(data.version)}</p>
        <div className={styles.row!}>
          {back}
          {mayWrite && isOld && <Button onPress={() => setRestoring(true)}>{texts.restoreVersion}</Button>}
        </div>
      </Notice>
      <div className={styles.columns!}>
        <div className={styles.main!}>
          <ProfileSection person={data} />
          <AttributesSection person={data} />
          <ConsentsSection person={data} at={data.as_of?.at} />
          <LinksOfThen person={data} />
        </div>
        <div className={styles.main!}>
          <Section title={texts.history}>
            <History
              owner="people"
              id={id}
              shownVersion={data.version}
              onShowVersion={version => setMoment({ version })}
              canUndo={false}
            />
          </Section>
        </div>
      </div>
      {isRestoring && (
        <SetBackDialog
          owner="people"
          id={id}
          version={data.version}
          onClose={() => setRestoring(false)}
          onSaved={async () => onShow((await client.people.get({ id })) as Person)}
        />
      )}
    </Page>
  )
}

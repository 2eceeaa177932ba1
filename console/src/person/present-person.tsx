import type { Person } from '@kith/client'
import { useState } from 'react'
import { useMessages } from '../app/language.tsx'
import type { Entity } from '../entity/entities.ts'
import { History } from '../history/history.tsx'
import { Notice } from '../ui/notice.tsx'
import { Page, Section } from '../ui/page.tsx'
import { AliasNotice } from './alias-notice.tsx'
import { AsOfButton } from './as-of.tsx'
import { AttributesSection } from './attributes-section.tsx'
import { ConsentsSection } from './consents-section.tsx'
import { LinksSection } from './links-section.tsx'
import { messages } from './messages.ts'
import styles from './person.module.css'
import { nameOf } from './person-address.ts'
import { PersonMenu } from './person-menu.tsx'
import { PersonSubtitle } from './person-subtitle.tsx'
import { ProfileSection } from './profile-section.tsx'
import type { SetMoment } from './search.ts'

type PresentPersonProps = {
  person: Person
  alias: string | undefined
  /** Shows the person that a write returned. */
  onShow(person: Person): void
  /** Reads the person again. */
  onRefresh(): void
  setMoment: SetMoment
}

/** A person as of now, with everything that can be done. */
export function PresentPerson({ person, alias, onShow, onRefresh, setMoment }: PresentPersonProps) {
  const texts = useMessages(messages)
  const [notice, setNotice] = useState<React.ReactNode>()
  // The address loses the other identifier with the first write, and the message stays.
  const [shownAlias, setShownAlias] = useState(alias)
  if (alias !== undefined && alias !== shownAlias) setShownAlias(alias)
  const saved = (entity: Entity) => onShow(entity as unknown as Person)
  const showVersion = (version: number) => setMoment({ version })
  return (
    <Page
      title={nameOf(person)}
      subtitle={<PersonSubtitle person={person} />}
      actions={
        <>
          <AsOfButton setMoment={setMoment} />
          <PersonMenu id={person.id} person={person} onShow={onShow} onRefresh={onRefresh} onNotice={setNotice} />
        </>
      }
    >
      {shownAlias !== undefined && <AliasNotice key={shownAlias} person={person} alias={shownAlias} onShow={onShow} />}
      {notice}
      {person.state === 'placeholder' && (
        <Notice kind="caution" title={texts.placeholderTitle}>
          <p>{texts.placeholderAdvice(person.external_id ?? person.id)}</p>
        </Notice>
      )}
      <div className={styles.columns!}>
        <div className={styles.main!}>
          <ProfileSection person={person} onSaved={saved} />
          <AttributesSection person={person} onSaved={saved} />
          <ConsentsSection person={person} onShow={onShow} />
          <LinksSection person={person} />
        </div>
        <div className={styles.main!}>
          <Section title={texts.history}>
            <History
              owner="people"
              id={person.id}
              version={person.version}
              onShowVersion={showVersion}
              onChanged={onRefresh}
            />
          </Section>
        </div>
      </div>
    </Page>
  )
}

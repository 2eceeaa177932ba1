import type { Person } from '@kith/client'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { client } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { History } from '../history/history.tsx'
import { Button } from '../ui/button.tsx'
import { Notice, Problem } from '../ui/notice.tsx'
import { Page, Section } from '../ui/page.tsx'
import { AttributesSection } from './attributes-section.tsx'
import { CertificateButton } from './certificate.tsx'
import { messages } from './messages.ts'
import styles from './person.module.css'
import { nameOf } from './person-address.ts'
import { PersonMenu } from './person-menu.tsx'
import { ProfileSection } from './profile-section.tsx'
import type { FoundPerson } from './read-person.ts'
import type { SetMoment } from './search.ts'

type AbsentPersonProps = {
  found: Extract<FoundPerson, { kind: 'absent' }>
  onShow(person: Person): void
  setMoment: SetMoment
}

/** The page of a person who was deleted or erased: the rest of the data, and the way back where there is one. */
export function AbsentPerson({ found: { id, change, last }, onShow, setMoment }: AbsentPersonProps) {
  const texts = useMessages(messages)
  const [notice, setNotice] = useState<React.ReactNode>()
  const isErased = change.operation === 'erase'
  const name = last ? nameOf(last) : (change.external_id ?? id)
  const title = isErased
    ? texts.erasedTitle
    : change.operation === 'merge'
      ? texts.mergedTitle(name)
      : texts.deletedTitle(name)
  return (
    <Page
      title={title}
      subtitle={<code className={styles.identifier!}>{change.external_id ?? id}</code>}
      actions={!isErased && <PersonMenu id={id} last={last} onShow={onShow} onNotice={setNotice} />}
    >
      {notice}
      <Ending id={id} change={change} onShow={onShow} />
      <div className={styles.columns!}>
        <div className={styles.main!}>
          {last && (
            <>
              <p className={styles.muted!}>{texts.lastValues}</p>
              <ProfileSection person={last} />
              <AttributesSection person={last} />
            </>
          )}
        </div>
        <div className={styles.main!}>
          <Section title={texts.history}>
            <History
              owner="people"
              id={id}
              onShowVersion={isErased ? undefined : version => setMoment({ version })}
              canUndo={false}
            />
          </Section>
        </div>
      </div>
    </Page>
  )
}

type EndingProps = Pick<AbsentPersonProps['found'], 'id' | 'change'> & Pick<AbsentPersonProps, 'onShow'>

/** The message that names who deleted the person, with the actions that are left. */
function Ending({ id, change, onShow }: EndingProps) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const [mayWrite, mayErase] = [useScope('people:write'), useScope('people:erase')]
  const restore = useMutation({
    mutationFn: async () => (await client.people.restore({ id })) as Person,
    onSuccess: onShow,
  })
  const when = formats.exactTime(change.at)
  if (change.operation === 'erase')
    return (
      <Notice kind="caution" title={texts.erasedBy(change.actor, when)}>
        {mayErase && (
          <div>
            <CertificateButton id={id} />
          </div>
        )}
      </Notice>
    )
  return (
    <Notice kind="caution" title={texts.deletedBy(change.actor, when)}>
      {mayWrite && change.operation === 'delete' && (
        <>
          <p>{texts.restoreAdvice}</p>
          {restore.error && <Problem error={restore.error} />}
          <div>
            <Button onPress={() => restore.mutate()} isPending={restore.isPending}>
              {restore.isPending ? `${texts.restoring}…` : texts.restore}
            </Button>
          </div>
        </>
      )}
    </Notice>
  )
}

import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope, useSession } from '../app/session.tsx'
import { type Entity, idOf } from '../entity/entities.ts'
import { OwnerName } from '../entity/entity-link.tsx'
import { messages as entityMessages } from '../entity/messages.ts'
import { useDefinitions } from '../entity/schema.ts'
import { History, type HistoryProps } from '../history/history.tsx'
import { Badge, Page, Section } from '../ui/page.tsx'
import styles from './entity-page.module.css'
import { messages } from './messages.ts'

type EntityFrameProps = {
  title: string
  subtitle: ReactNode
  actions: ReactNode
  /** The content above all sections, such as messages. */
  top: ReactNode
  history: HistoryProps
  /** The values, links and consents. */
  children: ReactNode
}

/** The frame of the page of a person or record: the stored values, and beside them the history. */
export function EntityFrame({ title, subtitle, actions, top, history, children }: EntityFrameProps) {
  const texts = useMessages(messages)
  const { fields } = useSession()
  const mayReadChanges = useScope('changes:read')
  // A role closes the history on purpose, so the page does not name the missing scope.
  const hasHistory = mayReadChanges || Boolean(history.sources?.length) || !fields
  return (
    <Page title={title} subtitle={subtitle} actions={actions}>
      {top}
      <div className={styles.columns}>
        <div className={styles.main}>{children}</div>
        {hasHistory && (
          <div className={styles.main}>
            <Section title={texts.history}>
              <History {...history} />
            </Section>
          </div>
        )}
      </div>
    </Page>
  )
}

/** Whether the records of a stack never change. */
export const useIsEvent = (owner: string): boolean =>
  useDefinitions().definitions.stacks.find(({ key }) => key === owner)?.kind === 'event'

/** The line below the name: the owner of the entity, its identifier, its state and its version. */
export function EntitySubtitle({ owner, entity }: { owner: string; entity: Entity }) {
  const texts = useMessages(messages)
  const { states } = useMessages(entityMessages)
  const formats = useFormats()
  const isEvent = useIsEvent(owner)
  const { external_id, state, version, updated_at } = entity
  return (
    <div className={`row centered ${styles.subtitle}`}>
      {owner !== 'people' && <StackLink owner={owner} />}
      {owner === 'people' && external_id === null ? (
        <span>{texts.noIdentifier}</span>
      ) : (
        <code className={styles.identifier}>{owner === 'people' ? external_id : idOf(entity)}</code>
      )}
      {state === 'placeholder' && <Badge kind="caution">{states.placeholder}</Badge>}
      {isEvent && <Badge>{texts.immutable}</Badge>}
      <span>{texts.version(version)}</span>
      <span>
        {texts.changed} <time dateTime={updated_at}>{formats.dateTime(updated_at)}</time>
      </span>
    </div>
  )
}

export function StackLink({ owner }: { owner: string }) {
  return (
    <Link to="/records/$stackKey" params={{ stackKey: owner }}>
      <OwnerName owner={owner} />
    </Link>
  )
}

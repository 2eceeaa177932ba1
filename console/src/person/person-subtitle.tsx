import type { Person } from '@kith/client'
import { useFormats, useMessages } from '../app/language.tsx'
import { Badge } from '../ui/page.tsx'
import { messages } from './messages.ts'
import styles from './person.module.css'

/** The line below the name: identifiers, state and version. */
export function PersonSubtitle({ person }: { person: Person }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  return (
    <div className={styles.subtitle!}>
      {person.external_id === null ? (
        <span>{texts.noIdentifier}</span>
      ) : (
        <code className={styles.identifier!}>{person.external_id}</code>
      )}
      {person.state === 'placeholder' && <Badge kind="caution">{texts.placeholder}</Badge>}
      <span>{texts.version(person.version)}</span>
      <span>
        {texts.changed} <time dateTime={person.updated_at}>{formats.dateTime(person.updated_at)}</time>
      </span>
    </div>
  )
}

import type { Definitions } from '@kith/client'
import { Link } from '@tanstack/react-router'
import { useMessages } from '../app/language.tsx'
import { OwnerName } from '../entity/entity-link.tsx'
import { ownersOf } from '../entity/schema.ts'
import { messages } from './messages.ts'
import styles from './schema.module.css'
import type { SchemaTab } from './search.ts'

type OwnerListProps = { definitions: Definitions; tab: SchemaTab; selected: string }

/** Links to people and to each stack within a tab of the page. */
export function OwnerList({ definitions, tab, selected }: OwnerListProps) {
  const texts = useMessages(messages)
  return (
    <nav aria-label={texts.owners}>
      <ul className={styles.ownerLinks}>
        {ownersOf(definitions).map(owner => (
          <li key={owner}>
            <Link
              to="/schema"
              search={{ tab, owner }}
              className={owner === selected ? `${styles.owner} ${styles.selected}` : styles.owner}
              aria-current={owner === selected ? 'true' : undefined}
            >
              <OwnerName owner={owner} />
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  )
}

import type { Definitions } from '@kith/client'
import { getRouteApi, Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useMessages } from '../app/language.tsx'
import { OwnerName } from '../entity/entity-link.tsx'
import { ownersOf } from '../entity/schema.ts'
import { messages } from './messages.ts'
import styles from './schema.module.css'
import type { SchemaTab } from './search.ts'

const route = getRouteApi('/shell/schema')

type OwnerColumnsProps = {
  definitions: Definitions
  tab: SchemaTab
  /** Shown below the links. */
  action?: ReactNode
  children: (owner: string) => ReactNode
}

/** A tab with links to people and to each stack, beside the content of the chosen one. */
export function OwnerColumns({ definitions, tab, action, children }: OwnerColumnsProps) {
  const texts = useMessages(messages)
  const { owner: asked = 'people' } = route.useSearch()
  const selected = definitions.stacks.some(({ key }) => key === asked) ? asked : 'people'
  return (
    <div className={styles.columns}>
      <div className={styles.stack}>
        <nav aria-label={texts.owners}>
          <ul className={styles.owners}>
            {ownersOf(definitions).map(owner => (
              <li key={owner}>
                <Link to="/schema" search={{ tab, owner }} aria-current={owner === selected ? 'true' : undefined}>
                  <OwnerName owner={owner} />
                </Link>
              </li>
            ))}
          </ul>
        </nav>
        {action}
      </div>
      {children(selected)}
    </div>
  )
}

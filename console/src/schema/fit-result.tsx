import type { Declared, ObservedTypes } from '@kith/client'
import { useFormats, useMessages } from '../app/language.tsx'
import { EntityLink } from '../entity/entity-link.tsx'
import { Notice } from '../ui/page.tsx'
import { messages } from './messages.ts'
import styles from './schema.module.css'

/** Types of values with their numbers, such as "text 3, number 1". */
export function TypeCounts({ types }: { types: ObservedTypes }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const found = (Object.entries(types) as [keyof ObservedTypes, number][]).filter(([, count]) => count > 0)
  return found.map(([type, count]) => `${texts.observedTypes[type]} ${formats.number(count)}`).join(', ')
}

/**
 * The number of stored values that a declaration accepts, and the values that it does not. Null if it takes none, like
 * a relationship.
 */
export function FitResult({ owner, declared }: { owner: string; declared: Declared | null }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  if (declared === null || declared.fits + declared.misfits === 0)
    return <Notice kind="success" title={texts.declarationFits} />
  const { fits, misfits, misfit_types, examples } = declared
  const title = texts.fitsAndMisfits(formats.number(fits), formats.number(misfits))
  if (misfits === 0) return <Notice kind="success" title={title} />
  return (
    <Notice kind="caution" title={title}>
      <p>
        {texts.misfitTypes} <TypeCounts types={misfit_types} />
      </p>
      <p>{texts.misfitsStay}</p>
      {examples.length > 0 && (
        <ul className={styles.found} aria-label={texts.misfits}>
          {examples.map(id => (
            <li key={id}>
              <EntityLink owner={owner} id={id} externalId={null} />
            </li>
          ))}
        </ul>
      )}
    </Notice>
  )
}

import { EntityLink } from './entity-link.tsx'
import styles from './value.module.css'

/** The targets of a relationship by their external identifiers, or by their internal ones. */
export function Targets({ owner, value }: { owner: string; value: unknown }) {
  const targets: unknown[] = Array.isArray(value) ? value : [value]
  return (
    <span className={styles.targets}>
      {targets.map((target, index) => {
        if (typeof target === 'string') return <EntityLink key={target} owner={owner} externalId={target} />
        const id = internalIdOf(target)
        if (id !== undefined) return <EntityLink key={id} owner={owner} id={id} externalId={null} />
        // biome-ignore lint/suspicious/noArrayIndexKey: a value that is no target has no other key
        return <code key={index}>{JSON.stringify(target)}</code>
      })}
    </span>
  )
}

/** The internal identifier in `{"id": …}` or `{"record_id": …}`. */
function internalIdOf(target: unknown): string | undefined {
  const { id, record_id = id } = (target ?? {}) as { id?: unknown; record_id?: unknown }
  return typeof record_id === 'string' ? record_id : undefined
}

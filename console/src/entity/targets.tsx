import { EntityLink } from './entity-link.tsx'
import styles from './value.module.css'

type TargetsProps = {
  owner: string
  value: unknown
  /** The names of the targets, by their identifiers. */
  labels?: Readonly<Record<string, string>> | undefined
}

/** The targets of a relationship by their names, else by their external identifiers, or by their internal ones. */
export function Targets({ owner, value, labels }: TargetsProps) {
  const targets: unknown[] = Array.isArray(value) ? value : [value]
  return (
    <span className={styles.targets}>
      {targets.map((target, index) => {
        if (typeof target === 'string')
          return (
            <EntityLink key={target} owner={owner} externalId={target}>
              <Label labels={labels} identifier={target} />
            </EntityLink>
          )
        const id = internalIdOf(target)
        if (id !== undefined)
          return (
            <EntityLink key={id} owner={owner} id={id} externalId={null}>
              <Label labels={labels} identifier={id} />
            </EntityLink>
          )
        // biome-ignore lint/suspicious/noArrayIndexKey: a value that is no target has no other key
        return <code key={index}>{JSON.stringify(target)}</code>
      })}
    </span>
  )
}

const Label = ({ labels = {}, identifier }: Pick<TargetsProps, 'labels'> & { identifier: string }) => (
  <bdi>{Object.hasOwn(labels, identifier) ? labels[identifier] : identifier}</bdi>
)

/** The internal identifier in `{"id": …}` or `{"record_id": …}`. */
export function internalIdOf(target: unknown): string | undefined {
  const { id, record_id = id } = (target ?? {}) as { id?: unknown; record_id?: unknown }
  return typeof record_id === 'string' ? record_id : undefined
}

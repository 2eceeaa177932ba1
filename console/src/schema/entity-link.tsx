import { Link } from '@tanstack/react-router'
import { personAddress } from '../person/person-address.ts'
import styles from './schema.module.css'

type EntityLinkProps = {
  /** `people`, or the key of a stack. */
  owner: string
  /** The `id` of a person, the `record_id` of a record. */
  id: string
  externalId: string | null
}

/** A link to a person or record. It shows the external identifier, or the internal one if there is none. */
export function EntityLink({ owner, id, externalId }: EntityLinkProps) {
  const text = <bdi className={styles.identifier!}>{externalId ?? id}</bdi>
  if (owner !== 'people')
    return (
      <Link to="/records/$stackKey/$recordId" params={{ stackKey: owner, recordId: id }}>
        {text}
      </Link>
    )
  return <Link {...personAddress({ id, external_id: externalId })}>{text}</Link>
}

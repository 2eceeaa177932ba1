import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useMessages } from '../app/language.tsx'
import { entityAddress, ownerName } from './address.ts'
import { messages } from './messages.ts'
import { useDefinitions } from './schema.ts'

type EntityLinkProps = {
  /** `people`, or the key of a stack. */
  owner: string
  /** The internal identifier, if it is known. */
  id?: string
  externalId: string | null
  className?: string
  /** Shown in place of the identifier. */
  children?: ReactNode
}

/** A link to a person or record. */
export function EntityLink({ owner, id, externalId, className, children }: EntityLinkProps) {
  return (
    <Link {...entityAddress(owner, { id, externalId })} {...(className && { className })}>
      {children ?? <bdi>{externalId ?? id}</bdi>}
    </Link>
  )
}

/** The name of an owner: people, or a stack. */
export function OwnerName({ owner }: { owner: string }) {
  const texts = useMessages(messages)
  return <bdi>{ownerName(owner, useDefinitions().definitions, texts.people)}</bdi>
}

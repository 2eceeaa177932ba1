import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { nameOf } from '../entity/address.ts'
import { EntityLink } from '../entity/entity-link.tsx'
import { Notice } from '../ui/page.tsx'
import { duplicateMessages } from './messages.ts'
import { knownQuery } from './queries.ts'

type Contact = { email: string; prefix: string; number: string }

/** A look-up begins when nobody has typed for this long. */
const pauseMs = 400
const minDigits = 6

/** Warns of people who have the email or phone of a form already. `without` is the person whom the form changes. */
export function KnownPeople({ email, prefix, number, without }: Contact & { without?: string | undefined }) {
  const texts = useMessages(duplicateMessages)
  const mayRead = useScope('people:read')
  const contact = usePaused({ email: email.trim(), prefix: prefix.trim(), number: number.trim() })
  const hasEmail = mayRead && /^[^@\s]+@[^@\s]+$/.test(contact.email)
  const hasNumber = mayRead && contact.number.replaceAll(/\D/g, '').length >= minDigits
  const byEmail = useQuery(knownQuery(hasEmail ? { email: contact.email } : undefined))
  const phone = { mobile_number: contact.number, ...(contact.prefix && { mobile_prefix: contact.prefix }) }
  const byPhone = useQuery(knownQuery(hasNumber ? phone : undefined))
  const found = [...(hasEmail ? (byEmail.data ?? []) : []), ...(hasNumber ? (byPhone.data ?? []) : [])]
  const people = [...new Map(found.map(person => [person.id, person])).values()].filter(({ id }) => id !== without)
  if (people.length === 0) return null
  return (
    <Notice kind="caution" title={texts.known}>
      <ul>
        {people.slice(0, 5).map(({ id, external_id, first_name, last_name }) => (
          <li key={id}>
            <EntityLink owner="people" id={id} externalId={external_id}>
              <bdi>{nameOf({ id, external_id, first_name, last_name })}</bdi>
            </EntityLink>
          </li>
        ))}
      </ul>
      <p>{texts.knownAdvice}</p>
    </Notice>
  )
}

/** A value once it has not changed for a moment. */
function usePaused({ email, prefix, number }: Contact): Contact {
  const [paused, setPaused] = useState({ email, prefix, number })
  useEffect(() => {
    const timer = setTimeout(() => setPaused({ email, prefix, number }), pauseMs)
    return () => clearTimeout(timer)
  }, [email, prefix, number])
  return paused
}

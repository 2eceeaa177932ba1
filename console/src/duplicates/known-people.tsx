import { useQuery } from '@tanstack/react-query'
import { useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { nameOf } from '../entity/address.ts'
import { EntityLink } from '../entity/entity-link.tsx'
import { Notice } from '../ui/page.tsx'
import { useSettled } from '../ui/use-settled.ts'
import { duplicateMessages } from './messages.ts'
import { knownQuery } from './queries.ts'

/** A look-up begins after this pause in typing. */
const pauseMs = 400
const minDigits = 6

type KnownPeopleProps = { email: string; prefix: string; number: string; without?: string | undefined }

/** Warns of people who already have the email or phone of a form. `without` is the person that the form changes. */
export function KnownPeople({ email, prefix, number, without }: KnownPeopleProps) {
  const texts = useMessages(duplicateMessages)
  const mayRead = useScope('people:read')
  const typed = [email, prefix, number].map(text => text.trim()).join('\n')
  const [settledEmail, mobile_prefix, mobile_number] = useSettled(typed, pauseMs).split('\n') as [
    string,
    string,
    string,
  ]
  const hasEmail = mayRead && /^[^@\s]+@[^@\s]+$/.test(settledEmail)
  const hasNumber = mayRead && mobile_number.replaceAll(/\D/g, '').length >= minDigits
  const byEmail = useQuery(knownQuery(hasEmail ? { email: settledEmail } : undefined))
  const phone = { mobile_number, ...(mobile_prefix && { mobile_prefix }) }
  const byPhone = useQuery(knownQuery(hasNumber ? phone : undefined))
  const found = [...(hasEmail ? (byEmail.data ?? []) : []), ...(hasNumber ? (byPhone.data ?? []) : [])]
  const people = [...new Map(found.map(person => [person.id, person])).values()].filter(({ id }) => id !== without)
  if (people.length === 0) return null
  return (
    <Notice kind="caution" title={texts.known}>
      <ul>
        {people.slice(0, 5).map(person => (
          <li key={person.id}>
            <EntityLink owner="people" id={person.id} externalId={person.external_id}>
              <bdi>{nameOf(person)}</bdi>
            </EntityLink>
          </li>
        ))}
      </ul>
      <p>{texts.knownAdvice}</p>
    </Notice>
  )
}

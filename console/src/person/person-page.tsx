import type { Person } from '@kith/client'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Navigate, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { useMessages } from '../app/language.tsx'
import { LinkButton } from '../ui/link-button.tsx'
import { Problem } from '../ui/notice.tsx'
import { EmptyState, Loading, Page } from '../ui/page.tsx'
import { AbsentPerson } from './absent-person.tsx'
import { messages } from './messages.ts'
import { PastPerson } from './past-person.tsx'
import { personAddress } from './person-address.ts'
import { PresentPerson } from './present-person.tsx'
import { type FoundPerson, findPerson } from './read-person.ts'

/** The page of one person: of now, of a past moment, or what is left of somebody who was deleted. */
export function PersonPage() {
  const texts = useMessages(messages)
  const { externalId: identifier } = useParams({ from: '/shell/people/$externalId' })
  const search = useSearch({ from: '/shell/people/$externalId' })
  const navigate = useNavigate()
  const queryClient = useQueryClient()
  const queryKey = ['people', 'one', identifier, search.by ?? 'external_id']
  const { data, error, refetch } = useQuery({
    queryKey,
    queryFn: async ({ signal }) => (await findPerson({ identifier, by: search.by }, signal)) ?? null,
  })
  if (data === undefined) {
    if (!error) return <Loading />
    return (
      <Page title={texts.person}>
        <Problem error={error} onRetry={() => refetch()} />
      </Page>
    )
  }
  if (data === null) return <NoPerson />
  const address = personAddress(data.kind === 'present' ? data.person : { id: data.id, external_id: null })
  if (leadsElsewhere(data, identifier))
    return (
      <Navigate
        {...address}
        search={{ ...address.search, ...search, by: address.search.by, alias: identifier } as never}
        replace
      />
    )

  /** Shows what a write returned, and goes to the new address if the identifier changed. */
  const show = async (person: Person) => {
    const { to, params, search: by } = personAddress(person)
    const found: FoundPerson = { kind: 'present', person }
    queryClient.setQueryData(['people', 'one', params.externalId, by.by ?? 'external_id'], found)
    if (search.by !== 'id' || by.by !== 'id')
      await navigate({ to, params, search: by, replace: true, ignoreBlocker: true })
    // The old address leads nowhere after a new identifier.
    if (params.externalId !== identifier) queryClient.removeQueries({ queryKey })
    await queryClient.invalidateQueries({ queryKey: ['people'], refetchType: 'none' })
  }
  const refresh = () => queryClient.invalidateQueries({ queryKey: ['people', 'one'] })
  const setMoment = (moment: { at?: string; version?: number }) =>
    navigate({ to: '.', search: before => ({ ...(before.by && { by: before.by }), ...moment }) as never })
  const id = data.kind === 'present' ? data.person.id : data.id
  if (search.at !== undefined || search.version !== undefined)
    return <PastPerson id={id} found={data} moment={search} setMoment={setMoment} onShow={show} />
  if (data.kind === 'absent') return <AbsentPerson key={id} found={data} onShow={show} setMoment={setMoment} />
  return (
    <PresentPerson
      key={id}
      person={data.person}
      alias={search.alias}
      onShow={show}
      onRefresh={refresh}
      setMoment={setMoment}
    />
  )
}

/** Whether the identifier in the address is not that of the person: an alias, or one of before a merge. */
function leadsElsewhere(found: FoundPerson, identifier: string): boolean {
  if (found.kind === 'absent') return found.id !== identifier
  const { id, external_id } = found.person
  return identifier !== external_id && identifier !== id
}

function NoPerson() {
  const texts = useMessages(messages)
  return (
    <Page title={texts.person}>
      <EmptyState title={texts.notFound}>
        <p>{texts.notFoundAdvice}</p>
        <LinkButton to="/people">{texts.toPeople}</LinkButton>
      </EmptyState>
    </Page>
  )
}

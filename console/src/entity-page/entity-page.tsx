import { useQuery } from '@tanstack/react-query'
import { Navigate, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { useMessages } from '../app/language.tsx'
import { queryClient } from '../app/query-client.ts'
import { useNavigateAfter } from '../app/use-navigate-after.ts'
import { entityAddress } from '../entity/address.ts'
import { type Entity, idOf } from '../entity/entities.ts'
import type { EntitySearch, SetMoment } from '../entity/search.ts'
import { LinkButton } from '../ui/button.tsx'
import { UnreadPage } from '../ui/loaded.tsx'
import { EmptyState, Page } from '../ui/page.tsx'
import { AbsentEntity } from './absent-entity.tsx'
import { kindOf, messages } from './messages.ts'
import { PastEntity } from './past-entity.tsx'
import { PresentEntity } from './present-entity.tsx'
import type { Address, Found } from './queries.ts'
import { foundQuery } from './queries.ts'

/** The page of one person or record: its current state, a past state, or the remains of a deleted one. */
export function EntityPage() {
  const { externalId, stackKey, recordId } = useParams({ strict: false })
  const { by } = useSearch({ strict: false }) as EntitySearch
  const owner = stackKey ?? 'people'
  const identifier = externalId ?? recordId ?? ''
  return <AtAddress owner={owner} identifier={identifier} by={by} />
}

function AtAddress(address: Address) {
  const { owner, identifier } = address
  const texts = useMessages(messages)
  const search = useSearch({ strict: false }) as EntitySearch
  const navigate = useNavigate()
  const navigateAfter = useNavigateAfter()
  const query = foundQuery(address)
  const found = useQuery(query)
  const { data } = found
  if (data === undefined) return <UnreadPage title={texts[kindOf(owner)].title} query={found} />
  if (data === null) return <NoEntity owner={owner} />
  const { id, externalId } = identifiersOf(data)
  if (leadsElsewhere(address, data)) {
    const target = entityAddress(owner, { id, externalId: data.kind === 'present' ? externalId : null })
    const alias = owner === 'people' ? { alias: identifier } : {}
    return <Navigate {...target} search={{ ...search, by: target.search.by, ...alias } as never} replace />
  }

  const refresh = () => queryClient.invalidateQueries({ queryKey: ['entities', owner, 'one'] })

  /** Shows the entity that a write returned, and navigates to the new address if the identifier changed. */
  const show = async (entity: Entity) => {
    const target = entityAddress(owner, { id: idOf(entity), externalId: entity.external_id })
    const next = Object.values(target.params).at(-1)!
    // A write returns no labels, so the page shows the previous ones until the new ones load.
    const { label, relationship_labels } = data.kind === 'present' ? data.entity : {}
    const named = { ...(label && { label }), ...(relationship_labels && { relationship_labels }), ...entity }
    const found: Found = { kind: 'present', entity: owner === 'people' ? entity : named }
    queryClient.setQueryData(foundQuery({ owner, identifier: next, by: target.search.by }).queryKey, found)
    if (search.by !== 'id' || target.search.by !== 'id')
      await navigateAfter({ ...target, replace: true, ignoreBlocker: true } as never)
    // The old address is invalid after a change of the identifier.
    if (next !== identifier) queryClient.removeQueries({ queryKey: query.queryKey })
    await queryClient.invalidateQueries({ queryKey: ['entities', owner], refetchType: 'none' })
    if (owner !== 'people') void refresh()
  }
  const setMoment: SetMoment = moment =>
    navigate({ to: '.', search: before => ({ ...(before.by && { by: before.by }), ...moment }) as never })
  const shared = { owner, setMoment, onShow: show }
  // A write that changes the identifier keeps the page mounted, because another section may be edited too.
  if (search.at !== undefined || search.version !== undefined)
    return <PastEntity key={id} id={id} found={data} moment={search} {...shared} />
  if (data.kind === 'absent') return <AbsentEntity key={id} found={data} {...shared} />
  return <PresentEntity key={id} entity={data.entity} alias={search.alias} onRefresh={refresh} {...shared} />
}

const identifiersOf = (found: Found) =>
  found.kind === 'present'
    ? { id: idOf(found.entity), externalId: found.entity.external_id }
    : { id: found.id, externalId: found.change.external_id }

/**
 * Whether the address is not the entity's own: it has an alias, an identifier from before a merge, or the external
 * identifier of a record.
 */
function leadsElsewhere({ owner, identifier, by }: Address, found: Found): boolean {
  const { id, externalId } = identifiersOf(found)
  if (owner !== 'people') return by === 'external_id'
  return identifier !== id && (found.kind === 'absent' || identifier !== externalId)
}

function NoEntity({ owner }: { owner: string }) {
  const texts = useMessages(messages)
  const { title, notFound, notFoundAdvice, toList } = texts[kindOf(owner)]
  return (
    <Page title={title}>
      <EmptyState title={notFound}>
        <p>{notFoundAdvice}</p>
        {owner === 'people' ? (
          <LinkButton to="/people">{toList}</LinkButton>
        ) : (
          <LinkButton to="/records/$stackKey" params={{ stackKey: owner }}>
            {toList}
          </LinkButton>
        )}
      </EmptyState>
    </Page>
  )
}

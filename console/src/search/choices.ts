import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { client, untilIndexed } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { messages as shellMessages } from '../app/messages.ts'
import { pagesOf } from '../app/navigation.ts'
import { useSession } from '../app/session.tsx'
import { entityAddress, nameOf, ownerName } from '../entity/address.ts'
import { type Entity, idOf, scopesOf } from '../entity/entities.ts'
import { segmentsQuery, useDefinitions } from '../entity/schema.ts'
import { useSettled } from '../ui/use-settled.ts'
import { messages } from './messages.ts'
import { type OwnedEntity, visitedQuery } from './recent.ts'

/** A destination or an action. */
export type SearchChoice = { id: string; label: string; detail?: string | undefined; go(): void }
export type ChoiceGroup = { key: string; title: string; choices: SearchChoice[] }

const [pauseMs, maxHits, maxOfGroup] = [100, 10, 6]

/** The results for the typed text, in groups. Without a text, the last shown entities, and the actions. */
export function useChoices(typed: string) {
  const texts = useMessages(messages)
  const text = typed.trim()
  const visited = useQuery(visitedQuery(useSession()))
  const hits = useHits(text)
  const toChoice = useEntityChoice()
  const segments = useSegmentChoices()
  const pages = usePageChoices()
  const actions = useActions()
  // All groups belong to the last answered text, so that late hits never appear above existing results.
  const shown = text !== '' && hits.isEnabled && !hits.error ? hits.data?.text : text
  const matches = (choices: SearchChoice[]) => {
    const isMatch = ({ label }: SearchChoice) => label.toLowerCase().includes(shown!.toLowerCase())
    return shown ? choices.filter(isMatch).slice(0, maxOfGroup) : []
  }
  const groups: ChoiceGroup[] = [
    text === ''
      ? { key: 'recent', title: texts.recent, choices: (visited.data ?? []).map(toChoice) }
      : { key: 'found', title: texts.found, choices: (hits.data?.items ?? []).map(toChoice) },
    { key: 'segments', title: texts.segments, choices: matches(segments) },
    { key: 'pages', title: texts.pages, choices: matches(pages) },
    { key: 'actions', title: texts.actions, choices: text === '' ? actions.slice(0, maxOfGroup) : matches(actions) },
  ]
  return {
    groups: groups.filter(({ choices }) => choices.length > 0),
    error: hits.error ?? visited.error,
    isSearching: text !== '' && (hits.isFetching || hits.isPending) && hits.isEnabled,
  }
}

/** The people and records that the service finds among all that the session may read. */
function useHits(text: string) {
  const mayRead = useSession().scopes.includes('people:read')
  const sent = useSettled(text, pauseMs)
  const isEnabled = mayRead && sent !== '' && text !== ''
  const query = useQuery({
    queryKey: ['entities', 'everywhere', sent],
    queryFn: async ({ signal }) => {
      const { items } = await client.search(sent, { owners: ['*'], size: maxHits, labels: true, signal }).page()
      return { text: sent, items: items as unknown as OwnedEntity[] }
    },
    enabled: isEnabled,
    placeholderData: keepPreviousData,
    refetchInterval: untilIndexed,
  })
  return { ...query, isEnabled: mayRead && text !== '' }
}

function useEntityChoice(): (hit: OwnedEntity) => SearchChoice {
  const texts = useMessages(messages)
  const { definitions } = useDefinitions()
  const navigate = useNavigate()
  return ({ owner, entity }) => {
    const id = idOf(entity)
    const name = nameOf(entity)
    const others = [(entity as Entity & { email?: string | null }).email, entity.external_id]
    return {
      id: `${owner}/${id}`,
      label: name,
      detail: [ownerName(owner, definitions, texts.people), ...others.filter(other => other && other !== name)].join(
        ' · ',
      ),
      go: () => void navigate(entityAddress(owner, { id, externalId: entity.external_id })),
    }
  }
}

function useSegmentChoices(): SearchChoice[] {
  const { scopes } = useSession()
  const navigate = useNavigate()
  const isEnabled = scopes.includes('schema:read') && scopes.includes('people:read')
  const { data = [] } = useQuery({ ...segmentsQuery, enabled: isEnabled })
  return data.map(({ key, name }) => ({
    id: `segment/${key}`,
    label: name,
    go: () => void navigate({ to: '/people', search: { segment: key } }),
  }))
}

/** The pages of the navigation, and the lists of records. */
function usePageChoices(): SearchChoice[] {
  const texts = useMessages(shellMessages)
  const session = useSession()
  const { definitions } = useDefinitions()
  const navigate = useNavigate()
  const stacks = session.scopes.includes('records:read') ? definitions.stacks : []
  return [
    ...pagesOf(session).map(({ to, label }) => ({
      id: `page${to}`,
      label: texts[label],
      go: () => void navigate({ to }),
    })),
    ...stacks.map(({ key, name }) => ({
      id: `page/records/${key}`,
      label: name,
      detail: texts.records,
      go: () => void navigate({ to: '/records/$stackKey', params: { stackKey: key } }),
    })),
  ]
}

function useActions(): SearchChoice[] {
  const texts = useMessages(messages)
  const { scopes } = useSession()
  const { definitions } = useDefinitions()
  const navigate = useNavigate()
  const search = { create: 'yes' } as const
  const stacks = scopes.includes(scopesOf('').write) ? definitions.stacks : []
  const ofPeople: SearchChoice[] = scopes.includes('people:write')
    ? [
        { id: 'new/people', label: texts.newPerson, go: () => void navigate({ to: '/people', search }) },
        { id: 'import', label: texts.importFile, go: () => void navigate({ to: '/import' }) },
      ]
    : []
  return [
    ...ofPeople,
    ...stacks.map(({ key, name }) => ({
      id: `new/${key}`,
      label: texts.newRecord(name),
      go: () => void navigate({ to: '/records/$stackKey', params: { stackKey: key }, search }),
    })),
  ]
}

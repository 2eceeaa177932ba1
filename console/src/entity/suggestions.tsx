import type { Filter } from '@kith/client'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { client } from '../app/client.ts'
import { useScope } from '../app/session.tsx'
import { useSettled } from '../ui/use-settled.ts'
import { nameOf } from './address.ts'
import { type Entity, entitiesOf, scopesOf } from './entities.ts'
import type { Suggested } from './fields.ts'

const [pauseMs, maxSuggested] = [200, 10]

/** The suggestions of a text field with this id as its list. An unchanged stored text has none. */
export function Suggestions({ id, of, typed }: { id: string; of: Suggested; typed: string }) {
  const [first] = useState(typed)
  const text = useSettled(typed.trim(), pauseMs)
  const mayRead = useScope(scopesOf('target' in of ? of.target : of.owner).read)
  const maySearch = useScope('people:read')
  const { data = [] } = useQuery({
    queryKey: ['entities', 'suggested', of, text],
    queryFn: ({ signal }) => ('target' in of ? findTargets(of.target, text, signal) : findValues(of, text, signal)),
    enabled: text !== '' && typed !== first && mayRead && (maySearch || !('target' in of)),
    placeholderData: keepPreviousData,
    staleTime: 30_000,
  })
  return (
    <datalist id={id}>
      {data.map(({ value, label }) => (
        <option key={value} value={value} label={label} />
      ))}
    </datalist>
  )
}

type Suggestion = { value: string; label?: string }

/** The most frequent values that begin with the text, found by the index. */
async function findValues({ owner, field }: { owner: string; field: string }, text: string, signal: AbortSignal) {
  const { groups } = await entitiesOf(owner).aggregate(
    {
      filter: { $or: spellingsOf(text).map(each => ({ [field]: beginsWith(each) })) } as Filter,
      group_by: [field],
      measures: [{ op: 'count' }],
      sort: [{ measure: 0, direction: 'desc' }],
      limit: maxSuggested,
    } as never,
    { signal },
  )
  return groups.flatMap(({ by: [value] }): Suggestion[] => (typeof value === 'string' ? [{ value }] : []))
}

/** `$starts_with` would read all values. A range uses the index, with the case as typed. */
const beginsWith = (text: string) => ({ $gte: text, $lt: `${text}\u{10ffff}` })

/** A text as typed, and in the usual cases of values. */
function spellingsOf(text: string): string[] {
  const [first = '', ...rest] = text
  return [...new Set([text, first.toUpperCase() + rest.join(''), text.toUpperCase(), text.toLowerCase()])]
}

async function findTargets(target: string, text: string, signal: AbortSignal): Promise<Suggestion[]> {
  const { items } = await client.search(text, { owners: [target], size: maxSuggested, labels: true, signal }).page()
  return (items as unknown as { entity: Entity }[]).flatMap(({ entity }) =>
    entity.external_id === null ? [] : [{ value: entity.external_id, label: nameOf(entity) }],
  )
}

import type { Attribute, Person, StackRecord } from '@kith/client'
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { client } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope, useSession } from '../app/session.tsx'
import { isRelationship, targetOwner } from '../entity/relationship.ts'
import { attributesOf, useSchema } from '../entity/schema.ts'
import { LongText } from '../entity/value.tsx'
import { Button } from '../ui/button.tsx'
import { Problem } from '../ui/notice.tsx'
import { Loading, Section } from '../ui/page.tsx'
import { messages } from './messages.ts'
import styles from './person.module.css'
import { nameOf, personAddress } from './person-address.ts'

type Relation = { attribute: Attribute; direction: 'outgoing' | 'incoming'; owner: string }

const pageSize = 10
const scopeOf = (owner: string) => (owner === 'people' ? 'people:read' : 'records:read')

/** The people and records that the person links to, and those that link to the person. */
export function LinksSection({ person }: { person: Person }) {
  const texts = useMessages(messages)
  const { attributes } = useSchema()
  const { scopes } = useSession()
  const active = attributes.filter(({ state }) => state === 'active')
  const outgoing = active
    .filter(attribute => attribute.owner === 'people' && isRelationship(attribute))
    .filter(({ key }) => person.attribute_values[key] !== undefined)
    .map(attribute => ({ attribute, direction: 'outgoing' as const, owner: targetOwner(attribute) }))
  const incoming = active
    .filter(({ type }) => type === 'person')
    .map(attribute => ({ attribute, direction: 'incoming' as const, owner: attribute.owner }))
  const relations = [...outgoing, ...incoming].filter(({ owner }) => scopes.includes(scopeOf(owner)))
  return (
    <Section title={texts.links}>
      <div className={styles.linkGroups!}>
        {relations.map(relation => (
          <LinkGroup key={`${relation.direction} ${relation.attribute.id}`} person={person} relation={relation} />
        ))}
      </div>
      <p className={`${styles.muted} ${styles.noLinks}`}>{texts.noLinks}</p>
    </Section>
  )
}

function useRelated({ id, version }: Person, { attribute, direction, owner }: Relation) {
  return useInfiniteQuery({
    queryKey: ['people', 'related', id, version, attribute.id, direction],
    queryFn: ({ pageParam, signal }) =>
      client.people
        .related(
          { id },
          {
            target: owner,
            attribute_key: attribute.key,
            direction,
            size: pageSize,
            count: true,
            signal,
            after: pageParam,
          },
        )
        .page(),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
  })
}

/** One relationship in one direction. Nothing is shown if nobody has a link of it to the person. */
function LinkGroup({ person, relation }: { person: Person; relation: Relation }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const { stacks } = useSchema()
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useRelated(person, relation)
  const { attribute, direction, owner } = relation
  const ownerName = owner === 'people' ? texts.people : (stacks.find(({ key }) => key === owner)?.name ?? owner)
  const name = attribute.name || attribute.key
  const heading = direction === 'outgoing' ? name : texts.ofOwner(name, ownerName)
  if (!data) return error ? <Problem error={error} onRetry={() => refetch()} /> : <Loading />
  const items = data.pages.flatMap(page => page.items) as (Person | StackRecord)[]
  if (items.length === 0) return null
  const { count } = data.pages[0]!
  return (
    <div className={styles.linkGroup!}>
      <h3>
        {heading} {count !== undefined && <span className={styles.muted!}>({formats.number(count)})</span>}
      </h3>
      <ul className={styles.linkList!} aria-label={heading}>
        {items.map(item => (
          <LinkedEntity key={'id' in item ? item.id : item.record_id} item={item} person={person} />
        ))}
      </ul>
      {hasNextPage && (
        <div>
          <Button
            onPress={() => fetchNextPage()}
            isPending={isFetchingNextPage}
            aria-label={`${texts.showMore}: ${heading}`}
          >
            {texts.showMore}
          </Button>
        </div>
      )}
    </div>
  )
}

/** Values that are shown beside a record, in at most this many characters. */
const maxCharacters = 120

function LinkedEntity({ item, person }: { item: Person | StackRecord; person: Person }) {
  if ('id' in item)
    return (
      <li className={styles.linkRow!}>
        <Link {...personAddress(item)}>
          <bdi>{nameOf(item)}</bdi>
        </Link>
        {item.external_id !== null && <span className={styles.rowText!}>{item.external_id}</span>}
      </li>
    )
  const { stack_key, record_id, external_id, attribute_values } = item
  const summary = Object.entries(attribute_values)
    .filter(([, value]) => typeof value !== 'object' && value !== person.external_id)
    .map(([key, value]) => `${key}: ${value}`)
    .join(' · ')
  return (
    <li className={styles.linkRow!}>
      <Link to="/records/$stackKey/$recordId" params={{ stackKey: stack_key, recordId: record_id }}>
        <bdi>{external_id ?? record_id}</bdi>
      </Link>
      <span className={styles.rowText!}>{summary.slice(0, maxCharacters)}</span>
    </li>
  )
}

/** The links from the person at a past moment, by their names of then. */
export function LinksOfThen({ person }: { person: Person }) {
  const texts = useMessages(messages)
  const mayRead = useScope('people:read')
  const attributes = [...attributesOf(useSchema(), 'people').values()].filter(isRelationship)
  const linked = attributes.filter(({ key }) => person.attribute_values[key] !== undefined)
  if (!mayRead) return null
  return (
    <Section title={texts.links}>
      <p className={styles.muted!}>{texts.linksOfNow}</p>
      {linked.length === 0 && <p className={styles.muted!}>{texts.noLinks}</p>}
      {linked.map(({ id, key, name }) => (
        <div key={id} className={styles.linkGroup!}>
          <h3>{name || key}</h3>
          <ul className={styles.linkList!}>
            {[person.attribute_values[key]].flat().map(target => (
              <li key={String(target)} className={styles.linkRow!}>
                <LongText text={String(target ?? '—')} />
              </li>
            ))}
          </ul>
        </div>
      ))}
    </Section>
  )
}

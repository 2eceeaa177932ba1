import type { Attribute, Definitions } from '@kith/client'
import { useInfiniteQuery } from '@tanstack/react-query'
import { client } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { scopesOf } from '../entity/entities.ts'
import { isRelationship, targetOwner } from '../entity/relationship.ts'
import { EntityLink } from '../schema/entity-link.tsx'
import { OwnerName } from '../schema/owner-name.tsx'
import { Button } from '../ui/button.tsx'
import { Problem } from '../ui/notice.tsx'
import { Badge, Loading, Section } from '../ui/page.tsx'
import { messages } from './messages.ts'
import styles from './records.module.css'

type RecordLinksProps = { stackKey: string; recordId: string; definitions: Definitions }

/** The links of a record: the targets of its own relationships, and the people and records that name it. */
export function RecordLinks({ stackKey, recordId, definitions }: RecordLinksProps) {
  const texts = useMessages(messages)
  const active = definitions.attributes.filter(attribute => attribute.state === 'active' && isRelationship(attribute))
  const outgoing = active.filter(({ owner }) => owner === stackKey)
  const incoming = active.filter(attribute => targetOwner(attribute) === stackKey)
  if (outgoing.length === 0 && incoming.length === 0) return null
  return (
    <Section title={texts.links}>
      {outgoing.map(attribute => (
        <LinkGroup
          key={`out ${attribute.id}`}
          {...{ stackKey, recordId, attribute, definitions }}
          direction="outgoing"
        />
      ))}
      {incoming.map(attribute => (
        <LinkGroup
          key={`in ${attribute.id}`}
          {...{ stackKey, recordId, attribute, definitions }}
          direction="incoming"
        />
      ))}
    </Section>
  )
}

type LinkGroupProps = RecordLinksProps & { attribute: Attribute; direction: 'outgoing' | 'incoming' }
type Linked = { id?: string; record_id?: string; external_id: string | null; state: 'active' | 'placeholder' }

const pageSize = 20

function LinkGroup({ stackKey, recordId, definitions, attribute, direction }: LinkGroupProps) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const target = direction === 'outgoing' ? targetOwner(attribute) : attribute.owner
  const mayRead = useScope(scopesOf(target).read)
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery({
    queryKey: ['records', stackKey, 'related', recordId, attribute.id, direction],
    queryFn: async ({ pageParam, signal }) => {
      const options = { target, attribute_key: attribute.key, direction, size: pageSize, count: true, signal }
      const fields = [target === 'people' ? 'id' : 'record_id', 'external_id', 'state'] as const
      const related = client
        .stack(stackKey)
        .related({ id: recordId }, { ...options, fields, after: pageParam } as never)
      const page = await related.page()
      return { ...page, items: page.items as unknown as Linked[] }
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
    enabled: mayRead,
  })
  if (!mayRead) return null
  const linked = data?.pages.flatMap(({ items }) => items) ?? []
  const count = data?.pages[0]?.count
  return (
    <div className={styles.links!}>
      <h3>
        {direction === 'outgoing' ? (
          <bdi>{attribute.name}</bdi>
        ) : (
          <>
            <OwnerName owner={target} stacks={definitions.stacks} />{' '}
            <span className={styles.muted!}>{texts.linkedBy(attribute.name)}</span>
          </>
        )}{' '}
        {count !== undefined && <span className={styles.muted!}>{formats.number(count)}</span>}
      </h3>
      {error && <Problem error={error} onRetry={() => refetch()} />}
      {!data && !error && <Loading />}
      {data && linked.length === 0 && <p className={styles.muted!}>{texts.noLinks}</p>}
      <ul className={styles.linked!}>
        {linked.map(entity => {
          const id = entity.id ?? entity.record_id ?? ''
          return (
            <li key={id}>
              <EntityLink owner={target} id={id} externalId={entity.external_id} />
              {entity.state === 'placeholder' && <Badge kind="caution">{texts.placeholder}</Badge>}
            </li>
          )
        })}
      </ul>
      {hasNextPage && (
        <div>
          <Button onPress={() => fetchNextPage()} isPending={isFetchingNextPage}>
            {texts.showMore}
          </Button>
        </div>
      )}
    </div>
  )
}

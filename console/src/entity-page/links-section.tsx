import { useInfiniteQuery } from '@tanstack/react-query'
import { useFormats, useMessages } from '../app/language.tsx'
import { useSession } from '../app/session.tsx'
import { nameOf } from '../entity/address.ts'
import { type Entity, idOf, scopesOf } from '../entity/entities.ts'
import { EntityLink } from '../entity/entity-link.tsx'
import { isRelationship, targetOwner } from '../entity/relationship.ts'
import { attributesOf, useDefinitions } from '../entity/schema.ts'
import { Value } from '../entity/value.tsx'
import { MoreButton } from '../ui/more-button.tsx'
import { Problem } from '../ui/notice.tsx'
import { Badge, Loading, Section } from '../ui/page.tsx'
import styles from './entity-page.module.css'
import { messages } from './messages.ts'
import { type Relation, relatedQuery } from './queries.ts'

type LinksProps = { owner: string; entity: Entity }

/** The people and records that an entity links to, and those that link to it. */
export function LinksSection({ owner, entity }: LinksProps) {
  const texts = useMessages(messages)
  const { attributes } = useDefinitions().definitions
  const { scopes } = useSession()
  const active = attributes.filter(attribute => attribute.state === 'active' && isRelationship(attribute))
  const outgoing = active
    .filter(attribute => attribute.owner === owner && entity.attribute_values[attribute.key] !== undefined)
    .map(attribute => ({ attribute, direction: 'outgoing' as const, owner: targetOwner(attribute) }))
  const incoming = active
    .filter(attribute => targetOwner(attribute) === owner)
    .map(attribute => ({ attribute, direction: 'incoming' as const, owner: attribute.owner }))
  const relations = [...outgoing, ...incoming].filter(relation => scopes.includes(scopesOf(relation.owner).read))
  return (
    <Section title={texts.links}>
      <div className={styles.linkGroups}>
        {relations.map(relation => (
          <LinkGroup key={`${relation.direction} ${relation.attribute.id}`} {...{ owner, entity, relation }} />
        ))}
      </div>
      <p className={`${styles.muted} ${styles.noLinks}`}>{texts.noLinks}</p>
    </Section>
  )
}

/** One relationship in one direction. Nothing is shown if no entity has a link of it. */
function LinkGroup({ owner, entity, relation }: LinksProps & { relation: Relation }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const { stacks } = useDefinitions().definitions
  const query = useInfiniteQuery(relatedQuery(owner, entity, relation))
  const { data, error, refetch } = query
  const { attribute, direction, owner: target } = relation
  const targetName = target === 'people' ? texts.ofPeople : (stacks.find(({ key }) => key === target)?.name ?? target)
  const name = attribute.name || attribute.key
  const heading = direction === 'outgoing' ? name : texts.ofOwner(name, targetName)
  if (!data) return error ? <Problem error={error} onRetry={() => refetch()} /> : <Loading />
  const items = data.pages.flatMap(page => page.items)
  if (items.length === 0) return null
  const { count } = data.pages[0]!
  return (
    <div className={styles.linkGroup}>
      <h3>
        {heading} {count !== undefined && <span className={styles.muted}>({formats.number(count)})</span>}
      </h3>
      <ul className={styles.linkList} aria-label={heading}>
        {items.map(item => (
          <LinkedEntity key={idOf(item)} owner={target} item={item} from={entity} />
        ))}
      </ul>
      <MoreButton query={query} name={heading}>
        {texts.showMore}
      </MoreButton>
    </div>
  )
}

/** Values that are shown beside a record, in at most this many characters. */
const maxCharacters = 120

function LinkedEntity({ owner, item, from }: { owner: string; item: Entity; from: Entity }) {
  const texts = useMessages(messages)
  const { external_id, attribute_values, state } = item
  const summary = Object.entries(attribute_values)
    .filter(([, value]) => typeof value !== 'object' && value !== from.external_id)
    .map(([key, value]) => `${key}: ${value}`)
    .join(' · ')
  return (
    <li className={styles.linkRow}>
      <EntityLink owner={owner} id={idOf(item)} externalId={external_id}>
        <bdi>{nameOf(item)}</bdi>
      </EntityLink>
      {state === 'placeholder' && <Badge kind="caution">{texts.placeholder}</Badge>}
      <span className={styles.rowText}>{owner === 'people' ? external_id : summary.slice(0, maxCharacters)}</span>
    </li>
  )
}

/** The links from an entity at a past moment, by their names of then. */
export function LinksOfThen({ owner, entity }: LinksProps) {
  const texts = useMessages(messages)
  const attributes = [...attributesOf(useDefinitions().definitions, owner).values()].filter(isRelationship)
  const linked = attributes.filter(({ key }) => entity.attribute_values[key] !== undefined)
  return (
    <Section title={texts.links}>
      <p className={styles.muted}>{texts.linksOfNow}</p>
      {linked.length === 0 && <p className={styles.muted}>{texts.noLinks}</p>}
      {linked.map(({ id, key, name }) => (
        <div key={id} className={styles.linkGroup}>
          <h3>{name || key}</h3>
          <ul className={styles.linkList}>
            {[entity.attribute_values[key]].flat().map(target => (
              <li key={JSON.stringify(target)} className={styles.linkRow}>
                <Value value={target} />
              </li>
            ))}
          </ul>
        </div>
      ))}
    </Section>
  )
}

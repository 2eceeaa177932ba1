import type { Attribute } from '@kith/client'
import { useInfiniteQuery } from '@tanstack/react-query'
import { useFormats, useMessages } from '../app/language.tsx'
import { useSession } from '../app/session.tsx'
import { nameOf } from '../entity/address.ts'
import { type Entity, idOf, scopesOf } from '../entity/entities.ts'
import { EntityLink } from '../entity/entity-link.tsx'
import { FieldValue } from '../entity/field-value.tsx'
import { attributeField } from '../entity/fields.ts'
import { messages as entityMessages } from '../entity/messages.ts'
import { isRelationship, targetOwner } from '../entity/relationship.ts'
import { attributesOf, useDefinitions } from '../entity/schema.ts'
import { Value } from '../entity/value.tsx'
import { MoreButton } from '../ui/more-button.tsx'
import { Problem } from '../ui/notice.tsx'
import { Badge, Loading, Section } from '../ui/page.tsx'
import { numberCell, numberHeader, Table } from '../ui/table.tsx'
import styles from './entity-page.module.css'
import { messages } from './messages.ts'
import { newestFirst, type Relation, relatedQuery, timeOf } from './queries.ts'

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
  const { definitions } = useDefinitions()
  const time = timeOf(definitions, relation.owner)
  const query = useInfiniteQuery(relatedQuery(owner, entity, relation, time))
  const { data, error, refetch } = query
  const { attribute, direction, owner: target } = relation
  const targetName =
    target === 'people' ? texts.people : (definitions.stacks.find(({ key }) => key === target)?.name ?? target)
  const name = attribute.name || attribute.key
  const heading = direction === 'outgoing' ? name : texts.ofOwner(name, targetName)
  if (!data) return error ? <Problem error={error} onRetry={() => refetch()} /> : <Loading />
  const items = data.pages.flatMap(page => page.items)
  if (items.length === 0) return null
  const { count } = data.pages[0]!
  return (
    <div className={styles.linkGroup}>
      <h3>
        {heading} {count !== undefined && <span className={styles.muted}>· {formats.number(count)}</span>}
      </h3>
      {target === 'people' ? (
        <LinkedPeople items={items} label={heading} />
      ) : (
        <LinkedRecords
          items={query.hasNextPage ? items : newestFirst(items, time)}
          label={heading}
          relation={relation}
          time={time}
        />
      )}
      <MoreButton query={query} name={heading}>
        {texts.showMore}
      </MoreButton>
    </div>
  )
}

function LinkedPeople({ items, label }: { items: readonly Entity[]; label: string }) {
  return (
    <ul className={styles.linkList} aria-label={label}>
      {items.map(item => (
        <li key={idOf(item)} className={styles.linkRow}>
          <LinkedEntity owner="people" item={item} />
          <span className={styles.rowText}>{item.external_id}</span>
        </li>
      ))}
    </ul>
  )
}

/** So many values are beside each linked record. Its page has all. */
const maxColumns = 4

type LinkedRecordsProps = { items: readonly Entity[]; label: string; relation: Relation; time: Attribute | undefined }

/** Linked records in a table: the time first, then the other attributes of their stack in its order. */
function LinkedRecords({ items, label, relation: { owner, attribute, direction }, time }: LinkedRecordsProps) {
  const texts = useMessages(messages)
  const { fields } = useMessages(entityMessages)
  const { definitions } = useDefinitions()
  const stack = definitions.stacks.find(({ key }) => key === owner)
  const others = [...attributesOf(definitions, owner).values()].filter(
    each =>
      each.state === 'active' &&
      each !== time &&
      // In the column of this relationship, every record would have the same value, and the name of a record may be one attribute.
      !(direction === 'incoming' && each.id === attribute.id) &&
      stack?.label !== `{${each.key}}`,
  )
  const columns = [...(time ? [time] : []), ...others].slice(0, maxColumns)
  const headerOf = ({ name, key, type }: Attribute) => (type === 'number' ? numberHeader(name || key) : name || key)
  return (
    <Table label={label} headers={[stack?.label ? texts.name : fields.external_id, ...columns.map(headerOf)]}>
      {items.map(item => (
        <tr key={idOf(item)}>
          <th scope="row">
            <LinkedEntity owner={owner} item={item} />
          </th>
          {columns.map(column => (
            <td key={column.id} className={column.type === 'number' ? numberCell : undefined}>
              <FieldValue {...cellOf(column, item)} isShort />
            </td>
          ))}
        </tr>
      ))}
    </Table>
  )
}

function cellOf(attribute: Attribute, { attribute_values, relationship_labels }: Entity) {
  const value = attribute_values[attribute.key]
  return { field: attributeField(attribute, value), value, labels: relationship_labels?.[attribute.key] }
}

function LinkedEntity({ owner, item }: { owner: string; item: Entity }) {
  const texts = useMessages(messages)
  return (
    <>
      <EntityLink owner={owner} id={idOf(item)} externalId={item.external_id}>
        <bdi>{nameOf(item)}</bdi>
      </EntityLink>{' '}
      {item.state === 'placeholder' && <Badge kind="caution">{texts.placeholder}</Badge>}
    </>
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

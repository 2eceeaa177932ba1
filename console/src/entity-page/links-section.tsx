import type { Attribute } from '@kith/client'
import { useInfiniteQuery } from '@tanstack/react-query'
import { isOpen } from '../app/field-rights.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useSession } from '../app/session.tsx'
import { nameOf, ownerName } from '../entity/address.ts'
import { type Entity, idOf, scopesOf } from '../entity/entities.ts'
import { EntityLink } from '../entity/entity-link.tsx'
import { attributeField, isRelationship } from '../entity/fields.ts'
import { messages as entityMessages } from '../entity/messages.ts'
import { attributesOf, useDefinitions } from '../entity/schema.ts'
import { FieldValue, Value } from '../entity/value.tsx'
import { Badge, Loading, Problem, Section } from '../ui/page.tsx'
import { MoreButton } from '../ui/paged-list.tsx'
import { ColumnTable, type TableColumn } from '../ui/table.tsx'
import styles from './entity-page.module.css'
import { messages } from './messages.ts'
import { type Linked, linkedQuery, linkedTo, newestFirst, relationsOf, timeOf } from './queries.ts'

type LinksProps = { owner: string; entity: Entity }

/** The entities linked to an entity that the session may read. */
export function useLinked(owner: string, entity: Entity): Linked[] {
  const { definitions } = useDefinitions()
  const { scopes } = useSession()
  return linkedTo(definitions, owner, entity).filter(
    linked => scopes.includes(scopesOf(linked.owner).read) && isOpen(linked.owner),
  )
}

/** The people and records that an entity links to, and those that link to it. */
export function LinksSection({ owner, entity }: LinksProps) {
  const texts = useMessages(messages)
  const groups = useLinked(owner, entity)
  if (groups.length === 0) return null
  return (
    <Section title={texts.links}>
      <div className={styles.linkGroups}>
        {groups.map(linked => (
          <LinkGroup key={linked.key} {...{ owner, entity, linked }} />
        ))}
      </div>
      <p className={`muted ${styles.noLinks}`}>{texts.noLinks}</p>
    </Section>
  )
}

/** The targets of one relationship, or of all relationships with one stack. Nothing is shown without targets. */
function LinkGroup({ owner, entity, linked }: LinksProps & { linked: Linked }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const { definitions } = useDefinitions()
  const { owner: target, relations } = linked
  const time = timeOf(definitions, target)
  const query = useInfiniteQuery(linkedQuery(owner, entity, linked, time))
  const { data, error, refetch } = query
  const targetName = ownerName(target, definitions, texts.people)
  const [{ attribute, direction }] = relations
  const oneName =
    direction === 'outgoing' ? nameOfAttribute(attribute) : `${targetName} (${nameOfAttribute(attribute)})`
  const heading = relations.length === 1 ? oneName : targetName
  if (!data) return error ? <Problem error={error} onRetry={() => refetch()} /> : <Loading />
  const items = data.pages.flatMap(page => page.items)
  if (items.length === 0) return null
  const { count } = data.pages[0]!
  return (
    <div className="column tight">
      <h3>
        {heading} {count !== undefined && <span className="muted">· {formats.number(count)}</span>}
      </h3>
      {target === 'people' ? (
        <LinkedPeople items={items} label={heading} />
      ) : (
        <LinkedRecords
          items={query.hasNextPage ? items : newestFirst(items, time)}
          label={heading}
          {...{ entity, linked, time }}
        />
      )}
      <MoreButton query={query} name={heading}>
        {texts.showMore}
      </MoreButton>
    </div>
  )
}

const nameOfAttribute = ({ name, key }: Attribute) => name || key

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

/** The maximum number of values beside a linked record. Its page has all values. */
const maxColumns = 4

/** The shown attributes of linked records: the time first, then the others in the order of the stack. */
export function useColumns({ owner, relations }: Linked, time: Attribute | undefined): Attribute[] {
  const { definitions } = useDefinitions()
  const stack = definitions.stacks.find(({ key }) => key === owner)
  // The page already shows these: an incoming relationship has the same value in every record, and the name of a record
  // may be one attribute.
  const isTold = (each: Attribute) =>
    stack?.label === `{${each.key}}` ||
    relations.some(({ attribute, direction }) => direction === 'incoming' && attribute.id === each.id)
  const others = [...attributesOf(definitions, owner).values()].filter(
    each => each.state === 'active' && each !== time && !isTold(each),
  )
  return [...(time ? [time] : []), ...others].slice(0, maxColumns)
}

type LinkedRecordsProps = {
  items: readonly Entity[]
  label: string
  entity: Entity
  linked: Linked
  time: Attribute | undefined
}

/** Linked records in a table, or as a list of cards in a narrow window. */
function LinkedRecords({ items, label, entity, linked, time }: LinkedRecordsProps) {
  const texts = useMessages(messages)
  const { fields } = useMessages(entityMessages)
  const { stacks } = useDefinitions().definitions
  const { owner, relations } = linked
  const columns = useColumns(linked, time)
  const isNamed = stacks.find(({ key }) => key === owner)?.label != null
  return (
    <div className={styles.cards}>
      <ColumnTable
        hasCards
        label={label}
        rows={items}
        rowKey={idOf}
        columns={[
          [isNamed ? texts.name : fields.external_id, item => <LinkedEntity owner={owner} item={item} />, 'name'],
          // Several relationships lead to the records, so each record names its own.
          relations.length > 1 && [
            texts.linkedBy,
            item =>
              relationsOf(linked, entity, item)
                .map(({ attribute }) => nameOfAttribute(attribute))
                .join(', '),
          ],
          ...columns.map(
            (column): TableColumn<Entity> => [
              nameOfAttribute(column),
              item => <FieldValue {...cellOf(column, item)} isShort />,
              column.type === 'number' && 'number',
            ],
          ),
        ]}
      />
    </div>
  )
}

/** The value of an attribute in a linked record, for FieldValue. */
export function cellOf(attribute: Attribute, { attribute_values, relationship_labels }: Entity) {
  const value = attribute_values[attribute.key]
  return { field: attributeField(attribute, value), value, labels: relationship_labels?.[attribute.key] }
}

/** A linked person or record by its name. */
export function LinkedEntity({ owner, item }: { owner: string; item: Entity }) {
  const { states } = useMessages(entityMessages)
  return (
    <>
      <EntityLink owner={owner} id={idOf(item)} externalId={item.external_id}>
        <bdi>{nameOf(item)}</bdi>
      </EntityLink>{' '}
      {item.state === 'placeholder' && <Badge kind="caution">{states.placeholder}</Badge>}
    </>
  )
}

/** The links from an entity at a past moment, with the names at that time. */
export function LinksOfThen({ owner, entity }: LinksProps) {
  const texts = useMessages(messages)
  const attributes = [...attributesOf(useDefinitions().definitions, owner).values()].filter(isRelationship)
  const linked = attributes.filter(({ key }) => entity.attribute_values[key] !== undefined)
  return (
    <Section title={texts.links}>
      <p className="muted">{texts.linksOfNow}</p>
      {linked.length === 0 && <p className="muted">{texts.noLinks}</p>}
      {linked.map(({ id, key, name }) => (
        <div key={id} className="column tight">
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

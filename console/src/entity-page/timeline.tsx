import { useFormats, useMessages } from '../app/language.tsx'
import { ownerName } from '../entity/address.ts'
import { type Entity, idOf } from '../entity/entities.ts'
import { EntityLink } from '../entity/entity-link.tsx'
import { useDefinitions } from '../entity/schema.ts'
import { FieldValue, LongText } from '../entity/value.tsx'
import historyStyles from '../history/history.module.css'
import type { Entry } from '../history/history.tsx'
import type { Source } from '../history/timeline.ts'
import { glanceMessages } from '../person/glance-messages.ts'
import { notesOf } from '../person/note-button.tsx'
import { Facts } from '../ui/page.tsx'
import { cellOf, LinkedEntity, useColumns, useLinked } from './links-section.tsx'
import { type Linked, newestFirst, readLinked, timeMsOf, timeOf } from './queries.ts'

const pageSize = 25

/** The sources of a person's history: the records of event stacks, and of stacks that have a time, such as orders. */
export function useTimeline(entity: Entity): { sources: Source<Entry>[]; linked: ReadonlyMap<string, Linked> } {
  const { definitions } = useDefinitions()
  const all = useLinked('people', entity)
  const isEvent = (owner: string) => definitions.stacks.find(({ key }) => key === owner)?.kind === 'event'
  const happened = all.filter(({ owner }) => owner !== 'people' && (isEvent(owner) || timeOf(definitions, owner)))
  const sources = happened.map((linked): Source<Entry> => {
    const time = timeOf(definitions, linked.owner)
    return {
      key: `${linked.key} ${linked.relations.map(({ attribute }) => attribute.id)} ${time?.key} ${time?.indexed}`,
      read: async (after, signal) => {
        const { items, next } = await readLinked('people', entity, linked, time, { size: pageSize, after, signal })
        // If the service sorts records by their creation, their times are in order only if all records are here.
        const isWhole = after === undefined && next == null
        const order = time?.indexed || isWhole ? time : undefined
        const events = newestFirst(items, order).map(record => ({
          key: idOf(record),
          at: new Date(timeMsOf(record, order) ?? Date.parse(record.created_at)).toISOString(),
          owner: linked.owner,
          record,
        }))
        return { events, next: next ?? undefined }
      },
    }
  })
  return { sources, linked: new Map(happened.map(linked => [linked.owner, linked])) }
}

/**
 * A record in the history of a person: its name, its time and the attributes of its table. A note has its whole text.
 */
export function RecordEntry({ linked, record }: { linked: Linked; record: Entity }) {
  const texts = useMessages(glanceMessages)
  const formats = useFormats()
  const { definitions } = useDefinitions()
  const { owner } = linked
  const time = timeOf(definitions, owner)
  const columns = useColumns(linked, time).filter(
    ({ key }) => key !== time?.key && record.attribute_values[key] != null,
  )
  const at = timeMsOf(record, time) === undefined ? record.created_at : String(record.attribute_values[time!.key])
  const { text, author } = record.attribute_values ?? {}
  const isNote = notesOf(definitions)?.key === owner && typeof text === 'string'
  return (
    <>
      <div className={historyStyles.head}>
        {isNote ? (
          <>
            <strong>
              <bdi>{typeof author === 'string' ? author : '—'}</bdi>
            </strong>
            <EntityLink owner={owner} id={idOf(record)} externalId={record.external_id}>
              {texts.wroteNote}
            </EntityLink>
          </>
        ) : (
          <>
            <LinkedEntity owner={owner} item={record} />
            <span className="muted">{ownerName(owner, definitions, owner)}</span>
          </>
        )}
      </div>
      <p className="small">
        <FieldValue
          field={{ kind: time?.type === 'date' && at !== record.created_at ? 'date' : 'datetime' }}
          value={at}
        />{' '}
        · {formats.relative(at)}
      </p>
      {isNote ? (
        <p>
          <LongText text={text} />
        </p>
      ) : (
        columns.length > 0 && (
          <div className={historyStyles.changes}>
            <Facts
              facts={columns.map(column => [
                column.name || column.key,
                <FieldValue key={column.id} {...cellOf(column, record)} isShort />,
              ])}
            />
          </div>
        )
      )}
    </>
  )
}

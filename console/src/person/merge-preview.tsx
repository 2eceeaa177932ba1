import {
  type AnySchema,
  type Merged,
  type MergeKeep,
  type Person,
  profileFieldNames,
  profileFields,
} from '@kith/client'
import { useFormats, useMessages } from '../app/language.tsx'
import type { Entity } from '../entity/entities.ts'
import { isEqual } from '../entity/equal.ts'
import { plainFields } from '../entity/fields.ts'
import { messages as entityMessages } from '../entity/messages.ts'
import { attributesOf, consentTypeName, useDefinitions } from '../entity/schema.ts'
import { Value } from '../entity/value.tsx'
import { Table } from '../ui/table.tsx'
import styles from './person.module.css'
import { rightsMessages } from './rights-messages.ts'

type MergePreviewProps = {
  survivor: Person
  other: Person
  result: Merged<AnySchema>
  keep: MergeKeep
  onKeep(field: string, side: Side): void
}

type Side = MergeKeep[string]
/** A row of the table. `field` is the name of a value that can be chosen. */
type Row = { field: string; label: string; values: [survivor: unknown, other: unknown, result: unknown] }

const isChoosable = ({ field, values: [survivor, other] }: Row) =>
  !unchosen.has(field) && other !== null && !isEqual(survivor, other) && (survivor !== null || field === 'external_id')

/** A phone is chosen by its number, and consents follow from the answers. */
const unchosen = new Set<string>(profileFieldNames.filter(name => profileFields[name].isSummary))
  .add('mobile_prefix')
  .add('push_notification_consent')

const profileKeys = ['external_id', ...plainFields] as const

/** The two people and the result side by side, and what else changes. */
export function MergePreview({ survivor, other, result: { changes, person }, keep, onKeep }: MergePreviewProps) {
  const texts = useMessages(rightsMessages)
  const formats = useFormats()
  const rows = useRows(survivor, other, person as Person)
  const { links, aliases } = changes
  const moved = links.moved_in + links.moved_out
  return (
    <>
      <Table label={texts.result} headers={[texts.field, texts.survivor, texts.other, texts.result]}>
        {rows.map(row => (
          <tr key={row.field} className={isEqual(row.values[0], row.values[2]) ? '' : styles.differs}>
            <th scope="row">{row.label}</th>
            {(['survivor', 'other'] as const).map((side, index) => (
              <td key={side}>
                {isChoosable(row) ? (
                  <span className={styles.choice}>
                    <input
                      type="radio"
                      name={row.field}
                      aria-label={`${row.label}: ${texts[side]}`}
                      checked={(keep[row.field] ?? 'survivor') === side}
                      onChange={() => onKeep(row.field, side)}
                    />
                    <Value value={row.values[index]} />
                  </span>
                ) : (
                  <Value value={row.values[index]} />
                )}
              </td>
            ))}
            <td>
              <Value value={row.values[2]} />
            </td>
          </tr>
        ))}
      </Table>
      {rows.some(isChoosable) && <p>{texts.mergeChoice}</p>}
      {changes.fields.length === 0 && <p>{texts.nothingFilled}</p>}
      <Answers changes={changes.consents} />
      {moved > 0 && <p>{texts.linksMoved(moved, formats.number(moved))}</p>}
      {links.dropped > 0 && <p>{texts.linksDropped(links.dropped, formats.number(links.dropped))}</p>}
      {aliases.length > 0 && <p>{texts.aliases(aliases.map(({ value }) => value).join(', '))}</p>}
    </>
  )
}

/** A row for each value that one of the two has. */
function useRows(survivor: Person, other: Person, result: Person): Row[] {
  const { fields } = useMessages(entityMessages)
  const attributes = attributesOf(useDefinitions().definitions, 'people')
  const people = [survivor, other, result] as unknown as Entity[]
  const rows = profileKeys.map(key => ({
    field: key as string,
    label: fields[key],
    values: people.map(person => person[key] ?? null) as Row['values'],
  }))
  const labelsOf = (key: string) => Object.assign({}, ...people.map(each => each.relationship_labels?.[key]))
  const keys = new Set(people.flatMap(({ attribute_values }) => Object.keys(attribute_values)))
  const attributeRows = [...keys].map(key => ({
    field: `attribute_values.${key}`,
    label: attributes.get(key)?.name || key,
    values: people.map(({ attribute_values }) => named(attribute_values[key] ?? null, labelsOf(key))) as Row['values'],
  }))
  return [...rows, ...attributeRows].filter(({ values }) => values.some(value => value !== null))
}

/** A value of a relationship with the names of its targets. */
function named(value: unknown, labels: Record<string, string>): unknown {
  if (Array.isArray(value)) return value.map(each => named(each, labels))
  const { id, record_id = id } = (value ?? {}) as { id?: string; record_id?: string }
  const identifier = typeof value === 'string' ? value : record_id
  return identifier !== undefined && Object.hasOwn(labels, identifier) ? labels[identifier] : value
}

function Answers({ changes }: { changes: Merged<AnySchema>['changes']['consents'] }) {
  const texts = useMessages(rightsMessages)
  const { answers, channels } = useMessages(entityMessages)
  const { consent_types } = useDefinitions().definitions
  if (changes.length === 0) return null
  const wordOf = (answer: (typeof changes)[number]['before']) =>
    answer === null ? answers.none : answer.pending ? answers.pending : answer.state ? answers.granted : answers.refused
  return (
    <div>
      <p>{texts.answersChange}</p>
      <ul>
        {changes.map(({ consent_type_id, channel, before, after }) => (
          <li key={`${consent_type_id} ${channel}`}>
            {consentTypeName(consent_types, consent_type_id)} · {channels[channel]}: {wordOf(before)} → {wordOf(after)}
          </li>
        ))}
      </ul>
    </div>
  )
}

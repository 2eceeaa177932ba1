import {
  type AnySchema,
  isKithError,
  type Merged,
  type MergeKeep,
  type Person,
  profileFieldNames,
  profileFields,
} from '@kith/client'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { type ReactNode, useDeferredValue, useState } from 'react'
import { client, useWrite } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { duplicateMessages } from '../duplicates/messages.ts'
import { duplicatesKey, duplicatesOfQuery } from '../duplicates/queries.ts'
import { nameOf } from '../entity/address.ts'
import type { Entity } from '../entity/entities.ts'
import { isEqual } from '../entity/equal.ts'
import { plainFields } from '../entity/fields.ts'
import { answerWord, messages as entityMessages } from '../entity/messages.ts'
import { attributesOf, consentTypeName, useDefinitions } from '../entity/schema.ts'
import { internalIdOf, Value } from '../entity/value.tsx'
import { Button } from '../ui/button.tsx'
import { Actions, Dialog } from '../ui/dialog.tsx'
import { TextField } from '../ui/field.tsx'
import { Loading, Problem } from '../ui/page.tsx'
import { Table } from '../ui/table.tsx'
import { MergeNotice } from './merge-notice.tsx'
import styles from './person.module.css'
import { rightsMessages } from './rights-messages.ts'

/** The members of a person that a choice of people shows. */
type Named = { id: string; external_id: string | null; first_name?: unknown; last_name?: unknown }

type MergeDialogProps = {
  person: Named
  /** The other person, if already chosen. */
  with?: Named
  onClose: () => void
  onShow(person: Person): void
  onNotice(notice: ReactNode): void
}

/** Chooses another person, shows both side by side with the result, and merges them. */
export function MergeDialog({ person, with: given, onClose, onShow, onNotice }: MergeDialogProps) {
  const texts = useMessages(rightsMessages)
  const [other, setOther] = useState(given)
  return (
    <Dialog title={texts.mergeTitle(nameOf(person))} onClose={onClose} size="wide" hasDraft={false}>
      {other ? (
        <Comparison
          pair={{ survivor: person, other }}
          onBack={given ? undefined : () => setOther(undefined)}
          onMerged={({ person }, { survivor, other }) => {
            onClose()
            onShow(person as Person)
            onNotice(
              <MergeNotice
                key={other.id}
                survivorId={survivor.id}
                from={{ from: { id: other.id } }}
                title={texts.mergedTitle(nameOf(other), nameOf(person as Named))}
                onShow={onShow}
              />,
            )
          }}
        />
      ) : (
        <>
          <p>{texts.mergeAdvice}</p>
          <PersonChoice without={person.id} onChoose={setOther} />
          <Actions>
            <Button onPress={onClose}>{texts.cancel}</Button>
          </Actions>
        </>
      )}
    </Dialog>
  )
}

const resultSize = 8
const maxIdentifier = 255

/** Searches for a person and chooses one. */
function PersonChoice({ without, onChoose }: { without: string; onChoose(person: Named): void }) {
  const texts = useMessages(rightsMessages)
  const [text, setText] = useState('')
  const searched = useDeferredValue(text.trim())
  const { data, error, refetch, isFetching } = useQuery({
    queryKey: ['entities', 'people', 'choice', searched],
    queryFn: async ({ signal }) => {
      // The lookup finds an identifier at once. The search finds words only after it has indexed the change.
      const { items: exact } = await client.people.lookup({ external_id: searched.slice(0, maxIdentifier) }, { signal })
      const search = client.people.search(searched, { size: resultSize, signal }).page()
      const { items: similar } = await search.catch(error => {
        if (exact.length === 0) throw error
        return { items: [] }
      })
      const people = [...exact, ...similar] as Person[]
      return [...new Map(people.map(person => [person.id, person])).values()]
    },
    enabled: searched !== '',
    placeholderData: keepPreviousData,
  })
  const found = (data ?? []).filter(({ id, state }) => id !== without && state === 'active')
  return (
    <>
      <TextField label={texts.mergeSearch} type="search" value={text} onChange={setText} autoFocus />
      {error && <Problem error={error} onRetry={() => refetch()} />}
      {searched !== '' && data && !isFetching && found.length === 0 && <p role="status">{texts.mergeNobody}</p>}
      {searched === '' ? (
        <Candidates of={without} onChoose={onChoose} />
      ) : (
        <ul className="column tight">
          {found.map(person => (
            <PersonResult key={person.id} person={person} onChoose={onChoose}>
              {[person.external_id, person.email, person.mobile_number].filter(Boolean).join(' · ').slice(0, 200)}
            </PersonResult>
          ))}
        </ul>
      )}
    </>
  )
}

/** Proposes people who may be the same, with the reasons. */
function Candidates({ of, onChoose }: { of: string; onChoose(person: Named): void }) {
  const texts = useMessages(duplicateMessages)
  const { data = [] } = useQuery(duplicatesOfQuery(of))
  if (data.length === 0) return null
  return (
    <>
      <p>{texts.candidates}</p>
      <ul className="column tight">
        {data.map(({ person, why }) => (
          <PersonResult key={person.id} person={person} onChoose={onChoose}>
            {why.map(({ by, value }) => texts.reasons[by](value)).join(' · ')}
          </PersonResult>
        ))}
      </ul>
    </>
  )
}

type PersonResultProps = { person: Named; onChoose(person: Named): void; children: ReactNode }

const PersonResult = ({ person, onChoose, children }: PersonResultProps) => (
  <li>
    <button type="button" className={styles.result} onClick={() => onChoose(person)}>
      <strong>
        <bdi>{nameOf(person)}</bdi>
      </strong>
      <br />
      <span className="small">{children}</span>
    </button>
  </li>
)

type Pair = { survivor: Person; other: Person }

type ComparisonProps = {
  pair: { survivor: Named; other: Named }
  /** Returns to the choice of the other person. Undefined if the other one was given. */
  onBack: (() => void) | undefined
  onMerged(result: Merged<AnySchema>, pair: Pair): void
}

function Comparison({ pair: given, onBack, onMerged }: ComparisonProps) {
  const texts = useMessages(rightsMessages)
  const [isSwapped, setSwapped] = useState(false)
  const [keep, setKeep] = useState<MergeKeep>({})
  const ids = isSwapped ? [given.other.id, given.survivor.id] : [given.survivor.id, given.other.id]
  const { data, error, refetch, isFetching } = useQuery({
    queryKey: ['entities', 'people', 'merge', ...ids, keep],
    queryFn: async ({ signal }) => {
      const [survivor, other] = (await Promise.all(
        ids.map(id => client.people.get({ id }, { labels: true, signal })),
      )) as Person[]
      const options = { dryRun: true, ifMatch: survivor!.version, signal }
      const result = await client.people.merge({ id: survivor!.id }, { from: { id: other!.id }, keep }, options)
      return { pair: { survivor: survivor!, other: other! }, result }
    },
    gcTime: 0,
    placeholderData: keepPreviousData,
  })
  const merge = useWrite(
    ({ survivor, other }: Pair) =>
      client.people.merge({ id: survivor.id }, { from: { id: other.id }, keep }, { ifMatch: survivor.version }),
    {
      onSuccess: onMerged,
      refresh: [duplicatesKey],
      onError: error => isKithError(error) && error.status === 412 && refetch(),
    },
  )
  return (
    <>
      {!data && (error ? <Problem error={error} onRetry={() => refetch()} /> : <Loading />)}
      {data && (
        <MergePreview
          {...data.pair}
          result={data.result}
          keep={keep}
          onKeep={(field, side) => setKeep({ ...keep, [field]: side })}
        />
      )}
      {merge.error && <Problem error={merge.error} />}
      <Actions>
        {onBack && <Button onPress={onBack}>{texts.mergeOther}</Button>}
        <Button
          onPress={() => {
            setSwapped(!isSwapped)
            setKeep({})
          }}
        >
          {texts.swap}
        </Button>
        <Button
          look="primary"
          isDisabled={!data}
          isPending={merge.isPending || isFetching}
          onPress={() => data && merge.mutate(data.pair)}
        >
          {merge.isPending ? `${texts.merging}…` : texts.mergeNow}
        </Button>
      </Actions>
    </>
  )
}

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
  const identifier = typeof value === 'string' ? value : internalIdOf(value)
  return identifier !== undefined && Object.hasOwn(labels, identifier) ? labels[identifier] : value
}

function Answers({ changes }: { changes: Merged<AnySchema>['changes']['consents'] }) {
  const texts = useMessages(rightsMessages)
  const { answers, channels } = useMessages(entityMessages)
  const { consent_types } = useDefinitions().definitions
  if (changes.length === 0) return null
  return (
    <div>
      <p>{texts.answersChange}</p>
      <ul>
        {changes.map(({ consent_type_id, channel, before, after }) => (
          <li key={`${consent_type_id} ${channel}`}>
            {consentTypeName(consent_types, consent_type_id)} · {channels[channel]}: {answers[answerWord(before)]} →{' '}
            {answers[answerWord(after)]}
          </li>
        ))}
      </ul>
    </div>
  )
}

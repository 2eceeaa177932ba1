import type { ConsentStatistics, ConsentType, Filter } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { messages as entityMessages } from '../entity/messages.ts'
import { consentTypeName, useDefinitions } from '../entity/schema.ts'
import { Loaded } from '../ui/loaded.tsx'
import { EmptyState, Page, Section } from '../ui/page.tsx'
import { Plot } from '../ui/plot.tsx'
import { Select } from '../ui/select.tsx'
import { numberCell, numberHeader, Table } from '../ui/table.tsx'
import styles from './consents.module.css'
import { messages } from './messages.ts'
import { type Interval, statisticsQuery } from './queries.ts'
import type { ConsentsSearch } from './search.ts'

/** The page that counts consents: the people who may be contacted now, and the answers over time. */
export function ConsentsPage() {
  const texts = useMessages(messages)
  const { interval = 'day' } = useSearch({ strict: false }) as ConsentsSearch
  const navigate = useNavigate()
  const { consent_types: types } = useDefinitions().definitions
  const query = useQuery(statisticsQuery(interval))
  const nameOf = (id: number) => consentTypeName(types, id)
  const none = <EmptyState title={texts.none}>{texts.noneAdvice}</EmptyState>
  return (
    <Page title={texts.consents} subtitle={texts.subtitle}>
      <div className={styles.controls}>
        <Select<Interval>
          label={texts.interval}
          options={{ day: texts.days, week: texts.weeks, month: texts.months }}
          value={interval}
          onChange={chosen => navigate({ to: '/consents', search: { interval: chosen } })}
        />
      </div>
      <Loaded query={query}>
        {statistics =>
          statistics.items.length === 0 ? (
            none
          ) : (
            <>
              <ContactTable statistics={statistics} nameOf={nameOf} />
              <AnswerPlots statistics={statistics} nameOf={nameOf} />
            </>
          )
        }
      </Loaded>
    </Page>
  )
}

type PartProps = { statistics: ConsentStatistics; nameOf: (id: number) => string }

function ContactTable({ statistics, nameOf }: PartProps) {
  const texts = useMessages(messages)
  const { channels } = useMessages(entityMessages)
  const { consent_types: types } = useDefinitions().definitions
  const counted: Record<keyof PeopleFilters, string> = {
    contactable: texts.mayContact,
    granted: texts.granted,
    refused: texts.refused,
    pending: texts.pending,
  }
  const names = Object.keys(counted) as (keyof PeopleFilters)[]
  const headers = [texts.purpose, texts.channel, ...Object.values(counted).map(numberHeader)]
  return (
    <Section title={texts.now}>
      <p className="muted">{texts.nowHelp}</p>
      <Table label={texts.now} headers={headers}>
        {statistics.items.map(item => {
          const { consent_type_id: id, channel } = item
          const type = types.find(type => type.id === id)
          const filters = peopleFiltersOf(type, item)
          const people = (name: keyof PeopleFilters) => (
            <People
              count={[item[name]].flat().at(-1) ?? 0}
              filter={filters[name]}
              label={`${counted[name]}: ${nameOf(id)}, ${channels[channel]}`}
            />
          )
          return (
            <tr key={`${id} ${channel}`}>
              <th scope="row">{nameOf(id)}</th>
              <td>{channels[channel]}</td>
              {names.map(name => (
                <td key={name} className={numberCell}>
                  {name === 'contactable' ? <strong>{people(name)}</strong> : people(name)}
                </td>
              ))}
            </tr>
          )
        })}
      </Table>
    </Section>
  )
}

type PeopleProps = { count: number; filter: Filter | undefined; label: string }

/** A number of people, with a link to them if a filter finds exactly them. */
function People({ count, filter, label }: PeopleProps) {
  const formats = useFormats()
  const mayRead = useScope('people:read')
  const text = formats.number(count)
  if (!filter || !mayRead) return text
  return (
    <Link to="/people" search={{ filter }} aria-label={`${text} ${label}`}>
      {text}
    </Link>
  )
}

function AnswerPlots({ statistics, nameOf }: PartProps) {
  const texts = useMessages(messages)
  const { channels } = useMessages(entityMessages)
  // The plots begin at the very first answer.
  const first = statistics.ends.findIndex((_, at) =>
    statistics.items.some(({ granted, refused, pending }) => granted[at] || refused[at] || pending[at]),
  )
  const sinceFirst = <Each,>(values: readonly Each[]): Each[] => values.slice(Math.max(0, first))
  const times = sinceFirst(statistics.ends).map(end => Date.parse(end) / 1_000)
  return (
    <Section title={texts.overTime}>
      <div className={styles.plots}>
        {statistics.items.map(({ consent_type_id, channel, granted, refused, pending }) => (
          <Plot
            key={`${consent_type_id} ${channel}`}
            label={texts.plot(nameOf(consent_type_id), channels[channel])}
            times={times}
            series={[
              { label: texts.granted, color: '--positive', values: sinceFirst(granted) },
              { label: texts.refused, color: '--negative', values: sinceFirst(refused) },
              { label: texts.pending, color: '--caution', values: sinceFirst(pending) },
            ]}
          />
        ))}
      </div>
    </Section>
  )
}

type Counts = ConsentStatistics['items'][number]

/** The filters that find exactly the counted people. A count that no filter can express has none. */
type PeopleFilters = Partial<Record<'contactable' | 'granted' | 'refused' | 'pending', Filter>>

/** The filters on people for the counts of a consent type on a channel. */
function peopleFiltersOf(type: ConsentType | undefined, { channel, pending }: Counts): PeopleFilters {
  // Filters accept active consent types only, and the channels that they have.
  if (type?.state !== 'active' || !type.channels.some(each => each.channel === channel)) return {}
  const contactable = { contactable: { consent_type_id: type.id, channel } }
  // A mandatory purpose takes no answers, and a filter ignores earlier ones.
  if (type.mandatory) return { contactable } as PeopleFilters
  const consents = (tests: object) => ({ consents: { $some: { consent_type_id: type.id, channel, ...tests } } })
  // A state other than the default is always an answer.
  const answered = (state: boolean) => ({
    state,
    ...(state === type.default_state && { answered_at: { $exists: true } }),
  })
  // A grant that waits for its confirmation has the state of a refusal.
  const confirmed = (pending.at(-1) ?? 0) > 0 && { pending: false }
  return {
    contactable,
    granted: consents(answered(true)),
    refused: consents({ ...answered(false), ...confirmed }),
    pending: consents({ pending: true }),
  } as PeopleFilters
}

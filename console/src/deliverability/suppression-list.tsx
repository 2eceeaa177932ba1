import type { SuppressedAddress } from '@kith/client'
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { messages as entityMessages } from '../entity/messages.ts'
import { DialogButton } from '../ui/dialog.tsx'
import { FieldGroup, TextField } from '../ui/field.tsx'
import { Badge, EmptyState, Section } from '../ui/page.tsx'
import { PagedList } from '../ui/paged-list.tsx'
import { Select } from '../ui/select.tsx'
import { ColumnTable } from '../ui/table.tsx'
import styles from './deliverability.module.css'
import { LiftDialog } from './lift-dialog.tsx'
import { messages } from './messages.ts'
import { suppressionsQuery } from './queries.ts'
import type { DeliverabilitySearch } from './search.ts'
import { suppressionMessages } from './suppression-messages.ts'

type SuppressionListProps = { search: DeliverabilitySearch; onChange(search: DeliverabilitySearch): void }

/** The suppressed addresses, newest first, each with its reason and its end. */
export function SuppressionList({ search, onChange }: SuppressionListProps) {
  const texts = useMessages(messages)
  const list = useInfiniteQuery(suppressionsQuery(search))
  const isLimited = Object.values(search).some(Boolean)
  return (
    <Section title={texts.suppressions}>
      <p>{texts.suppressionsAdvice}</p>
      <SearchFields search={search} onChange={onChange} />
      <PagedList
        query={list}
        none={
          <EmptyState title={isLimited ? texts.noneFound : texts.noSuppressions}>
            {!isLimited && texts.noSuppressionsAdvice}
          </EmptyState>
        }
        more={texts.showMore}
      >
        {rows => <SuppressionTable rows={rows} />}
      </PagedList>
    </Section>
  )
}

function SearchFields({ search: { text = '', reason, channel }, onChange }: SuppressionListProps) {
  const texts = useMessages(messages)
  const { reasons } = useMessages(suppressionMessages)
  const { channels } = useMessages(entityMessages)
  const change = (changed: { text?: string; reason?: string; channel?: string }) => {
    const asked = Object.entries({ text, reason, channel, ...changed }).filter(([, value]) => value)
    onChange(Object.fromEntries(asked) as DeliverabilitySearch)
  }
  return (
    <FieldGroup look="grid">
      <TextField label={texts.search} type="search" value={text} onChange={text => change({ text })} />
      <Select<string>
        label={texts.reason}
        options={{ '': texts.all, ...reasons }}
        value={reason ?? ''}
        onChange={reason => change({ reason })}
      />
      <Select<string>
        label={texts.channel}
        options={{ '': texts.all, ...channels }}
        value={channel ?? ''}
        onChange={channel => change({ channel })}
      />
    </FieldGroup>
  )
}

function SuppressionTable({ rows }: { rows: SuppressedAddress[] }) {
  const texts = useMessages(messages)
  const { reasons, since, until, untilLifted, provider, lift } = useMessages(suppressionMessages)
  const formats = useFormats()
  const mayLift = useScope('people:write')
  return (
    <ColumnTable
      label={texts.suppressions}
      rows={rows.flatMap(({ suppression, ...row }) => (suppression === null ? [] : { ...row, ...suppression }))}
      // An erased address has no key but its position.
      rowKey={({ channel, address }, index) => (address === null ? index : `${channel} ${address}`)}
      columns={[
        [texts.address, row => <Address {...row} />, 'name'],
        [
          texts.reason,
          ({ reason }) => <Badge kind={reason === 'complaint' ? 'negative' : 'caution'}>{reasons[reason]}</Badge>,
        ],
        [since, ({ from }) => formats.dateTime(from)],
        [until, ({ until }) => (until === null ? untilLifted : formats.date(until))],
        [provider, ({ provider }) => provider ?? '—'],
        mayLift && [
          texts.action,
          ({ channel, address, reason }) =>
            address !== null && (
              <DialogButton
                aria-label={`${lift}: ${address}`}
                dialog={close => <LiftDialog lifted={{ channel, address, reason }} onClose={close} />}
              >
                {lift}
              </DialogButton>
            ),
        ],
      ]}
    />
  )
}

function Address({ channel, address }: Pick<SuppressedAddress, 'channel' | 'address'>) {
  const texts = useMessages(messages)
  const { channels } = useMessages(entityMessages)
  if (address === null) return <span className={styles.address}>{texts.erasedAddress(channels[channel])}</span>
  const domainAt = address.indexOf('@') + 1
  return (
    <span className={styles.address}>
      <Link to="/people" search={{ text: address }}>
        {address.slice(0, domainAt)}
        <wbr />
        {address.slice(domainAt)}
      </Link>
    </span>
  )
}

import { channelNames, type SuppressedAddress } from '@kith/client'
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { messages as entityMessages } from '../entity/messages.ts'
import { Button } from '../ui/button.tsx'
import { FieldGroup, TextField } from '../ui/field.tsx'
import { Badge, EmptyState, Section } from '../ui/page.tsx'
import { PagedList } from '../ui/paged-list.tsx'
import { Select } from '../ui/select.tsx'
import { Table } from '../ui/table.tsx'
import styles from './deliverability.module.css'
import { LiftDialog, type LiftedAddress } from './lift-dialog.tsx'
import { messages } from './messages.ts'
import { suppressionsQuery } from './queries.ts'
import { type DeliverabilitySearch, reasons } from './search.ts'
import { suppressionMessages } from './suppression-messages.ts'

type SuppressionListProps = { search: DeliverabilitySearch; onChange(search: DeliverabilitySearch): void }

/** The suppressed addresses, the latest first, each with why and until when. */
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
        more={texts.more}
      >
        {rows => <SuppressionTable rows={rows} />}
      </PagedList>
    </Section>
  )
}

function SearchFields({ search: { text = '', reason, channel }, onChange }: SuppressionListProps) {
  const texts = useMessages(messages)
  const { reasons: labels } = useMessages(suppressionMessages)
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
        options={[{ value: '', label: texts.all }, ...reasons.map(value => ({ value, label: labels[value] }))]}
        value={reason ?? ''}
        onChange={reason => change({ reason })}
      />
      <Select<string>
        label={texts.channel}
        options={[{ value: '', label: texts.all }, ...channelNames.map(value => ({ value, label: channels[value] }))]}
        value={channel ?? ''}
        onChange={channel => change({ channel })}
      />
    </FieldGroup>
  )
}

function SuppressionTable({ rows }: { rows: SuppressedAddress[] }) {
  const texts = useMessages(messages)
  const suppressionTexts = useMessages(suppressionMessages)
  const { channels } = useMessages(entityMessages)
  const formats = useFormats()
  const mayLift = useScope('people:write')
  const [lifted, setLifted] = useState<LiftedAddress>()
  const { since, until, provider, lift } = suppressionTexts
  return (
    <>
      <Table
        label={texts.suppressions}
        headers={[texts.address, texts.reason, since, until, provider, ...(mayLift ? [texts.action] : [])]}
      >
        {rows.map(({ channel, address, suppression }, index) =>
          suppression === null ? null : (
            // An erased address is known by its place alone.
            <tr key={address === null ? index : `${channel} ${address}`}>
              <th scope="row">
                <span className={styles.address}>
                  {address === null ? (
                    texts.erasedAddress(channels[channel])
                  ) : (
                    <Link to="/people" search={{ text: address }}>
                      {address.slice(0, address.indexOf('@') + 1)}
                      <wbr />
                      {address.slice(address.indexOf('@') + 1)}
                    </Link>
                  )}
                </span>
              </th>
              <td>
                <Badge kind={suppression.reason === 'complaint' ? 'negative' : 'caution'}>
                  {suppressionTexts.reasons[suppression.reason]}
                </Badge>
              </td>
              <td>{formats.dateTime(suppression.from)}</td>
              <td>{suppression.until === null ? suppressionTexts.untilLifted : formats.date(suppression.until)}</td>
              <td>{suppression.provider ?? '—'}</td>
              {mayLift && (
                <td>
                  {address !== null && (
                    <Button
                      aria-label={`${lift}: ${address}`}
                      onPress={() => setLifted({ channel, address, reason: suppression.reason })}
                    >
                      {lift}
                    </Button>
                  )}
                </td>
              )}
            </tr>
          ),
        )}
      </Table>
      {lifted && <LiftDialog lifted={lifted} onClose={() => setLifted(undefined)} />}
    </>
  )
}

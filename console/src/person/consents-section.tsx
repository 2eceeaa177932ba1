import { channelNames, channels, type EffectiveConsent, type Person } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { Fragment, useState } from 'react'
import { client } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { messages as entityMessages } from '../entity/messages.ts'
import { consentTypeName, useDefinitions } from '../entity/schema.ts'
import { Badge, Section } from '../ui/page.tsx'
import { Table } from '../ui/table.tsx'
import { ConsentDialog } from './consent-dialog.tsx'
import { consentMessages } from './consent-messages.ts'
import type { Purpose } from './decision.ts'
import styles from './person.module.css'

type ConsentsSectionProps = {
  person: Person
  /** The past moment that the page shows. */
  at?: string | undefined
  onShow?: (person: Person) => void
}

/** The consents of a person: purposes by channels. Each cell leads to the reason and the evidence. */
export function ConsentsSection({ person, at, onShow }: ConsentsSectionProps) {
  const texts = useMessages(consentMessages)
  const entityTexts = useMessages(entityMessages)
  const { consent_types: types } = useDefinitions().definitions
  const [open, setOpen] = useState<Purpose>()
  const refusals = useAddressRefusals(person, at)
  const ids = [...new Set(person.consents.map(({ consent_type_id }) => consent_type_id))]
  return (
    <Section title={texts.consents}>
      {ids.length === 0 ? (
        <p className="muted">{texts.noPurposes}</p>
      ) : (
        <Table
          label={texts.consents}
          headers={[
            texts.purpose,
            ...channelNames.map(channel => (
              <Fragment key={channel}>
                {entityTexts.channels[channel]}{' '}
                {person[channels[channel].address] === null && <Badge kind="caution">{texts.noAddress[channel]}</Badge>}
              </Fragment>
            )),
          ]}
        >
          {ids.map(id => {
            const name = consentTypeName(types, id)
            return (
              <tr key={id}>
                <th scope="row">{name}</th>
                {channelNames.map(channel => (
                  <td key={channel}>
                    <Cell
                      consent={person.consents.find(one => one.consent_type_id === id && one.channel === channel)}
                      name={name}
                      isAddressRefused={refusals.has(`${id} ${channel}`)}
                      onOpen={() =>
                        setOpen({ consent_type_id: id, channel, name, type: types.find(type => type.id === id) })
                      }
                    />
                  </td>
                ))}
              </tr>
            )
          })}
        </Table>
      )}
      {open && (
        <ConsentDialog person={person} purpose={open} at={at} onShow={onShow} onClose={() => setOpen(undefined)} />
      )}
    </Section>
  )
}

/**
 * The purposes and channels for which another person with the same address refused. Past states have no such refusals.
 */
function useAddressRefusals({ id, version }: Person, at: string | undefined): ReadonlySet<string> {
  const mayRead = useScope('consents:read')
  const { data } = useQuery({
    queryKey: ['consents', 'in-force', id, version],
    queryFn: ({ signal }) => client.consents.list({ id }, { signal }),
    enabled: mayRead && at === undefined,
  })
  const refused = data?.items.filter(({ address_refused }) => address_refused) ?? []
  return new Set(refused.map(({ consent_type_id, channel }) => `${consent_type_id} ${channel}`))
}

const kinds = {
  granted: 'positive',
  refused: 'negative',
  pending: 'caution',
  none: 'neutral',
  mandatory: 'accent',
} as const

/** The state of a purpose on a channel in one word of {@link kinds}. */
export function stateOf({ state, source, pending }: EffectiveConsent): keyof typeof kinds {
  if (source === 'mandatory') return 'mandatory'
  if (pending) return 'pending'
  if (source === 'default') return 'none'
  return state ? 'granted' : 'refused'
}

type CellProps = { consent: EffectiveConsent | undefined; name: string; isAddressRefused: boolean; onOpen: () => void }

function Cell({ consent, name, isAddressRefused, onOpen }: CellProps) {
  const texts = useMessages(consentMessages)
  const entityTexts = useMessages(entityMessages)
  const formats = useFormats()
  if (!consent) return <span className="small">{texts.notOffered}</span>
  const state = stateOf(consent)
  const { channel, answered_at, method } = consent
  return (
    <button type="button" className={styles.cell} onClick={onOpen}>
      <span className="visually-hidden">
        {name}, {entityTexts.channels[channel]}:{' '}
      </span>
      <Badge kind={kinds[state]}>{entityTexts.answers[state]}</Badge>
      {answered_at && (
        <span className="small">
          {texts.since(formats.date(answered_at))}
          {method && ` · ${entityTexts.methods[method]}`}
        </span>
      )}
      {isAddressRefused && <Badge kind="negative">{texts.addressRefused}</Badge>}
      {state === 'none' && <span className="small">{texts.byDefault[consent.state ? 'true' : 'false']}</span>}
      <span className="visually-hidden">. {texts.show}</span>
    </button>
  )
}

import type { AddressDeliverability, Person } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { isUnlimited } from '../app/field-rights.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { LiftDialog } from '../deliverability/lift-dialog.tsx'
import { personAddressesQuery } from '../deliverability/queries.ts'
import { suppressionMessages } from '../deliverability/suppression-messages.ts'
import { messages as entityMessages } from '../entity/messages.ts'
import { DialogButton } from '../ui/dialog.tsx'
import { Loaded } from '../ui/loaded.tsx'
import { Badge, Facts, Section } from '../ui/page.tsx'
import styles from './person.module.css'

/** Whether messages reach the addresses of a person, independent of the person's answers. */
export function DeliverabilitySection({ person, onRefresh }: { person: Person; onRefresh: () => void }) {
  const texts = useMessages(suppressionMessages)
  const addresses = useQuery(personAddressesQuery(person.id, person.version))
  return (
    <Section title={texts.deliverability}>
      <Loaded query={addresses} none={<p className="muted">{texts.noAddress}</p>}>
        {list => list.map(address => <Address key={address.channel} address={address} onRefresh={onRefresh} />)}
      </Loaded>
    </Section>
  )
}

function Address({ address, onRefresh }: { address: AddressDeliverability; onRefresh: () => void }) {
  const texts = useMessages(suppressionMessages)
  const { channels } = useMessages(entityMessages)
  const formats = useFormats()
  const mayLift = useScope('people:write') && isUnlimited()
  const { channel, state, suppression, last_delivered_at, last_bounced_at, lifted_at } = address
  const time = (at: string | null | undefined) => at && formats.exactTime(at)
  return (
    <div className={styles.answer}>
      <div className="row centered">
        <strong className={styles.address}>
          {channels[channel]}: {address.address}
        </strong>
        <Badge kind={state === 'suppressed' ? 'negative' : 'positive'}>{texts.states[state]}</Badge>
      </div>
      <Facts
        facts={[
          [texts.reason, suppression && texts.reasons[suppression.reason]],
          [texts.since, time(suppression?.from)],
          [texts.until, suppression && (time(suppression.until) ?? texts.untilLifted)],
          [texts.provider, suppression?.provider],
          [texts.reference, suppression?.reference],
          [texts.lastDelivered, time(last_delivered_at)],
          [texts.lastBounced, time(last_bounced_at)],
          [texts.liftedAt, time(lifted_at)],
        ]}
      />
      {suppression && mayLift && (
        <div>
          <DialogButton
            aria-label={`${texts.lift}: ${address.address}`}
            dialog={close => (
              <LiftDialog
                lifted={{ channel, address: address.address, reason: suppression.reason }}
                onLifted={onRefresh}
                onClose={close}
              />
            )}
          >
            {texts.lift}
          </DialogButton>
        </div>
      )}
    </div>
  )
}

import { type AddressAnswer, showAddresses, storeAddressAnswers } from '../../../consents/address-answers.ts'
import type { Transaction } from '../../../db/db.ts'
import { peopleStackId } from '../../../organizations/definitions.ts'
import { type Channel, channels } from '../../../values/channels.ts'
import { addressFields, addressKey } from '../../match-keys.ts'
import type { Accepted, DecidedRound } from '../round.ts'

/** The address that a person has on a channel after a change. */
function addressAfter({ change: { columns }, row }: Accepted, channel: Channel, country: string | null) {
  return addressKey({ ...row, ...columns }, channel, country)
}

/** Address stage: the answers of the round are also answers of the addresses that the people have after it. `base` is the number before it. */
export function storeRoundOfAddresses(tx: Transaction, round: DecidedRound, base: number): Promise<unknown>[] {
  const { definitions, accepted } = round
  const { organization_id, default_country, has_tombstones } = definitions
  const answers: AddressAnswer[] = []
  const given: { channel: Channel; address: string }[] = []
  for (const [index, entry] of accepted.entries()) {
    for (const { channel, consent_type_id, pending, stored } of entry.change.answers) {
      const address = pending ? null : addressAfter(entry, channel, default_country)
      if (address === null) continue
      const answer = { ...stored, sequence: base + index + 1 }
      answers.push({ channel, consent_type_id, address, person_id: entry.change.id, answer })
    }
    if (has_tombstones && givesAddress(entry))
      for (const channel of channels) {
        const address = addressAfter(entry, channel, default_country)
        if (address !== null) given.push({ channel, address })
      }
  }
  const shown = showAddresses(tx, definitions, given)
  return answers.length === 0 ? shown : [...shown, storeAddressAnswers(tx, organization_id, answers)]
}

/** Whether a change may give an address to a person. */
const givesAddress = ({ stack_id, change: { operation, columns } }: Accepted) =>
  stack_id === peopleStackId &&
  (operation !== 'update' || addressFields.some(field => columns[field] !== undefined)) &&
  operation !== 'delete' &&
  operation !== 'erase'

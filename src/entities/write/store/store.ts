import type { LoggedLinks } from '../../../changes/link-names.ts'
import { type AddressAnswer, showAddresses, storeAddressAnswers } from '../../../consents/address-answers.ts'
import { awaitPipelined, type Transaction } from '../../../db/db.ts'
import type { Author } from '../../../organizations/change-organization.ts'
import { type Definitions, peopleStackId } from '../../../organizations/definitions.ts'
import { lockHead } from '../../../organizations/head.ts'
import { type Channel, channels } from '../../../values/channels.ts'
import { type StoredRow, shownTargets, writtenIdOf } from '../../entity-row.ts'
import { addressFields, addressKey, changedMatchKeys, type MatchKeys, matchKeys } from '../../match-keys.ts'
import { basisInterval, storeBasesSql } from '../../past/past-state-sql.ts'
import type { Change } from '../decide/decide.ts'
import { type Accepted, type DecidedRound, idOf } from '../round.ts'
import { forgetTombstones } from '../tombstones.ts'
import { storeAliases } from './aliases.ts'
import {
  appendConsentHistory,
  deleteLinksSql,
  insertChanges,
  insertEntities,
  insertLinks,
  storeChangesSql,
} from './store-sql.ts'
import { indexTerms } from './terms.ts'

/**
 * Pipelines the insert, link, index, history, apply, address and alias stages in one flush. `base` is the number of the
 * head, which is locked. Returns a promise for each statement, and the number of a change up to which the log includes
 * the round.
 */
export function storeRound(
  tx: Transaction,
  round: DecidedRound,
  base: number,
): { statements: Promise<unknown>[]; sequence: number } {
  if (round.accepted.length === 0) return { statements: [], sequence: base }
  const statements = [
    ...storeEntities(tx, round),
    ...replaceLinks(tx, round),
    ...indexTerms(tx, round),
    ...storeAnswers(tx, round),
    ...forgetTombstones(tx, round),
    ...applyChanges(tx, round, base),
    ...storeRoundOfAddresses(tx, round, base),
    ...storeAliases(tx, round),
  ]
  return { statements, sequence: base + round.accepted.length }
}

const insertsRow = ({ operation }: Change) => operation === 'create' || returnsRow(operation)

/** Whether the operation brings back an entity as it was. */
const returnsRow = (operation: Change['operation']) => operation === 'restore' || operation === 'unmerge'

/** Insert stage: inserts creates, placeholders, and entities that come back, which have the time of their creation. */
function storeEntities(tx: Transaction, { definitions, at, accepted }: DecidedRound): Promise<unknown>[] {
  const { organization_id } = definitions
  const rows: Record<string, unknown>[] = []
  for (const { stack_id, change } of accepted) {
    if (!insertsRow(change)) continue
    const { id, columns, set, created_at = at } = change
    const keys = stack_id === peopleStackId ? matchKeys(columns, definitions.default_country) : noKeys
    const { email_key, mobile_key, name_key } = keys
    rows.push({
      ...columns,
      organization_id,
      stack_id,
      id,
      answers: columns.answers ?? {},
      attributes: set,
      created_at,
      updated_at: at,
      email_key,
      mobile_key,
      name_key,
    })
  }
  return rows.length === 0 ? [] : [tx.append(insertEntities, rows)]
}

const noKeys: Partial<MatchKeys> = {}

/** Apply stage: updates and deletes rows, advances the head to the number of the last change, and appends the log. */
function applyChanges(tx: Transaction, round: DecidedRound, base: number): Promise<unknown>[] {
  const { definitions, at, accepted } = round
  const { organization_id } = definitions
  const stored = accepted.filter(({ change }) => !insertsRow(change)).map(entry => storedOf(entry, definitions))
  const logged = accepted.map((entry, index) => loggedOf(entry, base + index + 1, round))
  return [
    tx.query(storeChangesSql, [organization_id, JSON.stringify(stored), base + accepted.length, at]),
    tx.append(insertChanges, logged),
    ...storeBases(tx, round),
  ]
}

/**
 * Stores for every 128th version of an entity which changes its state follows from, so that a read of a past state need
 * not read all changes.
 */
function storeBases(tx: Transaction, { definitions, accepted }: DecidedRound): Promise<unknown>[] {
  const based = accepted.filter(
    ({ change: { operation, version } }) => operation === 'update' && version % basisInterval === 0,
  )
  if (based.length === 0) return []
  const changes = based.map(({ change: { id, version } }) => ({ id, version }))
  return [tx.query(storeBasesSql, [definitions.organization_id, JSON.stringify(changes)])]
}

/** The values that a change writes to its row, in the format of {@link storeChangesSql}. */
type Stored = Pick<Change, 'operation' | 'id' | 'version'> & {
  stack_id: number
  ctid: string | undefined
  read_version: number | undefined
  columns?: object
  attributes?: Change['set']
  removed_keys?: string[]
}

function storedOf({ stack_id, change, row }: Accepted, { default_country }: Definitions): Stored {
  const { operation, id, version, columns, set, removed } = change
  const { ctid, version: read_version } = (row ?? noRow) as StoredRow
  const stored: Stored = { stack_id, id, ctid, operation, version, read_version }
  if (operation !== 'update' && operation !== 'retention_due') return stored
  stored.columns =
    stack_id === peopleStackId ? { ...columns, ...changedMatchKeys(row!, columns, default_country) } : columns
  if (removed.length === 0 && Object.keys(set).length === 0) return stored
  stored.attributes = set
  stored.removed_keys = removed
  return stored
}

const noRow: Partial<StoredRow> = {}

/** The entry of a change in the log. */
function loggedOf({ author, stack_id, change }: Accepted, sequence: number, round: DecidedRound) {
  const { operation, id, version } = change
  const { actor, request_id } = author
  const { definitions, at, placeholders } = round
  const { organization_id } = definitions
  const links = linksOf(change, placeholders)
  return {
    organization_id,
    sequence,
    at,
    subject: 'entity',
    stack_id,
    entity_id: id,
    operation,
    version,
    before: withoutLinks(change, 'before', links),
    after: withoutLinks(change, 'after', links),
    actor,
    request_id,
    links,
  }
}

/**
 * The values of a change without those of relationships. The log has the ids of their targets instead, because names
 * may change. A relationship without shown targets stays, with the value null.
 */
function withoutLinks(change: Change, side: 'before' | 'after', links: LoggedLinks | undefined) {
  const values = change[side]
  if (!values?.attribute_values || !links) return values
  const isNamed = ({ attribute }: Change['relinked'][number]) => {
    const { [side]: ids = [], hidden = [] } = links[attribute.id] ?? {}
    return ids.some(id => !hidden.includes(id))
  }
  const linked = new Set(change.relinked.filter(isNamed).map(({ attribute }) => attribute.key))
  if (linked.size === 0) return values
  const plain = Object.entries(values.attribute_values).filter(([key]) => !linked.has(key))
  return { ...values, attribute_values: Object.fromEntries(plain) }
}

/** The links that a change replaces, in the format of the log. */
function linksOf({ relinked }: Change, placeholders: DecidedRound['placeholders']): LoggedLinks | undefined {
  if (relinked.length === 0) return undefined
  const logged = relinked.map(links => {
    const before = shownTargets(links.before).map(writtenIdOf)
    const after = linkedOf(links, placeholders).map(({ target_id, written_id }) => written_id ?? target_id)
    const hidden = links.targets.flatMap(target =>
      'is_deleted' in target && target.is_deleted ? [writtenIdOf(target)] : [],
    )
    const ids = Object.entries({ before, after, hidden }).filter(([, side]) => side.length > 0)
    return [links.attribute.id, Object.fromEntries(ids)]
  })
  return Object.fromEntries(logged)
}

/** The links of a list in order, as rows of `links`. Each has a different target. */
function linkedOf({ targets }: Change['relinked'][number], placeholders: DecidedRound['placeholders']) {
  const written = new Set<string>()
  const led = new Set<string>()
  const linked: { target_id: string | null; written_id: string | null }[] = []
  for (const target of targets) {
    const id = idOf(target, placeholders)
    const written_id = 'id' in target ? writtenIdOf(target) : id
    if (written.has(written_id)) continue
    const target_id = led.has(id) ? null : id
    linked.push({ target_id, written_id: written_id === target_id ? null : written_id })
    written.add(written_id)
    led.add(id)
  }
  return linked
}

/** Link stage: replaces the links of the written relationship attributes. */
function replaceLinks(tx: Transaction, { definitions, accepted, placeholders }: DecidedRound): Promise<unknown>[] {
  const { organization_id } = definitions
  const written: (Change['relinked'][number] & { source_id: string })[] = []
  for (const { change } of accepted)
    for (const links of change.relinked) written.push({ source_id: change.id, ...links })
  // An inserted row has no links. The links of an entity are deleted with it, and come back from the log.
  const replaced = accepted
    .filter(({ change }) => !insertsRow(change))
    .flatMap(({ change }) =>
      change.relinked.map(({ attribute }) => ({ source_id: change.id, attribute_id: attribute.id })),
    )
  const inserted = written.flatMap(({ source_id, ...links }) => {
    const { id: attribute_id, target_stack_id } = links.attribute
    return linkedOf(links, placeholders).map((linked, position) => ({
      organization_id,
      source_id,
      attribute_id,
      target_stack_id,
      ...linked,
      position,
    }))
  })
  const statements: Promise<unknown>[] = []
  if (replaced.length > 0) statements.push(tx.query(deleteLinksSql, [organization_id, JSON.stringify(replaced)]))
  if (inserted.length > 0) statements.push(tx.append(insertLinks, inserted))
  return statements
}

/** History stage: appends the given consent answers to the consent history. */
function storeAnswers(tx: Transaction, { definitions, at, accepted }: DecidedRound): Promise<unknown>[] {
  const { organization_id } = definitions
  const answers: Record<string, unknown>[] = []
  for (const { author, change } of accepted)
    for (const { stored, isDated, ...answer } of change.answers) {
      const { actor, request_id } = author
      answers.push({ ...answer, organization_id, person_id: change.id, version: change.version, at, actor, request_id })
    }
  if (answers.length === 0) return []
  return [tx.append(appendConsentHistory, answers)]
}

/** The address that a person has on a channel after a change. */
function addressAfter({ change: { columns }, row }: Accepted, channel: Channel, country: string | null) {
  return addressKey({ ...row, ...columns }, channel, country)
}

/**
 * Address stage: stores the answers of the round also for the addresses that the people have after it. `base` is the
 * number before the round.
 */
function storeRoundOfAddresses(tx: Transaction, round: DecidedRound, base: number): Promise<unknown>[] {
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

/** A change that no request body causes. `row` is the stored row, if the entity has one. */
export type PlannedChange = { stack_id: number; change: Change; row?: StoredRow | undefined }

/**
 * Stores and logs changes in the order given, in a transaction that has locked the head of the organization. Returns
 * the number of the last one.
 */
export async function storeChanges(
  tx: Transaction,
  definitions: Definitions,
  at: string,
  author: Author,
  changes: readonly PlannedChange[],
): Promise<number> {
  const accepted = changes.map((change): Accepted => ({ author, row: undefined, ...change }))
  const round = {
    definitions,
    at,
    decisions: new Map(),
    rows: new Map(),
    accepted,
    placeholders: new Map(),
  }
  const { sequence: base } = await lockHead({ tx, organization_id: definitions.organization_id })
  const { statements, sequence } = storeRound(tx, round, base)
  await awaitPipelined(statements)
  return sequence
}

import { hasAnswers } from '../../consents/answers.ts'
import type { StoredKeys, StoredResponse } from '../../idempotency/kept-responses.ts'
import { type Definitions, peopleStackId } from '../../organizations/definitions.ts'
import { profileFlags, profileTexts } from '../../profile-fields.ts'
import { buildPlaceholder, type Change, type Decision, idOfDecision } from '../decide/decide.ts'
import type { KnownAnswers } from '../decide/decide-answers.ts'
import type { PlannedTarget } from '../decide/decide-attributes.ts'
import { erasableValues } from '../decide/erasable-values.ts'
import type { CurrentState, EntityRow, Links, Profile, StoredRow, Target } from '../entity-row.ts'
import { newEntityId } from '../identifiers.ts'
import { fieldsByKey, matchKeys } from '../match-keys.ts'
import type { DeletedEntity } from '../past/past-state.ts'
import type { ChangeAuthor, Write } from '../write-request.ts'
import {
  addressReference,
  type Item,
  type Name,
  nameKey,
  type Reference,
  referenceKey,
  releasesName,
  requiredLinkAttributes,
  requiredReferences,
} from './plan.ts'
import { claimsOf, type Holders } from './unique.ts'

/** The stored entities, links, versions and keys that the items of a round name. */
export type Loaded = {
  /** The ids of the entities that the items name, by {@link referenceKey}. */
  ids: ReadonlyMap<string, string>
  /** The rows of the entities that the items address, by id. */
  rows: ReadonlyMap<string, StoredRow>
  /** The external identifiers of the entities that the items link to, by id. */
  names: ReadonlyMap<string, string | null>
  /** The entities that the items refer to by an alias or an internal identifier, by {@link referenceKey}. */
  otherwiseNamed: ReadonlyMap<string, Target>
  /** The links of the rows under the attributes that the items write, by id. */
  links: ReadonlyMap<string, Links>
  /** Returns the highest version at which an entity released this name; 0 if none did. */
  lastVersionOf: (name: Name) => number
  knownAnswers: KnownAnswers
  /** The deleted entities that restores bring back. */
  deleted: ReadonlyMap<Item, DeletedEntity>
  /** The stored responses under the Idempotency-Keys of the items, by the id of the key. */
  keys: StoredKeys
  /** Up to two entities that have each unique value that the items claim. */
  holders: Holders | undefined
}

/** The decision on a write, or the response that an earlier request with its Idempotency-Key had. */
export type RoundDecision = Decision | { replayed: StoredResponse }

/**
 * A change and the row before it. `item` is the write that it follows from: for a placeholder, the write that links to it. The changes of a
 * merge and an erasure follow from none.
 */
export type Accepted = {
  item?: Item
  author: ChangeAuthor
  stack_id: number
  change: Change
  row: EntityRow | undefined
  isPlaceholder?: boolean
}

/**
 * The state of an organization as a write sees it: what is loaded, and what the writes before it have changed. It lasts for a round, which
 * ends before a write that depends on what only the database can tell ({@link needsStored}).
 */
export class WriteState {
  readonly accepted: Accepted[] = []
  /** The ids of the placeholders that the round creates, by {@link nameKey}. */
  readonly placeholders = new Map<string, string>()
  readonly #loaded: Loaded
  readonly #definitions: Definitions
  /** The values that belonged to an erased person, until a write gives them to somebody again. */
  readonly #erased: Set<string> | undefined
  readonly #recognizes: boolean
  readonly #ids = new Map<string, string>()
  readonly #rows = new Map<string, EntityRow>()
  /** The last changes of rows that nobody has looked at since. Most rows are changed once in a round. */
  readonly #unread = new Map<string, Accepted>()
  readonly #links = new Map<string, Map<number, readonly Target[]>>()
  readonly #holders = new Map<string, readonly Target[]>()
  readonly #changed = new Set<string>()
  readonly #keys = new Set<string>()
  /** The entities whose links are replaced. Those that a second write ends are remembered when they are stored. */
  readonly #relinked = new Set<string>()
  /** The entities that are deleted, renamed or restored. What leads to them is known when they are stored. */
  readonly #moved = new Set<string>()
  /** Whether a person came back to whom identifiers of merged people may lead again. */
  #returns = false
  /** The names and unique values that are given or released in a way that the state does not show. */
  readonly #unsettled = new Set<string>()
  /** The emails, phones and names of changed people. Whom these recognize is known when the people are stored. */
  readonly #changedKeys = new Set<string>()
  /** The entities that an earlier response shows. It is read when the round is stored. */
  readonly #shown = new Set<string>()
  /** Those that it shows as they were before the round, with the time of their last change. */
  readonly #shownAsStored = new Set<string>()

  constructor(loaded: Loaded, items: readonly Item[], definitions: Definitions, erased?: ReadonlySet<string>) {
    this.#loaded = loaded
    this.#definitions = definitions
    this.#erased = erased && new Set(erased)
    this.#recognizes = items.some(({ match }) => match !== undefined)
  }

  get erased(): ReadonlySet<string> | undefined {
    return this.#erased
  }

  /** Returns the internal identifier of the entity with this name or internal identifier. Undefined if there is none. */
  resolve = (reference: Reference): string | undefined => {
    const key = referenceKey(reference)
    return this.#ids.get(key) ?? this.#loaded.ids.get(key)
  }

  /** The entities that have a claimed unique value, by the key of the claim. */
  get holders(): Holders | undefined {
    const { holders } = this.#loaded
    return holders && this.#holders.size > 0 ? { get: key => this.#holders.get(key) ?? holders.get(key) } : holders
  }

  /** The entity that an item addresses. Null if there is none. */
  currentOf(item: Item): CurrentState | null {
    const id = this.#addressed(item.write)
    const row = id === undefined ? undefined : this.#rowOf(id)
    return row ? { row, links: this.#linksOf(row.id, item) } : null
  }

  #addressed(write: Write): string | undefined {
    const reference = addressReference(write)
    return reference && this.resolve(reference)
  }

  #rowOf(id: string): EntityRow | undefined {
    const unread = this.#unread.get(id)
    if (unread) this.#rows.set(id, rowAfter(unread))
    this.#unread.delete(id)
    return this.#rows.get(id) ?? this.#loaded.rows.get(id)
  }

  /** The links under the attributes that the item writes. Other items may have loaded more. */
  #linksOf(id: string, { write, plan }: Item): Links {
    const links = this.#links.get(id) ?? this.#loaded.links.get(id)
    if (!links || links.size === 0) return noLinks
    const required = new Set(requiredLinkAttributes(write, plan, this.#definitions))
    return new Map([...links].filter(([attribute_id, targets]) => required.has(attribute_id) && targets.length > 0))
  }

  /** Whether the decision of the item, or a response before it, needs what an earlier write of the round did to be stored. */
  needsStored(item: Item): boolean {
    if (this.#changed.size + this.#shown.size + this.#keys.size === 0) return false
    const { write, match, plan } = item
    if (write.keyed && this.#keys.has(write.keyed.id)) return true
    const id = this.#addressed(write)
    if (id !== undefined && this.#shownAsStored.has(id)) return true
    // The links of an entity are read as they are in the end.
    if (id !== undefined && this.#shown.has(id) && requiredLinkAttributes(write, plan, this.#definitions).length > 0)
      return true
    // A response shows the names of the entities that it links to.
    if (this.#shown.size > 0 && (releasesName(write) || write.operation === 'restore')) return true
    if (id !== undefined && this.#changed.has(id)) {
      // The log tells which name an entity releases, and the history which answers an import repeats.
      if (releasesName(write) || write.operation === 'restore') return true
      if (write.operation === 'import' && hasAnswers(write.body)) return true
      if (this.#relinked.has(id) && requiredLinkAttributes(write, plan, this.#definitions).length > 0) return true
    }
    if (match?.tried.some(({ kind, key }) => this.#changedKeys.has(`${kind}\n${key}`))) return true
    const deleted = this.#loaded.deleted.get(item)
    if (deleted && this.#concerns(item, deleted)) return true
    if (this.#moved.size + this.#unsettled.size === 0) return false
    if (plan.claims?.some(({ key }) => this.#unsettled.has(key) || this.holders?.get(key)?.some(this.#isMoved)))
      return true
    const address = addressReference(write)
    const named = requiredReferences(write, plan).concat(address ?? [])
    if (named.some(reference => this.#isUnsettled(reference))) return true
    if (this.#returns && named.some(reference => this.resolve(reference) === undefined)) return true
    return id !== undefined && this.#linksToMoved(this.#linksOf(id, item))
  }

  #isUnsettled(reference: Reference): boolean {
    const id = this.resolve(reference)
    return this.#unsettled.has(referenceKey(reference)) || (id !== undefined && this.#moved.has(id))
  }

  #isMoved = ({ id }: Target) => this.#moved.has(id)

  #linksToMoved = (links: Links) => [...links.values()].some(targets => targets.some(this.#isMoved))

  /** Whether a write of the round may have given or released the name of a deleted entity, or changed what it linked to. */
  #concerns({ write: { stack_id } }: Item, { columns: { external_id }, links }: DeletedEntity): boolean {
    const name = external_id == null ? undefined : { stack_id, external_id }
    if (name && (this.#isUnsettled(name) || this.#ids.has(nameKey(name)))) return true
    return links.some(({ targets }) => targets.some(({ id }) => this.#changed.has(id)))
  }

  /** Adds a decision, so that the next write sees what it changes. */
  add(item: Item, decision: RoundDecision): void {
    if (item.write.keyed) this.#keys.add(item.write.keyed.id)
    if ('refusal' in decision || 'replayed' in decision) return
    if (item.write.represent) {
      const id = idOfDecision(decision)
      this.#shown.add(id)
      if ('unchanged' in decision && !this.#changed.has(id)) this.#shownAsStored.add(id)
    }
    if ('change' in decision) this.#accept(item, decision.change)
  }

  #accept(item: Item, change: Change) {
    const { stack_id } = item.write
    for (const { name } of change.missing) this.#addPlaceholder(item, name)
    const row = this.#rowOf(change.id)
    this.#push({ item, author: item.write, stack_id, change, row })
    this.#noteNames(item, change, row)
    if (change.operation === 'delete' || change.operation === 'restore') this.#moved.add(change.id)
    if (change.operation === 'restore' && stack_id === peopleStackId) this.#returns ||= this.#definitions.has_aliases
    if (change.relinked.length > 0) this.#replaceLinks(change)
    const next = () => (change.operation === 'delete' ? undefined : this.#rowOf(change.id))
    if (this.#definitions.unique.has(stack_id)) this.#noteClaims(stack_id, change.id, row, next())
    if (this.#recognizes && stack_id === peopleStackId) this.#noteKeys(change, row, next())
    if (this.#erased && item.write.erased === 'recreate')
      for (const { value } of erasableValues(change, item.write, row, this.#definitions.default_country))
        this.#erased.delete(value)
  }

  #push(accepted: Accepted) {
    const { id } = accepted.change
    this.accepted.push(accepted)
    this.#changed.add(id)
    this.#unread.set(id, accepted)
  }

  #addPlaceholder(item: Item, name: Name) {
    const key = nameKey(name)
    if (this.#ids.has(key)) return
    const { stack_id, external_id } = name
    const change = buildPlaceholder(newEntityId(stack_id), external_id, this.#loaded.lastVersionOf(name) + 1)
    this.#push({ item, author: item.write, stack_id, change, row: undefined, isPlaceholder: true })
    this.placeholders.set(key, change.id)
    this.#ids.set(key, change.id)
    if (this.#recognizes && stack_id === peopleStackId) this.#changedKeys.add(`external_id\n${external_id}`)
  }

  #noteNames({ write }: Item, change: Change, row: EntityRow | undefined) {
    const { stack_id } = write
    const name = change.external_id === null ? undefined : nameKey({ stack_id, external_id: change.external_id })
    if (!row && change.operation === 'create') {
      if (name !== undefined) this.#ids.set(name, change.id)
      return
    }
    for (const external_id of change.aliases ?? []) this.#unsettled.add(nameKey({ stack_id, external_id }))
    if (change.operation === 'update' && change.columns.external_id === undefined) return
    this.#moved.add(change.id)
    this.#unsettled.add(referenceKey({ stack_id, id: change.id }))
    if (name !== undefined) this.#unsettled.add(name)
    if (row?.external_id != null) this.#unsettled.add(nameKey({ stack_id, external_id: row.external_id }))
  }

  #replaceLinks({ id, relinked }: Change) {
    this.#relinked.add(id)
    const links = new Map(this.#links.get(id) ?? this.#loaded.links.get(id))
    for (const { attribute, targets } of relinked) {
      const ids = new Set(targets.map(target => idOf(target, this.placeholders)))
      links.set(
        attribute.id,
        [...ids].map(id => ({ id, external_id: this.#rowOf(id)?.external_id ?? this.#loaded.names.get(id) ?? null })),
      )
    }
    this.#links.set(id, links)
  }

  #noteClaims(stack_id: number, id: string, before: EntityRow | undefined, after: EntityRow | undefined) {
    const unique = this.#definitions.unique.get(stack_id)
    const claimed = claimsOf(unique, after?.attributes).map(({ key }) => key)
    const released = claimsOf(unique, before?.attributes).map(({ key }) => key)
    for (const key of released.filter(key => !claimed.includes(key))) this.#unsettled.add(key)
    for (const key of claimed.filter(key => !released.includes(key)))
      this.#holders.set(key, [...(this.holders?.get(key) ?? []), { id, external_id: after!.external_id }])
  }

  #noteKeys({ operation, columns, aliases = [] }: Change, before: EntityRow | undefined, after: EntityRow | undefined) {
    for (const alias of aliases) this.#changedKeys.add(`external_id\n${alias}`)
    if (operation === 'update' && !recognizingFields.some(field => columns[field] !== undefined)) return
    for (const person of [before, after]) {
      if (!person) continue
      const { email_key, mobile_key } = matchKeys(person, this.#definitions.default_country)
      if (person.external_id !== null) this.#changedKeys.add(`external_id\n${person.external_id}`)
      if (email_key !== null) this.#changedKeys.add(`email\n${email_key}`)
      if (mobile_key !== null) this.#changedKeys.add(`mobile\n${mobile_key}`)
    }
  }
}

const noLinks: Links = new Map()

const recognizingFields = ['external_id', ...fieldsByKey.email_key, ...fieldsByKey.mobile_key] as const

const noProfile = Object.fromEntries([...profileTexts, ...profileFlags].map(field => [field, null])) as Profile

function rowAfter({ stack_id, row, change: { id, columns, set, removed } }: Accepted): EntityRow {
  const before = row ?? {
    ...noProfile,
    stack_id,
    id,
    external_id: null,
    active: true,
    version: 0,
    answers: {},
    attributes: {},
  }
  return { ...before, ...columns, attributes: mergeValues(before.attributes, { set, removed }) }
}

/** The values without the removed ones, and with those that are set. Keys are clients' own, so none is assigned. */
export function mergeValues(
  values: Record<string, unknown>,
  { set, removed }: Pick<Change, 'set' | 'removed'>,
): Record<string, unknown> {
  if (removed.length === 0 && Object.keys(set).length === 0) return values
  const merged = new Map(Object.entries(values))
  for (const key of removed) merged.delete(key)
  for (const [key, value] of Object.entries(set)) merged.set(key, value)
  return Object.fromEntries(merged)
}

/** The id of the target of a link. A placeholder that the round creates has one before it is stored. */
export const idOf = (target: PlannedTarget, placeholders: WriteState['placeholders']): string =>
  'id' in target ? target.id : placeholders.get(nameKey(target.name))!

import { type Definitions, peopleStackId } from '../../organizations/definitions.ts'
import type { StoredResponse } from '../../route/call.ts'
import type { EntityRow } from '../entity-row.ts'
import { newEntityId } from '../identifiers.ts'
import { fieldsByKey, matchKeys } from '../match-keys.ts'
import { type Change, type Decision, idOfDecision } from './decide/decide.ts'
import { erasableValues } from './decide/erasable-values.ts'
import type { Loaded } from './load/loaded.ts'
import {
  type IndexedWrite,
  type Item,
  type Name,
  nameKey,
  referenceKey,
  releasesName,
  requiredLinkAttributes,
  requiredReferences,
} from './plan.ts'
import { claimsOf } from './unique.ts'

/** The decision on a write, or the response that an earlier request with its Idempotency-Key had. */
export type RoundDecision = Decision | { replayed: StoredResponse }

/**
 * The entities, names and values that the writes of a transaction have changed, each with the number of its round. A
 * write is decided on loaded data alone, so a round ends before a write that names something that has changed since it
 * was loaded.
 */
export class Changed {
  /** The number of the round that is being decided. A load sees the changes of the rounds before it. */
  round = 1
  readonly #definitions: Definitions
  readonly #recognizes: boolean
  readonly #rounds = new Map<string, number>()
  readonly #created = new Map<string, string>()
  /**
   * The last round that changed data, the last one after which every item is loaded again, and the last that shows an
   * entity.
   */
  #last = 0
  #barrier = 0
  #shown = 0

  constructor(writes: readonly IndexedWrite[], definitions: Definitions) {
    this.#definitions = definitions
    this.#recognizes = writes.some(({ write }) => write.match !== undefined)
  }

  /** The ids of the entities that were created by name, by {@link nameKey}. Later writes may link to them at once. */
  get created(): ReadonlyMap<string, string> {
    return this.#created
  }

  /** Whether an item, loaded when round `since` was the current one, names something that has changed since. */
  concerns({ write, plan, match, key: addressKey }: Item, loaded: Loaded, since: number): boolean {
    if (this.#last < since) return false
    if (this.#barrier >= since || write.operation === 'restore') return true
    // A response shows the names of the entities that it links to.
    if (this.#shown === this.round && releasesName(write)) return true
    const has = (key: string) => (this.#rounds.get(key) ?? 0) >= since
    const isMoved = ({ id }: { id: string }) => has(movedKey(id))
    if (write.keyed && has(write.keyed.id)) return true
    if (match && [...match.tried, ...match.others].some(({ kind, key }) => has(`${kind}\n${key}`))) return true
    // A refusal names the entity that has the value, so a change of its name matters too.
    if (plan.claims?.some(({ key }) => has(key) || loaded.holders.get(key)?.some(isMoved))) return true
    if (addressKey !== undefined) {
      if (has(addressKey)) return true
      const id = loaded.ids.get(addressKey)
      if (id !== undefined && has(id)) return true
      const links = id === undefined ? undefined : loaded.links.get(id)
      if (links && requiredLinkAttributes(write, plan, this.#definitions).some(each => links.get(each)?.some(isMoved)))
        return true
    }
    return requiredReferences(write, plan).some(reference => {
      const key = referenceKey(reference)
      if (this.#created.has(key)) return false
      const id = loaded.ids.get(key)
      return has(key) || (id !== undefined && isMoved({ id }))
    })
  }

  /** Creates placeholders for the names that no write has created. Returns these names with their ids. */
  create(names: readonly Name[]): { name: Name; id: string }[] {
    const created: { name: Name; id: string }[] = []
    for (const name of names) {
      if (this.#created.has(nameKey(name))) continue
      const id = newEntityId(name.stack_id)
      this.#nameCreated(name, id)
      created.push({ name, id })
    }
    return created
  }

  /** Records a decision and the row before it. */
  add(item: Item, decision: RoundDecision, row: EntityRow | undefined, erased: ReadonlySet<string> | undefined): void {
    const { write } = item
    if (write.keyed) this.#note(write.keyed.id)
    if ('refusal' in decision || 'replayed' in decision) return
    if (write.represent) {
      this.#shown = this.round
      this.#note(idOfDecision(decision))
    }
    if (!('change' in decision)) return
    const { change } = decision
    const { stack_id } = write
    this.#note(change.id)
    const name = change.external_id === null ? undefined : { stack_id, external_id: change.external_id }
    if (change.operation === 'create') {
      if (name) this.#nameCreated(name, change.id)
    } else if (change.operation !== 'update' || change.columns.external_id !== undefined) {
      this.#note(movedKey(change.id))
      this.#note(referenceKey({ stack_id, id: change.id }))
      if (name) this.#nameMoved(name)
      if (row?.external_id != null) this.#nameMoved({ stack_id, external_id: row.external_id })
    }
    if (this.#definitions.unique.has(stack_id)) this.#noteClaims(stack_id, change, row)
    if (this.#recognizes && stack_id === peopleStackId) this.#noteKeys(change, row)
    const isRecreated =
      write.erased === 'recreate' &&
      erased &&
      erasableValues(change, write, row, this.#definitions.default_country).some(({ value }) => erased.has(value))
    if (change.operation === 'restore' || change.aliases || change.released || isRecreated) this.#barrier = this.round
  }

  #note(key: string) {
    this.#rounds.set(key, this.round)
    this.#last = this.round
  }

  #nameCreated(name: Name, id: string) {
    this.#created.set(nameKey(name), id)
    this.#note(nameKey(name))
    if (this.#recognizes && name.stack_id === peopleStackId) this.#note(`external_id\n${name.external_id}`)
  }

  #nameMoved(name: Name) {
    this.#created.delete(nameKey(name))
    this.#note(nameKey(name))
  }

  /** Records the values of unique attributes that a change gives or releases. */
  #noteClaims(stack_id: number, { operation, set, removed }: Change, row: EntityRow | undefined) {
    const attributes = this.#definitions.unique.get(stack_id)!
    const written = attributes.filter(
      ({ key }) => operation === 'delete' || Object.hasOwn(set, key) || removed.includes(key),
    )
    for (const values of [row?.attributes, set]) for (const { key } of claimsOf(written, values)) this.#note(key)
  }

  /** Records the emails, phones and names that a change gives or releases. */
  #noteKeys({ operation, columns }: Change, row: EntityRow | undefined) {
    if (operation === 'update' && !recognizingFields.some(field => columns[field] !== undefined)) return
    for (const person of [row, { ...row, ...columns }]) {
      if (!person) continue
      const { email_key, mobile_key } = matchKeys(person, this.#definitions.default_country)
      if (person.external_id != null) this.#note(`external_id\n${person.external_id}`)
      if (email_key !== null) this.#note(`email\n${email_key}`)
      if (mobile_key !== null) this.#note(`mobile\n${mobile_key}`)
    }
  }
}

/** The key of an entity whose name, or whose existence, has changed. */
const movedKey = (id: string) => `moved\n${id}`

const recognizingFields = ['external_id', ...fieldsByKey.email_key, ...fieldsByKey.mobile_key] as const

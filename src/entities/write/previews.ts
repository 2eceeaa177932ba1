import { answerChanges, answerChangesToJson } from '../../consents/answer-changes.ts'
import { type Definitions, peopleKey, peopleStackId } from '../../organizations/definitions.ts'
import type { Change, Decision } from '../decide/decide.ts'
import type { DecidedSet } from '../decide/decide-set.ts'
import type { WritePreview } from '../write-request.ts'
import type { Item } from './plan-write.ts'

/** Collects what the sets of a dry run would do. `maxLength` bounds the characters of JSON of all previews. */
export class Previews {
  readonly #maxLength: number
  readonly #newIds = new Set<string>()
  #length = 0

  constructor(maxLength = Number.POSITIVE_INFINITY) {
    this.#maxLength = maxLength
  }

  /** Whether the values were too large. Those of further writes are left out. */
  get isTooLarge(): boolean {
    return this.#length > this.#maxLength
  }

  /** Forgets everything, before the same writes run again. */
  clear(): void {
    this.#newIds.clear()
    this.#length = 0
  }

  /** Describes the decisions of a set, in order of its items. */
  add(set: DecidedSet): Map<Item, WritePreview> {
    for (const { change } of set.accepted) if (change.operation === 'create') this.#newIds.add(change.id)
    for (const { id } of set.placeholders.values()) this.#newIds.add(id)
    const previews = new Map<Item, WritePreview>()
    for (const [item, decision] of set.decisions)
      if (!('refusal' in decision)) previews.set(item, this.#describe(item, decision, set))
    return previews
  }

  #describe(
    item: Item,
    decision: Exclude<Decision, { refusal: unknown }>,
    { definitions, rows, placeholders }: DecidedSet,
  ): WritePreview {
    if ('unchanged' in decision) {
      const isNew = this.#newIds.has(decision.unchanged.id)
      return { isNew, before: null, after: null, placeholders: [], consents: [] }
    }
    const { change } = decision
    const { id, before, after } = change
    const preview = {
      isNew: this.#newIds.has(id),
      before,
      after,
      placeholders: [...placeholders.values()]
        .filter(placeholder => placeholder.item === item)
        .map(({ stack_id, external_id }) => ({ kind: kindOf(definitions, stack_id), external_id })),
      consents: answerChangesToJson(answerChanges(rows.get(item)?.answers ?? {}, answersAfter(change, rows.get(item)))),
    }
    if (this.#maxLength !== Number.POSITIVE_INFINITY) this.#length += JSON.stringify(preview).length
    return this.isTooLarge ? { ...preview, before: null, after: null } : preview
  }
}

const answersAfter = ({ operation, columns }: Change, row: { answers: DecidedAnswers } | undefined): DecidedAnswers =>
  operation === 'delete' ? {} : (columns.answers ?? row?.answers ?? {})

type DecidedAnswers = NonNullable<Change['columns']['answers']>

const kindOf = ({ stacks }: Definitions, stack_id: number): string =>
  stack_id === peopleStackId ? peopleKey : stacks.find(({ id }) => id === stack_id)!.key

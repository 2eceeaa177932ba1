import { answerChanges, answerChangesToJson } from '../../consents/answer-changes.ts'
import { type Definitions, ownerOf } from '../../organizations/definitions.ts'
import { yieldIfDue } from '../../process/event-loop.ts'
import type { WritePreview } from '../write-request.ts'
import type { Change } from './decide/decide.ts'
import type { Item } from './plan.ts'
import type { Accepted, DecidedRound } from './round.ts'

/** Collects the previews of a dry run's writes. `maxLength` bounds the characters of JSON of all previews. */
export class Previews {
  readonly #maxLength: number
  readonly #newIds = new Set<string>()
  #length = 0

  constructor(maxLength = Number.POSITIVE_INFINITY) {
    this.#maxLength = maxLength
  }

  /** Whether the values were too large. The values of further writes are then left out. */
  get isTooLarge(): boolean {
    return this.#length > this.#maxLength
  }

  /** Describes the decisions of a round, in order of its items. */
  async add({ definitions, decisions, accepted }: DecidedRound): Promise<Map<Item, WritePreview>> {
    for (const { change } of accepted) if (change.operation === 'create') this.#newIds.add(change.id)
    const acceptedByItem = Map.groupBy(accepted, ({ item }) => item)
    const previews = new Map<Item, WritePreview>()
    for (const [item, decision] of decisions) {
      if ('refusal' in decision || 'replayed' in decision) continue
      await yieldIfDue()
      const isNew = this.#newIds.has('change' in decision ? decision.change.id : decision.unchanged.id)
      previews.set(item, { isNew, ...this.#describe(definitions, acceptedByItem.get(item) ?? []) })
    }
    return previews
  }

  #describe(definitions: Definitions, accepted: readonly Accepted[]): Omit<WritePreview, 'isNew'> {
    const own = accepted.find(({ isPlaceholder }) => !isPlaceholder)
    if (!own) return { before: null, after: null, placeholders: [], consents: [] }
    const { change, row } = own
    const preview = {
      before: change.before,
      after: change.after,
      placeholders: accepted
        .filter(({ isPlaceholder }) => isPlaceholder)
        .map(({ stack_id, change: { external_id } }) => ({
          kind: ownerOf(definitions, stack_id),
          external_id: external_id!,
        })),
      consents: answerChangesToJson(answerChanges(row?.answers ?? {}, answersAfter(change, row))),
    }
    if (this.#maxLength !== Number.POSITIVE_INFINITY) this.#length += JSON.stringify(preview).length
    return this.isTooLarge ? { ...preview, before: null, after: null } : preview
  }
}

const answersAfter = ({ operation, columns }: Change, row: { answers: DecidedAnswers } | undefined): DecidedAnswers =>
  operation === 'delete' ? {} : (columns.answers ?? row?.answers ?? {})

type DecidedAnswers = NonNullable<Change['columns']['answers']>

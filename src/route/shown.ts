/** The maximum number of ids of an owner that an access lists. */
export const maxShownIds = 500

/**
 * The entities of one stack that a request has shown or written: the first ids, and the number of all. `stack_id` is
 * null if the stack is unknown.
 */
export type ShownOfStack = { stack_id: number | null; ids: string[]; count: number }

type Noted = { stack_id: number; ids: Set<string>; count: number; takenIds: number; takenCount: number }

const none: Noted[] = []

/**
 * The people and records that a request shows or writes, for the access log. The readers and writers of entities add
 * them, and the pipeline takes them when it sends the response.
 */
export class Shown {
  #stacks = none
  /** The subject of a security event, such as a new token, if the path of the request does not have it. */
  target: string | undefined

  /** Adds an entity by its internal identifier. Each of the first 500 entities counts once. */
  add(stack_id: number, id: string): void {
    const noted = this.#of(stack_id)
    if (noted.ids.has(id)) return
    if (noted.ids.size < maxShownIds) noted.ids.add(id)
    noted.count += 1
  }

  /** Counts an entity without listing it, because 500 others are listed. */
  addUnlisted(stack_id: number): void {
    this.#of(stack_id).count += 1
  }

  addAll(stack_id: number, entities: Iterable<string | { id: string }>): void {
    for (const entity of entities) this.add(stack_id, typeof entity === 'string' ? entity : entity.id)
  }

  /** Whether {@link take} would return an entity: an id or, with `counts`, a count. */
  hasMore({ counts }: { counts: boolean }): boolean {
    return this.#stacks.some(
      ({ ids, count, takenIds, takenCount }) => ids.size > takenIds || (counts && count > takenCount),
    )
  }

  /**
   * Returns the additions since the last call. With `again`, an id that was returned before and added again is listed
   * again.
   */
  take(again = false): ShownOfStack[] {
    return this.#stacks.flatMap(noted => {
      const { stack_id, ids, count, takenIds, takenCount } = noted
      if (count === takenCount) return []
      const taken = [...ids].slice(takenIds)
      if (again) ids.clear()
      noted.takenIds = ids.size
      noted.takenCount = count
      return [{ stack_id, ids: taken, count: count - takenCount }]
    })
  }

  #of(stack_id: number): Noted {
    for (const noted of this.#stacks) if (noted.stack_id === stack_id) return noted
    const noted = { stack_id, ids: new Set<string>(), count: 0, takenIds: 0, takenCount: 0 }
    if (this.#stacks === none) this.#stacks = []
    this.#stacks.push(noted)
    return noted
  }
}

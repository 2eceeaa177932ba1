import { eventOf, type LoggedChange } from './change-json.ts'
import { isSelected, type Selection } from './selection.ts'

/** A request receives at most this much at a time, so that 1,000 slow clients hold at most 64 MiB. */
const maxPartBytes = 64 * 1024

type KeptChange = Omit<LoggedChange, 'at' | 'json'> & { event: Buffer }

/** Changes after a position, up to `last`. The requests at one position share it. */
export type Part = {
  last: number
  changes: readonly KeptChange[]
  /** The selected changes as server-sent events; undefined if there are none. */
  eventsOf(selection: Selection): Buffer | undefined
}

/** The newest changes of a log, printed: those with the numbers after `start` up to `end`. */
export class KeptChanges {
  start: number
  end: number
  #changes: KeptChange[] = []
  #bytes = 0
  /** The parts since the last change, by position. */
  #parts = new Map<number, Part>()

  constructor(position: number) {
    this.start = position
    this.end = position
  }

  /** Discards all changes and begins at a position. */
  restartAt(position: number): void {
    this.#changes = []
    this.#bytes = 0
    this.start = position
    this.end = position
    this.#parts.clear()
  }

  /** Adds the changes after `end` up to `last`. Discards the oldest of those before if the size exceeds the limit. */
  add(changes: readonly LoggedChange[], last: number, maxBytes: number): void {
    const older = this.#changes.length
    for (const change of changes) {
      const { sequence, subject, stack_id, entity_id, operation } = change
      // A substring would keep the whole text of the read in memory.
      const event = Buffer.from(eventOf(change))
      this.#changes.push({ sequence, subject, stack_id, entity_id, operation, event })
      this.#bytes += event.length
    }
    this.end = last
    this.#parts.clear()
    let forgotten = 0
    for (; forgotten < older && this.#bytes > maxBytes; forgotten += 1) {
      const { sequence, event } = this.#changes[forgotten]!
      this.#bytes -= event.length
      this.start = sequence
    }
    if (forgotten > 0) this.#changes.splice(0, forgotten)
  }

  /** Discards the parts, and all changes if their size exceeds the limit. */
  shrink(maxBytes: number): void {
    this.#parts.clear()
    if (this.#bytes > maxBytes) this.restartAt(this.end)
  }

  /** The part after a position from `start` on and before `end`. */
  partAfter(position: number): Part {
    const existing = this.#parts.get(position)
    if (existing) return existing
    const changes = this.#changes
    const first = changes.findLastIndex(({ sequence }) => sequence <= position) + 1
    let end = first
    for (let bytes = 0; end < changes.length && bytes < maxPartBytes; end += 1) bytes += changes[end]!.event.length
    const part = partOf(changes.slice(first, end), end < changes.length ? changes[end - 1]!.sequence : this.end)
    this.#parts.set(position, part)
    return part
  }
}

function partOf(changes: readonly KeptChange[], last: number): Part {
  const eventsByKey = new Map<string, Buffer | undefined>()
  return {
    last,
    changes,
    eventsOf: selection => {
      const { key } = selection
      if (!eventsByKey.has(key)) {
        const events = changes.filter(change => isSelected(selection, change)).map(({ event }) => event)
        eventsByKey.set(key, events.length > 1 ? Buffer.concat(events) : events[0])
      }
      return eventsByKey.get(key)
    },
  }
}

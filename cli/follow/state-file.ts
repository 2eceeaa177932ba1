import { renameSync, writeFileSync } from 'node:fs'
import { parsedJson } from '../../transfer/parsed-json.ts'
import { readFileOrNull } from '../files.ts'

/** The position of a follower of the change log. */
export type Position = { log_id: string; after: number }

// A write waits for the disk. At 100,000 changes, one write per change would take minutes.
const minIntervalMs = 100

/** The file that keeps a position. It is replaced as a whole, so that it never holds a part of one. */
export class StateFile {
  readonly #path: string
  readonly #onError: (error: Error) => void
  #unsaved: Position | undefined
  #nextMs = 0
  #timer: NodeJS.Timeout | undefined

  /** `onError` is called if a later save fails. */
  constructor(path: string, onError: (error: Error) => void) {
    this.#path = path
    this.#onError = onError
  }

  /** Saves a position now, or within 100 ms if one was just saved. */
  save(position: Position): void {
    this.#unsaved = position
    const waitMs = this.#nextMs - performance.now()
    if (waitMs <= 0) this.flush()
    else this.#timer ??= setTimeout(() => this.#flushLater(), waitMs)
  }

  /** Saves the last position if it is not saved yet. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (!this.#unsaved) return
    const next = `${this.#path}.new`
    writeFileSync(next, `${JSON.stringify(this.#unsaved)}\n`, { flush: true })
    renameSync(next, this.#path)
    this.#unsaved = undefined
    this.#nextMs = performance.now() + minIntervalMs
  }

  #flushLater() {
    try {
      this.flush()
    } catch (error) {
      this.#onError(error as Error)
    }
  }
}

/** Reads the position in a file. Null if the file does not exist. `name` is the name as it was typed, for the error. */
export async function readPosition(path: string, name: string): Promise<Position | null> {
  const text = await readFileOrNull(path)
  if (text === null) return null
  const position = parsedJson(text) as Partial<Position> | null | undefined
  if (typeof position?.log_id !== 'string' || !Number.isSafeInteger(position.after))
    throw new Error(`${name} is not a state file of kith follow. Delete it to begin again.`)
  return position as Position
}
